"""One member of a group in a process of its own, so that a test can kill it.

    member_program.py CLIENT ADDRESS GROUP TOPIC ASSIGNOR SESSION_MS HEARTBEAT_MS

It reads all it is given and commits after each batch.  What happens to it goes to standard output,
a line of JSON each: [stamp in ns of the monotonic clock, what, data].  The line "leave", or the end
of standard input, makes it leave its group and end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tarry.base.ids import TopicPartition

# How long one poll waits: what a request to leave may have to wait too.
POLL_MS: Final = 100
# Topics of librdkafka's log on standard error: it writes from threads of its own, also
# while a commit does not return.
DEBUG: Final = {"debug": words} if (words := os.environ.get("TARRY_TEST_LIBRDKAFKA_DEBUG")) else {}


class Membership(NamedTuple):
    """What the command line says."""

    address: str
    group: str
    topic: str
    assignor: str
    session_ms: int
    heartbeat_ms: int


class Leaving:
    """True once the test wants this member to go."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        for line in sys.stdin:
            if line.strip() == "leave":
                break
        self.asked.set()

    def __bool__(self) -> bool:
        return self.asked.is_set()


def tell(what: str, data: Any) -> None:
    # One write: lines of two threads do not mix.
    sys.stdout.write(json.dumps([time.monotonic_ns(), what, data]) + "\n")
    sys.stdout.flush()


def tell_read(records: Iterable[tuple[int, int, bytes]]) -> None:
    tell("read", [[partition, offset, value.decode()] for partition, offset, value in records])


def tell_partitions(what: str, partitions: Iterable[Any]) -> None:
    found = sorted(each.partition for each in partitions)
    if found:
        tell(what, found)


def run_confluent(membership: Membership, leaving: Leaving) -> None:
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer(
        {
            "bootstrap.servers": membership.address,
            "group.id": membership.group,
            "partition.assignment.strategy": membership.assignor,
            "session.timeout.ms": membership.session_ms,
            "heartbeat.interval.ms": membership.heartbeat_ms,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 200,
            **(DEBUG or {"log_level": 0}),
        }
    )
    consumer.subscribe(
        [membership.topic],
        on_assign=lambda _, partitions: tell_partitions("assigned", partitions),
        on_revoke=lambda _, partitions: tell_partitions("revoked", partitions),
        on_lost=lambda _, partitions: tell_partitions("lost", partitions),
    )
    while not leaving:
        found = [one for one in consumer.consume(500, POLL_MS / 1000) if one.error() is None]
        if not found:
            continue
        tell_read((one.partition(), one.offset(), one.value()) for one in found)
        tell("committing", None)
        try:
            done = consumer.commit(asynchronous=False)
        except KafkaException as refusal:
            tell("refused", str(refusal))
        else:
            tell("committed", [[one.partition, one.offset] for one in done if one.error is None])
    consumer.close()


def run_kafka_python(membership: Membership, leaving: Leaving) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kafka
        from kafka.coordinator.assignors import cooperative_sticky, range, roundrobin
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
        from kafka.errors import KafkaError

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    assignors = {
        "range": range.RangePartitionAssignor,
        "roundrobin": roundrobin.RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": cooperative_sticky.CooperativeStickyAssignor,
    }

    class Listener(kafka.ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Any) -> None:
            tell_partitions("assigned", assigned)

        def on_partitions_revoked(self, revoked: Any) -> None:
            tell_partitions("revoked", revoked)

        def on_partitions_lost(self, lost: Any) -> None:
            tell_partitions("lost", lost)

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=membership.address,
        group_id=membership.group,
        partition_assignment_strategy=(assignors[membership.assignor],),
        session_timeout_ms=membership.session_ms,
        heartbeat_interval_ms=membership.heartbeat_ms,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        reconnect_backoff_max_ms=200,
    )
    consumer.subscribe([membership.topic], listener=Listener())
    while not leaving:
        try:
            batches = consumer.poll(POLL_MS)
        except KafkaError as refusal:
            # A program that reads on and on takes this for a pause, as a broker's restart is one.
            tell("refused", repr(refusal))
            continue
        if not batches:
            continue
        tell_read(
            (one.partition, one.offset, one.value) for batch in batches.values() for one in batch
        )
        ends = {
            asked: kafka.OffsetAndMetadata(batch[-1].offset + 1, "", -1)
            for asked, batch in batches.items()
        }
        tell("committing", None)
        try:
            consumer.commit(ends)
        except KafkaError as refusal:
            tell("refused", repr(refusal))
        else:
            tell("committed", [[asked.partition, end.offset] for asked, end in ends.items()])
    consumer.close()


def run_aiokafka(membership: Membership, leaving: Leaving) -> None:
    asyncio.run(aiokafka_member(membership, leaving))


async def aiokafka_member(membership: Membership, leaving: Leaving) -> None:
    import aiokafka
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    class Listener(aiokafka.ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Any) -> None:
            tell_partitions("assigned", assigned)

        def on_partitions_revoked(self, revoked: Any) -> None:
            tell_partitions("revoked", revoked)

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=membership.address,
        group_id=membership.group,
        partition_assignment_strategy=(assignors[membership.assignor],),
        session_timeout_ms=membership.session_ms,
        heartbeat_interval_ms=membership.heartbeat_ms,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.subscribe([membership.topic], listener=Listener())
    await consumer.start()
    while not leaving:
        batches = await consumer.getmany(timeout_ms=POLL_MS)
        if not batches:
            continue
        tell_read(
            (one.partition, one.offset, one.value) for batch in batches.values() for one in batch
        )
        ends = {asked: batch[-1].offset + 1 for asked, batch in batches.items()}
        tell("committing", None)
        try:
            await consumer.commit(ends)
        except KafkaError as refusal:
            tell("refused", repr(refusal))
        else:
            tell("committed", [[asked.partition, end] for asked, end in ends.items()])
    # This client says nothing of it, and another member may be given them before the end is told.
    tell_partitions("revoked", consumer.assignment())
    await consumer.stop()


def run_tarry(membership: Membership, leaving: Leaving) -> None:
    from tarry.client.errors import CommitFailed
    from tarry.client.sync.consumer import Consumer
    from tarry.client.sync.listener import Listener

    class Teller(Listener):
        def on_assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
            tell_places("assigned", places)

        def on_revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
            tell_places("revoked", places)

        def on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
            tell_places("lost", places)

    consumer = Consumer(
        membership.topic,
        bootstrap_servers=membership.address,
        group_id=membership.group,
        partition_assignment_strategy=membership.assignor,
        session_timeout_ms=membership.session_ms,
        heartbeat_interval_ms=membership.heartbeat_ms,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        reconnect_backoff_max_ms=200,
        retry_backoff_max_ms=200,
        listener=Teller(),
    )
    is_refused = False
    while not leaving:
        groups = consumer.poll(POLL_MS / 1000)
        if not groups and not is_refused:
            continue
        tell_read(
            (group.partition, one.offset, one.value) for group in groups for one in group.records
        )
        tell("committing", None)
        try:
            consumer.commit()
        except CommitFailed as refusal:
            tell("refused", str(refusal))
            is_refused = refusal.is_retriable
        else:
            is_refused = False
            tell("committed", [[one.partition, one.records[-1].offset + 1] for one in groups])
    consumer.close()


def tell_places(what: str, places: list[TopicPartition]) -> None:
    if places:
        tell(what, sorted(partition for _, partition in places))


RUNS: Final = {
    "confluent-kafka": run_confluent,
    "kafka-python": run_kafka_python,
    "aiokafka": run_aiokafka,
    "tarry": run_tarry,
}


def main() -> None:
    client, address, group, topic, assignor, session_ms, heartbeat_ms = sys.argv[1:]
    membership = Membership(address, group, topic, assignor, int(session_ms), int(heartbeat_ms))
    with contextlib.suppress(BrokenPipeError):
        RUNS[client](membership, Leaving())
        tell("left", None)


if __name__ == "__main__":
    main()

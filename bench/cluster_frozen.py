"""Scene of a metadata store that stands still: how long producers and members of a group pause.

The processes that keep the metadata (etcd here, three controllers of Apache Kafka there) are
stopped by SIGSTOP for longer than a broker's session time-out, and go on.  Meanwhile an idempotent
producer of librdkafka writes a record a millisecond, and three members of librdkafka commit what
they have read, one commit after the other.  A gap is the longest time between two
acknowledgements, or between two commits of the same member.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Final, Self

from acknowledgements import Acknowledgements, longest_gap_s
from cluster_nodes import READY_S_MAX, REPLICAS, Cluster, wait_for
from confluent_kafka import Consumer, KafkaException, TopicPartition, admin as confluent_admin

TOPIC: Final = "frozen"
PARTITIONS: Final = 6
GROUP: Final = "frozen-readers"
MEMBERS: Final = 3
MEMBER_SESSION_MS: Final = 10_000
SETTLED_S: Final = 8
FROZEN_S: Final = 20
AFTER_S: Final = 30


class CommittingMember:
    """Member that reads and commits, one synchronous commit after the other, in its own thread."""

    def __init__(self, cluster: Cluster) -> None:
        self.times: list[float] = []
        self._must_end = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.addresses,
                "group.id": GROUP,
                "session.timeout.ms": MEMBER_SESSION_MS,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
            }
        )

    def __enter__(self) -> Self:
        self._consumer.subscribe([TOPIC])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._must_end.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._must_end.is_set():
            message = self._consumer.poll(0.1)
            places: list[TopicPartition] = self._consumer.assignment()
            if message is not None and message.error() is None:
                end = message.offset() + 1
                places = [TopicPartition(TOPIC, message.partition(), end)]
            else:
                # A member without news commits where it is: at the start, if nothing was written.
                positions = self._consumer.position(places)
                places = [
                    TopicPartition(TOPIC, each.partition, max(each.offset, 0)) for each in positions
                ]
            if not places:
                continue
            try:
                self._consumer.commit(offsets=places, asynchronous=False)
            except KafkaException:
                continue
            self.times.append(time.monotonic())


def _gap_s(times: list[float], since: float, until: float) -> float:
    """Return the longest time without one of these moments between `since` and `until`, in s."""
    return longest_gap_s([since, *(each for each in times if since < each < until), until])


def frozen_figures(cluster: Cluster) -> str:
    """Freeze what keeps the metadata, and tell the longest gaps of producer and members."""
    admin = confluent_admin.AdminClient({"bootstrap.servers": cluster.addresses})
    wait_for(lambda: len(admin.list_topics(timeout=10).brokers) == len(REPLICAS), "three brokers")
    wanted = confluent_admin.NewTopic(TOPIC, PARTITIONS, replication_factor=len(REPLICAS))
    for future in admin.create_topics([wanted]).values():
        future.result(READY_S_MAX)
    members = [CommittingMember(cluster) for _ in range(MEMBERS)]
    with Acknowledgements(cluster, TOPIC) as acknowledged, members[0], members[1], members[2]:
        wait_for(lambda: all(member.times for member in members), "commits of every member")
        time.sleep(SETTLED_S)
        began = time.monotonic()
        for pid in cluster.keepers:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(FROZEN_S)
        woken = time.monotonic()
        for pid in cluster.keepers:
            os.kill(pid, signal.SIGCONT)
        time.sleep(AFTER_S)
        ended = time.monotonic()
    told = []
    for since, until in ((began, woken), (woken, ended)):
        written = _gap_s(acknowledged.times, since, until)
        committed = [_gap_s(member.times, since, until) for member in members]
        told.append(f"{written:.2f} s written, {max(committed):.2f} s committed")
    return f"frozen: {told[0]}; woken: {told[1]}"

"""A user's typed program: checked against the installed wheel by mypy and pyright, never run.

It imports from `tarry.client`, its faces and its errors alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from tarry.client import (
    EARLIEST,
    LATEST,
    SET,
    Admin,
    CommittedOffset,
    ConfigChange,
    ConfigEntry,
    Consumer,
    ConsumerRecord,
    FoundOffset,
    GroupDescription,
    GroupView,
    Json,
    Listener,
    NewTopic,
    Producer,
    Receipt,
    RecordGroup,
    Text,
    Topic,
    TopicOutcome,
    TopicPartition,
    aio,
)
from tarry.client.arrow import ArrowConsumer, ArrowProducer, TableReceipt
from tarry.client.errors import (
    BrokerError,
    ClientError,
    CommitFailed,
    DecodeError,
    DeliveryFailed,
    InvalidSetting,
    OffsetOutOfRange,
    TimedOut,
)


@dataclass
class Order:
    number: int
    buyer: str


class Auditor(Listener):
    def __init__(self) -> None:
        self.owned: list[TopicPartition] = []

    def on_assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.owned += places
        consumer.seek_to_beginning(places)

    def on_revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.commit()
        self.owned = [place for place in self.owned if place not in places]


def produce(settings: Mapping[str, str | int | bool]) -> int:
    with Producer(settings, linger_ms="10ms", compression_type="zstd") as producer:
        receipt = producer.send("orders", b"1", key=b"7", headers={"kind": b"new", "old": None})
        assert_type(receipt, Receipt)
        producer.send("orders", memoryview(b"2"), headers=[("kind", bytearray(b"new"))])
        producer.send("orders", partition=0, timestamp=1_700_000_000_000)
        producer.send("orders", b"3", deliver_at=datetime.now(UTC), schedule_id="three")
        producer.send("orders", b"4", deliver_after=timedelta(hours=1))
        producer.send_and_wait("orders", b"5", deliver_after="1h30m", schedule_id=b"five")
        assert_type(producer.cancel("orders", schedule_id="three", key=b"7"), Receipt)
        try:
            producer.flush(timeout=5)
        except DeliveryFailed as failed:
            assert_type(failed.count, int)
            assert_type(failed.first, ClientError)
        return receipt.result(timeout=5).offset


def consume(pattern: re.Pattern[str]) -> list[bytes]:
    values: list[bytes] = []
    with Consumer(
        pattern, bootstrap_servers="localhost:9092", group_id="billing", listener=Auditor()
    ) as consumer:
        assert_type(consumer, Consumer[bytes, bytes])
        for record in consumer:
            assert_type(record, ConsumerRecord[bytes, bytes])
            assert_type(record.value, bytes | None)
            assert_type(record.headers, list[tuple[str, bytes | None]])
            values.append(record.value or b"")
            sent = consumer.defer(record, ["1m", timedelta(minutes=5)], dead_letter="orders.dead")
            assert_type(sent, Receipt)
            consumer.commit(record)
        for group in consumer.poll(1.0, max_records=10):
            assert_type(group, RecordGroup[bytes, bytes])
        try:
            consumer.commit({("orders", 0): 42})
        except CommitFailed as failed:
            assert_type(failed.is_retriable, bool)
        assert_type(consumer.group, GroupView)
        committed = consumer.committed([("orders", 0)])
        assert_type(committed, dict[TopicPartition, CommittedOffset | None])
    return values


def produce_objects() -> None:
    with Producer(key=Text(), value=Json(Order)) as producer:
        producer.send("orders", Order(1, "me"), key="7")


def consume_objects() -> Order | None:
    with Consumer("orders", group_id="billing", key=Text(), value=Json(Order)) as consumer:
        try:
            for record in consumer:
                assert_type(record.key, str | None)
                return record.value
        except DecodeError as error:
            assert_type(error.data, bytes | None)
            error.skip()
    return None


def read_from_the_end() -> dict[TopicPartition, int]:
    with Consumer({"bootstrap.servers": "localhost:9092", "max.poll.records": 10}) as consumer:
        consumer.assign([("orders", number) for number in consumer.partitions_of("orders")])
        consumer.seek_to_end()
        consumer.pause([("orders", 0)])
        try:
            assert_type(consumer.lag("orders", 0), int)
        except OffsetOutOfRange as error:
            assert_type(error.is_retriable, bool)
        return consumer.end_offsets([("orders", 0)], timeout=2.5)


def columns(table: Any) -> None:
    with ArrowProducer(bootstrap_servers="localhost:9092") as rows:
        assert_type(rows.send("orders", table), TableReceipt)
        assert_type(rows.send_and_wait("orders", table).row_count, int)
    with ArrowConsumer("orders", group_id="lake", listener=Auditor()) as consumer:
        for batch in consumer.batches(max_rows=1_000, columns=["offset", "value"]):
            consumer.commit(batch)
        for group in consumer.poll():
            assert_type(group, RecordGroup[bytes, bytes])
            consumer.commit(group)


def administer() -> None:
    with Admin(bootstrap_servers="localhost:9092") as admin:
        topic = NewTopic("orders", 3, configs={"retention.ms": "60000"})
        outcomes = admin.create_topics([topic], outcomes=True)
        assert_type(outcomes, list[TopicOutcome])
        for outcome in outcomes:
            if isinstance(outcome.error, BrokerError):
                assert_type(outcome.error.code, int)
        assert_type(admin.describe_topics(["orders"]), list[Topic])
        assert_type(admin.describe_topic_configs("orders"), list[ConfigEntry])
        admin.change_topic_configs("orders", [ConfigChange("retention.ms", SET, "1")])
        found = admin.offsets({("orders", 0): LATEST, ("orders", 1): EARLIEST})
        assert_type(found, dict[TopicPartition, FoundOffset | ClientError])
        groups = admin.describe_groups(["billing"])
        assert_type(groups, dict[str, GroupDescription | ClientError])


async def awaiting() -> int:
    async with aio.Producer(bootstrap_servers="localhost:9092") as producer:
        receipt = await producer.send("orders", b"1")
        assert_type(receipt, aio.Receipt)
        done = await receipt
        later = await producer.send("orders", b"2", deliver_after="1h", schedule_id="two")
        cancelled = await producer.cancel("orders", schedule_id="two", partition=later.partition)
        assert_type(cancelled, aio.Receipt)
    async with aio.Consumer("orders", group_id="billing") as consumer:
        async for record in consumer:
            assert_type(record, ConsumerRecord[bytes, bytes])
            deferred = await consumer.defer(record, after="5m", dead_letter="orders.dead")
            assert_type(deferred, aio.Receipt)
            await consumer.commit(record)
    return done.offset


def main() -> None:
    try:
        produce({"bootstrap.servers": "localhost:9092"})
    except (InvalidSetting, TimedOut) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

import time
from typing import Any

from tests.support.interop.client_face import CODECS, STEP_SECONDS_MAX, ClientMissing, ProducerFace
from tests.support.interop.records_sent import ReadRecord, SentRecord, records_of_every_kind

missing = ""
try:
    import confluent_kafka
    from confluent_kafka import admin as confluent_admin
except ImportError as error:
    confluent_kafka = None
    missing = str(error)

# Back soon after a restart of the broker, and never give a record up before the test does.
PRODUCER_SETTINGS = {
    "reconnect.backoff.max.ms": 200,
    "message.timeout.ms": STEP_SECONDS_MAX * 1000,
    "message.max.bytes": 4_000_000,
    "linger.ms": 5,
}


class ConfluentProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.producer = confluent_kafka.Producer(settings)
        self.delivered: list[int] = []
        self.errors: list[Any] = []

    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        place = len(self.delivered)
        self.delivered.append(-1)

        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                self.errors.append(error)
            self.delivered[place] = message.offset()

        self.producer.produce(
            topic,
            record.value,
            record.key,
            partition,
            on_delivery=on_delivery,
            timestamp=record.timestamp_ms or 0,
            headers=list(record.headers),
        )
        self.producer.poll(0)

    def flush(self) -> list[int]:
        left = self.producer.flush(STEP_SECONDS_MAX)
        assert left == 0, f"{left} records are still under way"
        assert not self.errors, self.errors[:3]
        delivered, self.delivered = self.delivered, []
        return delivered

    def close(self) -> None:
        self.producer.purge()
        self.producer.flush(1)


class ConfluentFace:
    name = "confluent-kafka"
    codecs = CODECS
    has_admin = True

    def __init__(self, address: str) -> None:
        if confluent_kafka is None:
            raise ClientMissing(missing)
        # Level 0: lost connections are what some tests are about.
        self.settings = {"bootstrap.servers": address, "log_level": 0}
        inner = confluent_kafka.libversion()[0]
        self.version = f"{confluent_kafka.__version__} (librdkafka {inner})"
        self.admin = confluent_admin.AdminClient(self.settings)

    def records(self) -> list[SentRecord]:
        return records_of_every_kind()

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        wanted = confluent_admin.NewTopic(topic, partitions, config=configs)
        self.admin.create_topics([wanted])[topic].result(STEP_SECONDS_MAX)

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(STEP_SECONDS_MAX)

    def producer(
        self, codec: str = "none", acks: str = "all", *, is_idempotent: bool = True
    ) -> ProducerFace:
        return ConfluentProducer(
            {
                **self.settings,
                **PRODUCER_SETTINGS,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": is_idempotent,
            }
        )

    def consumer(self) -> Any:
        # An assignment needs no group, but librdkafka wants a name for one.
        return confluent_kafka.Consumer(
            {**self.settings, "group.id": "unused", "enable.auto.commit": False}
        )

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        consumer = self.consumer()
        found: list[ReadRecord] = []
        end = time.monotonic() + STEP_SECONDS_MAX
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])
            while len(found) < count:
                assert time.monotonic() < end, f"only {len(found)} of {count} records came"
                for message in consumer.consume(count - len(found), 0.2):
                    assert message.error() is None, message.error()
                    found.append(record_of(message))
        finally:
            consumer.close()
        return found

    def end_offset(self, topic: str, partition: int) -> int:
        consumer = self.consumer()
        try:
            asked = confluent_kafka.TopicPartition(topic, partition)
            end: int = consumer.get_watermark_offsets(asked, STEP_SECONDS_MAX)[1]
            return end
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self.consumer()
        try:
            asked = confluent_kafka.TopicPartition(topic, partition, timestamp_ms)
            answer = consumer.offsets_for_times([asked], STEP_SECONDS_MAX)[0]
        finally:
            consumer.close()
        assert answer.error is None, answer.error
        return answer.offset if answer.offset >= 0 else None

    def close(self) -> None:
        self.admin = None


def record_of(message: Any) -> ReadRecord:
    sent = SentRecord(
        message.value(), message.key(), tuple(message.headers() or ()), message.timestamp()[1]
    )
    return ReadRecord(message.offset(), sent)

"""kafka-python."""

from __future__ import annotations

import logging
import time
import warnings
from typing import Any

from tests.support.interop.client_face import CODECS, STEP_SECONDS_MAX, ClientMissing, ProducerFace
from tests.support.interop.records_sent import ReadRecord, SentRecord, records_of_every_kind

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kafka
        import kafka.admin
        from kafka import codec as kafka_codec
except ImportError as error:
    kafka = None
    missing = str(error)

# It tells at length of connections that the tests cut on purpose.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class KafkaPythonProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.producer = kafka.KafkaProducer(**settings)
        self.futures: list[Any] = []

    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        self.futures.append(
            self.producer.send(
                topic,
                record.value,
                record.key,
                list(record.headers),
                partition,
                record.timestamp_ms,
            )
        )

    def flush(self) -> list[int]:
        self.producer.flush(STEP_SECONDS_MAX)
        futures, self.futures = self.futures, []
        return [future.get(1).offset for future in futures]

    def close(self) -> None:
        self.producer.close(1)


class KafkaPythonFace:
    name = "kafka-python"
    has_admin = True

    def __init__(self, address: str) -> None:
        if kafka is None:
            raise ClientMissing(missing)
        self.settings = {"bootstrap_servers": address, "reconnect_backoff_max_ms": 200}
        self.version = kafka.__version__
        self.codecs = tuple(
            codec for codec in CODECS if codec == "none" or getattr(kafka_codec, f"has_{codec}")()
        )

    def records(self) -> list[SentRecord]:
        # It refuses a record without key and value by itself.
        return [one for one in records_of_every_kind() if (one.key, one.value) != (None, None)]

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        wanted = {topic: {"num_partitions": partitions, "configs": configs}}
        with kafka.KafkaAdminClient(**self.settings) as admin:
            admin.create_topics(wanted, STEP_SECONDS_MAX * 1000)

    def delete_topic(self, topic: str) -> None:
        with kafka.KafkaAdminClient(**self.settings) as admin:
            admin.delete_topics([topic], STEP_SECONDS_MAX * 1000)

    def producer(
        self, codec: str = "none", acks: str = "all", *, is_idempotent: bool = True
    ) -> ProducerFace:
        return KafkaPythonProducer(
            {
                **self.settings,
                "compression_type": None if codec == "none" else codec,
                "acks": acks if acks == "all" else int(acks),
                "enable_idempotence": is_idempotent,
                "max_request_size": 4_000_000,
                "linger_ms": 5,
                "max_block_ms": STEP_SECONDS_MAX * 1000,
                "delivery_timeout_ms": STEP_SECONDS_MAX * 1000,
            }
        )

    def consumer(self) -> Any:
        return kafka.KafkaConsumer(**self.settings, group_id=None)

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        asked = kafka.TopicPartition(topic, partition)
        found: list[ReadRecord] = []
        end = time.monotonic() + STEP_SECONDS_MAX
        consumer = self.consumer()
        try:
            consumer.assign([asked])
            consumer.seek(asked, offset)
            while len(found) < count:
                assert time.monotonic() < end, f"only {len(found)} of {count} records came"
                polled = consumer.poll(200, max_records=count - len(found))
                found += [record_of(message) for message in polled.get(asked, [])]
        finally:
            consumer.close()
        return found

    def end_offset(self, topic: str, partition: int) -> int:
        asked = kafka.TopicPartition(topic, partition)
        consumer = self.consumer()
        try:
            end: int = consumer.end_offsets([asked])[asked]
            return end
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        asked = kafka.TopicPartition(topic, partition)
        consumer = self.consumer()
        try:
            answer = consumer.offsets_for_times({asked: timestamp_ms})[asked]
        finally:
            consumer.close()
        return None if answer is None else answer.offset

    def close(self) -> None:
        return


def record_of(message: Any) -> ReadRecord:
    sent = SentRecord(message.value, message.key, tuple(message.headers), message.timestamp)
    return ReadRecord(message.offset, sent)

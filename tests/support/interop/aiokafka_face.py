"""aiokafka, its event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine
from typing import Any

from tests.support.interop.client_face import CODECS, STEP_SECONDS_MAX, ClientMissing, ProducerFace
from tests.support.interop.records_sent import ReadRecord, SentRecord, records_of_every_kind

try:
    import aiokafka
    import aiokafka.admin
except ImportError as error:
    aiokafka = None
    missing = str(error)

# It tells at length of connections that the tests cut on purpose.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


class LoopThread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(STEP_SECONDS_MAX)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class AiokafkaProducer:
    def __init__(self, loop: LoopThread, settings: dict[str, Any]) -> None:
        self.loop = loop
        self.futures: list[Any] = []
        self.producer = loop.run(self.started(settings))

    async def started(self, settings: dict[str, Any]) -> Any:
        producer = aiokafka.AIOKafkaProducer(**settings)
        await producer.start()
        return producer

    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        self.futures.append(
            self.loop.run(
                self.producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition,
                    record.timestamp_ms,
                    list(record.headers),
                )
            )
        )

    def flush(self) -> list[int]:
        return self.loop.run(self.flushed())

    async def flushed(self) -> list[int]:
        await self.producer.flush()
        futures, self.futures = self.futures, []
        sent = await asyncio.gather(*futures)
        # With acks=0 nobody tells the offsets.
        return [one.offset if one is not None else -1 for one in sent]

    def close(self) -> None:
        self.loop.run(self.producer.stop())


class AiokafkaFace:
    name = "aiokafka"
    codecs = CODECS
    has_admin = True

    def __init__(self, address: str) -> None:
        if aiokafka is None:
            raise ClientMissing(missing)
        self.settings = {"bootstrap_servers": address}
        self.version = aiokafka.__version__
        self.loop = LoopThread()

    def records(self) -> list[SentRecord]:
        # It refuses a record without key and value by itself.
        return [one for one in records_of_every_kind() if (one.key, one.value) != (None, None)]

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        async def create() -> Any:
            admin = aiokafka.admin.AIOKafkaAdminClient(**self.settings)
            await admin.start()
            try:
                wanted = aiokafka.admin.NewTopic(topic, partitions, 1, topic_configs=configs)
                return await admin.create_topics([wanted])
            finally:
                await admin.close()

        answer = self.loop.run(create())
        assert [error[1] for error in answer.topic_errors] == [0], answer

    def delete_topic(self, topic: str) -> None:
        async def delete() -> Any:
            admin = aiokafka.admin.AIOKafkaAdminClient(**self.settings)
            await admin.start()
            try:
                return await admin.delete_topics([topic])
            finally:
                await admin.close()

        answer = self.loop.run(delete())
        assert [error[1] for error in answer.topic_error_codes] == [0], answer

    def producer(
        self, codec: str = "none", acks: str = "all", *, is_idempotent: bool = True
    ) -> ProducerFace:
        settings = {
            **self.settings,
            "compression_type": None if codec == "none" else codec,
            "acks": acks if acks == "all" else int(acks),
            "enable_idempotence": is_idempotent,
            "max_request_size": 4_000_000,
            "linger_ms": 5,
            # How long it keeps a record, too.
            "request_timeout_ms": STEP_SECONDS_MAX * 1000,
        }
        return AiokafkaProducer(self.loop, settings)

    def with_consumer(self, ask: Any) -> Any:
        async def asked() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(**self.settings, group_id=None)
            await consumer.start()
            try:
                return await ask(consumer)
            finally:
                await consumer.stop()

        return self.loop.run(asked())

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        async def read(consumer: Any) -> list[ReadRecord]:
            asked = aiokafka.TopicPartition(topic, partition)
            found: list[ReadRecord] = []
            end = time.monotonic() + STEP_SECONDS_MAX
            consumer.assign([asked])
            consumer.seek(asked, offset)
            while len(found) < count:
                assert time.monotonic() < end, f"only {len(found)} of {count} records came"
                room = count - len(found)
                polled = await consumer.getmany(asked, timeout_ms=200, max_records=room)
                found += [record_of(message) for message in polled.get(asked, [])]
            return found

        found: list[ReadRecord] = self.with_consumer(read)
        return found

    def end_offset(self, topic: str, partition: int) -> int:
        asked = aiokafka.TopicPartition(topic, partition)
        ends = self.with_consumer(lambda consumer: consumer.end_offsets([asked]))
        end: int = ends[asked]
        return end

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        asked = aiokafka.TopicPartition(topic, partition)
        answers = self.with_consumer(
            lambda consumer: consumer.offsets_for_times({asked: timestamp_ms})
        )
        answer = answers[asked]
        return None if answer is None else answer.offset

    def close(self) -> None:
        self.loop.close()


def record_of(message: Any) -> ReadRecord:
    sent = SentRecord(message.value, message.key, tuple(message.headers), message.timestamp)
    return ReadRecord(message.offset, sent)

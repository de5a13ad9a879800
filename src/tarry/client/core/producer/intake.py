"""Intake: the way of one record into the open batch of its partition."""

from __future__ import annotations

from tarry.client.core.metadata import Metadata, Topic
from tarry.client.core.producer.accumulator import Accumulator, record_size
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.partitioner import ANY_PARTITION, Partitioner
from tarry.client.core.producer.queue import PartitionQueue
from tarry.client.errors import UnknownTopic
from tarry.records.builder import Headers


class Intake:
    """Intake of one producer's records."""

    def __init__(
        self, accumulator: Accumulator, metadata: Metadata, partitioner: Partitioner
    ) -> None:
        self._accumulator = accumulator
        self._metadata = metadata
        self._partitioner = partitioner

    def append(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        *,
        now_ms: int,
    ) -> RecordReceipt | None:
        """Take a record; None: the topic is not known yet or there is no room.  `partition` -1 lets
        the partitioner choose.  Raises what can never be sent."""
        accumulator = self._accumulator
        if accumulator.failure is not None:
            raise accumulator.failure.with_traceback(None)
        known = self._metadata.topic(topic)
        if known is None:
            return None
        size = record_size(key, value, headers)
        if size > accumulator.record_bytes_max:
            accumulator.refuse_size(size)
        if not accumulator.has_room(size):
            return None
        queue = self._queue_for(known, partition, key, size)
        if queue.open is None or not accumulator.fits(queue, size):
            accumulator.open_batch(queue, now_ms)
        return accumulator.append(queue, timestamp, key, value, headers, size)

    def _queue_for(
        self, topic: Topic, partition: int, key: bytes | None, size: int
    ) -> PartitionQueue:
        accumulator = self._accumulator
        partitioner = self._partitioner
        if partition == ANY_PARTITION:
            queue = accumulator.queue(topic.name, partitioner.choose(topic, key))
            if partitioner.sticks(key) and not accumulator.fits(queue, size):
                # A new batch is the time to go elsewhere.
                accumulator.close(queue)
                queue = accumulator.queue(topic.name, partitioner.choose(topic, key))
            return queue
        if partition not in topic.partitions:
            last = len(topic.partitions) - 1
            raise UnknownTopic(f"topic {topic.name!r} has partitions 0 to {last}, not {partition}")
        return accumulator.queue(topic.name, partition)

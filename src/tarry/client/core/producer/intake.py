"""Intake: puts a record into the open batch of its partition."""

from __future__ import annotations

from typing import Final

from tarry.client.core.metadata import Metadata
from tarry.client.core.producer.accumulator import Accumulator, record_size
from tarry.client.core.producer.batch import ProducerBatch
from tarry.client.core.producer.partitioner import ANY_PARTITION, Partitioner
from tarry.client.core.producer.queue import PartitionQueue
from tarry.client.core.topic import Topic
from tarry.client.errors import UnknownTopic
from tarry.records.builder import Headers

# Topic, partition, timestamp, key, value and headers, as `append` takes them.
Appended = tuple[str, int, int, bytes | None, bytes | None, Headers | None]

# The batch of an appended record, and its place there.
Place = tuple[ProducerBatch | None, int]

NOWHERE: Final[Place] = (None, -1)


class Intake:
    """Intake of one producer's records."""

    def __init__(
        self, accumulator: Accumulator, metadata: Metadata, partitioner: Partitioner
    ) -> None:
        self._accumulator = accumulator
        self._metadata = metadata
        self._partitioner = partitioner
        # Topic, queue and batch of the last record without a key, and the metadata version then.
        self._topic = ""
        self._queue: PartitionQueue | None = None
        self._batch: ProducerBatch | None = None
        self._version = -1

    def join(self, record: Appended) -> Place:
        """Append a record without a key to the batch of the last one, which is fast; return NOWHERE
        if that is not possible: call `append` then."""
        topic, partition, timestamp, key, value, headers = record
        queue, batch = self._queue, self._batch
        accumulator = self._accumulator
        if key is not None or partition != ANY_PARTITION or queue is None or batch is None:
            return NOWHERE
        if queue.open is not batch or topic != self._topic:
            return NOWHERE
        if accumulator.failure is not None or self._metadata.version != self._version:
            return NOWHERE
        size = record_size(None, value, headers)
        if size > accumulator.record_bytes_max or not accumulator.has_room(size):
            return NOWHERE
        if not accumulator.fits(queue, size):
            return NOWHERE
        return batch, accumulator.append(queue, timestamp, None, value, headers, size)

    def append(self, record: Appended, now_ms: int) -> Place:
        """Append a record; return NOWHERE if the topic is not known yet or there is no room.

        Partition -1 lets the partitioner choose.  Raises an error for a record that can never be
        sent.
        """
        name, partition, timestamp, key, value, headers = record
        accumulator = self._accumulator
        if accumulator.failure is not None:
            raise accumulator.failure.with_traceback(None)
        known = self._metadata.topic(name)
        if known is None:
            return NOWHERE
        size = record_size(key, value, headers)
        if size > accumulator.record_bytes_max:
            accumulator.refuse_size(size)
        if not accumulator.has_room(size):
            return NOWHERE
        queue = self._queue_for(known, partition, key, size)
        if queue.open is None or not accumulator.fits(queue, size):
            accumulator.open_batch(queue, now_ms)
        batch = queue.open
        assert batch is not None
        place = accumulator.append(queue, timestamp, key, value, headers, size)
        if key is None and partition == ANY_PARTITION:
            self._topic, self._version = name, self._metadata.version
            self._queue, self._batch = queue, batch
        return batch, place

    def _queue_for(
        self, topic: Topic, partition: int, key: bytes | None, size: int
    ) -> PartitionQueue:
        accumulator = self._accumulator
        partitioner = self._partitioner
        if partition == ANY_PARTITION:
            queue = accumulator.queue(topic.name, partitioner.choose(topic, key))
            if partitioner.sticks(key) and not accumulator.fits(queue, size):
                # A new batch may go to another partition.
                accumulator.close(queue)
                queue = accumulator.queue(topic.name, partitioner.choose(topic, key))
            return queue
        if partition not in topic.partitions:
            last = len(topic.partitions) - 1
            raise UnknownTopic(f"topic {topic.name!r} has partitions 0 to {last}, not {partition}")
        return accumulator.queue(topic.name, partition)

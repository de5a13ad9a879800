"""Look back: finds the batches of a producer in a range of a log by their headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tarry.base.errors import NONE, CorruptData
from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.fetch_exchange import VERSION_WITH_IDS
from tarry.client.core.consumer.lookup import CONSUMER_ID
from tarry.client.core.topic import ZERO_ID
from tarry.client.errors import BrokerError, CorruptRecords, broker_error
from tarry.link.errand import Call
from tarry.link.errors import ClientError
from tarry.link.exchange import VERSION_UNLIMITED
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    decode_fetch_response,
)
from tarry.records.batch import BatchHeader, batches_in
from tarry.wire import ChunkList

# Size limits of one partition in an answer, and of the answer.
PARTITION_BYTES_MAX: Final = 1024 * 1024
ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024

# Session id and epoch of a fetch without a session.
NO_SESSION: Final = 0
NO_SESSION_EPOCH: Final = -1


class SeenBatch(NamedTuple):
    """Batch of the producer that is in the log."""

    base_offset: int
    last_offset: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int


class SeenRange(NamedTuple):
    """Batches of the producer in a range that was read up to `end_offset`; `has_holes` is true if
    no batch covers some offsets of the range."""

    end_offset: int
    batches: tuple[SeenBatch, ...] = ()
    has_holes: bool = False

    def behind(self, before: SeenRange) -> SeenRange:
        """Return the union of an earlier range and this one."""
        return SeenRange(
            self.end_offset, before.batches + self.batches, before.has_holes or self.has_holes
        )


class FetchHeaders(Call[FetchResponse, dict[TopicPartition, SeenRange | ClientError]]):
    """Call to one leader for the batches from these offsets on.  Result: the producer's batches in
    each partition that the answer names."""

    repeats = False

    def __init__(
        self,
        leader_id: int,
        offsets: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes],
        producer_id: int,
    ) -> None:
        super().__init__(api_keys.FETCH, decode_fetch_response, leader_id)
        self.offsets = offsets
        self.topic_ids = topic_ids
        self.producer_id = producer_id

    def version_max(self) -> int:
        if any(self.topic_ids.get(topic, ZERO_ID) == ZERO_ID for topic, _ in self.offsets):
            return VERSION_WITH_IDS - 1
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        topics: dict[str, FetchTopic] = {}
        for (name, index), offset in self.offsets.items():
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(name, self.topic_ids.get(name, ZERO_ID))
            topic.partitions.append(
                FetchPartition(
                    partition=index, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX
                )
            )
        return FetchRequest(
            replica_id=CONSUMER_ID,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=ANSWER_BYTES_MAX,
            session_id=NO_SESSION,
            session_epoch=NO_SESSION_EPOCH,
            topics=[*topics.values()],
        )

    def interpret(self, response: FetchResponse) -> dict[TopicPartition, SeenRange | ClientError]:
        if response.error_code != NONE:
            raise BrokerError(response.error_code, "the log cannot be read back")
        names = {self.topic_ids.get(name, ZERO_ID): name for name, _ in self.offsets}
        found: dict[TopicPartition, SeenRange | ClientError] = {}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for one in topic.partitions:
                place = (name, one.partition_index)
                if place not in self.offsets:
                    continue
                if one.error_code != NONE:
                    sentence = f"{name} [{place[1]}] cannot be read back"
                    found[place] = broker_error(one.error_code, sentence)
                    continue
                records = one.records
                # A ChunkList occurs only in a broker that sends, never in a decoded answer.
                assert not isinstance(records, ChunkList)
                try:
                    windows = batches_in(records) if records else []
                except CorruptData as error:
                    found[place] = CorruptRecords(f"{name} [{place[1]}]: {error}")
                    continue
                headers = [BatchHeader(window.data, window.start) for window in windows]
                found[place] = seen_in(headers, self.offsets[place], self.producer_id)
        return found


def seen_in(headers: list[BatchHeader], offset: int, producer_id: int) -> SeenRange:
    """Collect the producer's batches from `offset` on."""
    batches: list[SeenBatch] = []
    has_holes = False
    for header in headers:
        last_offset = int(header.last_offset)
        if last_offset < offset:
            continue
        has_holes = has_holes or int(header.base_offset) > offset
        offset = last_offset + 1
        if header.producer_id == producer_id and not header.is_control:
            batches.append(
                SeenBatch(
                    int(header.base_offset),
                    last_offset,
                    int(header.producer_epoch),
                    int(header.base_sequence),
                    int(header.last_sequence),
                )
            )
    return SeenRange(offset, tuple(batches), has_holes)

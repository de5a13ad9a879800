"""Model of the answers to one client that alone uses a topic, with its requests in order.

Each method makes one request with the check of its answer, and changes the model as if the request
had been handled already.  Kafka handles the requests of a connection one at a time, so that each
later request must see the new state.  Some requests are invalid, each in its own way, and must be
refused with the one right code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.protocol.registry import MESSAGES
from tarry.records.builder import BatchBuilder
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Query
from tarry.wire.reader import Window, window_of

LATEST: Final = -1
EARLIEST: Final = -2
TIMEOUT_MS: Final = 3_000
# Number that no partition has, and that is above all leader epochs.
NOWHERE: Final = 99
_WAIT_MS_MAX: Final = 200
_PARTITIONS_MAX: Final = 4
_RECORDS_MAX: Final = 4

# Errors that faults may cause at any time; the outcome of the request is not known then.
_PASSING: Final = (
    errors.REQUEST_TIMED_OUT,
    errors.KAFKA_STORAGE_ERROR,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)

# Result of a check whose answer reports a fault of the world: the state is not known any more.
LOST_TRACK: Final = "lost track"

# Check of an answer: it returns what is wrong, LOST_TRACK, or "".
Check = Callable[[Message], str]


class BurstStep:
    """Request of a burst, with the check of its answer."""

    def __init__(self, query: Query, check: Check) -> None:
        self.query = query
        self.check = check


def told(what: str, wanted: tuple[int, ...], got: tuple[int, ...]) -> str:
    """Compare an answer, its error code first, with what it has to be."""
    if got == wanted:
        return ""
    if got[0] in _PASSING:
        return LOST_TRACK
    return (
        f"{what} got {error_name(got[0])} with {got[1:]}, and handled one at a time it gets "
        f"{error_name(wanted[0])} with {wanted[1:]}"
    )


class PipelineModel:
    """Partition 0 of a topic once all requests so far have been carried out."""

    def __init__(self, context: RunContext, topic: str) -> None:
        self.context = context
        self.topic = topic
        self.partitions = 1
        self.start_offset = 0
        self.end_offset = 0
        # False once some part of the topic or group could not be made.
        self.is_usable = True

    def steps(self) -> list[Callable[[], BurstStep]]:
        """Return the choices of requests; more frequent ones stand several times."""
        return [
            self.produce,
            self.produce,
            self.produce_badly,
            self.list_offset,
            self.list_offset,
            self.list_offset_badly,
            self.fetch,
            self.fetch,
            self.fetch_badly,
            self.delete_records,
            self.delete_records_badly,
            self.grow,
            self.look,
            self.end_of_an_unknown_epoch,
        ]

    def query(
        self, api_key: int, request: Message, versions: tuple[int, int], wait_ms: int = 0
    ) -> Query:
        decode = MESSAGES[api_key].decode_response
        return Query(api_key, self.context.version(*versions), request, decode, wait_ms)

    # -- produce

    def produce(self) -> BurstStep:
        """Produce some records, at times without an answer."""
        random = self.context.random
        count = 1 + random.randrange(_RECORDS_MAX)
        wanted = (errors.NONE, self.end_offset)
        self.end_offset += count
        return self._produce(count, wanted, acks=(-1, -1, 1, 0)[random.randrange(4)])

    def produce_badly(self) -> BurstStep:
        """Produce to a missing partition, or with acks that do not exist."""
        if self.context.random.randrange(2):
            return self._produce(1, (errors.UNKNOWN_TOPIC_OR_PARTITION, -1), index=NOWHERE)
        return self._produce(1, (errors.INVALID_REQUIRED_ACKS, -1), acks=5)

    def _produce(
        self, count: int, wanted: tuple[int, int], *, acks: int = -1, index: int = 0
    ) -> BurstStep:
        context = self.context
        builder = BatchBuilder()
        for number in range(count):
            builder.append(context.clock.now_wall_ms, None, b"%d" % (wanted[1] + number))
        data = [PartitionProduceData(index=index, records=window_of(builder.build()))]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=self.topic, partition_data=data)],
        )
        query = self.query(api_keys.PRODUCE, request, (3, 12), TIMEOUT_MS)
        query.is_answer_expected = acks != 0

        def check(answer: Message) -> str:
            assert isinstance(answer, ProduceResponse)
            part = answer.responses[0].partition_responses[0]
            what = f"a produce with acks={acks} to {self.topic}-{index}"
            return told(what, wanted, (part.error_code, part.base_offset))

        return BurstStep(query, check)

    # -- offsets

    def list_offset(self) -> BurstStep:
        """Ask where the partition begins or ends."""
        if self.context.random.randrange(2):
            return self._list_offset(LATEST, (errors.NONE, self.end_offset))
        return self._list_offset(EARLIEST, (errors.NONE, self.start_offset))

    def list_offset_badly(self) -> BurstStep:
        """List an offset with a senseless time, a missing partition or a future epoch."""
        kind = self.context.random.randrange(3)
        if kind == 0:
            return self._list_offset(-NOWHERE, (errors.UNSUPPORTED_VERSION, -1))
        if kind == 1:
            return self._list_offset(LATEST, (errors.UNKNOWN_TOPIC_OR_PARTITION, -1), index=NOWHERE)
        return self._list_offset(LATEST, (errors.UNKNOWN_LEADER_EPOCH, -1), epoch=NOWHERE)

    def _list_offset(
        self, timestamp: int, wanted: tuple[int, int], *, index: int = 0, epoch: int = -1
    ) -> BurstStep:
        asked = ListOffsetsPartition(
            partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self.topic, partitions=[asked])]
        )

        def check(answer: Message) -> str:
            assert isinstance(answer, ListOffsetsResponse)
            part = answer.topics[0].partitions[0]
            what = f"ListOffsets of {self.topic}-{index} for {timestamp}"
            return told(what, wanted, (part.error_code, part.offset))

        return BurstStep(self.query(api_keys.LIST_OFFSETS, request, (4, 10)), check)

    def end_of_an_unknown_epoch(self) -> BurstStep:
        """Ask OffsetForLeaderEpoch for an epoch that was never used: there is none."""
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=NOWHERE)
        topics = [OffsetForLeaderTopic(topic=self.topic, partitions=[asked])]
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)

        def check(answer: Message) -> str:
            assert isinstance(answer, OffsetForLeaderEpochResponse)
            part = answer.topics[0].partitions[0]
            got = (part.error_code, part.leader_epoch, part.end_offset)
            what = f"OffsetForLeaderEpoch of {self.topic}-0 for an epoch that never was"
            return told(what, (errors.NONE, -1, -1), got)

        return BurstStep(self.query(api_keys.OFFSET_FOR_LEADER_EPOCH, request, (2, 4)), check)

    # -- fetch

    def fetch(self) -> BurstStep:
        """Fetch from somewhere inside, or from the end, where the fetch waits and finds nothing."""
        random = self.context.random
        size = self.end_offset - self.start_offset
        offset = self.start_offset + random.randrange(size + 1)
        wait_ms = random.randrange(_WAIT_MS_MAX) if random.randrange(4) == 0 else 0
        wanted = (errors.NONE, self.end_offset, self.start_offset, int(offset < self.end_offset))
        return self._fetch(offset, wanted, wait_ms=wait_ms)

    def fetch_at_the_end(self) -> BurstStep:
        """Fetch from the end and find nothing: later writes of this client wait behind it."""
        wanted = (errors.NONE, self.end_offset, self.start_offset, 0)
        wait_ms = 1 + self.context.random.randrange(_WAIT_MS_MAX)
        return self._fetch(self.end_offset, wanted, wait_ms=wait_ms)

    def fetch_badly(self) -> BurstStep:
        """Fetch outside of the log, or with a leader epoch that is still to come."""
        kind = self.context.random.randrange(4)
        if kind == 0:
            return self._fetch(-2, (errors.OFFSET_OUT_OF_RANGE, -1, -1, 0))
        if kind == 1:
            return self._fetch(self.end_offset + 1_000_000, (errors.OFFSET_OUT_OF_RANGE, -1, -1, 0))
        if kind == 2:
            return self._fetch(0, (errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, 0), index=NOWHERE)
        return self._fetch(0, (errors.UNKNOWN_LEADER_EPOCH, -1, -1, 0), epoch=NOWHERE)

    def _fetch(
        self,
        offset: int,
        wanted: tuple[int, int, int, int],
        *,
        wait_ms: int = 0,
        index: int = 0,
        epoch: int = -1,
    ) -> BurstStep:
        asked = FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=200,
            current_leader_epoch=epoch,
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=self.topic, partitions=[asked])],
        )

        def check(answer: Message) -> str:
            assert isinstance(answer, FetchResponse)
            part = answer.responses[0].partitions[0]
            has_records = isinstance(part.records, Window) and part.records.size > 0
            got = (part.error_code, part.high_watermark, part.log_start_offset, int(has_records))
            return told(f"a fetch from offset {offset} of {self.topic}-{index}", wanted, got)

        return BurstStep(self.query(api_keys.FETCH, request, (9, 12), wait_ms), check)

    # -- changes

    def delete_records(self) -> BurstStep:
        """Delete some of the records, none or all."""
        random = self.context.random
        offset = self.start_offset + random.randrange(self.end_offset - self.start_offset + 1)
        if random.randrange(6) == 0:
            offset = -1
        self.start_offset = self.end_offset if offset < 0 else offset
        return self._delete_records(offset, (errors.NONE, self.start_offset))

    def delete_records_badly(self) -> BurstStep:
        """Delete more records than there are, or below an invalid offset."""
        offset = (self.end_offset + 1, -2)[self.context.random.randrange(2)]
        return self._delete_records(offset, (errors.OFFSET_OUT_OF_RANGE, -1))

    def _delete_records(self, offset: int, wanted: tuple[int, int]) -> BurstStep:
        topic = DeleteRecordsTopic(self.topic, [DeleteRecordsPartition(0, offset)])
        request = DeleteRecordsRequest([topic], TIMEOUT_MS)

        def check(answer: Message) -> str:
            assert isinstance(answer, DeleteRecordsResponse)
            part = answer.topics[0].partitions[0]
            what = f"DeleteRecords of {self.topic}-0 below offset {offset}"
            return told(what, wanted, (part.error_code, part.low_watermark))

        return BurstStep(self.query(api_keys.DELETE_RECORDS, request, (0, 2), TIMEOUT_MS), check)

    def grow(self) -> BurstStep:
        """Add a partition; beyond the limit, ask for fewer than there are."""
        wanted = errors.NONE
        count = self.partitions + 1
        if count > _PARTITIONS_MAX:
            wanted = errors.INVALID_PARTITIONS
            count = self.partitions - 1
        else:
            self.partitions = count
        request = CreatePartitionsRequest(
            [CreatePartitionsTopic(self.topic, count, None)], TIMEOUT_MS
        )

        def check(answer: Message) -> str:
            assert isinstance(answer, CreatePartitionsResponse)
            what = f"{self.topic} with {count} partitions"
            return told(what, (wanted,), (answer.results[0].error_code,))

        return BurstStep(self.query(api_keys.CREATE_PARTITIONS, request, (0, 3), TIMEOUT_MS), check)

    def look(self) -> BurstStep:
        """Ask for the partitions of the topic, or for a topic that nobody made."""
        wanted = (errors.NONE, self.partitions)
        name = self.topic
        if self.context.random.randrange(4) == 0:
            wanted = (errors.UNKNOWN_TOPIC_OR_PARTITION, 0)
            name = f"{name}-nowhere"
        request = MetadataRequest([MetadataRequestTopic(name=name)], False)

        def check(answer: Message) -> str:
            assert isinstance(answer, MetadataResponse)
            topic = answer.topics[0]
            got = (topic.error_code, len(topic.partitions))
            return told(f"Metadata of {name}", wanted, got)

        return BurstStep(self.query(api_keys.METADATA, request, (4, 13)), check)

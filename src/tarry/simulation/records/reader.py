"""Reader: long polls from its own offsets, now and then a jump or a query about offsets."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    decode_fetch_response,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    decode_list_offsets_response,
)
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import Place, Watermarks
from tarry.simulation.clients.simulated_client import Delay, Query, Script, ScriptedClient
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.records.reading import read_answer
from tarry.wire.compression import ZSTD
from tarry.wire.reader import Window

LATEST: Final = -1
EARLIEST: Final = -2
VERSION_OF_TOPIC_IDS: Final = 13
_VERSION_MIN: Final = 4
_VERSION_OF_ZSTD: Final = 10
_VERSION_OF_LAST_EPOCH: Final = 12
_VERSION_OF_LEADER_EPOCH: Final = 9


class ReaderPlan:
    """Traits of one reader."""

    def __init__(self) -> None:
        self.max_wait_ms = 2_000
        self.min_bytes = 1
        self.partition_bytes_max = 65_536
        self.places_max = 3
        # Of 1,000 polls, so many come after a jump to another offset.
        self.jumps_per_mille = 100
        self.pause_ms_max = 20


class SimulatedReader(ScriptedClient):
    """Simulated client that reads records."""

    def __init__(self, context: RunContext, name: str, plan: ReaderPlan) -> None:
        super().__init__(context, name)
        self.plan = plan
        self._offsets: dict[Place, int] = {}

    def script(self) -> Script:
        context = self.context
        while not context.is_quiet:
            places = self._choose_places()
            if not places:
                yield Delay(20)
                continue
            if context.is_chance(self.plan.jumps_per_mille):
                yield from self._jump(places[0])
            query = self._fetch(places)
            outcome = yield query
            assert outcome is not None
            if outcome.answer is not None:
                assert isinstance(outcome.answer, FetchResponse)
                yield from self._take(outcome.exchange, outcome.answer)
            yield Delay(context.random.randrange(self.plan.pause_ms_max + 1))

    def _choose_places(self) -> list[tuple[KnownTopic, Place]]:
        found = [
            (topic, place) for topic in self.context.alive_topics() for place in topic.places()
        ]
        if len(found) <= self.plan.places_max:
            return found
        start = self.context.random.randrange(len(found))
        return (found + found)[start : start + self.plan.places_max]

    def _fetch(self, places: list[tuple[KnownTopic, Place]]) -> Query:
        offsets = [(topic, place, self._offsets.get(place, 0)) for topic, place in places]
        query = fetch_query(self.context, offsets, self.plan)
        if self.plan.min_bytes <= 1:
            query.waits_for = [(place[0], place[1], offset) for _topic, place, offset in offsets]
        return query

    def _take(self, exchange: ObservedExchange, answer: FetchResponse) -> Script:
        self._check_patience_of(exchange, answer)
        for place, partition in fetch_answers(self.context, exchange, answer):
            offset = self._offsets.get(place, 0)
            if partition.error_code == errors.OFFSET_OUT_OF_RANGE:
                topic = self.context.topic_by_id(place[0])
                if topic is not None and topic.is_alive:
                    yield from self._reset(topic, place)
                continue
            self._offsets[place] = read_answer(
                self.context, place, offset, partition, exchange, self.name
            )

    def _check_patience_of(self, exchange: ObservedExchange, answer: FetchResponse) -> None:
        """Check that a fetch answered without records has waited as long as it may."""
        context = self.context
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code != errors.NONE or _has_records(partition):
                    return
        if answer.responses:
            context.check_time_out(exchange, f"{self.name}: a fetch")

    def _reset(self, topic: KnownTopic, place: Place) -> Script:
        """Reset to the first offset that is kept."""
        outcome = yield offsets_query(self.context, topic, place, EARLIEST)
        if outcome is not None and isinstance(outcome.answer, ListOffsetsResponse):
            told = list_offsets_answer(outcome.answer, topic.name, place[1])
            if told is not None and told[0] == errors.NONE:
                watermarks = Watermarks(place, outcome.exchange)
                watermarks.log_start_offset = told[2]
                self.context.history.watermarks.append(watermarks)
                self._go_to(place, told[2])

    def _go_to(self, place: Place, offset: int) -> None:
        self._offsets[place] = offset
        self.context.history.begin_reading(self.name, place, offset)

    def _jump(self, choice: tuple[KnownTopic, Place]) -> Script:
        """Jump to the start, or into the records already read; or only ask for the end."""
        context = self.context
        topic, place = choice
        kind = context.random.randrange(3)
        if kind == 0:
            yield from self._reset(topic, place)
        elif kind == 1:
            self._go_to(place, context.random.randrange(self._offsets.get(place, 0) + 1))
        else:
            outcome = yield offsets_query(context, topic, place, LATEST)
            if outcome is not None and isinstance(outcome.answer, ListOffsetsResponse):
                told = list_offsets_answer(outcome.answer, topic.name, place[1])
                if told is not None and told[0] == errors.NONE:
                    watermarks = Watermarks(place, outcome.exchange)
                    watermarks.high_watermark = told[2]
                    context.history.watermarks.append(watermarks)


def _has_records(answer: PartitionData) -> bool:
    return isinstance(answer.records, Window) and answer.records.size > 0


def fetch_query(
    context: RunContext, offsets: list[tuple[KnownTopic, Place, int]], plan: ReaderPlan
) -> Query:
    """Return a full fetch from these offsets, in a version that fits."""
    version_min = _VERSION_OF_ZSTD if ZSTD in context.codecs else _VERSION_MIN
    if not all(topic.is_lasting for topic, _place, _offset in offsets):
        version_min = VERSION_OF_TOPIC_IDS
    version = context.version(version_min, 18)
    topics: dict[bytes, FetchTopic] = {}
    for topic, place, offset in offsets:
        asked = FetchPartition(
            partition=place[1], fetch_offset=offset, partition_max_bytes=plan.partition_bytes_max
        )
        if version >= _VERSION_OF_LEADER_EPOCH and context.is_chance(300):
            asked.current_leader_epoch = context.leader_epochs.get(place, -1)
        if version >= _VERSION_OF_LAST_EPOCH and context.is_chance(300):
            last = context.history.reads.get(place, {}).get(offset - 1)
            asked.last_fetched_epoch = -1 if last is None else last.epoch
        known = topics.get(topic.topic_id)
        if known is None:
            topics[topic.topic_id] = FetchTopic(
                topic=topic.name if version < VERSION_OF_TOPIC_IDS else "",
                topic_id=topic.topic_id,
                partitions=[asked],
            )
        else:
            known.partitions.append(asked)
    request = FetchRequest(
        max_wait_ms=plan.max_wait_ms,
        min_bytes=plan.min_bytes,
        max_bytes=1 << 20,
        isolation_level=context.random.randrange(2),
        topics=list(topics.values()),
    )
    return Query(api_keys.FETCH, version, request, decode_fetch_response, plan.max_wait_ms)


def fetch_answers(
    context: RunContext, exchange: ObservedExchange, answer: FetchResponse
) -> list[tuple[Place, PartitionData]]:
    """Return the partitions of an answer, by their places."""
    found: list[tuple[Place, PartitionData]] = []
    if answer.error_code != errors.NONE:
        context.history.violate(f"a fetch without a session got error {answer.error_code}")
    for topic_answer in answer.responses:
        topic_id = topic_answer.topic_id
        if exchange.api_version < VERSION_OF_TOPIC_IDS:
            topic = context.topic_by_name(topic_answer.topic)
            if topic is None:
                context.history.violate(f"a fetch was answered for {topic_answer.topic!r}")
                continue
            topic_id = topic.topic_id
        for partition in topic_answer.partitions:
            found.append(((topic_id, partition.partition_index), partition))
    return found


def offsets_query(context: RunContext, topic: KnownTopic, place: Place, timestamp: int) -> Query:
    """Return a query ListOffsets for one partition."""
    asked = ListOffsetsPartition(partition_index=place[1], timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic.name, partitions=[asked])]
    )
    return Query(
        api_keys.LIST_OFFSETS, context.version(1, 10), request, decode_list_offsets_response
    )


def list_offsets_answer(
    answer: ListOffsetsResponse, name: str, index: int
) -> tuple[int, int, int] | None:
    """Return error code, timestamp and offset."""
    for topic in answer.topics:
        for partition in topic.partitions:
            if topic.name == name and partition.partition_index == index:
                return partition.error_code, partition.timestamp, partition.offset
    return None

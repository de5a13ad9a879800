"""Last reader: when all is quiet it reads each partition from its start to its end.

Then it looks up what the checkers need: offsets inside (an index that lies sends a fetch to the
wrong batch), times, and the ends of epochs.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.base.ids import TopicPartition
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchResponse
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    decode_list_offsets_response,
)
from tarry.protocol.messages.metadata import MetadataResponse
from tarry.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import (
    MAX_TIMESTAMP,
    FinalPartition,
    Place,
    TimeLookup,
    place_name,
)
from tarry.simulation.clients.simulated_client import (
    Delay,
    Query,
    QueryOutcome,
    Script,
    ScriptedClient,
    Steps,
)
from tarry.simulation.clients.topic_admin import (
    epoch_end_query,
    metadata_query,
    take_epoch_ends,
    take_metadata,
)
from tarry.simulation.records.reader import (
    EARLIEST,
    LATEST,
    ReaderPlan,
    fetch_answers,
    fetch_query,
)
from tarry.simulation.records.reading import read_answer

_LOOKUP_ROUNDS: Final = 3
_FETCHES_MAX: Final = 200
_RETRY_MS: Final = 10
_VERSION_OF_MAX_TIMESTAMP: Final = 7

Aim = tuple[KnownTopic, Place, int]


class RecordCollector(ScriptedClient):
    """Client that reads all partitions once."""

    def __init__(self, context: RunContext, name: str) -> None:
        super().__init__(context, name)
        self._places: list[tuple[KnownTopic, Place]] = []
        self._finals: dict[Place, FinalPartition] = {}

    def script(self) -> Script:
        yield from self._look()
        if self._places:
            starts = yield from self._ask_offsets([EARLIEST] * len(self._places))
            ends = yield from self._ask_offsets([LATEST] * len(self._places))
            for (_topic, place), start, end in zip(self._places, starts, ends, strict=True):
                self._finals[place] = FinalPartition(place, start[1], end[1])
            yield from self._read_all()
            for _ in range(_LOOKUP_ROUNDS):
                yield from self._look_inside()
            yield from self._look_up_times()
            yield from self._ask_epoch_ends()
        self.context.history.finals = self._finals

    def _ask(self, query: Query) -> Steps[QueryOutcome]:
        """Ask until there is an answer."""
        while True:
            outcome = yield query
            if outcome is not None and outcome.answer is not None:
                return outcome
            yield Delay(_RETRY_MS)

    def _look(self) -> Script:
        context = self.context
        outcome = yield from self._ask(metadata_query(context))
        assert isinstance(outcome.answer, MetadataResponse)
        seen = take_metadata(context, outcome.exchange, outcome.answer)
        for topic_seen in seen.topics:
            topic = context.topic_by_id(topic_seen.topic_id)
            if topic is not None and topic.is_alive:
                self._places += [(topic, place) for place in topic.places()]

    def _ask_offsets(
        self, timestamps: list[int], version_min: int = 1
    ) -> Steps[list[tuple[int, int]]]:
        """Ask ListOffsets for the timestamp and offset of each place."""
        context = self.context
        topics: dict[str, ListOffsetsTopic] = {}
        for (topic, place), timestamp in zip(self._places, timestamps, strict=True):
            asked = ListOffsetsPartition(partition_index=place[1], timestamp=timestamp)
            topics.setdefault(topic.name, ListOffsetsTopic(name=topic.name)).partitions.append(
                asked
            )
        request = ListOffsetsRequest(replica_id=-1, topics=list(topics.values()))
        query = Query(
            api_keys.LIST_OFFSETS,
            context.version(version_min, 10),
            request,
            decode_list_offsets_response,
        )
        outcome = yield from self._ask(query)
        assert isinstance(outcome.answer, ListOffsetsResponse)
        told: dict[TopicPartition, tuple[int, int]] = {}
        for answer in outcome.answer.topics:
            for partition in answer.partitions:
                if partition.error_code != errors.NONE:
                    context.history.violate(
                        f"ListOffsets of {answer.name}-{partition.partition_index} got "
                        f"{error_name(partition.error_code)} when all was quiet"
                    )
                told[(answer.name, partition.partition_index)] = (
                    partition.timestamp,
                    partition.offset,
                )
        return [told.get((topic.name, place[1]), (-1, -1)) for topic, place in self._places]

    def _read_all(self) -> Script:
        """Fetch until every partition has been read to its end."""
        offsets = {place: final.log_start_offset for place, final in self._finals.items()}
        for _ in range(_FETCHES_MAX):
            aims = [
                (topic, place, offsets[place])
                for topic, place in self._places
                if offsets[place] < self._finals[place].end_offset
            ]
            if not aims:
                return
            yield from self._fetch(aims, offsets)
        for place, offset in offsets.items():
            if offset < self._finals[place].end_offset:
                self.context.history.violate(
                    f"{place_name(place)} cannot be read past offset {offset} when all is quiet"
                )

    def _look_inside(self) -> Script:
        """Fetch from somewhere inside each partition, where an index is needed."""
        random = self.context.random
        aims: list[Aim] = []
        for topic, place in self._places:
            final = self._finals[place]
            size = final.end_offset - final.log_start_offset
            if size > 0:
                aims.append((topic, place, final.log_start_offset + random.randrange(size)))
        if aims:
            yield from self._fetch(aims, {})

    def _fetch(self, aims: list[Aim], offsets: dict[Place, int]) -> Script:
        context = self.context
        plan = ReaderPlan()
        plan.max_wait_ms = 0
        outcome = yield from self._ask(fetch_query(context, aims, plan))
        assert isinstance(outcome.answer, FetchResponse)
        asked = {place: offset for _topic, place, offset in aims}
        for place, answer in fetch_answers(context, outcome.exchange, outcome.answer):
            if answer.error_code == errors.OFFSET_OUT_OF_RANGE:
                # Retention may have removed the records; then the log start must say so.
                yield from self._follow_log_starts()
                offsets[place] = max(asked[place], self._finals[place].log_start_offset)
                if offsets[place] > asked[place]:
                    continue
            if answer.error_code != errors.NONE:
                context.history.violate(
                    f"a fetch from offset {asked[place]} of {place_name(place)} got "
                    f"{error_name(answer.error_code)} when all was quiet"
                )
            offsets[place] = read_answer(context, place, asked[place], answer, outcome.exchange)

    def _follow_log_starts(self) -> Script:
        starts = yield from self._ask_offsets([EARLIEST] * len(self._places))
        for (_topic, place), (_, start) in zip(self._places, starts, strict=True):
            self._finals[place].log_start_offset = start

    def _look_up_times(self) -> Script:
        context = self.context
        timestamps: list[int] = []
        for _topic, place in self._places:
            final = self._finals[place]
            size = final.end_offset - final.log_start_offset
            timestamp = context.clock.now_wall_ms
            if size > 0:
                offset = final.log_start_offset + context.random.randrange(size)
                record = context.history.reads.get(place, {}).get(offset)
                if record is not None:
                    timestamp = record.timestamp + context.random.randrange(3) - 1
            timestamps.append(timestamp)
        found = yield from self._ask_offsets(timestamps)
        latest = yield from self._ask_offsets(
            [MAX_TIMESTAMP] * len(self._places), _VERSION_OF_MAX_TIMESTAMP
        )
        starts = {place: final.log_start_offset for place, final in self._finals.items()}
        yield from self._follow_log_starts()
        for (_topic, place), asked, (timestamp, offset), newest in zip(
            self._places, timestamps, found, latest, strict=True
        ):
            if starts[place] == self._finals[place].log_start_offset:
                context.history.time_lookups.append(TimeLookup(place, asked, timestamp, offset))
                context.history.time_lookups.append(TimeLookup(place, MAX_TIMESTAMP, *newest))

    def _ask_epoch_ends(self) -> Script:
        context = self.context
        aims: list[Aim] = []
        for topic, place in self._places:
            newest = context.leader_epochs.get(place, 0)
            aims.append((topic, place, context.random.randrange(newest + 1)))
        outcome = yield from self._ask(epoch_end_query(context, aims))
        assert isinstance(outcome.answer, OffsetForLeaderEpochResponse)
        asked = {place: epoch for _topic, place, epoch in aims}
        take_epoch_ends(context, outcome.exchange, asked, outcome.answer)

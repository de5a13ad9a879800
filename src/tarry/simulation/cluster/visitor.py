"""Visitor: asks one broker over and over where partitions begin and end, and compares over time.

All visitors share what brokers have answered: a broker that is asked later must not answer with an
earlier end or start (KIP-207).  Some visitors delete records, or ask for unclean elections.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.cluster.etcd.etcd_store import ANSWER_MS_MAX
from tarry.partition.followers import TURNED_TO_MS
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    decode_delete_records_response,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    TopicPartitions,
    decode_elect_leaders_response,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    decode_list_offsets_response,
)
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, RunClient, Script
from tarry.simulation.cluster.committed import Place
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.cluster.scenario import ClusterScenario

_LATEST: Final = -1
_EARLIEST: Final = -2
_PAUSE_MS_MAX: Final = 250
_TIMEOUT_MS: Final = 2_000
_UNCLEAN: Final = 1
# A leader that is cut off, or waits for etcd, may still answer with older offsets for this long.
_STALE_MS: Final = max(TURNED_TO_MS, ANSWER_MS_MAX) + 300

# Errors that a client may get if a partition is led elsewhere, or not yet, or has a slow disk.
_PASSING: Final = (
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.LEADER_NOT_AVAILABLE,
    errors.OFFSET_NOT_AVAILABLE,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
    errors.REQUEST_TIMED_OUT,
    errors.NOT_ENOUGH_REPLICAS,
)


class ToldEnd(NamedTuple):
    """Offset that a client was told."""

    now_ms: int
    broker: str
    # Leader epoch of the broker that answered; -1 if it is not known.
    leader_epoch: int
    offset: int


class ToldEnds:
    """Offsets that any client of the run was told, by partition and by what it had asked for.

    A broker never answers less than it did before, nor less than an earlier leader did.  A deposed
    leader that does not know of it may answer for as long as its followers' last fetch allows.
    """

    def __init__(self, checker: ReplicaChecker) -> None:
        self._checker = checker
        self._told: dict[tuple[Place, int], list[ToldEnd]] = {}
        # Count of answers that were compared with an earlier one.
        self.compared = 0

    def end(self, place: Place) -> int:
        """Return the largest end that was told."""
        return max((each.offset for each in self._told.get((place, _LATEST), [])), default=0)

    def promise_start(self, place: Place, told: ToldEnd) -> None:
        """Note the start that an answer to DeleteRecords promises."""
        if not self._checker.was_unclean(place):
            self._told.setdefault((place, _EARLIEST), []).append(told)

    def is_less(self, place: Place, asked: int, told: ToldEnd, sent_ms: int) -> ToldEnd | None:
        """Note the answer to a query of `sent_ms`; return an earlier answer with a larger offset.

        A start that is only told is not noted: a leader that dies before all others have its start
        has promised nothing.  After an unclean election offsets begin again, and an earlier leader
        may still answer.
        """
        if self._checker.was_unclean(place):
            return None
        before = self._told.setdefault((place, asked), [])
        known = [each for each in before if each.now_ms < sent_ms]
        self.compared += len(known) > 0
        if asked == _LATEST:
            before.append(told)
        for each in known:
            if each.offset > told.offset and (
                each.now_ms < sent_ms - _STALE_MS
                or each.broker == told.broker
                or -1 < each.leader_epoch <= told.leader_epoch
            ):
                return each
        return None


class Visitor(RunClient):
    """Client of one broker that asks until the run is quiet."""

    def __init__(
        self,
        context: RunContext,
        name: str,
        run: RunContext,
        scenario: ClusterScenario,
        told: ToldEnds,
        checker: ReplicaChecker,
    ) -> None:
        super().__init__(context, name, run)
        self._scenario = scenario
        self._told = told
        self._checker = checker

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            yield Delay(1 + random.randrange(_PAUSE_MS_MAX))
            topic = self.run.topics[0]
            kind = random.randrange(8)
            if kind == 0 and self._scenario.deletes_records:
                yield from self._delete_records(topic)
            elif kind == 1 and self._scenario.is_unclean:
                yield self._unclean_election(topic)
            else:
                yield from self._ask(topic, _EARLIEST if kind < 4 else _LATEST)

    def _ask(self, topic: KnownTopic, asked: int) -> Script:
        """Ask where all partitions begin, or end."""
        sent_ms = self.context.clock.now_ms
        partitions = [
            ListOffsetsPartition(partition_index=index, timestamp=asked)
            for index in range(topic.partitions)
        ]
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(topic.name, partitions)]
        )
        outcome = yield Query(api_keys.LIST_OFFSETS, 9, request, decode_list_offsets_response)
        if outcome is None or not isinstance(outcome.answer, ListOffsetsResponse):
            return
        for each in outcome.answer.topics[0].partitions:
            if each.error_code != errors.NONE:
                self._check_error(f"offsets of {topic.name}", each.error_code)
            else:
                epoch = each.leader_epoch if asked == _LATEST else -1
                self._compare(topic, each.partition_index, asked, epoch, each.offset, sent_ms)

    def _compare(
        self, topic: KnownTopic, index: int, asked: int, epoch: int, offset: int, sent_ms: int
    ) -> None:
        told = ToldEnd(self.context.clock.now_ms, self.name, epoch, offset)
        place = (topic.topic_id, index)
        more = self._told.is_less(place, asked, told, sent_ms)
        if more is not None:
            what = "end" if asked == _LATEST else "start"
            self.context.history.violate(
                f"the {what} of {topic.name}-{index} goes back: {told} after {more}"
            )

    def _delete_records(self, topic: KnownTopic) -> Script:
        random = self.context.random
        place = topic.places()[random.randrange(topic.partitions)]
        end = self._told.end(place)
        offset = random.randrange(end + 1) if random.randrange(3) == 0 else end // 4
        partitions = [DeleteRecordsPartition(place[1], offset)]
        outcome = yield Query(
            api_keys.DELETE_RECORDS,
            2,
            DeleteRecordsRequest([DeleteRecordsTopic(topic.name, partitions)], _TIMEOUT_MS),
            decode_delete_records_response,
            _TIMEOUT_MS,
        )
        if outcome is None or not isinstance(outcome.answer, DeleteRecordsResponse):
            return
        answer = outcome.answer.topics[0].partitions[0]
        if answer.error_code == errors.NONE:
            if not self._checker.was_unclean(place):
                self._checker.note_deletion(place, answer.low_watermark)
            told = ToldEnd(self.context.clock.now_ms, self.name, -1, answer.low_watermark)
            self._told.promise_start(place, told)
        elif answer.error_code != errors.OFFSET_OUT_OF_RANGE:
            self._check_error(f"a deletion of {topic.name}-{place[1]}", answer.error_code)

    def _unclean_election(self, topic: KnownTopic) -> Query:
        places = [TopicPartitions(topic.name, list(range(topic.partitions)))]
        return Query(
            api_keys.ELECT_LEADERS,
            2,
            ElectLeadersRequest(_UNCLEAN, places, _TIMEOUT_MS),
            decode_elect_leaders_response,
            _TIMEOUT_MS,
        )

    def _check_error(self, what: str, code: int) -> None:
        if code not in _PASSING:
            self.context.history.violate(f"{self.name} asks for {what} and gets {error_name(code)}")

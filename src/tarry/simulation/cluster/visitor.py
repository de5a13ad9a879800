"""Visitor: asks one broker over and over where partitions begin and end, and compares over time.

What one broker has told is remembered by all visitors: nobody asked later may tell of an earlier
end or start (KIP-207).  Some delete records, or ask for unclean elections.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
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
from tarry.simulation.clients.simulated_client import Delay, Query, Script, ScriptedClient
from tarry.simulation.cluster.replica_checker import Place, ReplicaChecker
from tarry.simulation.cluster.scenario import ClusterScenario

_LATEST: Final = -1
_EARLIEST: Final = -2
_PAUSE_MS_MAX: Final = 250
_TIMEOUT_MS: Final = 2_000
_UNCLEAN: Final = 1

# What a client is told of a partition that is led elsewhere, or not yet, or whose disk is slow.
_PASSING: Final = (
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.LEADER_NOT_AVAILABLE,
    errors.OFFSET_NOT_AVAILABLE,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.KAFKA_STORAGE_ERROR,
    errors.REQUEST_TIMED_OUT,
    errors.NOT_ENOUGH_REPLICAS,
)


class ToldOffsets:
    """Offsets that any client of the run was told, by partition and by what it had asked for."""

    def __init__(self, checker: ReplicaChecker) -> None:
        self._checker = checker
        self._told: dict[tuple[Place, int], int] = {}
        # Answers that were compared with an earlier one.
        self.compared = 0

    def least(self, place: Place, asked: int) -> int:
        """Return what nobody who is asked from now on may go below."""
        return self._told.get((place, asked), 0)

    def tell(self, place: Place, asked: int, offset: int, least: int) -> bool:
        """Take an answer; False if it is below what was the least as its question left.

        After an unclean election offsets begin anew, and a leader of before may still answer.
        """
        if self._checker.was_unclean(place):
            return True
        known = self._told.get((place, asked), -1)
        self.compared += known >= 0
        self._told[place, asked] = max(known, offset)
        return offset >= least


class Visitor(ScriptedClient):
    """Client of one broker, until the run `begins` to be quiet."""

    def __init__(
        self,
        context: RunContext,
        name: str,
        run: RunContext,
        scenario: ClusterScenario,
        told: ToldOffsets,
        checker: ReplicaChecker,
    ) -> None:
        super().__init__(context, name)
        context.history = run.history
        self._run = run
        self._scenario = scenario
        self._told = told
        self._checker = checker

    def script(self) -> Script:
        random = self.context.random
        while not self._run.is_quiet:
            yield Delay(1 + random.randrange(_PAUSE_MS_MAX))
            topic = self._run.topics[0]
            kind = random.randrange(8)
            if kind == 0 and self._scenario.deletes_records:
                yield from self._delete_records(topic)
            elif kind == 1 and self._scenario.is_unclean:
                yield self._unclean_election(topic)
            else:
                yield from self._ask(topic, _EARLIEST if kind < 4 else _LATEST)

    def _ask(self, topic: KnownTopic, asked: int) -> Script:
        """Ask where all partitions begin, or end."""
        least = [self._told.least(place, asked) for place in topic.places()]
        partitions = [
            ListOffsetsPartition(partition_index=index, timestamp=asked)
            for index in range(topic.partitions)
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic.name, partitions)])
        outcome = yield Query(api_keys.LIST_OFFSETS, 9, request, decode_list_offsets_response)
        if outcome is None or not isinstance(outcome.answer, ListOffsetsResponse):
            return
        for each in outcome.answer.topics[0].partitions:
            index = each.partition_index
            place = (topic.topic_id, index)
            if each.error_code != errors.NONE:
                self._check_error(f"offsets of {topic.name}-{index}", each.error_code)
            elif not self._told.tell(place, asked, each.offset, least[index]):
                what = "end" if asked == _LATEST else "start"
                self.context.history.violate(
                    f"{self.name} is told that the {what} of {topic.name}-{index} is "
                    f"{each.offset}, and {least[index]} was told before"
                )

    def _delete_records(self, topic: KnownTopic) -> Script:
        random = self.context.random
        place = topic.places()[random.randrange(topic.partitions)]
        end = self._told.least(place, _LATEST)
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
            self._checker.note_deletion(place, answer.low_watermark)
            self._told.tell(place, _EARLIEST, answer.low_watermark, 0)
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

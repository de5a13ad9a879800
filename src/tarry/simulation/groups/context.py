"""Context of groups: history, scenario and the queries that the clients of groups share."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tarry.protocol.registry import MESSAGES
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, Script
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.groups.history import (
    ACKNOWLEDGED,
    ALL,
    REFUSED,
    GroupHistory,
    MemberRequest,
    OffsetRead,
    OffsetWrite,
    Register,
)
from tarry.simulation.groups.scenario import GroupsScenario

# Errors after which a client looks for the coordinator again: it is unknown, or not ready.
OF_THE_COORDINATOR: Final = (
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)
# Errors of commits that are not in the log and never will be.
_REFUSALS: Final = (
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.FENCED_INSTANCE_ID,
    errors.GROUP_ID_NOT_FOUND,
    errors.ILLEGAL_GENERATION,
    errors.REBALANCE_IN_PROGRESS,
    errors.UNKNOWN_MEMBER_ID,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
)

# Errors of deletions that have deleted nothing and never will.
_DELETION_REFUSALS: Final = (
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.GROUP_ID_NOT_FOUND,
    errors.GROUP_SUBSCRIBED_TO_TOPIC,
    errors.NON_EMPTY_GROUP,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
)

# Longest part of a pause, so that a client notices soon that all is quiet.
SLICE_MS: Final = 200

# The first FindCoordinator of a run creates the topic of the offsets, within this time.
_CREATION_MS: Final = 1_500

# A time-out passes with a tick of the wheel, and is noticed when the running turn is over.
_TICK_MS: Final = 1
_TURN_MS_MAX: Final = 50
_VERSION_OF_NULL_TOPICS: Final = 2
_VERSION_OF_LEADER_EPOCH: Final = 5
_COMMIT_VERSION_OF_LEADER_EPOCH: Final = 6
_VERSION_OF_SEVERAL_GROUPS: Final = 8
_VERSION_OF_SEVERAL_KEYS: Final = 4


class GroupsContext:
    """Context shared by all clients of a workload of groups."""

    def __init__(
        self, context: RunContext, history: GroupHistory, scenario: GroupsScenario
    ) -> None:
        self.context = context
        self.history = history
        self.scenario = scenario
        # Longest time for which a write is under way, in ms.
        self.flush_ms_max = 3
        # True if reads of the disk may fail in this run, so that groups may not load.
        self.may_fail_to_load = False
        self._marks = 0

    def new_mark(self, name: str) -> str:
        """Return a text that is unique in this run."""
        self._marks += 1
        return f"{name}#{self._marks}"

    def query(
        self, api_key: int, request: Message, versions: tuple[int, int], wait_ms: int
    ) -> Query:
        """Return a query that waits for `wait_ms` and some writes, in any fitting version."""
        decode = MESSAGES[api_key].decode_response
        query = Query(api_key, self.context.version(*versions), request, decode, wait_ms)
        query.slack_ms = _TICK_MS + _TURN_MS_MAX + 2 * self.flush_ms_max
        query.is_stall_forgiven = True
        return query

    def unexpected(self, name: str, what: str, error_code: int) -> None:
        """Note an answer that no fault and no request of this run explains."""
        self.context.history.violate(f"{what} of {name} got {errors.error_name(error_code)}")

    def pause(self, duration_ms: int) -> Script:
        """Pause for so long, or until all is quiet."""
        clock = self.context.clock
        end_ms = clock.now_ms + duration_ms
        while clock.now_ms < end_ms and not self.context.is_quiet:
            yield Delay(min(SLICE_MS, end_ms - clock.now_ms))

    # -- the coordinator

    def find_coordinator(self, group: str) -> Query:
        query = self.query(
            api_keys.FIND_COORDINATOR, FindCoordinatorRequest(), (0, 6), _CREATION_MS
        )
        request = query.request
        assert isinstance(request, FindCoordinatorRequest)
        if query.version >= _VERSION_OF_SEVERAL_KEYS:
            request.coordinator_keys = [group]
        else:
            request.key = group
        return query

    def is_found(self, name: str, answer: FindCoordinatorResponse) -> bool:
        """Return true if the answer names the coordinator."""
        error_code = answer.error_code
        for coordinator in answer.coordinators:
            error_code = coordinator.error_code
        if error_code not in (errors.NONE, errors.COORDINATOR_NOT_AVAILABLE):
            self.unexpected(name, "FindCoordinator", error_code)
        return error_code == errors.NONE

    # -- offsets

    def commit(
        self, group: str, writes: list[OffsetWrite], versions: tuple[int, int] = (2, 9)
    ) -> Query:
        """Return a query OffsetCommit of these writes, from a consumer without membership."""
        wait_ms = self.scenario.commit_timeout_ms
        query = self.query(
            api_keys.OFFSET_COMMIT, OffsetCommitRequest(group_id=group), versions, wait_ms
        )
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for write in writes:
            _group, topic, index = write.register
            if query.version < _COMMIT_VERSION_OF_LEADER_EPOCH:
                write.leader_epoch = -1
            asked = OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=write.offset,
                committed_leader_epoch=write.leader_epoch,
                committed_metadata=write.mark,
            )
            known = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, partitions=[]))
            assert isinstance(known.partitions, list)
            known.partitions.append(asked)
        request = query.request
        assert isinstance(request, OffsetCommitRequest)
        request.topics = list(topics.values())
        query.on_sent = _Written(self.history, writes).happen
        return query

    def new_write(self, register: Register, name: str, offset: int) -> OffsetWrite:
        """Return a commit that is about to be sent."""
        return OffsetWrite(register, self.new_mark(name), offset)

    def take_commit(
        self, writes: list[OffsetWrite], answer: OffsetCommitResponse
    ) -> dict[Register, int]:
        """Note the outcome of each write of a commit; return the error codes by register."""
        codes: dict[TopicPartition, int] = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                codes[(topic.name, partition.partition_index)] = partition.error_code
        found: dict[Register, int] = {}
        for write in writes:
            _group, topic_name, index = write.register
            code = codes.get((topic_name, index))
            if code is None:
                self.context.history.violate(f"a commit was not answered for {topic_name}-{index}")
                continue
            found[write.register] = code
            if code == errors.NONE:
                write.outcome = ACKNOWLEDGED
            elif code in _REFUSALS:
                write.outcome = REFUSED
            elif code == errors.COORDINATOR_NOT_AVAILABLE:
                self._check_time_out(write, f"the commit of {write.mark}")
        return found

    def fetch_offsets(self, group: str, registers: list[Register] | None) -> Query:
        """Return a query OffsetFetch for these offsets, or for all that the group has."""
        names: dict[str, list[int]] = {}
        for _group, topic, index in registers or []:
            names.setdefault(topic, []).append(index)
        version_min = 1 if registers is not None else _VERSION_OF_NULL_TOPICS
        query = self.query(api_keys.OFFSET_FETCH, OffsetFetchRequest(), (version_min, 9), 0)
        request = query.request
        assert isinstance(request, OffsetFetchRequest)
        if query.version >= _VERSION_OF_SEVERAL_GROUPS:
            topics = [
                OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in names.items()
            ]
            request.groups = [
                OffsetFetchRequestGroup(
                    group_id=group, topics=None if registers is None else topics
                )
            ]
        else:
            request.group_id = group
            request.topics = [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in names.items()
            ]
            if registers is None:
                request.topics = None
        return query

    def take_offsets(
        self,
        name: str,
        group: str,
        registers: list[Register],
        exchange: ObservedExchange,
        answer: OffsetFetchResponse,
    ) -> dict[Register, int] | None:
        """Note the offsets of an answer; return them, or None if the answer is an error.

        Those of `registers` that the answer does not name count as not committed.
        """
        told: dict[Register, tuple[str, int, int]] = {}
        error_code = answer.error_code
        for group_answer in answer.groups:
            error_code = error_code or group_answer.error_code
        for topic in _topics_of(answer):
            for partition in topic.partitions:
                error_code = error_code or partition.error_code
                told[(group, topic.name, partition.partition_index)] = (
                    partition.metadata or "",
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                )
        if error_code != errors.NONE:
            if error_code not in OF_THE_COORDINATOR:
                self.unexpected(name, "OffsetFetch", error_code)
            return None
        for register in registers:
            told.setdefault(register, ("", -1, -1))
        for register, (mark, offset, leader_epoch) in told.items():
            read = OffsetRead(register, mark, offset, leader_epoch, exchange)
            if exchange.api_version < _VERSION_OF_LEADER_EPOCH:
                read.leader_epoch = None
            self.history.reads.append(read)
        return {register: offset for register, (_mark, offset, _epoch) in told.items()}

    def registers(self, group: str) -> list[Register]:
        """Return each partition for which any client has committed an offset of this group."""
        found = {
            write.register: None for write in self.history.writes if write.register[0] == group
        }
        return sorted(register for register in found if register[2] != ALL)

    def ask_to_write(self, query: Query, write: OffsetWrite) -> Query:
        """Return the query; when it is sent, its write becomes part of the history."""
        query.on_sent = _Written(self.history, [write]).happen
        return query

    def delete_group(self, group: str) -> tuple[Query, OffsetWrite]:
        """Return a query that deletes a group, with the write that stands for all its offsets."""
        request = DeleteGroupsRequest(groups_names=[group])
        query = self.query(api_keys.DELETE_GROUPS, request, (0, 2), self.scenario.commit_timeout_ms)
        write = OffsetWrite((group, "", ALL), "", -1)
        return self.ask_to_write(query, write), write

    def take_deletion(self, write: OffsetWrite, error_code: int) -> bool:
        """Note the result of a deletion; False if no fault of this world explains it."""
        if error_code == errors.NONE:
            write.outcome = ACKNOWLEDGED
        elif error_code in _DELETION_REFUSALS:
            write.outcome = REFUSED
        elif error_code == errors.COORDINATOR_NOT_AVAILABLE:
            self._check_time_out(write, f"a deletion of group {write.register[0]}")
        else:
            return error_code in OF_THE_COORDINATOR
        return True

    def _check_time_out(self, write: OffsetWrite, what: str) -> None:
        """Check that a write that timed out had its whole time.

        A coordinator that cannot read its log answers with the same code at once, and so does one
        that is about to delete the group.
        """
        exchange = write.exchange
        if exchange is None or self.may_fail_to_load:
            return
        if self.context.network.waited_ms(exchange) > 0:
            self.context.check_time_out(exchange, what)


class Sent:
    """Request of a member on its way: when it is sent, it becomes part of the history."""

    def __init__(self, history: GroupHistory, asked: MemberRequest) -> None:
        self._history = history
        self._asked = asked

    def happen(self, exchange: ObservedExchange) -> None:
        self._asked.exchange = exchange
        self._history.asked.append(self._asked)
        _Written(self._history, self._asked.writes).happen(exchange)


class _Written:
    """Writes on their way: when they are sent, they become part of the history."""

    def __init__(self, history: GroupHistory, writes: list[OffsetWrite]) -> None:
        self._history = history
        self._writes = writes

    def happen(self, exchange: ObservedExchange) -> None:
        for write in self._writes:
            write.exchange = exchange
            self._history.writes.append(write)


def _topics_of(
    answer: OffsetFetchResponse,
) -> list[OffsetFetchResponseTopic | OffsetFetchResponseTopics]:
    """Return the topics of an answer for one group, in any version."""
    found: list[OffsetFetchResponseTopic | OffsetFetchResponseTopics] = list(answer.topics)
    for group in answer.groups:
        found += group.topics
    return found

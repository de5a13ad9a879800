"""Member of a group: joins, works and commits; dies without leaving, pauses, comes back, leaves.

A process that died is followed by another one; a static member keeps its instance id.  In a quiet
world no process dies, and none comes back.  A living member works on, and is settled once a
heartbeat was answered in a generation in which it has an assignment.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.find_coordinator import FindCoordinatorResponse
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tarry.protocol.messages.offset_fetch import OffsetFetchResponse
from tarry.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tarry.simulation.clients.simulated_client import Delay, Query, Script, Steps
from tarry.simulation.groups.assignment import (
    decode_assignment,
    encode_assignment,
    share_out,
    subscription,
)
from tarry.simulation.groups.context import OF_THE_COORDINATOR, GroupsContext, Sent
from tarry.simulation.groups.history import (
    COMMIT,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    MemberRequest,
    Register,
)
from tarry.simulation.groups.restartable import ProcessDied, RestartableClient
from tarry.simulation.groups.scenario import GroupPlan, MemberPlan

_RETRY_MS: Final = 40

# First versions in which a request can name an instance.
_JOIN_OF_INSTANCES: Final = 5
_SYNC_OF_INSTANCES: Final = 3
_HEARTBEAT_OF_INSTANCES: Final = 3
_COMMIT_OF_INSTANCES: Final = 7
_LEAVE_OF_SEVERAL: Final = 3
_SYNC_OF_PROTOCOLS: Final = 5


class SimulatedMember(RestartableClient):
    """Member of a group that joins, works, commits and fails in many ways."""

    def __init__(
        self, groups_context: GroupsContext, name: str, group: GroupPlan, plan: MemberPlan
    ) -> None:
        super().__init__(groups_context, name, plan)
        self.group = group
        # The membership as this process knows it.
        self.member_id = ""
        self.generation_id = -1
        self.is_settled = False
        self._partitions: list[TopicPartition] = []
        self._positions: dict[TopicPartition, int] = {}
        self._protocol_name: str | None = None
        self._subscription_number = 0
        self._is_coordinator_known = False
        # Id and generation of the previous process.
        self._previous = ("", -1)

    def _forget_everything(self) -> None:
        self._previous = (self.member_id, self.generation_id)
        self.member_id = ""
        self.generation_id = -1
        self.is_settled = False
        self._is_coordinator_known = False
        self._partitions = []
        self._positions = {}
        self._subscription_number = 0

    # -- a process

    def _live(self) -> Script:
        """Run one process of the member to its end."""
        while True:
            joined = yield from self._join()
            if joined is None:
                continue
            is_assigned = yield from self._sync(joined)
            if is_assigned:
                yield from self._fetch_positions()
                yield from self._work()

    def _ask(self, query: Query, asked: MemberRequest | None = None) -> Steps[Message | None]:
        """Send a query; return its answer, or None if it was lost."""
        if asked is not None:
            query.on_sent = Sent(self._groups.history, asked).happen
        outcome = yield from self._ask_once(query)
        if outcome.answer is None:
            self._is_coordinator_known = False
        return outcome.answer

    def _new_asked(self, kind: str) -> MemberRequest:
        asked = MemberRequest(kind, self.group.name, self.name, self.member_id)
        self._remark(f"{kind} as {self.member_id or 'nobody'} in generation {self.generation_id}")
        asked.instance_id = self.plan.instance_id
        asked.generation_id = self.generation_id
        asked.session_timeout_ms = self.plan.session_timeout_ms
        asked.rebalance_timeout_ms = self.plan.rebalance_timeout_ms
        return asked

    def _versions(
        self, version_min: int, version_of_instances: int, version_max: int
    ) -> tuple[int, int]:
        if self.plan.instance_id is not None:
            return version_of_instances, version_max
        return version_min, version_max

    @property
    def _wait_ms(self) -> int:
        """Return how long a join or a sync may wait, in ms."""
        return max(self.group.rebalance_timeout_ms_max, self._groups.scenario.initial_delay_ms)

    # -- what errors do

    def _take_error(self, what: str, error_code: int) -> Script:
        """React to an error as a consumer does; raise `ProcessDied` if a consumer gives up."""
        self.is_settled = False
        self._remark(f"{what} got {errors.error_name(error_code)}")
        if error_code in OF_THE_COORDINATOR:
            self._is_coordinator_known = False
            yield Delay(_RETRY_MS)
        elif error_code in (errors.UNKNOWN_MEMBER_ID, errors.GROUP_ID_NOT_FOUND):
            self.member_id = ""
            self.generation_id = -1
        elif error_code == errors.ILLEGAL_GENERATION:
            self.generation_id = -1
            if self.plan.instance_id is None and self.context.random.randrange(2) == 0:
                self.member_id = ""
        elif self._is_final(error_code):
            raise ProcessDied
        elif error_code != errors.REBALANCE_IN_PROGRESS:
            self._groups.unexpected(self.name, what, error_code)

    def _is_final(self, error_code: int) -> bool:
        """Return true if the member's place is taken, or the group is full."""
        if error_code == errors.FENCED_INSTANCE_ID:
            return self.plan.instance_id is not None
        return (
            error_code == errors.GROUP_MAX_SIZE_REACHED and self._groups.scenario.group_size_max > 0
        )

    # -- coordinator and join

    def _find_coordinator(self) -> Script:
        while not self._is_coordinator_known:
            answer = yield from self._ask(self._groups.find_coordinator(self.group.name))
            if isinstance(answer, FindCoordinatorResponse):
                self._is_coordinator_known = self._groups.is_found(self.name, answer)
            if not self._is_coordinator_known:
                yield Delay(_RETRY_MS)

    def _join(self) -> Steps[JoinGroupResponse | None]:
        yield from self._find_coordinator()
        asked = self._new_asked(JOIN)
        asked.generation_id = -1
        answer = yield from self._ask(self._join_question(), asked)
        if not isinstance(answer, JoinGroupResponse):
            yield Delay(_RETRY_MS)
            return None
        asked.error_code = answer.error_code
        asked.given_id = answer.member_id
        if answer.error_code == errors.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            if self._is_chance(self.plan.deaths_per_mille):
                self._die()
            if self._is_chance(self.plan.leaves_per_mille):
                yield from self._leave()
            return None
        if answer.error_code != errors.NONE:
            yield from self._take_error("JoinGroup", answer.error_code)
            return None
        asked.generation_id = answer.generation_id
        self.member_id = answer.member_id
        self.generation_id = answer.generation_id
        self._protocol_name = answer.protocol_name
        if answer.protocol_name not in self.plan.protocols:
            self.context.history.violate(
                f"{self.name} was told protocol {answer.protocol_name!r}, which it does not support"
            )
        if self._is_chance(self.plan.deaths_per_mille):
            self._die()
        return answer

    def _join_question(self) -> Query:
        plan = self.plan
        topics = [topic.name for topic in self.context.alive_topics()]
        protocols = [
            JoinGroupRequestProtocol(
                name=name, metadata=subscription(topics, self._subscription_number)
            )
            for name in plan.protocols
        ]
        request = JoinGroupRequest(
            group_id=self.group.name,
            session_timeout_ms=plan.session_timeout_ms,
            rebalance_timeout_ms=plan.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=plan.instance_id,
            protocol_type=self.group.protocol_type,
            protocols=protocols,
        )
        version_of_instances = max(plan.join_version_min, _JOIN_OF_INSTANCES)
        versions = self._versions(plan.join_version_min, version_of_instances, 9)
        return self._groups.query(api_keys.JOIN_GROUP, request, versions, self._wait_ms)

    # -- sync

    def _sync(self, joined: JoinGroupResponse) -> Steps[bool]:
        if self._is_chance(self.plan.pauses_per_mille):
            yield from self._groups.pause(
                self.context.random.randrange(2 * max(1, self.plan.rebalance_timeout_ms))
            )
        if self._is_chance(self.plan.late_requests_per_mille):
            yield from self._send_commit()
        asked = self._new_asked(SYNC)
        versions = self._versions(0, _SYNC_OF_INSTANCES, 5)
        request = SyncGroupRequest(
            group_id=self.group.name,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.plan.instance_id,
            assignments=self._assign(joined),
        )
        query = self._groups.query(api_keys.SYNC_GROUP, request, versions, self._wait_ms)
        if query.version >= _SYNC_OF_PROTOCOLS:
            request.protocol_type = self.group.protocol_type
            request.protocol_name = self._protocol_name
        answer = yield from self._ask(query, asked)
        if not isinstance(answer, SyncGroupResponse):
            yield Delay(_RETRY_MS)
            return False
        asked.error_code = answer.error_code
        if answer.error_code != errors.NONE:
            yield from self._take_error("SyncGroup", answer.error_code)
            return False
        asked.token, asked.partitions = decode_assignment(answer.assignment)
        self._partitions = asked.partitions
        self._remark(f"works on {asked.partitions} by {asked.token}")
        return True

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Return the leader's assignments; other members bring none."""
        if joined.leader != self.member_id or not joined.members or joined.skip_assignment:
            return []
        member_ids = [member.member_id for member in joined.members]
        partitions = [
            (topic.name, index)
            for topic in self.context.alive_topics()
            for index in range(topic.partitions)
        ]
        token = self._groups.new_mark(self.name)
        shares = share_out(partitions, member_ids)
        if len(member_ids) > 1 and self._is_chance(self.plan.rejoins_per_mille):
            # The leader forgets one member.
            del shares[member_ids[-1]]
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_assignment(token, share)
            )
            for member_id, share in shares.items()
        ]

    # -- work

    def _work(self) -> Script:
        """Consume and commit until the member has to join again."""
        context = self.context
        plan = self.plan
        while True:
            yield Delay(1 + context.random.randrange(plan.heartbeat_ms))
            if self._is_chance(plan.deaths_per_mille):
                self._die()
            if self._is_chance(plan.pauses_per_mille):
                self.is_settled = False
                yield from self._groups.pause(context.random.randrange(3 * plan.session_timeout_ms))
                # Its first request after the pause is a commit, for which its session may be over.
                yield from self._commit()
            if self._is_chance(plan.leaves_per_mille):
                yield from self._leave()
            if self._is_chance(plan.rejoins_per_mille):
                self._subscription_number += context.random.randrange(2)
                self.is_settled = False
                return
            if self._is_chance(plan.late_requests_per_mille):
                yield from self._send_late_request()
            if self._is_chance(plan.commits_per_mille):
                is_member = yield from self._commit()
                if not is_member:
                    return
            is_member = yield from self._beat()
            if not is_member:
                return

    def _beat(self) -> Steps[bool]:
        """Send a heartbeat; return true if the member may work on."""
        if not self._is_coordinator_known:
            yield from self._find_coordinator()
        error_code = yield from self._send_heartbeat()
        if error_code < 0:
            return True
        if error_code == errors.NONE:
            self.is_settled = True
            return True
        is_revoked = error_code == errors.REBALANCE_IN_PROGRESS
        if is_revoked and self.context.is_chance(self.plan.commits_per_mille):
            yield from self._commit()
        yield from self._take_error("Heartbeat", error_code)
        # A member stays a member while its coordinator is away.
        return error_code in OF_THE_COORDINATOR

    def _send_heartbeat(self) -> Steps[int]:
        """Send a heartbeat; return the error code, -1 if the answer was lost."""
        asked = self._new_asked(HEARTBEAT)
        request = HeartbeatRequest(
            group_id=self.group.name,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.plan.instance_id,
        )
        versions = self._versions(0, _HEARTBEAT_OF_INSTANCES, 4)
        query = self._groups.query(api_keys.HEARTBEAT, request, versions, 0)
        answer = yield from self._ask(query, asked)
        if isinstance(answer, HeartbeatResponse):
            asked.error_code = answer.error_code
        return asked.error_code

    def _send_late_sync(self) -> Script:
        """Send a sync without assignments and ignore its answer."""
        asked = self._new_asked(SYNC)
        versions = self._versions(0, _SYNC_OF_INSTANCES, 4)
        request = SyncGroupRequest(
            group_id=self.group.name,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.plan.instance_id,
        )
        query = self._groups.query(api_keys.SYNC_GROUP, request, versions, self._wait_ms)
        answer = yield from self._ask(query, asked)
        if isinstance(answer, SyncGroupResponse):
            asked.error_code = answer.error_code
            asked.token, asked.partitions = decode_assignment(answer.assignment)

    def _fetch_positions(self) -> Script:
        """Fetch the committed offsets of the own partitions."""
        registers = [self._register(partition) for partition in self._partitions]
        query = self._groups.fetch_offsets(self.group.name, registers)
        if not registers:
            return
        outcome = yield from self._ask_once(query)
        if isinstance(outcome.answer, OffsetFetchResponse):
            offsets = self._groups.take_offsets(
                self.name, self.group.name, registers, outcome.exchange, outcome.answer
            )
            for (_group, topic, index), offset in (offsets or {}).items():
                self._positions[(topic, index)] = max(offset, 0)

    def _register(self, partition: TopicPartition) -> Register:
        return self.group.name, partition[0], partition[1]

    def _send_late_request(self) -> Script:
        """Send a request with the ids of the previous process, or with an older generation."""
        member_id, generation_id = self.member_id, self.generation_id
        if self._previous[0] and self.context.random.randrange(2):
            self.member_id, self.generation_id = self._previous
        else:
            self.generation_id = max(0, generation_id - 1)
        try:
            kind = self.context.random.randrange(4)
            if kind == 0:
                yield from self._send_heartbeat()
            elif kind == 1:
                yield from self._send_late_sync()
            else:
                yield from self._send_commit()
        finally:
            self.member_id, self.generation_id = member_id, generation_id

    def _commit(self) -> Steps[bool]:
        """Commit positions of some partitions; return true if the member may work on."""
        error_code = yield from self._send_commit()
        if error_code in (errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION):
            return True
        yield from self._take_error("OffsetCommit", error_code)
        return error_code in OF_THE_COORDINATOR

    def _send_commit(self) -> Steps[int]:
        """Send a commit; return the first error of a partition, NONE if the answer was lost."""
        random = self.context.random
        partitions = [each for each in self._partitions if random.randrange(3)]
        if not partitions:
            return errors.NONE
        writes = []
        for partition in partitions:
            self._positions[partition] = self._positions.get(partition, 0) + random.randrange(9)
            write = self._groups.new_write(
                self._register(partition), self.name, self._positions[partition]
            )
            write.leader_epoch = random.randrange(3) - 1
            writes.append(write)
        asked = self._new_asked(COMMIT)
        versions = self._versions(2, _COMMIT_OF_INSTANCES, 9)
        query = self._groups.commit(self.group.name, writes, versions)
        request = query.request
        assert isinstance(request, OffsetCommitRequest)
        request.generation_id_or_member_epoch = self.generation_id
        request.member_id = self.member_id
        request.group_instance_id = self.plan.instance_id
        asked.writes = writes
        answer = yield from self._ask(query, asked)
        if not isinstance(answer, OffsetCommitResponse):
            return errors.NONE
        codes = list(self._groups.take_commit(writes, answer).values())
        asked.error_code = errors.NONE if errors.NONE in codes else codes[0]
        failed = [
            each for each in codes if each not in (errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION)
        ]
        return failed[0] if failed else errors.NONE

    def _leave(self) -> Script:
        """Leave the group, and end the process."""
        asked = self._new_asked(LEAVE)
        asked.given_id = self.member_id
        versions = self._versions(0, _LEAVE_OF_SEVERAL, 5)
        request = LeaveGroupRequest(group_id=self.group.name)
        query = self._groups.query(api_keys.LEAVE_GROUP, request, versions, 0)
        if query.version >= _LEAVE_OF_SEVERAL:
            request.members = [
                MemberIdentity(member_id=self.member_id, group_instance_id=self.plan.instance_id)
            ]
        else:
            request.member_id = self.member_id
        answer = yield from self._ask(query, asked)
        if isinstance(answer, LeaveGroupResponse):
            asked.error_code = answer.error_code
        raise ProcessDied

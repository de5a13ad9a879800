"""Round: the requests from a member's join to its assignment.

The owner, which is the membership, decides when a round begins and what a refusal means; the round
sends requests, reads answers and, in the leader, assigns.  Only one round runs at a time: answers
to an abandoned one are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.client.core.group import requests
from tarry.client.core.group.assignment.assignor import Assignor, PreviousAssignment
from tarry.client.core.group.assignment.assignors import assign
from tarry.client.core.group.assignment.consumer_protocol import (
    GENERATION_UNKNOWN,
    PROTOCOL_TYPE,
    SubscribedMember,
    Subscription,
    decode_assignment,
)
from tarry.client.core.group.assignment.held_back import HeldBack, holds_back, leaves_out
from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.core.group.topics import TopicSubscription
from tarry.client.errors import AssignorFailed
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.exchange import Decoder, Exchange, R
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    decode_describe_groups_response,
)
from tarry.protocol.messages.join_group import (
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    decode_join_group_response,
)
from tarry.protocol.messages.sync_group import SyncGroupResponse, decode_sync_group_response
from tarry.wire.reader import MalformedData

# Name of the thread that takes turns, in a face without threads.
WHOEVER: Final = 0

# Time limit of the question for the group's protocols: the join fails anyway.
DESCRIBE_MS_MAX: Final = 5_000

# Time that the broker needs to answer after the slowest member has joined.
SPARE_MS: Final = 5_000


class RoundOwner(Protocol):
    """Membership that receives the results of a round."""

    def identity(self) -> GroupIdentity: ...

    def on_member_id(self, member_id: str, now_ms: int) -> None:
        """Join again with this id, because the coordinator wants it (KIP-394)."""

    def on_generation(self, joined: Joined) -> None:
        """Store the generation of an answered join; the assignment follows."""

    def on_assignment(self, places: list[TopicPartition], now_ms: int) -> None: ...

    def on_refused(self, api: str, code: int, now_ms: int) -> None: ...

    def on_failed(self, error: ClientError, now_ms: int) -> None:
        """Handle a request without an answer, or with an answer that could not be read."""

    def on_assignor_failed(self, error: AssignorFailed, now_ms: int) -> None:
        """Handle an assignor of the user that raised an exception or returned a wrong
        assignment."""

    def want_join(self, reason: str) -> None:
        """Take part in a new round as soon as possible."""


class Joined:
    """Result of a join."""

    def __init__(self, response: JoinGroupResponse) -> None:
        self.member_id = response.member_id
        self.generation_id = int(response.generation_id)
        self.protocol_name = response.protocol_name or ""
        self.is_leader = response.leader == response.member_id


class JoinRound:
    """Round of one member: from `join` until the owner gets an assignment or the reason of a
    failure."""

    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: CoordinatorFinder,
        topics: TopicSubscription,
        assignors: Iterable[Assignor],
        owner: RoundOwner,
    ) -> None:
        self.coordinator = coordinator
        self.assignors = {one.name: one for one in assignors}
        # Assignment of the last round, for assignors that use it.
        self._previous = PreviousAssignment()
        self._generation_id = GENERATION_UNKNOWN
        self.topics = topics
        self.owner = owner
        self.settings = settings
        waits_ms = settings.poll_interval_ms_max + SPARE_MS
        self._timeout_ms = max(waits_ms, settings.request_timeout_ms)
        self.attempt = 0
        # Members to assign to, as soon as the leader knows their topics; None if there are none.
        self._members: list[SubscribedMember] | None = None
        self._protocol_name = ""
        # Protocols of the group's other members, if they have none in common with ours; else empty.
        self.others_have = ""
        tasks = coordinator.connections.tasks
        self._held_back = HeldBack(tasks, settings.session_timeout_ms, self._begin_another)
        self._holds_back = False
        # Partition counts by topic of a group to which its leader came back without assigning.
        self._came_back_to: dict[str, int] = {}
        # Function that names the thread which takes turns; a face with threads replaces it.
        self.who_turns: Callable[[], int] = _whoever
        # Name of the thread that runs an assignor of the user; None if none runs.
        self.assigned_by: int | None = None

    def abandon(self) -> None:
        """Abandon the round: answers that arrive from now on are ignored."""
        self.attempt += 1
        self._members = None
        self._held_back.forget()

    def join(
        self, owned: list[TopicPartition], generation_id: int, reason: str, now_ms: int
    ) -> None:
        """Join with the owned partitions, as the assignment of that generation."""
        self._holds_back = False
        self._came_back_to = {}
        # KIP-881: a leader may give partitions to members in the racks of their replicas.
        said = Subscription(
            list(self.topics.subscribed), None, owned, generation_id, self.settings.rack or None
        )
        self.assigned_by = self.who_turns()
        try:
            protocols = requests.protocols_of(self.assignors.values(), said, self._previous)
        except AssignorFailed as error:
            self.owner.on_assignor_failed(error, now_ms)
            return
        finally:
            self.assigned_by = None
        self._send(_Join(self, self._timeout_ms, protocols, reason), now_ms)

    def work(self, now_ms: int) -> None:
        """Assign if this member leads, as soon as metadata has the partition count of each
        topic."""
        if self._members is None or not self.topics.has_group_topics:
            return
        members = self._members
        self._members = None
        counts = self.topics.take_snapshot()
        self.assigned_by = self.who_turns()
        try:
            assignor, racks = self.assignors[self._protocol_name], self.topics.partition_racks()
            assignment = assign(assignor, members, counts, racks)
        except AssignorFailed as error:
            self.owner.on_assignor_failed(error, now_ms)
            return
        finally:
            self.assigned_by = None
        self._holds_back = assignor.is_cooperative and holds_back(assignment, members, counts)
        self._sync(assignment, now_ms)

    def _send(self, exchange: _RoundExchange[R], now_ms: int) -> None:
        self.abandon()
        exchange.attempt = self.attempt
        self.coordinator.send(exchange, now_ms)

    def on_joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        owner = self.owner
        code = int(response.error_code)
        is_strange = (
            response.protocol_type not in (None, PROTOCOL_TYPE)
            or response.protocol_name not in self.assignors
        )
        # A member that has an id and gets another one joins after a pause; no sound coordinator
        # does so.
        if code == errors.MEMBER_ID_REQUIRED and not owner.identity().member_id:
            owner.on_member_id(response.member_id, now_ms)
        elif code == errors.INCONSISTENT_GROUP_PROTOCOL:
            self._ask_what_others_have(now_ms)
        elif code != errors.NONE:
            owner.on_refused("JoinGroup", code, now_ms)
        elif is_strange:
            owner.on_refused("JoinGroup", errors.INCONSISTENT_GROUP_PROTOCOL, now_ms)
        else:
            joined = Joined(response)
            owner.on_generation(joined)
            self._go_on(joined, response, now_ms)

    def _ask_what_others_have(self, now_ms: int) -> None:
        """Ask for the protocols of the other members, for the text of the refusal; the join is
        refused with or without an answer."""
        timeout_ms = min(self.settings.request_timeout_ms, DESCRIBE_MS_MAX)
        self._send(_Describe(self, timeout_ms), now_ms)

    def _go_on(self, joined: Joined, response: JoinGroupResponse, now_ms: int) -> None:
        self._protocol_name = joined.protocol_name
        self._generation_id = joined.generation_id
        members = requests.members_of(response.members) if joined.is_leader else []
        self.topics.follow_group(requests.topics_of(members))
        if joined.is_leader and not response.skip_assignment:
            self._members = members
            self.work(now_ms)
            return
        if joined.is_leader and self.topics.has_group_topics:
            # KIP-814: a static leader that came back assigns nothing, but still watches the topics.
            counts = self.topics.take_snapshot()
            if self.assignors[self._protocol_name].is_cooperative:
                self._came_back_to = counts
        self._sync({}, now_ms)

    def _sync(self, assignment: dict[str, list[TopicPartition]], now_ms: int) -> None:
        self._send(_Sync(self, self._timeout_ms, self._protocol_name, assignment), now_ms)

    def on_synced(self, response: SyncGroupResponse, now_ms: int) -> None:
        if response.error_code != errors.NONE:
            self.owner.on_refused("SyncGroup", int(response.error_code), now_ms)
            return
        try:
            places = decode_assignment(response.assignment)
        except MalformedData as flaw:
            sentence = f"the assignment that the leader of group {self.settings.group_id} made"
            self.owner.on_failed(ClientError(f"{sentence} cannot be read: {flaw}"), now_ms)
            return
        self._previous = PreviousAssignment(places, self._generation_id)
        self.owner.on_assignment(places, now_ms)
        if self._holds_back:
            self._held_back.watch(now_ms)
        elif self._came_back_to:
            timeout_ms = min(self.settings.request_timeout_ms, DESCRIBE_MS_MAX)
            self._send(_Look(self, timeout_ms), now_ms)

    def on_group(self, group: DescribedGroup) -> None:
        """Check the assignments of the group that its leader came back to."""
        if leaves_out(group, self._came_back_to):
            self._begin_another()

    def _begin_another(self) -> None:
        if self.topics.is_subscribed:
            self.owner.want_join("partitions that were held back went to nobody")


def _whoever() -> int:
    """Return the name of the only thread that takes turns."""
    return WHOEVER


class _RoundExchange(Exchange[R]):
    """Exchange of one request of a round; its end is ignored if the round has moved on."""

    def __init__(
        self, api_key: int, decode: Decoder[R], of_round: JoinRound, timeout_ms: int
    ) -> None:
        super().__init__(api_key, decode, timeout_ms)
        self.round = of_round
        self.who = of_round.owner.identity()
        self.attempt = 0

    @property
    def is_current(self) -> bool:
        return self.attempt == self.round.attempt

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        if self.is_current:
            self.round.owner.on_failed(error, now_ms)


class _Join(_RoundExchange[JoinGroupResponse]):
    def __init__(
        self,
        of_round: JoinRound,
        timeout_ms: int,
        protocols: list[JoinGroupRequestProtocol],
        reason: str,
    ) -> None:
        super().__init__(api_keys.JOIN_GROUP, decode_join_group_response, of_round, timeout_ms)
        self.protocols = protocols
        self.reason = reason

    def build(self, version: int) -> Message:
        settings = self.round.settings
        return requests.join_request(self.who, settings, self.protocols, self.reason, version)

    def on_response(self, response: JoinGroupResponse, now_ms: int) -> None:
        if self.is_current:
            self.round.on_joined(response, now_ms)


class _Sync(_RoundExchange[SyncGroupResponse]):
    def __init__(
        self,
        of_round: JoinRound,
        timeout_ms: int,
        protocol_name: str,
        assignment: dict[str, list[TopicPartition]],
    ) -> None:
        super().__init__(api_keys.SYNC_GROUP, decode_sync_group_response, of_round, timeout_ms)
        self.protocol_name = protocol_name
        self.assignment = assignment

    def build(self, version: int) -> Message:
        return requests.sync_request(self.who, self.protocol_name, self.assignment, version)

    def on_response(self, response: SyncGroupResponse, now_ms: int) -> None:
        if self.is_current:
            self.round.on_synced(response, now_ms)


class _Describe(_RoundExchange[DescribeGroupsResponse]):
    """Exchange that asks for the protocols of a group that refused this member's protocols."""

    def __init__(self, of_round: JoinRound, timeout_ms: int) -> None:
        decode = decode_describe_groups_response
        super().__init__(api_keys.DESCRIBE_GROUPS, decode, of_round, timeout_ms)

    def build(self, version: int) -> Message:
        return DescribeGroupsRequest([self.round.settings.group_id])

    def on_response(self, response: DescribeGroupsResponse, now_ms: int) -> None:
        for group in response.groups:
            if group.error_code == errors.NONE and group.members:
                protocol = group.protocol_data or "none yet"
                count = len(group.members)
                noun = "member" if count == 1 else "members"
                self.round.others_have = f"{group.protocol_type} ({protocol}), {count} {noun}"
        self._refuse(now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._refuse(now_ms)

    def _refuse(self, now_ms: int) -> None:
        if self.is_current:
            code = errors.INCONSISTENT_GROUP_PROTOCOL
            self.round.owner.on_refused("JoinGroup", code, now_ms)


class _Look(_RoundExchange[DescribeGroupsResponse]):
    """Exchange that asks for the assignments of all members; without an answer nothing changes."""

    def __init__(self, of_round: JoinRound, timeout_ms: int) -> None:
        decode = decode_describe_groups_response
        super().__init__(api_keys.DESCRIBE_GROUPS, decode, of_round, timeout_ms)

    def build(self, version: int) -> Message:
        return DescribeGroupsRequest([self.round.settings.group_id])

    def on_response(self, response: DescribeGroupsResponse, now_ms: int) -> None:
        if self.is_current:
            for group in response.groups:
                self.round.on_group(group)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        """Do nothing: the lost connection reaches the coordinator's finder by itself."""

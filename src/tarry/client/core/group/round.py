"""Round: from a member's join to the assignment that it gets, over the answers of one coordinator.

Its owner, the membership, decides when a round begins and what a refusal means; the round sends,
reads and, for the leader, assigns.  One is under way at a time: what an abandoned one is answered
counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from tarry.base import errors
from tarry.client.core.exchange import Decoder
from tarry.client.core.group import requests
from tarry.client.core.group.assignment.assignors import ASSIGNORS
from tarry.client.core.group.assignment.consumer_protocol import (
    PROTOCOL_TYPE,
    GroupMember,
    Place,
    decode_assignment,
)
from tarry.client.core.group.coordinator import Coordinator, GroupExchange
from tarry.client.core.group.identity import Identity
from tarry.client.core.group.topics import Topics
from tarry.client.errors import ClientError
from tarry.client.settings import ConsumerSettings
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_groups import (
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

JOIN: Final = (api_keys.JOIN_GROUP, decode_join_group_response)
SYNC: Final = (api_keys.SYNC_GROUP, decode_sync_group_response)
DESCRIBE: Final = (api_keys.DESCRIBE_GROUPS, decode_describe_groups_response)

# Who is refused anyway does not wait long to hear what the group has.
DESCRIBE_MS_MAX: Final = 5_000

# A join is answered when the slowest member has come: the broker's wait, and time to answer.
SPARE_MS: Final = 5_000


class RoundOwner(Protocol):
    """What a round tells its membership."""

    def identity(self) -> Identity: ...

    def on_member_id(self, member_id: str, now_ms: int) -> None:
        """The coordinator wants the member to join again with this id (KIP-394)."""

    def on_generation(self, joined: Joined) -> None:
        """The join is done, the assignment follows."""

    def on_assignment(self, places: list[Place], now_ms: int) -> None: ...

    def on_refused(self, api: str, code: int, now_ms: int) -> None: ...

    def on_failed(self, error: ClientError, now_ms: int) -> None:
        """The request ended without an answer, or the answer could not be read."""


class Joined:
    """What a join has brought."""

    def __init__(self, response: JoinGroupResponse) -> None:
        self.member_id = response.member_id
        self.generation_id = int(response.generation_id)
        self.protocol_name = response.protocol_name or ""
        self.is_leader = response.leader == response.member_id


class Round:
    """`join`, then answers until the owner hears of an assignment or of why there is none."""

    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: Coordinator,
        topics: Topics,
        owner: RoundOwner,
    ) -> None:
        self.coordinator = coordinator
        self.topics = topics
        self.owner = owner
        self._settings = settings
        waits_ms = settings.poll_interval_ms_max + SPARE_MS
        self._timeout_ms = max(waits_ms, settings.request_timeout_ms)
        self._attempt = 0
        # The members that the leader assigns to as soon as it knows their topics.
        self._members: list[GroupMember] | None = None
        self._protocol_name = ""
        # What the members of a group that has no use for ours agreed on; empty if not known.
        self.others_have = ""

    def abandon(self) -> None:
        """Whatever is answered from now on is about the past."""
        self._attempt += 1
        self._members = None

    def join(self, protocols: list[JoinGroupRequestProtocol], reason: str, now_ms: int) -> None:
        who, settings = self.owner.identity(), self._settings

        def build(version: int) -> Message:
            return requests.join_request(who, settings, protocols, reason, version)

        self._send(JOIN, build, self._on_joined, now_ms)

    def work(self, now_ms: int) -> None:
        """The leader needs to know how many partitions each topic has."""
        if self._members is None or not self.topics.has_group_topics:
            return
        members = self._members
        self._members = None
        counts = self.topics.take_snapshot()
        self._sync(requests.assign(self._protocol_name, members, counts), now_ms)

    def _send(
        self,
        api: tuple[int, Decoder],
        build: Callable[[int], Message],
        answer: Callable[[Any, int], None],
        now_ms: int,
    ) -> None:
        self.abandon()
        attempt = self._attempt

        def when_answered(response: Any, now_ms: int) -> None:
            if attempt == self._attempt:
                answer(response, now_ms)

        def when_failed(error: ClientError, now_ms: int) -> None:
            if attempt == self._attempt:
                self.owner.on_failed(error, now_ms)

        exchange = GroupExchange(api, self._timeout_ms, build, when_answered, when_failed)
        self.coordinator.send(exchange, now_ms)

    def _on_joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        owner = self.owner
        code = int(response.error_code)
        is_strange = (
            response.protocol_type not in (None, PROTOCOL_TYPE)
            or response.protocol_name not in ASSIGNORS
        )
        if code == errors.MEMBER_ID_REQUIRED:
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
        """For the text of the refusal, which comes with or without an answer."""
        self.abandon()
        attempt, group_id = self._attempt, self._settings.group_id

        def build(version: int) -> Message:
            return DescribeGroupsRequest([group_id])

        def refuse(now_ms: int) -> None:
            if attempt == self._attempt:
                self.owner.on_refused("JoinGroup", errors.INCONSISTENT_GROUP_PROTOCOL, now_ms)

        def when_answered(response: Any, now_ms: int) -> None:
            assert isinstance(response, DescribeGroupsResponse)
            for group in response.groups:
                if group.error_code == errors.NONE and group.members:
                    protocol = group.protocol_data or "none yet"
                    count = len(group.members)
                    noun = "member" if count == 1 else "members"
                    self.others_have = f"{group.protocol_type} ({protocol}), {count} {noun}"
            refuse(now_ms)

        def when_failed(error: ClientError, now_ms: int) -> None:
            refuse(now_ms)

        timeout_ms = min(self._settings.request_timeout_ms, DESCRIBE_MS_MAX)
        exchange = GroupExchange(DESCRIBE, timeout_ms, build, when_answered, when_failed)
        self.coordinator.send(exchange, now_ms)

    def _go_on(self, joined: Joined, response: JoinGroupResponse, now_ms: int) -> None:
        self._protocol_name = joined.protocol_name
        members = requests.members_of(response.members) if joined.is_leader else []
        self.topics.follow_group(requests.topics_of(members))
        if joined.is_leader and not response.skip_assignment:
            self._members = members
            self.work(now_ms)
            return
        if joined.is_leader and self.topics.has_group_topics:
            # KIP-814: a static leader that came back assigns nothing, but goes on watching.
            self.topics.take_snapshot()
        self._sync({}, now_ms)

    def _sync(self, assignment: dict[str, list[Place]], now_ms: int) -> None:
        who, name = self.owner.identity(), self._protocol_name

        def build(version: int) -> Message:
            return requests.sync_request(who, name, assignment, version)

        self._send(SYNC, build, self._on_synced, now_ms)

    def _on_synced(self, response: SyncGroupResponse, now_ms: int) -> None:
        if response.error_code != errors.NONE:
            self.owner.on_refused("SyncGroup", int(response.error_code), now_ms)
            return
        try:
            places = decode_assignment(response.assignment)
        except MalformedData as flaw:
            sentence = f"the assignment that the leader of group {self._settings.group_id} made"
            self.owner.on_failed(ClientError(f"{sentence} cannot be read: {flaw}"), now_ms)
            return
        self.owner.on_assignment(places, now_ms)

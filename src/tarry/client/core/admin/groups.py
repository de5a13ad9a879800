"""The calls of an admin client that list, describe and delete groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tarry.base.errors import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NONE
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.brokers import ReadCluster
from tarry.client.core.admin.coordinators import GroupsCall, at_coordinators
from tarry.client.core.connections import Connections
from tarry.client.core.group.assignment.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from tarry.client.core.topic import BrokerMetadata
from tarry.client.errors import BrokerError
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError, UnsupportedVersion
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    decode_delete_groups_response,
)
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    decode_describe_groups_response,
)
from tarry.protocol.messages.list_groups import (
    ListGroupsRequest,
    ListGroupsResponse,
    decode_list_groups_response,
)
from tarry.wire.reader import MalformedData

# First versions that filter the list of groups by state and by type.
VERSION_WITH_STATES: Final = 4
VERSION_WITH_TYPES: Final = 5

# State of a missing group, from brokers that have no error code for it.
DEAD: Final = "Dead"


class ListedGroup(NamedTuple):
    """A group in a list; state and type are empty if the broker does not report them."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str
    coordinator_id: int


class GroupMember(NamedTuple):
    """A member of a group.  Metadata and assignment are bytes of the group's protocol type.

    `places` are the assigned partitions of a consumer; None if the member is not a consumer.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes
    places: list[TopicPartition] | None


class GroupDescription(NamedTuple):
    """A group with its members."""

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    coordinator: BrokerMetadata
    members: list[GroupMember]


class GroupOutcome(NamedTuple):
    """Outcome for one group of a request; `error` is None if the request succeeded for it."""

    group_id: str
    error: ClientError | None


class ListGroups(Call[ListGroupsResponse, list[ListedGroup]]):
    """Result: the groups of one broker."""

    def __init__(self, broker_id: int, states: list[str], types: list[str]) -> None:
        super().__init__(api_keys.LIST_GROUPS, decode_list_groups_response, broker_id)
        self.states = states
        self.types = types

    def build(self, version: int) -> Message:
        request = ListGroupsRequest()
        if version >= VERSION_WITH_STATES:
            request.states_filter = self.states
        if version >= VERSION_WITH_TYPES:
            request.types_filter = self.types
        return request

    def interpret(self, response: ListGroupsResponse) -> list[ListedGroup]:
        if response.error_code != NONE:
            sentence = f"broker {self.target} does not list its groups"
            raise BrokerError(response.error_code, sentence)
        if (self.states and self.version < VERSION_WITH_STATES) or (
            self.types and self.version < VERSION_WITH_TYPES
        ):
            raise UnsupportedVersion(
                f"broker {self.target} cannot choose groups by state or type; list all of them"
            )
        return [
            ListedGroup(
                one.group_id, one.protocol_type, one.group_state, one.group_type, self.target
            )
            for one in response.groups
        ]


def list_groups(
    connections: Connections, states: Iterable[str], types: Iterable[str]
) -> Steps[list[ListedGroup]]:
    """List the groups of all brokers, by id.

    Fails if one broker does not answer, because the list would be incomplete without a sign of it.
    """
    view = ReadCluster([])
    yield [view]
    brokers = view.brokers(connections)
    calls = [ListGroups(broker_id, [*states], [*types]) for broker_id in sorted(brokers)]
    yield calls
    found: dict[str, ListedGroup] = {}
    for call in calls:
        if call.error is not None:
            raise call.error
        found.update({group.group_id: group for group in call.result})
    return sorted(found.values())


class DescribeGroups(GroupsCall[DescribeGroupsResponse, GroupDescription]):
    """Result: for each group its description or error."""

    def __init__(self, coordinator: BrokerMetadata, group_ids: list[str]) -> None:
        decode = decode_describe_groups_response
        super().__init__(api_keys.DESCRIBE_GROUPS, decode, coordinator.broker_id, group_ids)
        self.coordinator = coordinator

    def build(self, version: int) -> Message:
        return DescribeGroupsRequest(groups=list(self.group_ids))

    def interpret(
        self, response: DescribeGroupsResponse
    ) -> dict[str, GroupDescription | ClientError]:
        return {one.group_id: self._described(one) for one in response.groups}

    def _described(self, answer: Any) -> GroupDescription | ClientError:
        if answer.error_code == GROUP_ID_NOT_FOUND:
            return not_found(answer.group_id, answer.error_message)
        if answer.error_code != NONE:
            sentence = answer.error_message or f"group {answer.group_id} cannot be described"
            return BrokerError(answer.error_code, sentence)
        if answer.group_state == DEAD:
            return not_found(answer.group_id, None)
        members = [
            GroupMember(
                one.member_id,
                one.group_instance_id,
                one.client_id,
                one.client_host,
                one.member_metadata,
                one.member_assignment,
                _places(answer.protocol_type, one.member_assignment),
            )
            for one in answer.members
        ]
        return GroupDescription(
            answer.group_id,
            answer.group_state,
            answer.protocol_type,
            answer.protocol_data,
            self.coordinator,
            sorted(members, key=_member_key),
        )


def _places(protocol_type: str, assignment: bytes) -> list[TopicPartition] | None:
    if protocol_type != PROTOCOL_TYPE:
        return None
    try:
        return sorted(decode_assignment(assignment))
    except MalformedData:
        return None


def _member_key(member: GroupMember) -> tuple[str, str]:
    return member.client_id, member.member_id


def not_found(group_id: str, sentence: str | None) -> BrokerError:
    """Make the error of a group that does not exist.

    Some brokers answer the same code for a group of a newer kind (KIP-848), with another message.
    """
    if sentence and "not a classic group" in sentence:
        sentence = f"group {group_id} is of a newer kind, whose members this client cannot show"
    else:
        sentence = f"group {group_id} does not exist"
    return BrokerError(GROUP_ID_NOT_FOUND, sentence)


def describe_groups(
    connections: Connections, group_ids: Iterable[str]
) -> Steps[dict[str, GroupDescription | ClientError]]:
    return at_coordinators(
        connections, group_ids, lambda coordinator, ids: [DescribeGroups(coordinator, ids)]
    )


class DeleteGroups(GroupsCall[DeleteGroupsResponse, None]):
    """Result: for each group None or its error."""

    def __init__(self, broker_id: int, group_ids: list[str]) -> None:
        super().__init__(
            api_keys.DELETE_GROUPS, decode_delete_groups_response, broker_id, group_ids
        )

    def build(self, version: int) -> Message:
        return DeleteGroupsRequest(groups_names=list(self.group_ids))

    def interpret(self, response: DeleteGroupsResponse) -> dict[str, ClientError | None]:
        return {one.group_id: _undeleted(one.group_id, one.error_code) for one in response.results}


def _undeleted(group_id: str, code: int) -> ClientError | None:
    if code == NONE:
        return None
    if code == GROUP_ID_NOT_FOUND:
        return not_found(group_id, None)
    if code == NON_EMPTY_GROUP:
        return BrokerError(code, f"group {group_id} has members; stop them first")
    return BrokerError(code, f"group {group_id} was not deleted")


def delete_groups(
    connections: Connections, group_ids: Iterable[str]
) -> Steps[dict[str, ClientError | None]]:
    return at_coordinators(
        connections, group_ids, lambda coordinator, ids: [DeleteGroups(coordinator.broker_id, ids)]
    )

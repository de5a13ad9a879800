"""The calls of an admin client about the committed offsets of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tarry.base.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    NON_EMPTY_GROUP,
    NONE,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.calls import left_out
from tarry.client.core.admin.coordinators import MOVED, GroupsCall, at_coordinators
from tarry.client.core.admin.groups import not_found
from tarry.client.core.connections import Connections
from tarry.client.core.group.assignment.consumer_protocol import GENERATION_UNKNOWN, by_topic
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.core.group.offsets.requests import (
    NO_OFFSET,
    VERSION_OF_NAMES_MAX,
    CommittedOffset,
    commit_request,
    offset_fetch_request,
    told_offsets,
)
from tarry.client.errors import BrokerError, broker_error
from tarry.link.errand import Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    decode_offset_commit_response,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    decode_offset_delete_response,
)
from tarry.protocol.messages.offset_fetch import OffsetFetchResponse, decode_offset_fetch_response

# Outcome by partition: None if the request succeeded for it, else the error.
PartitionErrors = dict[TopicPartition, ClientError | None]


class FetchOffsets(GroupsCall[OffsetFetchResponse, dict[TopicPartition, CommittedOffset]]):
    """Result: committed offsets by partition; partitions without a commit are left out."""

    def __init__(self, broker_id: int, group_id: str, places: list[TopicPartition] | None) -> None:
        super().__init__(api_keys.OFFSET_FETCH, decode_offset_fetch_response, broker_id, [group_id])
        self.group_id = group_id
        self.places = places

    def version_max(self) -> int:
        return VERSION_OF_NAMES_MAX

    def build(self, version: int) -> Message:
        places = None if self.places is None else sorted(self.places)
        return offset_fetch_request(self.group_id, places, version, require_stable=False)

    def interpret(
        self, response: OffsetFetchResponse
    ) -> dict[str, dict[TopicPartition, CommittedOffset] | ClientError]:
        told = told_offsets(response)
        if told.error_code != NONE:
            sentence = f"the offsets of group {self.group_id} cannot be read"
            return {self.group_id: BrokerError(told.error_code, sentence)}
        found: dict[TopicPartition, CommittedOffset] = {}
        for (topic, index), (error_code, committed) in told.places.items():
            if error_code != NONE:
                sentence = f"the offset of {topic} [{index}] cannot be read"
                return {self.group_id: broker_error(error_code, sentence)}
            if committed.offset != NO_OFFSET:
                found[topic, index] = committed
        return {self.group_id: dict(sorted(found.items()))}


def fetch_offsets(
    connections: Connections, group_ids: Iterable[str], places: list[TopicPartition] | None
) -> Steps[dict[str, dict[TopicPartition, CommittedOffset] | ClientError]]:
    """Fetch the offsets that each group committed for the places; for all its places if `places` is
    None."""
    return at_coordinators(
        connections,
        group_ids,
        lambda coordinator, ids: [
            FetchOffsets(coordinator.broker_id, group_id, places) for group_id in ids
        ],
    )


class CommitOffsets(GroupsCall[OffsetCommitResponse, PartitionErrors]):
    """Call that commits offsets for a group without being a member.  Result: by partition None or
    an error."""

    def __init__(
        self, broker_id: int, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        super().__init__(
            api_keys.OFFSET_COMMIT, decode_offset_commit_response, broker_id, [group_id]
        )
        self.group_id = group_id
        self.offsets = offsets

    def version_max(self) -> int:
        return VERSION_OF_NAMES_MAX

    def build(self, version: int) -> Message:
        # Identity of a client that is not a member of the group.
        nobody = GroupIdentity(self.group_id, "", None, GENERATION_UNKNOWN)
        offsets = {place: self.offsets[place] for place in sorted(self.offsets)}
        return commit_request(nobody, offsets, version)

    def interpret(self, response: OffsetCommitResponse) -> dict[str, PartitionErrors | ClientError]:
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code in MOVED:
                    # The answer has no field for an error of the whole group, so each partition
                    # holds it.
                    sentence = f"the coordinator of group {self.group_id} is not ready"
                    return {self.group_id: BrokerError(one.error_code, sentence)}
        return {self.group_id: _partition_errors(response, self.offsets, self._error_of)}

    def _error_of(self, place: TopicPartition, code: int) -> ClientError:
        if code == UNKNOWN_MEMBER_ID:
            sentence = f"group {self.group_id} has members, and only they commit; stop them first"
        elif code == UNKNOWN_TOPIC_OR_PARTITION:
            sentence = f"{place[0]} [{place[1]}] does not exist"
        else:
            sentence = f"no offset was committed for {place[0]} [{place[1]}]"
        return broker_error(code, sentence)


def commit_offsets(
    connections: Connections, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Steps[dict[str, PartitionErrors | ClientError]]:
    return at_coordinators(
        connections,
        [group_id],
        lambda coordinator, ids: [CommitOffsets(coordinator.broker_id, group_id, offsets)],
    )


class DeleteOffsets(GroupsCall[OffsetDeleteResponse, PartitionErrors]):
    """Result: by partition None or an error; or the error of the group."""

    def __init__(self, broker_id: int, group_id: str, places: list[TopicPartition]) -> None:
        super().__init__(
            api_keys.OFFSET_DELETE, decode_offset_delete_response, broker_id, [group_id]
        )
        self.group_id = group_id
        self.places = places

    def build(self, version: int) -> Message:
        topics = [
            OffsetDeleteRequestTopic(
                name, [OffsetDeleteRequestPartition(index) for index in indexes]
            )
            for name, indexes in by_topic(sorted(self.places)).items()
        ]
        return OffsetDeleteRequest(group_id=self.group_id, topics=topics)

    def interpret(self, response: OffsetDeleteResponse) -> dict[str, PartitionErrors | ClientError]:
        code = response.error_code
        if code == GROUP_ID_NOT_FOUND:
            return {self.group_id: not_found(self.group_id, None)}
        if code == NON_EMPTY_GROUP:
            sentence = f"group {self.group_id} has members that are no consumers; stop them first"
            return {self.group_id: BrokerError(code, sentence)}
        if code != NONE:
            sentence = f"the offsets of group {self.group_id} were not deleted"
            return {self.group_id: BrokerError(code, sentence)}
        return {self.group_id: _partition_errors(response, self.places, self._error_of)}

    def _error_of(self, place: TopicPartition, code: int) -> ClientError:
        if code == GROUP_SUBSCRIBED_TO_TOPIC:
            sentence = f"group {self.group_id} reads {place[0]}; stop its members first"
        elif code == UNKNOWN_TOPIC_OR_PARTITION:
            sentence = f"{place[0]} [{place[1]}] does not exist"
        else:
            sentence = f"the offset of {place[0]} [{place[1]}] was not deleted"
        return broker_error(code, sentence)


def delete_offsets(
    connections: Connections, group_id: str, places: list[TopicPartition]
) -> Steps[dict[str, PartitionErrors | ClientError]]:
    return at_coordinators(
        connections,
        [group_id],
        lambda coordinator, ids: [DeleteOffsets(coordinator.broker_id, group_id, places)],
    )


def _partition_errors(
    response: OffsetCommitResponse | OffsetDeleteResponse,
    wanted: Iterable[TopicPartition],
    error_of: Callable[[TopicPartition, int], ClientError],
) -> PartitionErrors:
    found: PartitionErrors = {place: left_out(f"{place[0]} [{place[1]}]") for place in wanted}
    for topic in response.topics:
        for one in topic.partitions:
            place = (topic.name, one.partition_index)
            found[place] = None if one.error_code == NONE else error_of(place, one.error_code)
    return dict(sorted(found.items(), key=_place_of))


def _place_of(item: tuple[TopicPartition, Any]) -> TopicPartition:
    return item[0]

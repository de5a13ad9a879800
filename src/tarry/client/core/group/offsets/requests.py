"""Requests for commits and committed offsets, for members and for admin clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import by_topic
from tarry.client.core.group.identity import GroupIdentity
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

# Offset of a partition without a commit.
NO_OFFSET: Final = -1

COMMIT_VERSION_WITH_LEADER_EPOCH: Final = 6
COMMIT_VERSION_WITH_INSTANCE: Final = 7

# First version in which one request names several groups.
FETCH_VERSION_WITH_GROUPS: Final = 8
FETCH_VERSION_WITH_STABLE: Final = 7

# Newer versions of both requests name topics by id only.  Members and admin clients know topics by
# name, and an id may belong to a deleted topic.
VERSION_OF_NAMES_MAX: Final = 9


class CommittedOffset(NamedTuple):
    """Committed offset of a group: the next offset to read, and the leader epoch of the record
    before it (-1 if it is not known)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def commit_request(
    who: GroupIdentity, offsets: Mapping[TopicPartition, CommittedOffset], version: int
) -> Message:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), committed in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name))
        partition = OffsetCommitRequestPartition(index, committed.offset)
        if version >= COMMIT_VERSION_WITH_LEADER_EPOCH:
            partition.committed_leader_epoch = committed.leader_epoch
        partition.committed_metadata = committed.metadata
        topic.partitions.append(partition)
    request = OffsetCommitRequest(
        group_id=who.group_id,
        generation_id_or_member_epoch=who.generation_id,
        member_id=who.member_id,
        topics=[*topics.values()],
    )
    if version >= COMMIT_VERSION_WITH_INSTANCE:
        request.group_instance_id = who.instance_id
    return request


def offset_fetch_request(
    group_id: str, places: Iterable[TopicPartition] | None, version: int, *, require_stable: bool
) -> Message:
    """Build the request for the committed offsets in these places; None means all places."""
    wanted = None if places is None else by_topic(places)
    if version >= FETCH_VERSION_WITH_GROUPS:
        topics = None
        if wanted is not None:
            topics = [
                OffsetFetchRequestTopics(name, partition_indexes=ids)
                for name, ids in wanted.items()
            ]
        group = OffsetFetchRequestGroup(group_id, topics=topics)
        return OffsetFetchRequest(groups=[group], require_stable=require_stable)
    older = None
    if wanted is not None:
        older = [OffsetFetchRequestTopic(name, ids) for name, ids in wanted.items()]
    request = OffsetFetchRequest(group_id=group_id, topics=older)
    if version >= FETCH_VERSION_WITH_STABLE:
        request.require_stable = require_stable
    return request


class ToldOffsets(NamedTuple):
    """Answer about one group: its error code, and by place an error code and the offset."""

    error_code: int
    places: dict[TopicPartition, tuple[int, CommittedOffset]]


def told_offsets(response: OffsetFetchResponse) -> ToldOffsets:
    """Read the answer about one group, in the format of any version."""
    whole = response.groups[0] if response.groups else response
    places: dict[TopicPartition, tuple[int, CommittedOffset]] = {}
    for topic in whole.topics:
        for one in topic.partitions:
            committed = CommittedOffset(
                one.committed_offset, one.committed_leader_epoch, one.metadata or ""
            )
            places[topic.name, one.partition_index] = (one.error_code, committed)
    return ToldOffsets(whole.error_code, places)

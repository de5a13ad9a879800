"""Model of a group without members: commits, committed offsets and deletions.

The group exists while it has an offset.  Only the client of this model commits for it.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tarry.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.simulation.clients.context import RunContext
from tarry.simulation.records.pipeline_model import NOWHERE, BurstStep, PipelineModel, told

# Longest wait of a commit, by the broker's own setting (offsets.commit.timeout.ms).
_COMMIT_MS = 5_000
# More than offset.metadata.max.bytes allows.
_LONG_TEXT = "x" * 5_000
_NO_OFFSET = -1


class GroupPipelineModel(PipelineModel):
    """Offset of the group for partition 0 once all requests so far have been carried out."""

    def __init__(self, context: RunContext, topic: str, group: str) -> None:
        super().__init__(context, topic)
        self.group = group
        self.committed = _NO_OFFSET

    @property
    def is_there(self) -> bool:
        return self.committed != _NO_OFFSET

    def steps(self) -> list[Callable[[], BurstStep]]:
        return [
            *super().steps(),
            self.commit,
            self.commit,
            self.commit,
            self.fetch_offset,
            self.fetch_offset,
            self.fetch_offset,
            self.commit_badly,
            self.delete_offset,
            self.delete_group,
            self.list_groups,
            self.beat_badly,
            self.join_badly,
        ]

    # -- commits

    def commit(self) -> BurstStep:
        """Commit a valid offset."""
        self.committed = self.context.random.randrange(1_000)
        return self._commit(self.committed, errors.NONE)

    def commit_badly(self) -> BurstStep:
        """Commit with too long a text, for a missing partition, or as an unknown member."""
        kind = self.context.random.randrange(3)
        if kind == 0:
            return self._commit(1, errors.OFFSET_METADATA_TOO_LARGE, text=_LONG_TEXT)
        if kind == 1:
            return self._commit(1, errors.UNKNOWN_TOPIC_OR_PARTITION, index=NOWHERE)
        wanted = errors.UNKNOWN_MEMBER_ID if self.is_there else errors.GROUP_ID_NOT_FOUND
        return self._commit(1, wanted, generation_id=NOWHERE)

    def _commit(
        self,
        offset: int,
        wanted: int,
        *,
        text: str = "",
        index: int = 0,
        generation_id: int = -1,
    ) -> BurstStep:
        asked = OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=text,
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation_id,
            member_id="" if generation_id < 0 else "nobody",
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[asked])],
        )

        def check(answer: Message) -> str:
            assert isinstance(answer, OffsetCommitResponse)
            got = (answer.topics[0].partitions[0].error_code,)
            what = f"a commit of {offset} with generation {generation_id} for {self.group}"
            return told(what, (wanted,), got)

        return BurstStep(self.query(api_keys.OFFSET_COMMIT, request, (9, 9), _COMMIT_MS), check)

    def fetch_offset(self) -> BurstStep:
        """Fetch the committed offset."""
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=topics)]
        )
        wanted = (errors.NONE, self.committed)

        def check(answer: Message) -> str:
            assert isinstance(answer, OffsetFetchResponse)
            group = answer.groups[0]
            got = (
                group.error_code,
                *(p.committed_offset for t in group.topics for p in t.partitions),
            )
            return told(f"OffsetFetch of {self.group}", wanted, got)

        return BurstStep(self.query(api_keys.OFFSET_FETCH, request, (8, 9)), check)

    # -- deletions

    def delete_offset(self) -> BurstStep:
        """Delete the committed offset, or that of a missing group."""
        wanted = (errors.NONE, errors.NONE) if self.is_there else (errors.GROUP_ID_NOT_FOUND,)
        self.committed = _NO_OFFSET
        partitions = [OffsetDeleteRequestPartition(partition_index=0)]
        request = OffsetDeleteRequest(
            group_id=self.group,
            topics=[OffsetDeleteRequestTopic(name=self.topic, partitions=partitions)],
        )

        def check(answer: Message) -> str:
            assert isinstance(answer, OffsetDeleteResponse)
            codes = (part.error_code for topic in answer.topics for part in topic.partitions)
            got = (answer.error_code, *codes)
            if len(got) > 1 and got[0] == errors.NONE != got[1]:
                got = got[1:]
            return told(f"OffsetDelete of {self.group}", wanted, got)

        return BurstStep(self.query(api_keys.OFFSET_DELETE, request, (0, 0), _COMMIT_MS), check)

    def delete_group(self) -> BurstStep:
        """Delete the group with its offset, if the group exists."""
        wanted = errors.NONE if self.is_there else errors.GROUP_ID_NOT_FOUND
        self.committed = _NO_OFFSET
        request = DeleteGroupsRequest(groups_names=[self.group])

        def check(answer: Message) -> str:
            assert isinstance(answer, DeleteGroupsResponse)
            got = (answer.results[0].error_code,)
            return told(f"DeleteGroups of {self.group}", (wanted,), got)

        return BurstStep(self.query(api_keys.DELETE_GROUPS, request, (0, 2), _COMMIT_MS), check)

    def list_groups(self) -> BurstStep:
        """List the groups; the check is that the group is listed if it exists."""
        wanted = (errors.NONE, int(self.is_there))

        def check(answer: Message) -> str:
            assert isinstance(answer, ListGroupsResponse)
            is_listed = any(group.group_id == self.group for group in answer.groups)
            got = (answer.error_code, int(is_listed))
            return told(f"ListGroups with {self.group}", wanted, got)

        return BurstStep(self.query(api_keys.LIST_GROUPS, ListGroupsRequest(), (0, 5)), check)

    # -- requests of unknown members

    def beat_badly(self) -> BurstStep:
        """Send a heartbeat as an unknown member, or for a group without a name."""
        wanted = errors.UNKNOWN_MEMBER_ID
        group = self.group
        if self.context.random.randrange(2):
            wanted = errors.INVALID_GROUP_ID
            group = ""
        request = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")

        def check(answer: Message) -> str:
            assert isinstance(answer, HeartbeatResponse)
            return told(f"a heartbeat for {group!r}", (wanted,), (answer.error_code,))

        return BurstStep(self.query(api_keys.HEARTBEAT, request, (0, 4)), check)

    def join_badly(self) -> BurstStep:
        """Join with too short a session timeout, or a group without a name."""
        wanted = errors.INVALID_SESSION_TIMEOUT
        group = self.group
        if self.context.random.randrange(2):
            wanted = errors.INVALID_GROUP_ID
            group = ""
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=1,
            rebalance_timeout_ms=1_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )

        def check(answer: Message) -> str:
            assert isinstance(answer, JoinGroupResponse)
            return told(f"a join of {group!r}", (wanted,), (answer.error_code,))

        return BurstStep(self.query(api_keys.JOIN_GROUP, request, (1, 9)), check)

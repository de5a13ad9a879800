"""One real Consumer that is the only member of its group on a scripted cluster.

Only its sockets and clocks are replaced.  `rebalance` takes the partitions away at the next
heartbeat, `forget` gives the member up without a word.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.hand_face import HandDriver
from tests.support.client.scripted_cluster import Seen, seeded_random
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.cli import group_reading
from tarry.client.core.group.assignment.consumer_protocol import encode_assignment
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.sync import consumer as consumer_module
from tarry.client.sync.consumer import Consumer
from tarry.protocol import api_keys
from tarry.protocol.messages.heartbeat import HeartbeatResponse
from tarry.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tarry.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tarry.protocol.messages.sync_group import SyncGroupResponse

MEMBER_ID = "member-1"


class MemberCluster(GroupCluster):
    """Takes one member into each group, which leads and assigns everything to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.generation_id = 0
        self.is_known = False
        self.heartbeat_code = errors.NONE
        # Partitions that the member keeps at its next assignment; None: everything.
        self.share: list[tuple[str, int]] | None = None

    def rebalance(self) -> None:
        """The member hears of it with its next heartbeat."""
        self.heartbeat_code = errors.REBALANCE_IN_PROGRESS

    def forget(self) -> None:
        """The member's session is over; others may have its partitions."""
        self.is_known = False

    def default(self, seen: Seen) -> Any:
        handler = {
            api_keys.JOIN_GROUP: self._join,
            api_keys.SYNC_GROUP: self._sync,
            api_keys.HEARTBEAT: self._heartbeat,
            api_keys.LEAVE_GROUP: self._leave,
            api_keys.OFFSET_COMMIT: self._commit,
        }.get(seen.api_key)
        return super().default(seen) if handler is None else handler(seen)

    def _join(self, seen: Seen) -> JoinGroupResponse:
        if not seen.request.member_id:
            return JoinGroupResponse(error_code=errors.MEMBER_ID_REQUIRED, member_id=MEMBER_ID)
        self.generation_id += 1
        self.is_known = True
        self.heartbeat_code = errors.NONE
        chosen = seen.request.protocols[0]
        member = JoinGroupResponseMember(MEMBER_ID, None, chosen.metadata)
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type="consumer",
            protocol_name=chosen.name,
            leader=MEMBER_ID,
            member_id=MEMBER_ID,
            members=[member],
        )

    def _sync(self, seen: Seen) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type="consumer",
            protocol_name=seen.request.protocol_name,
            assignment=seen.request.assignments[0].assignment
            if self.share is None
            else encode_assignment(self.share),
        )

    def _heartbeat(self, seen: Seen) -> HeartbeatResponse:
        code = self.heartbeat_code if self.is_known else errors.UNKNOWN_MEMBER_ID
        return HeartbeatResponse(error_code=code)

    def _leave(self, seen: Seen) -> LeaveGroupResponse:
        self.is_known = False
        return LeaveGroupResponse(members=[MemberResponse(MEMBER_ID)])

    def _commit(self, seen: Seen) -> OffsetCommitResponse:
        request = seen.request
        is_ours = self.is_known and request.generation_id_or_member_epoch == self.generation_id
        code = errors.NONE if is_ours else errors.UNKNOWN_MEMBER_ID
        offsets = self.group(request.group_id).offsets
        answer = OffsetCommitResponse()
        for topic in request.topics:
            rows = []
            for one in topic.partitions:
                if not code:
                    offsets[topic.name, one.partition_index] = one.committed_offset
                rows.append(OffsetCommitResponsePartition(one.partition_index, code))
            answer.topics.append(OffsetCommitResponseTopic(topic.name, partitions=rows))
        return answer


def serve_members(cluster: MemberCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Consumer that a command makes is a member on this cluster."""

    class ScriptedConsumer(Consumer):
        def __init__(self, settings: dict[str, Any]) -> None:
            super().__init__({**settings, "bootstrap.servers": str(cluster.brokers[1])})
            self._driver.close()
            core = GroupConsumerCore(self.settings, seeded_random(), cluster.now_ms)
            cluster.attach(core)
            self._driver = HandDriver(cluster, core)  # type: ignore[assignment]

    monkeypatch.setattr(consumer_module, "Consumer", ScriptedConsumer)
    monkeypatch.setattr(group_reading.time, "monotonic", lambda: cluster.now_ms / 1000)

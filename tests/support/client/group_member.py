"""A member of a group, and a coordinator that agrees with everything unless told otherwise."""

from __future__ import annotations

from typing import Any

from tests.support.client.scripted_cluster import ScriptedCluster, Seen, seeded_random

from tarry.base import errors
from tarry.client.core.group.assignment.consumer_protocol import encode_assignment
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_groups import DescribeGroupsResponse
from tarry.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tarry.protocol.messages.heartbeat import HeartbeatResponse
from tarry.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tarry.protocol.messages.leave_group import LeaveGroupResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tarry.protocol.messages.sync_group import SyncGroupResponse

FIND_VERSION_WITH_KEYS = 4
JOIN_VERSION_WITH_TYPE = 7
SYNC_VERSION_WITH_TYPE = 5
FETCH_VERSION_WITH_GROUPS = 8

PLACE = ("t", 0)


class GroupScene:
    """Topic t with one partition, a member that wants it; `codes` are the next answers by API."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = ScriptedCluster()
        self.cluster.topic("t")
        self.codes: dict[int, list[int]] = {}
        self.generation_id = 0
        self.committed = -1
        self.told: list[tuple[int, list[tuple[str, int]]]] = []
        self.raised: list[ClientError] = []
        for key, answer in {
            api_keys.FIND_COORDINATOR: self._find,
            api_keys.JOIN_GROUP: self.agree_to_join,
            api_keys.SYNC_GROUP: self._sync,
            api_keys.HEARTBEAT: self._heartbeat,
            api_keys.LEAVE_GROUP: self._leave,
            api_keys.OFFSET_COMMIT: self._commit,
            api_keys.OFFSET_FETCH: self._fetch_offsets,
            api_keys.DESCRIBE_GROUPS: lambda cluster, seen: DescribeGroupsResponse(),
        }.items():
            self.cluster.rule(key, answer)
        given = {"bootstrap_servers": "10.0.0.1:9092", "group_id": "g", **settings}
        made = GroupConsumerCore(ConsumerSettings(**given), seeded_random(), self.cluster.now_ms)
        self.core: GroupConsumerCore = self.cluster.attach(made)

    # --- The user

    def join(self) -> None:
        """Subscribe, and poll until the partition is assigned."""
        self.core.subscribe(["t"])
        self.poll(1_000)
        assert self.core.membership.owned == [PLACE]

    def poll(self, duration_ms: int) -> None:
        """Poll for that many milliseconds; keep the events told and the error raised."""
        core, cluster = self.core, self.cluster
        end_ms = cluster.now_ms + duration_ms
        poll = core.begin_poll(500, duration_ms, cluster.now_ms)
        while True:
            while core.membership.has_event:
                event = core.begin_event()
                assert event is not None
                self.told.append(event)
                core.end_event()
            error = core.membership.take_error()
            if error is not None:
                self.raised.append(error)
                break
            if cluster.now_ms >= end_ms:
                break
            cluster.run_until(
                lambda: core.membership.has_event or core.membership.failure is not None,
                end_ms - cluster.now_ms,
                must=False,
            )
        poll.end(cluster.now_ms)

    def requests(self, api_key: int) -> list[Seen]:
        return self.cluster.requests(api_key)

    # --- The coordinator

    def _code(self, api_key: int) -> int:
        waiting = self.codes.get(api_key)
        return waiting.pop(0) if waiting else errors.NONE

    def _find(self, cluster: ScriptedCluster, seen: Seen) -> FindCoordinatorResponse:
        code = self._code(api_keys.FIND_COORDINATOR)
        address = cluster.brokers[1]
        if seen.version >= FIND_VERSION_WITH_KEYS:
            key = seen.request.coordinator_keys[0]
            found = Coordinator(key, 1, address.host, address.port, code, None)
            return FindCoordinatorResponse(coordinators=[found])
        return FindCoordinatorResponse(0, code, None, 1, address.host, address.port)

    def agree_to_join(self, cluster: ScriptedCluster, seen: Seen) -> JoinGroupResponse:
        code = self._code(api_keys.JOIN_GROUP)
        if code != errors.NONE:
            return JoinGroupResponse(error_code=code, member_id=seen.request.member_id or "given")
        self.generation_id += 1
        member_id = seen.request.member_id or f"m-{self.generation_id}"
        protocol = seen.request.protocols[0]
        answer = JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_name=protocol.name,
            leader=member_id,
            member_id=member_id,
            members=[JoinGroupResponseMember(member_id, None, protocol.metadata)],
        )
        if seen.version >= JOIN_VERSION_WITH_TYPE:
            answer.protocol_type = "consumer"
        return answer

    def _sync(self, cluster: ScriptedCluster, seen: Seen) -> SyncGroupResponse:
        code = self._code(api_keys.SYNC_GROUP)
        answer = SyncGroupResponse(error_code=code)
        if code == errors.NONE:
            given = seen.request.assignments
            answer.assignment = given[0].assignment if given else encode_assignment([PLACE])
        return answer

    def _heartbeat(self, cluster: ScriptedCluster, seen: Seen) -> HeartbeatResponse:
        return HeartbeatResponse(0, self._code(api_keys.HEARTBEAT))

    def _leave(self, cluster: ScriptedCluster, seen: Seen) -> LeaveGroupResponse:
        return LeaveGroupResponse(0, self._code(api_keys.LEAVE_GROUP))

    def _commit(self, cluster: ScriptedCluster, seen: Seen) -> OffsetCommitResponse:
        code = self._code(api_keys.OFFSET_COMMIT)
        response = OffsetCommitResponse()
        for topic in seen.request.topics:
            answer = OffsetCommitResponseTopic(topic.name)
            for one in topic.partitions:
                answer.partitions.append(OffsetCommitResponsePartition(one.partition_index, code))
                if code == errors.NONE:
                    self.committed = one.committed_offset
            response.topics.append(answer)
        return response

    def _fetch_offsets(self, cluster: ScriptedCluster, seen: Seen) -> OffsetFetchResponse:
        code = self._code(api_keys.OFFSET_FETCH)
        if seen.version >= FETCH_VERSION_WITH_GROUPS:
            found = OffsetFetchResponsePartitions(0, self.committed)
            topics = [] if code else [OffsetFetchResponseTopics("t", partitions=[found])]
            group = OffsetFetchResponseGroup("g", topics, code)
            return OffsetFetchResponse(groups=[group])
        one = OffsetFetchResponsePartition(0, self.committed)
        if seen.version < 2:
            one.error_code = code
            return OffsetFetchResponse(topics=[OffsetFetchResponseTopic("t", [one])])
        topics_ = [] if code else [OffsetFetchResponseTopic("t", [one])]
        return OffsetFetchResponse(topics=topics_, error_code=code)

"""A coordinator made of a few lists, for transcripts of the client: it answers as it is told.

It agrees with everything unless `next_codes` says otherwise for a request; members beside the one
under test are only what they say in their subscriptions.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster, Seen

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tarry.protocol.messages.heartbeat import HeartbeatResponse
from tarry.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tarry.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tarry.protocol.messages.sync_group import SyncGroupResponse

NAMES = {
    api_keys.FIND_COORDINATOR: "FindCoordinator",
    api_keys.JOIN_GROUP: "JoinGroup",
    api_keys.SYNC_GROUP: "SyncGroup",
    api_keys.HEARTBEAT: "Heartbeat",
    api_keys.LEAVE_GROUP: "LeaveGroup",
    api_keys.OFFSET_COMMIT: "OffsetCommit",
    api_keys.OFFSET_FETCH: "OffsetFetch",
    api_keys.DESCRIBE_GROUPS: "DescribeGroups",
}

# A broker makes up a member's id, and wants it said, from this version on (KIP-394).
JOIN_VERSION_WITH_ID_REQUIRED = 4


def places_text(places: list[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in places) or "nothing"


class ClientCoordinator:
    """The group as the one member under test sees it; `say` writes into the transcript."""

    def __init__(self, cluster: ScriptedCluster, say: Any) -> None:
        self.cluster = cluster
        self.say = say
        self.broker_id = 1
        self.generation_id = 0
        self.members_made = 0
        self.protocol = ""
        # Topics and partitions of the other members; the member under test leads them.
        self.others: dict[str, Subscription] = {}
        # The assignment that another leader gives the member under test; None: it leads itself.
        self.given: list[TopicPartition] | None = None
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.next_codes: dict[str, deque[str]] = {}
        self.held: list[tuple[int, bytes]] = []
        handlers = {
            api_keys.FIND_COORDINATOR: self.find,
            api_keys.JOIN_GROUP: self.join,
            api_keys.SYNC_GROUP: self.sync,
            api_keys.HEARTBEAT: self.heartbeat,
            api_keys.LEAVE_GROUP: self.leave,
            api_keys.OFFSET_COMMIT: self.commit,
            api_keys.OFFSET_FETCH: self.fetch_offsets,
            api_keys.DESCRIBE_GROUPS: self.describe_group,
        }
        for key, handler in handlers.items():
            cluster.rule(key, self._rule(NAMES[key], handler))

    def _rule(self, name: str, handler: Any) -> Any:
        def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
            waiting = self.next_codes.get(name)
            word = waiting.popleft() if waiting else ""
            delay_ms = cluster.latency_ms
            late, _, rest = word.partition(":")
            if late.isdigit():
                delay_ms, word = int(late), rest
            if not word and name != "FindCoordinator" and seen.broker_id != self.broker_id:
                word = "NOT_COORDINATOR"
            code = getattr(errors, word) if word and word != SILENCE else errors.NONE
            response = handler(seen.request, code, seen)
            text = errors.error_name(code) if word != SILENCE else "no answer"
            if word != SILENCE and delay_ms != cluster.latency_ms:
                text += f" after {delay_ms} ms"
            self.say(f"{name} {self.describe(name, seen.request)} -> {text}")
            return SILENCE if word == SILENCE else (delay_ms, response)

        return answer

    def describe(self, name: str, request: Any) -> str:
        """Describe a request by the fields that matter to a transcript."""
        if name == "JoinGroup":
            protocol = request.protocols[0]
            said = decode_subscription(protocol.metadata)
            owned = f" owning {places_text(said.owned)}" if said.owned else ""
            names = ", ".join(one.name for one in request.protocols)
            reason = f" ({request.reason})" if request.reason else ""
            wanted = ", ".join(said.topics)
            return f"{who(request)} for {wanted}{owned} by {names}{reason}"
        if name == "SyncGroup":
            given = "; ".join(
                f"{one.member_id}: {places_text(decode_assignment(one.assignment))}"
                for one in request.assignments
            )
            return f"{who(request)} of {request.generation_id}" + (f" {given}" if given else "")
        if name == "Heartbeat":
            return f"{who(request)} of {request.generation_id}"
        if name == "LeaveGroup":
            return f"{who(request.members[0])} ({request.members[0].reason})"
        if name == "OffsetCommit":
            offsets = ", ".join(
                f"{topic.name}-{one.partition_index}={one.committed_offset}"
                + (f" {one.committed_metadata!r}" if one.committed_metadata else "")
                for topic in request.topics
                for one in topic.partitions
            )
            return f"{who(request)} of {request.generation_id_or_member_epoch} {offsets}"
        if name == "OffsetFetch":
            places = [
                (topic.name, index)
                for topic in request.groups[0].topics
                for index in topic.partition_indexes
            ]
            return places_text(places)
        if name == "DescribeGroups":
            return str(request.groups[0])
        return str(request.coordinator_keys[0])

    def find(self, request: Any, code: int, seen: Seen) -> FindCoordinatorResponse:
        address = self.cluster.brokers[self.broker_id]
        key = request.coordinator_keys[0]
        found = Coordinator(key, self.broker_id, address.host, address.port, code, None)
        return FindCoordinatorResponse(coordinators=[found])

    def join(self, request: Any, code: int, seen: Seen) -> JoinGroupResponse:
        if code != errors.NONE:
            given = request.member_id
            if code == errors.MEMBER_ID_REQUIRED:
                self.members_made += 1
                given = f"m-{self.members_made}"
            return JoinGroupResponse(0, code, -1, None, None, "", False, given)
        if not request.member_id:
            self.members_made += 1
        member_id = request.member_id or f"m-{self.members_made}"
        self.generation_id += 1
        name, metadata = request.protocols[0].name, request.protocols[0].metadata
        members = [JoinGroupResponseMember(member_id, request.group_instance_id, metadata)]
        for other, said in self.others.items():
            members.append(JoinGroupResponseMember(other, None, encode_subscription(said)))
        leader = member_id if self.given is None else "other"
        return JoinGroupResponse(
            error_code=code,
            generation_id=self.generation_id,
            protocol_type="consumer",
            protocol_name=name,
            leader=leader,
            member_id=member_id,
            members=members if leader == member_id else [],
        )

    def sync(self, request: Any, code: int, seen: Seen) -> SyncGroupResponse:
        response = SyncGroupResponse(0, code, "consumer", request.protocol_name)
        if code == errors.NONE and self.given is not None:
            response.assignment = encode_assignment(self.given)
        for one in request.assignments:
            if one.member_id == request.member_id and code == errors.NONE:
                response.assignment = one.assignment
        return response

    def heartbeat(self, request: Any, code: int, seen: Seen) -> HeartbeatResponse:
        return HeartbeatResponse(0, code)

    def leave(self, request: Any, code: int, seen: Seen) -> LeaveGroupResponse:
        member = request.members[0]
        return LeaveGroupResponse(
            0, errors.NONE, [MemberResponse(member.member_id, member.group_instance_id, code)]
        )

    def commit(self, request: Any, code: int, seen: Seen) -> OffsetCommitResponse:
        response = OffsetCommitResponse()
        for topic in request.topics:
            answer = OffsetCommitResponseTopic(topic.name)
            for one in topic.partitions:
                answer.partitions.append(OffsetCommitResponsePartition(one.partition_index, code))
                if code == errors.NONE:
                    self.committed[topic.name, one.partition_index] = CommittedOffset(
                        one.committed_offset, one.committed_leader_epoch, one.committed_metadata
                    )
            response.topics.append(answer)
        return response

    def fetch_offsets(self, request: Any, code: int, seen: Seen) -> OffsetFetchResponse:
        group = OffsetFetchResponseGroup(request.groups[0].group_id, error_code=code)
        for topic in request.groups[0].topics if code == errors.NONE else []:
            answer = OffsetFetchResponseTopics(topic.name)
            for index in topic.partition_indexes:
                told = self.committed.get((topic.name, index), CommittedOffset(-1))
                answer.partitions.append(OffsetFetchResponsePartitions(index, *told))
            group.topics.append(answer)
        return OffsetFetchResponse(groups=[group])

    def describe_group(self, request: Any, code: int, seen: Seen) -> DescribeGroupsResponse:
        members = [DescribedGroupMember(name) for name in self.others]
        group = DescribedGroup(
            code, None, request.groups[0], "Stable", "consumer", "roundrobin", members
        )
        return DescribeGroupsResponse(groups=[group])


def who(request: Any) -> str:
    member_id = request.member_id or "?"
    instance_id = request.group_instance_id
    return f"{member_id} ({instance_id})" if instance_id else str(member_id)

"""A user of groups on a broker by hand: requests in one call each, and whole groups.

A member has a connection of its own, as answers come in the order of the requests.
"""

from __future__ import annotations

from typing import TypeVar

from tests.support.broker.broker_user import ORDERS, User

from tarry.base import errors
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.groups.waiting import DelayedGroupOperation
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
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
    OffsetFetchResponsePartitions,
)
from tarry.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tarry.simulation.by_hand import BrokerByHand

READERS = "readers"
OFFSETS_TOPIC = "__consumer_offsets"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
# A step of time that no broker takes for a stall.
STEP_MS = 400
PURGATORIES = ("Join", "Sync", "Heartbeat", "Commit")

M = TypeVar("M", bound=Message)


def group_broker(seed: int = 1, **settings: str) -> BrokerByHand:
    """A broker that serves groups, with the topic `orders` of four partitions.

    Keys of settings have underscores for dots.  No initial delay and one partition for all groups,
    unless they say otherwise.
    """
    texts = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    hand = BrokerByHand(texts, seed)
    user = GroupUser(hand)
    user.create(ORDERS, 4)
    assert user.find().error_code == errors.NONE
    return hand


def pass_time(hand: BrokerByHand, ms: int) -> None:
    """So much time, with a turn whenever the broker is due, and a disk without delay."""
    hand.settle()
    while ms > 0:
        step_ms = _step(hand, ms)
        hand.turn(after_ms=step_ms)
        hand.settle()
        # Many deadlines at once take several turns.
        while hand.broker.next_due_ms() <= hand.now_ms:
            hand.turn()
            hand.settle()
        ms -= step_ms


def pass_time_without_disk(hand: BrokerByHand, ms: int) -> None:
    """So much time in which no flush ends."""
    while ms > 0:
        step_ms = _step(hand, ms)
        hand.turn(after_ms=step_ms)
        ms -= step_ms


def _step(hand: BrokerByHand, ms: int) -> int:
    """Until the broker is due, but not so long that it would take it for a stall of its own."""
    return max(1, min(ms, STEP_MS, hand.broker.next_due_ms() - hand.now_ms))


def subscription(*topics: str) -> bytes:
    """What a consumer says for its protocol: version 0, the topics, no user data."""
    data = b"\0\0" + len(topics).to_bytes(4, "big")
    for topic in topics:
        data += len(topic).to_bytes(2, "big") + topic.encode()
    return data + b"\xff\xff\xff\xff"


def waiting_in(hand: BrokerByHand) -> dict[str, tuple[int, int]]:
    """How many operations wait in each of the groups' purgatories, and how many watchers."""
    return {
        each.name: (each.delayed, each.watched)
        for each in hand.broker.parts.purgatories()
        if each.name in PURGATORIES and (each.delayed or each.watched)
    }


def operations_of(shard: GroupShard) -> list[DelayedGroupOperation]:
    """What waits in the groups of a shard."""
    kinds = (*shard.phases.values(), shard.sessions)
    return [each for kind in kinds for each in kind.operations.values()]


def delayed_in(hand: BrokerByHand) -> dict[str, int]:
    """What waits, by purgatory, zeros left out."""
    return {name: count for name, (count, _) in waiting_in(hand).items() if count}


class GroupUser(User):
    """One connection, and short words for what is asked about groups."""

    def request(self, kind: type[M], key: int, version: int, request: Message) -> M:
        answer = self.client.ask(key, version, request)
        assert isinstance(answer, kind)
        return answer

    def answer(self, kind: type[M]) -> M:
        """The one answer that has come since the last look."""
        (answer,) = self.client.answers()
        assert isinstance(answer, kind)
        return answer

    def find(
        self, key: str = READERS, *, key_type: int = 0, version: int = 3
    ) -> FindCoordinatorResponse:
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        return self.request(FindCoordinatorResponse, api_keys.FIND_COORDINATOR, version, request)

    # --- Offsets.

    def commit_request(
        self,
        offsets: dict[int, int],
        group: str = READERS,
        *,
        topic: str = ORDERS,
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        metadata: str | None = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
    ) -> OffsetCommitRequest:
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
            for index, offset in offsets.items()
        ]
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
        )

    def send_commit(
        self, offsets: dict[int, int], group: str = READERS, *, version: int = 9, **terms: object
    ) -> None:
        request = self.commit_request(offsets, group, **terms)  # type: ignore[arg-type]
        self.client.send(api_keys.OFFSET_COMMIT, version, request)

    def commit(
        self, offsets: dict[int, int], group: str = READERS, *, version: int = 9, **terms: object
    ) -> list[int]:
        """The error codes, in the order of the partitions."""
        request = self.commit_request(offsets, group, **terms)  # type: ignore[arg-type]
        return commit_codes(self.client.ask(api_keys.OFFSET_COMMIT, version, request))

    def fetched(
        self, group: str = READERS, *, topic: str = ORDERS, index: int = 0, version: int = 9
    ) -> OffsetFetchResponsePartitions:
        """What is committed for one partition."""
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[index])]
        asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
        answer = self.request(
            OffsetFetchResponse,
            api_keys.OFFSET_FETCH,
            version,
            OffsetFetchRequest(groups=[asked]),
        )
        assert answer.groups[0].error_code == errors.NONE
        return answer.groups[0].topics[0].partitions[0]

    def offset(self, group: str = READERS, *, topic: str = ORDERS, index: int = 0) -> int:
        return self.fetched(group, topic=topic, index=index).committed_offset

    def all_offsets(self, group: str = READERS) -> dict[tuple[str, int], int]:
        """Every offset of the group."""
        asked = OffsetFetchRequestGroup(group_id=group, topics=None)
        answer = self.request(
            OffsetFetchResponse, api_keys.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[asked])
        )
        assert answer.groups[0].error_code == errors.NONE
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in answer.groups[0].topics
            for each in topic.partitions
        }

    def delete_offsets_request(
        self, *indexes: int, group: str = READERS, topic: str = ORDERS
    ) -> OffsetDeleteRequest:
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        return OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
        )

    def delete_offsets(self, *indexes: int, group: str = READERS, topic: str = ORDERS) -> list[int]:
        """The error codes of the partitions; that of the whole alone if it has one."""
        request = self.delete_offsets_request(*indexes, group=group, topic=topic)
        answer = self.request(OffsetDeleteResponse, api_keys.OFFSET_DELETE, 0, request)
        if answer.error_code != errors.NONE:
            return [answer.error_code]
        return [each.error_code for each in answer.topics[0].partitions]

    # --- Groups.

    def describe(self, group: str = READERS, *, version: int = 6) -> DescribedGroup:
        request = DescribeGroupsRequest(groups=[group])
        answer = self.request(DescribeGroupsResponse, api_keys.DESCRIBE_GROUPS, version, request)
        return answer.groups[0]

    def state(self, group: str = READERS) -> str:
        return self.describe(group).group_state

    def list_groups(self, *, version: int = 5) -> ListGroupsResponse:
        request = ListGroupsRequest()
        return self.request(ListGroupsResponse, api_keys.LIST_GROUPS, version, request)

    def group_ids(self) -> list[str]:
        return [each.group_id for each in self.list_groups().groups]

    def delete_groups(self, *groups: str) -> list[int]:
        request = DeleteGroupsRequest(groups_names=list(groups or (READERS,)))
        answer = self.request(DeleteGroupsResponse, api_keys.DELETE_GROUPS, 2, request)
        return [each.error_code for each in answer.results]


class Member(GroupUser):
    """One member: it keeps the id and the generation that it is told."""

    def __init__(
        self,
        hand: BrokerByHand,
        group: str = READERS,
        *,
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocols: tuple[tuple[str, bytes], ...] = (("range", subscription(ORDERS)),),
        protocol_type: str = "consumer",
    ) -> None:
        super().__init__(hand)
        self.group = group
        self.instance_id = instance_id
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.protocols = protocols
        self.protocol_type = protocol_type
        self.member_id = ""
        self.generation_id = -1
        self.leader_id = ""
        self.joined: JoinGroupResponse | None = None

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.member_id

    # --- Join.

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self.protocols
            ],
        )

    def get_id(self) -> None:
        """KIP-394: ask for an id, if it is one without."""
        if self.member_id or self.instance_id is not None:
            return
        answer = self.join_answer()
        assert answer.error_code == errors.MEMBER_ID_REQUIRED
        self.member_id = answer.member_id

    def join_answer(self, version: int = 9) -> JoinGroupResponse:
        """One JoinGroup as it is, and its answer."""
        return self.request(JoinGroupResponse, api_keys.JOIN_GROUP, version, self.join_request())

    def send_join(self, version: int = 9) -> None:
        """Join with an id, and take one turn."""
        self.get_id()
        self.client.send(api_keys.JOIN_GROUP, version, self.join_request())

    def take_join(self) -> JoinGroupResponse:
        """The answer to the join that was sent; what it says is kept."""
        answer = self.answer(JoinGroupResponse)
        self.joined = answer
        if answer.error_code == errors.NONE:
            self.member_id = answer.member_id
            self.generation_id = answer.generation_id
            self.leader_id = answer.leader
        return answer

    def join(self) -> JoinGroupResponse:
        """Join where nobody else is waited for."""
        self.send_join()
        self.hand.settle()
        return self.take_join()

    # --- Sync.

    def sync_request(self, assignments: dict[str, bytes] | None = None) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.joined.protocol_name if self.joined is not None else None,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )

    def send_sync(self, assignments: dict[str, bytes] | None = None) -> None:
        """Sync and take one turn; a leader without a word of its own assigns to everybody."""
        if assignments is None and self.is_leader and self.joined is not None:
            assignments = {
                each.member_id: b"for %d" % number
                for number, each in enumerate(self.joined.members)
            }
        self.client.send(api_keys.SYNC_GROUP, 5, self.sync_request(assignments))

    def sync(self, assignments: dict[str, bytes] | None = None) -> SyncGroupResponse:
        self.send_sync(assignments)
        self.hand.settle()
        return self.answer(SyncGroupResponse)

    # --- The rest.

    def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return self.request(HeartbeatResponse, api_keys.HEARTBEAT, 4, request).error_code

    def leave(self) -> int:
        leaving = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.group, members=[leaving])
        answer = self.request(LeaveGroupResponse, api_keys.LEAVE_GROUP, 5, request)
        return answer.error_code or answer.members[0].error_code

    def commit_as_member(self, offsets: dict[int, int]) -> list[int]:
        return self.commit(
            offsets,
            self.group,
            member_id=self.member_id,
            generation_id=self.generation_id,
            instance_id=self.instance_id,
        )


def commit_codes(answer: Message) -> list[int]:
    """The error codes of a commit, in the order of its partitions."""
    assert isinstance(answer, OffsetCommitResponse)
    return [each.error_code for topic in answer.topics for each in topic.partitions]


def join_together(*members: Member) -> None:
    """The join phase, from its first member to its end; nobody has synced."""
    for member in members:
        member.send_join()
    members[0].hand.settle()
    for member in members:
        assert member.take_join().error_code == errors.NONE


def stabilize(*members: Member) -> None:
    """Until the group is Stable with these members, in no time: the first of them leads.

    Where all are new the first is alone in a generation before; where they are not, the first is
    to be the leader that was.
    """
    first, *others = members
    hand = first.hand
    order = [first, *others]
    if others and first.generation_id < 0:
        first.join()
        order = [*others, first]
    for member in order:
        member.get_id()
    join_together(*order)
    for member in members:
        member.send_sync()
    hand.settle()
    for member in members:
        assert member.answer(SyncGroupResponse).error_code == errors.NONE


def stable_group(hand: BrokerByHand, count: int = 1, group: str = READERS) -> list[Member]:
    """A Stable group of so many members."""
    members = [Member(hand, group) for _ in range(count)]
    stabilize(*members)
    return members

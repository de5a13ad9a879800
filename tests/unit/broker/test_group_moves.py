"""Groups that move: what waits is sent to the other coordinator, once, and nothing stays behind.

The broker is by hand; its roles come by rows, as in a cluster.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import (
    OFFSETS_TOPIC,
    READERS,
    SESSION_MS,
    GroupUser,
    Member,
    commit_codes,
    group_broker,
    join_together,
    stable_group,
    waiting_in,
)

from tarry.base import errors
from tarry.cluster.state.records import PartitionChanged
from tarry.partition.leadership import LeaderDoor
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.heartbeat import HeartbeatRequest
from tarry.protocol.messages.join_group import JoinGroupResponse
from tarry.protocol.messages.sync_group import SyncGroupResponse


class Moving:
    """A broker whose partition of groups is led here or elsewhere."""

    def __init__(self, **settings: str) -> None:
        self.hand = group_broker(**settings)
        self.broker = self.hand.broker

    def lead(self, leader_id: int, epoch: int, isr: tuple[int, ...] = (1,)) -> None:
        """Give the partition another leader and epoch; nothing is flushed for it."""
        topic = self.broker.cluster.topics[OFFSETS_TOPIC]
        row = replace(
            topic.partitions[0],
            leader_id=leader_id,
            leader_epoch=epoch,
            partition_epoch=epoch,
            replicas=[1, 2],
            isr=list(isr),
        )
        record = PartitionChanged(topic_id=topic.topic_id, index=0, row=row)
        self.broker.cluster.apply(record)
        self.broker.hosting.react(record)
        self.hand.turn()


@pytest.fixture
def moving() -> Moving:
    return Moving()


def codes_of(answers: list[Message]) -> list[int]:
    """What a join, a sync or a commit was answered."""
    found: list[int] = []
    for answer in answers:
        if isinstance(answer, JoinGroupResponse | SyncGroupResponse):
            found.append(answer.error_code)
        else:
            found += commit_codes(answer)
    return found


OTHER, OWN = (2, 7), (1, 7)


@pytest.mark.parametrize(("leader_id", "epoch"), [OTHER, OWN])
def test_who_waits_in_a_join_phase_is_sent_away_once(
    moving: Moving, leader_id: int, epoch: int
) -> None:
    members = stable_group(moving.hand, 2)
    members[0].send_join()
    moving.hand.settle()
    assert codes_of(members[0].answers()) == []

    moving.lead(leader_id, epoch)
    moving.hand.settle()

    assert codes_of(members[0].answers()) == [errors.NOT_COORDINATOR]
    assert members[1].answers() == []


@pytest.mark.parametrize(("leader_id", "epoch"), [OTHER, OWN])
def test_who_waits_for_an_assignment_is_sent_away_once(
    moving: Moving, leader_id: int, epoch: int
) -> None:
    members = stable_group(moving.hand, 2)
    join_together(*members)
    follower = next(member for member in members if not member.is_leader)
    leader = next(member for member in members if member.is_leader)
    follower.send_sync()
    # Its records are in the log, and not durable yet.
    leader.send_sync()
    assert codes_of(follower.answers()) == codes_of(leader.answers()) == []

    moving.lead(leader_id, epoch)
    moving.hand.settle()

    assert codes_of(follower.answers()) == [errors.NOT_COORDINATOR]
    assert codes_of(leader.answers()) == [errors.NOT_COORDINATOR]


@pytest.mark.parametrize(("leader_id", "epoch"), [OTHER, OWN])
def test_a_commit_that_is_not_durable_is_sent_away_once(
    moving: Moving, leader_id: int, epoch: int
) -> None:
    user = GroupUser(moving.hand)
    user.send_commit({0: 5})
    assert user.answers() == []

    moving.lead(leader_id, epoch)
    moving.hand.settle()

    assert codes_of(user.answers()) == [errors.NOT_COORDINATOR]


@pytest.mark.parametrize(("leader_id", "epoch"), [OTHER, OWN])
def test_nothing_of_a_shard_that_went_stays_in_a_purgatory(
    moving: Moving, leader_id: int, epoch: int
) -> None:
    stable_group(moving.hand, 3)
    joining = Member(moving.hand, "others")
    joining.get_id()
    GroupUser(moving.hand).send_commit({0: 5}, "alone")
    assert set(waiting_in(moving.hand)) == {"Heartbeat", "Commit"}

    moving.lead(leader_id, epoch)

    assert waiting_in(moving.hand) == {}
    assert moving.broker.groups.waiting == 0
    moving.hand.settle()
    assert (
        (READERS in moving.broker.groups.shards[0].groups.by_id)
        if leader_id == 1
        else (moving.broker.groups.shards == {})
    )


def test_a_broker_that_leads_no_more_answers_for_no_group(moving: Moving) -> None:
    member = stable_group(moving.hand, 1)[0]
    moving.lead(*OTHER)

    assert member.heartbeat() == errors.NOT_COORDINATOR
    assert member.commit_as_member({0: 1}) == [errors.NOT_COORDINATOR]
    assert member.join_answer().error_code == errors.NOT_COORDINATOR
    assert member.list_groups().groups == []


def test_in_a_new_epoch_of_its_own_a_broker_knows_what_was_recorded(moving: Moving) -> None:
    members = stable_group(moving.hand, 2)
    assert members[0].commit_as_member({0: 11}) == [errors.NONE]
    moving.lead(*OTHER)
    moving.lead(1, 8)
    moving.hand.settle()

    assert [member.heartbeat() for member in members] == [errors.NONE, errors.NONE]
    assert members[0].offset() == 11
    assert set(waiting_in(moving.hand)) == {"Heartbeat"}


def test_until_the_high_watermark_is_where_the_epoch_began_groups_are_being_loaded(
    moving: Moving,
) -> None:
    """A commit is in the log that may have been acknowledged before: it must not be missed."""
    user = GroupUser(moving.hand)
    user.send_commit({0: 5})
    moving.lead(*OWN)
    moving.hand.turn()

    shard, code = moving.broker.groups.find(READERS)
    assert (shard, code) == (None, errors.COORDINATOR_LOAD_IN_PROGRESS)
    moving.hand.settle()
    user.answers()
    assert user.offset() == 5


def need_in_sync(moving: Moving, count: int) -> None:
    partition = moving.broker.topics.partition(OFFSETS_TOPIC, 0)
    assert partition is not None
    partition.config.min_insync_replicas = count


def lead_alone(moving: Moving) -> GroupUser:
    """Lead groups whose last commit counts nowhere: too few replicas are in sync."""
    user = GroupUser(moving.hand)
    assert user.commit({0: 5}) == [errors.NONE]
    user.send_commit({0: 6})
    need_in_sync(moving, 2)
    moving.lead(*OWN)
    moving.hand.settle()
    user.answers()
    assert moving.broker.groups.is_loading()
    return user


def delete_orders(user: GroupUser) -> None:
    topics = [DeleteTopicState(name=ORDERS)]
    user.request(
        DeleteTopicsResponse,
        api_keys.DELETE_TOPICS,
        6,
        DeleteTopicsRequest(topics=topics, timeout_ms=5_000),
    )


def test_walks_over_all_groups_ask_for_no_turn_while_a_shard_cannot_be_loaded(
    moving: Moving,
) -> None:
    user = lead_alone(moving)

    moving.broker.groups.expire_offsets()
    delete_orders(user)
    moving.hand.settle()

    assert moving.broker.groups.is_loading()
    assert not moving.broker.has_work_left()


def test_a_topic_that_is_deleted_before_a_shard_is_loaded_is_forgotten_with_the_load(
    moving: Moving,
) -> None:
    user = lead_alone(moving)
    delete_orders(user)
    moving.hand.settle()

    need_in_sync(moving, 1)
    moving.lead(1, 8)
    moving.hand.settle()

    assert not moving.broker.groups.is_loading()
    assert user.group_ids() == []


def test_a_walk_waits_for_a_shard_that_is_being_read(moving: Moving) -> None:
    user = GroupUser(moving.hand)
    assert user.commit({0: 5}) == [errors.NONE]
    moving.lead(*OWN)
    delete_orders(user)
    moving.hand.settle()

    assert user.group_ids() == []


def test_a_change_of_the_isr_alone_moves_no_group(moving: Moving) -> None:
    member = stable_group(moving.hand, 1)[0]
    shard = moving.broker.groups.shards[0]
    moving.lead(1, 0)

    assert moving.broker.groups.shards[0] is shard
    assert member.heartbeat() == errors.NONE


def test_a_shard_that_goes_while_it_is_loaded_is_loaded_anew(moving: Moving) -> None:
    user = GroupUser(moving.hand)
    assert user.commit({0: 5}) == [errors.NONE]
    moving.lead(*OWN)
    moving.lead(1, 8)
    moving.lead(1, 9)
    moving.hand.settle()

    assert user.offset() == 5
    assert waiting_in(moving.hand) == {}


def test_expiry_of_offsets_passes_over_a_shard_that_has_gone(moving: Moving) -> None:
    stable_group(moving.hand, 2)
    moving.broker.groups.expire_offsets()
    moving.lead(*OTHER)
    moving.hand.settle()

    assert moving.broker.groups.shards == {}
    assert not moving.broker.has_work_left()


def test_a_leader_that_may_not_act_answers_for_no_group(moving: Moving) -> None:
    """Its lease is over by its own clock, and its follower has not fetched: another may lead."""
    member = stable_group(moving.hand, 1)[0]
    assert member.commit_as_member({0: 11}) == [errors.NONE]
    moving.lead(1, 0, isr=(1, 2))
    partition = moving.broker.topics.partition(OFFSETS_TOPIC, 0)
    assert partition is not None
    door = LeaderDoor()
    door.is_lease_over = True
    partition.leadership.door = door

    assert member.heartbeat() == errors.NOT_COORDINATOR
    assert member.list_groups().groups == []
    assert moving.broker.groups.find(READERS) == (None, errors.NOT_COORDINATOR)
    door.is_lease_over = False
    assert member.heartbeat() == errors.NONE
    assert [each.group_id for each in member.list_groups().groups] == [READERS]


def rest(moving: Moving) -> ReplicatedLog:
    """Let the lease be over by this broker's clock, and no follower have turned to it."""
    moving.lead(1, 0, isr=(1, 2))
    partition = moving.broker.topics.partition(OFFSETS_TOPIC, 0)
    assert partition is not None
    partition.leadership.door = LeaderDoor()
    partition.leadership.door.is_lease_over = True
    return partition


def test_a_leader_that_may_not_act_ends_no_join_phase_by_a_time_out(moving: Moving) -> None:
    members = stable_group(moving.hand, 2)
    members[0].send_join()
    moving.hand.settle()
    assert codes_of(members[0].answers()) == []

    partition = rest(moving)
    end = partition.log.log_end_offset
    for _ in range(70):
        moving.hand.turn(after_ms=1_000)

    assert codes_of(members[0].answers()) == [errors.NOT_COORDINATOR]
    assert partition.log.log_end_offset == end


def test_all_that_waits_for_a_leader_is_sent_away_when_it_may_not_act_any_more(
    moving: Moving,
) -> None:
    """Its records may never count, and nothing behind them on a connection is handled before."""
    members = stable_group(moving.hand, 2)
    members[0].send_join()
    moving.hand.settle()
    user, deleting = GroupUser(moving.hand), GroupUser(moving.hand)
    assert deleting.commit({0: 5}, "old") == [errors.NONE]
    deletion = DeleteGroupsRequest(groups_names=["old"])
    deleting.client.send(api_keys.DELETE_GROUPS, 2, deletion)
    user.send_commit({0: 5}, "alone")
    # It is held behind the commit on its connection.
    user.client.send(api_keys.HEARTBEAT, 4, HeartbeatRequest(group_id="alone"))
    assert user.answers() == deleting.answers() == []

    partition = rest(moving)
    moving.broker.parts.on_moved(partition)
    moving.hand.turn()

    assert codes_of(members[0].answers()) == [errors.NOT_COORDINATOR]
    (deleted,) = deleting.answers()
    assert deleted.results[0].error_code == errors.NOT_COORDINATOR  # type: ignore[attr-defined]
    assert codes_of(user.answers()) == [errors.NOT_COORDINATOR]
    assert moving.broker.groups.waiting == 0
    moving.hand.turn()
    (heartbeat,) = user.answers()
    assert heartbeat.error_code == errors.NOT_COORDINATOR  # type: ignore[attr-defined]


def test_what_was_sent_away_by_a_leader_that_may_act_again_is_known_all_the_same(
    moving: Moving,
) -> None:
    members = stable_group(moving.hand, 2)
    user = GroupUser(moving.hand)
    user.send_commit({0: 5}, "alone")
    partition = rest(moving)
    moving.broker.parts.on_moved(partition)
    moving.hand.turn()
    assert codes_of(user.answers()) == [errors.NOT_COORDINATOR]

    partition.leadership.door.is_lease_over = False
    assert partition.leadership.followers is not None
    partition.leadership.followers.recount([1], {}, [])
    moving.hand.settle()

    assert user.answers() == []
    assert [member.heartbeat() for member in members] == [errors.NONE, errors.NONE]
    assert user.offset("alone") == 5


def test_with_too_few_replicas_in_sync_a_commit_is_refused_at_once(moving: Moving) -> None:
    moving.lead(1, 0, isr=(1, 2))
    partition = moving.broker.topics.partition(OFFSETS_TOPIC, 0)
    assert partition is not None
    partition.config.min_insync_replicas = 2

    assert GroupUser(moving.hand).commit({0: 1}) == [errors.COORDINATOR_NOT_AVAILABLE]
    assert moving.broker.groups.waiting == 0


def test_no_member_is_removed_for_the_time_in_which_its_coordinator_might_not_act(
    moving: Moving,
) -> None:
    members = stable_group(moving.hand, 2)
    partition = rest(moving)
    moving.broker.parts.on_moved(partition)
    for _ in range(70):
        moving.hand.turn(after_ms=999)
    assert members[0].heartbeat() == errors.NOT_COORDINATOR

    partition.leadership.door.is_lease_over = False
    moving.broker.parts.on_moved(partition)
    moving.hand.settle()
    moving.hand.turn(after_ms=SESSION_MS - 1)
    assert [member.heartbeat() for member in members] == [errors.NONE, errors.NONE]


def test_no_member_is_removed_for_that_time_when_the_next_life_goes_on(moving: Moving) -> None:
    members = stable_group(moving.hand, 2)
    partition = rest(moving)
    moving.broker.parts.on_moved(partition)
    for _ in range(70):
        moving.hand.turn(after_ms=1_000)

    partition.leadership.door.is_lease_over = False
    moving.lead(1, 1)
    moving.hand.settle()
    moving.hand.turn(after_ms=SESSION_MS - 1)
    assert [member.heartbeat() for member in members] == [errors.NONE, errors.NONE]

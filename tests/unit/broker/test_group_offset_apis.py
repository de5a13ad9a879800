"""OffsetCommit, OffsetFetch and OffsetDelete as a broker answers them, in every version's place."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import (
    READERS,
    GroupUser,
    Member,
    group_broker,
    stabilize,
    stable_group,
)

from tarry.base import errors
from tarry.protocol import api_keys
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.simulation.by_hand import BrokerByHand

VERSIONS_OF_ONE_GROUP = range(1, 8)
VERSIONS_OF_GROUPS = range(8, 10)


@pytest.fixture
def hand() -> BrokerByHand:
    return group_broker()


@pytest.fixture
def user(hand: BrokerByHand) -> GroupUser:
    return GroupUser(hand)


def fetch_one(
    user: GroupUser, group: str, version: int, topics: list[OffsetFetchRequestTopic] | None
) -> OffsetFetchResponse:
    """Before version 8, one group in a request."""
    request = OffsetFetchRequest(group_id=group, topics=topics)
    return user.request(OffsetFetchResponse, api_keys.OFFSET_FETCH, version, request)


def fetch_groups(
    user: GroupUser, *groups: OffsetFetchRequestGroup, version: int = 9, stable: bool = False
) -> OffsetFetchResponse:
    request = OffsetFetchRequest(groups=list(groups), require_stable=stable)
    return user.request(OffsetFetchResponse, api_keys.OFFSET_FETCH, version, request)


# --- Commit.


def test_topics_and_partitions_that_are_not_there_are_refused_singly(user: GroupUser) -> None:
    def rows(*indexes: int) -> list[OffsetCommitRequestPartition]:
        return [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=7)
            for index in indexes
        ]

    request = OffsetCommitRequest(
        group_id=READERS,
        topics=[
            OffsetCommitRequestTopic(name="nowhere", partitions=rows(0)),
            OffsetCommitRequestTopic(name=ORDERS, partitions=rows(1, 4, -1, 2)),
        ],
    )

    answer = user.request(OffsetCommitResponse, api_keys.OFFSET_COMMIT, 9, request)

    assert [
        (topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics
    ] == [
        ("nowhere", [0]),
        (ORDERS, [1, 4, -1, 2]),
    ]
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == [
        [unknown],
        [errors.NONE, unknown, unknown, errors.NONE],
    ]
    assert user.all_offsets() == {(ORDERS, 1): 7, (ORDERS, 2): 7}


def test_text_and_leader_epoch_are_kept(hand: BrokerByHand, user: GroupUser) -> None:
    user.commit({0: 7}, metadata="half of it", leader_epoch=3)
    user.commit({1: 8}, metadata=None)
    hand.crash()
    hand.settle()

    first = GroupUser(hand).fetched(index=0)
    second = GroupUser(hand).fetched(index=1)

    assert (first.committed_offset, first.committed_leader_epoch) == (7, 3)
    assert (first.metadata, first.error_code) == ("half of it", errors.NONE)
    assert (second.committed_offset, second.committed_leader_epoch) == (8, -1)
    assert second.metadata == ""


@pytest.mark.parametrize("version", range(2, 10))
def test_a_leader_epoch_is_committed_and_fetched_where_versions_know_it(version: int) -> None:
    hand = group_broker()
    user = GroupUser(hand)
    epoch = 3 if version >= 6 else -1

    committed = user.commit({0: 7}, version=version, leader_epoch=epoch)

    assert committed == [errors.NONE]
    assert user.fetched().committed_leader_epoch == epoch


def test_text_is_bounded_for_each_partition(user: GroupUser) -> None:
    rows = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7, committed_metadata="x" * size
        )
        for index, size in enumerate((4_096, 4_097, 0))
    ]
    topics = [OffsetCommitRequestTopic(name=ORDERS, partitions=rows)]

    answer = user.request(
        OffsetCommitResponse,
        api_keys.OFFSET_COMMIT,
        9,
        OffsetCommitRequest(group_id=READERS, topics=topics),
    )

    assert [each.error_code for each in answer.topics[0].partitions] == [
        errors.NONE,
        errors.OFFSET_METADATA_TOO_LARGE,
        errors.NONE,
    ]
    assert user.all_offsets() == {(ORDERS, 0): 7, (ORDERS, 2): 7}


def test_the_bound_of_the_text_is_a_setting() -> None:
    user = GroupUser(group_broker(offset_metadata_max_bytes="3"))

    codes = [user.commit({0: 7}, metadata=text)[0] for text in ("abc", "abcd")]

    assert codes == [errors.NONE, errors.OFFSET_METADATA_TOO_LARGE]


@pytest.mark.parametrize("version", range(2, 10))
def test_a_consumer_without_membership_commits_in_every_version(version: int) -> None:
    user = GroupUser(group_broker())

    committed = user.commit({0: 7}, version=version)

    described = user.describe()
    assert (committed, user.offset()) == ([errors.NONE], 7)
    assert (described.group_state, described.protocol_type) == ("Empty", "")


def test_who_is_no_member_commits_nothing_while_there_are_members(
    hand: BrokerByHand, user: GroupUser
) -> None:
    (member,) = stable_group(hand)

    refused = user.commit({0: 7})
    stranger = user.commit({0: 7}, member_id="stranger", generation_id=member.generation_id)
    member.leave()
    taken = user.commit({0: 7})

    assert (refused, stranger) == ([errors.UNKNOWN_MEMBER_ID], [errors.UNKNOWN_MEMBER_ID])
    assert (taken, user.offset()) == ([errors.NONE], 7)


def test_a_commit_of_an_older_generation_is_refused(hand: BrokerByHand, user: GroupUser) -> None:
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    old = member.generation_id
    stabilize(member)

    late = user.commit({0: 6}, member_id=member.member_id, generation_id=old)
    early = user.commit({0: 6}, member_id=member.member_id, generation_id=old + 2)

    assert (late, early) == ([errors.ILLEGAL_GENERATION], [errors.ILLEGAL_GENERATION])
    assert user.offset() == 7


@pytest.mark.parametrize("version", range(2, 10))
def test_a_generation_of_a_group_that_is_unknown_is_refused(version: int) -> None:
    user = GroupUser(group_broker())

    refused = user.commit({0: 7}, version=version, member_id="lost", generation_id=3)

    expected = errors.GROUP_ID_NOT_FOUND if version >= 9 else errors.ILLEGAL_GENERATION
    assert refused == [expected]
    assert user.group_ids() == []


def test_commits_wait_for_the_assignment_and_not_for_the_join(hand: BrokerByHand) -> None:
    leader, other = stable_group(hand, 2)
    leader.send_join()
    joining = other.commit_as_member({0: 7})
    other.send_join()
    hand.settle()
    for member in (leader, other):
        member.take_join()

    syncing = other.commit_as_member({0: 8})

    assert joining == [errors.NONE]
    assert syncing == [errors.REBALANCE_IN_PROGRESS]
    assert other.offset() == 7


def test_a_static_member_that_was_replaced_commits_nothing(hand: BrokerByHand) -> None:
    old = Member(hand, instance_id="one")
    stabilize(old)
    new = Member(hand, instance_id="one")
    new.join()

    fenced = old.commit_as_member({0: 7})
    taken = new.commit_as_member({0: 8})

    assert (fenced, taken) == ([errors.FENCED_INSTANCE_ID], [errors.NONE])
    assert new.offset() == 8


def test_negative_offsets_and_internal_topics_are_committed_as_in_kafka(user: GroupUser) -> None:
    codes = user.commit({0: -1, 1: -7}) + user.commit({0: 5}, topic="__consumer_offsets")

    assert codes == [errors.NONE] * 3
    assert user.all_offsets() == {
        (ORDERS, 0): -1,
        (ORDERS, 1): -7,
        ("__consumer_offsets", 0): 5,
    }


def test_a_partition_that_is_named_twice_has_the_last_of_its_offsets(user: GroupUser) -> None:
    rows = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        for offset in (7, 9, 8)
    ]
    topics = [OffsetCommitRequestTopic(name=ORDERS, partitions=rows)]

    answer = user.request(
        OffsetCommitResponse,
        api_keys.OFFSET_COMMIT,
        9,
        OffsetCommitRequest(group_id=READERS, topics=topics),
    )

    assert [each.error_code for each in answer.topics[0].partitions] == [errors.NONE]
    assert user.offset() == 8


def test_a_commit_of_nothing_makes_no_group(user: GroupUser) -> None:
    answer = user.request(
        OffsetCommitResponse, api_keys.OFFSET_COMMIT, 9, OffsetCommitRequest(group_id=READERS)
    )

    assert answer.topics == []
    assert user.group_ids() == []


# --- Fetch.


@pytest.mark.parametrize("version", VERSIONS_OF_ONE_GROUP)
def test_what_is_unknown_has_no_offset_and_no_error(user: GroupUser, version: int) -> None:
    user.commit({0: 7})
    asked = [
        OffsetFetchRequestTopic(name=ORDERS, partition_indexes=[0, 1, 9]),
        OffsetFetchRequestTopic(name="nowhere", partition_indexes=[0]),
    ]

    known = fetch_one(user, READERS, version, asked)
    unknown = fetch_one(user, "nobody", version, asked)

    none = (-1, -1, "", errors.NONE)
    assert (known.error_code, unknown.error_code) == (errors.NONE, errors.NONE)
    assert rows_of(known) == [(7, -1, "", errors.NONE), none, none, none]
    assert rows_of(unknown) == [none] * 4


def rows_of(answer: OffsetFetchResponse) -> list[tuple[int, int, str | None, int]]:
    return [
        (each.committed_offset, each.committed_leader_epoch, each.metadata, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", range(2, 8))
def test_null_means_all_partitions(user: GroupUser, version: int) -> None:
    user.create("a")
    user.commit({3: 9, 1: 8})
    user.commit({0: 7}, topic="a")

    answer = fetch_one(user, READERS, version, None)
    nobody = fetch_one(user, "nobody", version, None)

    assert [
        (topic.name, each.partition_index, each.committed_offset)
        for topic in answer.topics
        for each in topic.partitions
    ] == [("a", 0, 7), (ORDERS, 1, 8), (ORDERS, 3, 9)]
    assert (nobody.error_code, nobody.topics) == (errors.NONE, [])


@pytest.mark.parametrize("version", VERSIONS_OF_GROUPS)
def test_several_groups_are_answered_each_with_its_own(user: GroupUser, version: int) -> None:
    user.commit({0: 7})
    user.commit({0: 8}, "others")
    topics = [OffsetFetchRequestTopics(name=ORDERS, partition_indexes=[0])]

    answer = fetch_groups(
        user,
        OffsetFetchRequestGroup(group_id=READERS, topics=topics),
        OffsetFetchRequestGroup(group_id="others", topics=None),
        OffsetFetchRequestGroup(group_id="nobody", topics=topics),
        OffsetFetchRequestGroup(group_id="none", topics=None),
        OffsetFetchRequestGroup(group_id=READERS, topics=None),
        version=version,
    )

    assert [
        (
            group.group_id,
            group.error_code,
            [each.committed_offset for topic in group.topics for each in topic.partitions],
        )
        for group in answer.groups
    ] == [
        (READERS, errors.NONE, [7]),
        ("others", errors.NONE, [8]),
        ("nobody", errors.NONE, [-1]),
        ("none", errors.NONE, []),
    ]


def test_no_groups_are_answered_with_none(user: GroupUser) -> None:
    assert fetch_groups(user).groups == []


def test_stable_offsets_are_all_there_are_without_transactions(user: GroupUser) -> None:
    user.commit({0: 7})

    answer = fetch_groups(user, OffsetFetchRequestGroup(group_id=READERS, topics=None), stable=True)

    assert answer.groups[0].error_code == errors.NONE
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 7


# --- Where each version has its error: here of a broker without the groups' topic.


@pytest.fixture
def nobody() -> GroupUser:
    """A user of a broker that nobody has asked for a coordinator."""
    return GroupUser(BrokerByHand())


@pytest.mark.parametrize("version", VERSIONS_OF_ONE_GROUP)
def test_before_version_8_an_error_is_at_the_top_and_in_version_1_in_each_partition(
    nobody: GroupUser, version: int
) -> None:
    asked = [OffsetFetchRequestTopic(name=ORDERS, partition_indexes=[0, 1])]

    answer = fetch_one(nobody, READERS, version, asked)

    code = errors.NOT_COORDINATOR
    if version == 1:
        assert rows_of(answer) == [(-1, -1, "", code)] * 2
    else:
        assert answer.error_code == code
        assert all(offset == -1 for offset, _, _, _ in rows_of(answer))


@pytest.mark.parametrize("version", VERSIONS_OF_GROUPS)
def test_from_version_8_on_an_error_is_in_its_group(nobody: GroupUser, version: int) -> None:
    topics = [OffsetFetchRequestTopics(name=ORDERS, partition_indexes=[0])]

    answer = fetch_groups(
        nobody,
        OffsetFetchRequestGroup(group_id=READERS, topics=topics),
        OffsetFetchRequestGroup(group_id="others", topics=None),
        version=version,
    )

    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        (READERS, errors.NOT_COORDINATOR),
        ("others", errors.NOT_COORDINATOR),
    ]


@pytest.mark.parametrize("version", range(2, 10))
def test_a_commit_has_its_error_in_every_partition(nobody: GroupUser, version: int) -> None:
    codes = nobody.commit({0: 1, 1: 1}, version=version)

    assert codes == [errors.NOT_COORDINATOR] * 2


# --- OffsetDelete.


def test_offsets_are_deleted_singly_and_only_of_topics_that_are_there(user: GroupUser) -> None:
    user.commit({0: 7, 1: 8})
    request = OffsetDeleteRequest(
        group_id=READERS,
        topics=[
            OffsetDeleteRequestTopic(
                name="nowhere", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            ),
            OffsetDeleteRequestTopic(
                name=ORDERS,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=index) for index in (0, 3)
                ],
            ),
        ],
    )

    answer = user.request(OffsetDeleteResponse, api_keys.OFFSET_DELETE, 0, request)

    assert answer.error_code == errors.NONE
    assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == [
        [errors.UNKNOWN_TOPIC_OR_PARTITION],
        [errors.NONE, errors.NONE],
    ]
    assert user.all_offsets() == {(ORDERS, 1): 8}


def test_offsets_of_topics_in_use_stay(hand: BrokerByHand, user: GroupUser) -> None:
    user.create("other")
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    user.commit(
        {0: 8},
        topic="other",
        member_id=member.member_id,
        generation_id=member.generation_id,
    )

    in_use = user.delete_offsets(0)
    not_in_use = user.delete_offsets(0, topic="other")

    assert in_use == [errors.GROUP_SUBSCRIBED_TO_TOPIC]
    assert not_in_use == [errors.NONE]
    assert user.all_offsets() == {(ORDERS, 0): 7}


def test_offsets_of_groups_that_are_not_there_cannot_be_deleted(user: GroupUser) -> None:
    assert user.delete_offsets(0, group="nobody") == [errors.GROUP_ID_NOT_FOUND]


def test_offsets_of_a_group_of_another_kind_are_deleted_when_it_is_empty(
    hand: BrokerByHand, user: GroupUser
) -> None:
    member = Member(hand, protocol_type="connect", protocols=(("default", b"\xff\x00"),))
    stabilize(member)
    member.commit_as_member({0: 7})

    working = user.delete_offsets(0)
    member.leave()
    empty = user.delete_offsets(0)

    assert (working, empty) == ([errors.NON_EMPTY_GROUP], [errors.NONE])


@pytest.mark.parametrize("version", [2, 4])
def test_a_commit_that_is_to_be_kept_for_ever_is_kept(version: int) -> None:
    hand = group_broker()
    user = GroupUser(hand)

    committed = user.commit({0: 5}, version=version, retention_ms=(1 << 63) - 1)

    assert committed == [errors.NONE]
    hand.broker.groups.expire_offsets()
    hand.settle()
    assert user.offset() == 5


def test_text_that_an_older_fetch_could_not_hold_is_refused_whatever_the_setting_allows() -> None:
    user = GroupUser(group_broker(offset_metadata_max_bytes="100000"))
    codes = [user.commit({0: 5}, metadata="x" * size) for size in (32_768, 32_767)]

    asked = OffsetFetchRequest(READERS, [OffsetFetchRequestTopic(ORDERS, [0])])
    answer = user.request(OffsetFetchResponse, api_keys.OFFSET_FETCH, 1, asked)

    assert codes == [[errors.OFFSET_METADATA_TOO_LARGE], [errors.NONE]]
    assert answer.topics[0].partitions[0].metadata == "x" * 32_767


def test_offsets_of_partitions_that_are_not_there_are_not_deleted() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 5})

    codes = user.delete_offsets(7, -1, 0)

    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [unknown, unknown, errors.NONE]

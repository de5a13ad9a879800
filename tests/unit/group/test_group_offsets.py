"""Offsets of a group: who may commit, what is fetched, what expires, what is deleted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.group_scene import WALL_MS, Scene

from tarry.base import errors
from tarry.group.classic.round import DEAD, STABLE
from tarry.group.offsets.decisions import all_offsets, fetched_offsets
from tarry.group.offsets.records import OffsetCommitted
from tarry.group.offsets.requests import (
    CommitAnswer,
    CommitPartition,
    DeleteAnswer,
)

DAY_MS = 24 * 3_600_000


def consumer_metadata(*topics: str) -> bytes:
    """A consumer's subscription: version 1, its topics, no user data, no owned partitions."""
    names = b"".join(len(each).to_bytes(2, "big") + each.encode() for each in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff\0\0\0\0"


def codes(scene: Scene, ticket: int) -> list[str]:
    answer = scene.answers[ticket]
    assert isinstance(answer, CommitAnswer | DeleteAnswer)
    return [errors.error_name(each) for each in answer.partition_error_codes]


def working_scene(*topics: str, protocol_type: str = "consumer") -> tuple[Scene, str]:
    """A group of one static member that works, subscribed to these topics."""
    scene = Scene()
    protocols = (("range", consumer_metadata(*topics)),)
    member_id = scene.static_member("i", protocols=protocols, protocol_type=protocol_type)
    scene.advance(3_000)
    scene.sync_all()
    assert scene.group.round.phase == STABLE
    return scene, member_id


def committed(scene: Scene, topic: str = "topic", partition: int = 0) -> OffsetCommitted | None:
    return scene.group.offset(topic, partition)


# -- commit and fetch


def test_a_commit_keeps_offset_epoch_text_and_time() -> None:
    scene = Scene()
    scene.now_ms = 5

    scene.commit_offsets(
        partitions=(CommitPartition("topic", 3, 42, leader_epoch=7, metadata="tëxt"),)
    )

    assert committed(scene, "topic", 3) == OffsetCommitted(
        "g",
        topic="topic",
        partition=3,
        offset=42,
        leader_epoch=7,
        metadata="tëxt",
        commit_timestamp_ms=WALL_MS + 5,
    )


def test_an_offset_is_fetched_once_it_is_durable_and_not_before() -> None:
    scene = Scene()
    scene.holds = True
    ticket = scene.commit_offsets(partitions=(CommitPartition("topic", 0, 42),))
    before = fetched_offsets(scene.group, [("topic", [0])])

    scene.commit()

    assert before == [("topic", [(0, None)])]
    assert codes(scene, ticket) == ["NONE"]
    assert fetched_offsets(scene.group, [("topic", [0])]) == [("topic", [(0, committed(scene))])]


def test_what_was_never_committed_is_fetched_as_nothing_without_an_error() -> None:
    scene = Scene()

    assert fetched_offsets(scene.group, [("a", [0, 9]), ("b", [])]) == [
        ("a", [(0, None), (9, None)]),
        ("b", []),
    ]
    assert all_offsets(scene.group) == []


def test_all_offsets_come_by_topic_and_partition() -> None:
    scene = Scene()
    for topic, partition in [("b", 10), ("b", 2), ("a", 0)]:
        scene.commit_offsets(partitions=(CommitPartition(topic, partition, 1),))

    found = [(topic, [index for index, _ in rows]) for topic, rows in all_offsets(scene.group)]

    assert found == [("a", [0]), ("b", [2, 10])]


def test_partitions_are_refused_singly_and_the_others_are_committed() -> None:
    scene = Scene()

    ticket = scene.commit_offsets(
        partitions=(
            CommitPartition("gone", 0, 1, error_code=errors.UNKNOWN_TOPIC_OR_PARTITION),
            CommitPartition("topic", 0, 2, metadata="x" * 4_096),
            CommitPartition("topic", 1, 3, metadata="x" * 4_097),
            CommitPartition("topic", 2, 4, metadata=None),
        )
    )

    assert codes(scene, ticket) == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NONE",
        "OFFSET_METADATA_TOO_LARGE",
        "NONE",
    ]
    assert [each.partition for each in scene.group.offsets["topic"].values()] == [0, 2]


def test_text_is_measured_in_utf_16_units_as_kafka_does() -> None:
    scene = Scene()

    ticket = scene.commit_offsets(
        partitions=(
            CommitPartition("topic", 0, 1, metadata="é" * 4_096),
            CommitPartition("topic", 1, 1, metadata="𝄞" * 2_049),
        )
    )

    assert codes(scene, ticket) == ["NONE", "OFFSET_METADATA_TOO_LARGE"]


def test_a_commit_of_which_nothing_is_left_needs_no_record() -> None:
    scene = Scene()
    scene.holds = True

    ticket = scene.commit_offsets(
        partitions=(CommitPartition("g", 0, 1, error_code=errors.UNKNOWN_TOPIC_OR_PARTITION),)
    )

    assert codes(scene, ticket) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert not scene.waiting
    assert not scene.groups.by_id


def test_a_commit_that_did_not_get_into_the_log_is_told_so_and_changes_nothing() -> None:
    scene = Scene()
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 1),))
    scene.holds = True
    ticket = scene.commit_offsets(
        partitions=(
            CommitPartition("topic", 0, 2),
            CommitPartition("gone", 0, 1, error_code=errors.UNKNOWN_TOPIC_OR_PARTITION),
        )
    )

    scene.fail(errors.NOT_LEADER_OR_FOLLOWER)

    assert codes(scene, ticket) == ["NOT_COORDINATOR", "UNKNOWN_TOPIC_OR_PARTITION"]
    kept = committed(scene)
    assert kept is not None
    assert kept.offset == 1


@pytest.mark.parametrize(
    ("error_code", "told"),
    [
        (errors.NOT_ENOUGH_REPLICAS, "COORDINATOR_NOT_AVAILABLE"),
        (errors.REQUEST_TIMED_OUT, "COORDINATOR_NOT_AVAILABLE"),
        (errors.UNKNOWN_TOPIC_OR_PARTITION, "COORDINATOR_NOT_AVAILABLE"),
        (errors.KAFKA_STORAGE_ERROR, "NOT_COORDINATOR"),
        (errors.MESSAGE_TOO_LARGE, "UNKNOWN_SERVER_ERROR"),
        (errors.RECORD_LIST_TOO_LARGE, "UNKNOWN_SERVER_ERROR"),
        (errors.INVALID_RECORD, "INVALID_RECORD"),
    ],
)
def test_an_error_of_the_log_is_told_in_the_words_that_kafka_has_for_it(
    error_code: int, told: str
) -> None:
    scene = Scene()
    scene.holds = True
    ticket = scene.commit_offsets()

    scene.fail(error_code)

    assert codes(scene, ticket) == [told]


def test_a_commit_keeps_the_session_of_its_member() -> None:
    scene, member_id = working_scene("topic")
    scene.advance(9_000)
    scene.commit_offsets(member_id, 1, "i")
    scene.advance(9_000)

    assert member_id in scene.group.round.members


def test_a_commit_that_is_refused_keeps_no_session() -> None:
    scene, member_id = working_scene("topic")
    scene.advance(9_000)
    scene.commit_offsets(member_id, 0, "i")
    scene.advance(1_000)

    assert member_id not in scene.group.round.members


def test_a_hundred_thousand_partitions_are_committed_at_once() -> None:
    scene = Scene()
    partitions = tuple(CommitPartition("topic", index, index) for index in range(100_000))

    ticket = scene.commit_offsets(partitions=partitions)

    assert len(scene.group.offsets["topic"]) == 100_000
    assert set(codes(scene, ticket)) == {"NONE"}


def test_a_negative_offset_is_kept_as_kafka_keeps_it() -> None:
    scene = Scene()

    ticket = scene.commit_offsets(partitions=(CommitPartition("topic", 0, -5),))

    assert codes(scene, ticket) == ["NONE"]
    kept = committed(scene)
    assert kept is not None
    assert kept.offset == -5


def test_a_group_id_that_no_record_can_hold_is_refused() -> None:
    scene = Scene(group_id="g" * 32_768)

    ticket = scene.commit_offsets()

    assert codes(scene, ticket) == ["INVALID_GROUP_ID"]


# -- expiry


def test_offsets_of_a_group_without_members_expire_by_their_own_age() -> None:
    scene = Scene()
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 1),))
    scene.advance(DAY_MS)
    scene.commit_offsets(partitions=(CommitPartition("topic", 1, 1),))
    scene.advance(6 * DAY_MS - 1)
    scene.expire_offsets()
    before = sorted(scene.group.offsets["topic"])
    scene.advance(1)

    scene.expire_offsets()

    assert before == [0, 1]
    assert sorted(scene.group.offsets["topic"]) == [1]


def test_the_last_offset_takes_its_group_with_it() -> None:
    scene = Scene()
    scene.commit_offsets()
    scene.advance(7 * DAY_MS)

    scene.expire_offsets()

    assert not scene.groups.by_id
    scene.restart()
    assert not scene.groups.by_id


def test_offsets_of_a_group_that_had_members_expire_by_the_time_since_it_is_empty() -> None:
    scene, member_id = working_scene("topic")
    scene.commit_offsets(member_id, 1, "i")
    scene.advance(10 * DAY_MS)
    empty_since_ms = scene.group.round.state_timestamp_ms - WALL_MS
    scene.now_ms = empty_since_ms + 7 * DAY_MS - 1
    scene.expire_offsets()
    before = committed(scene)
    scene.advance(1)

    scene.expire_offsets()

    assert before is not None
    assert not scene.groups.by_id


def test_the_time_since_a_group_is_empty_survives_a_restart() -> None:
    scene, member_id = working_scene("topic")
    scene.commit_offsets(member_id, 1, "i")
    scene.advance(60_000)
    empty_since_ms = scene.group.round.state_timestamp_ms - WALL_MS
    scene.now_ms = empty_since_ms + 7 * DAY_MS - 1
    scene.restart()
    scene.expire_offsets()
    before = committed(scene)
    scene.advance(1)

    scene.expire_offsets()

    assert before is not None
    assert not scene.groups.by_id


def keep_alive(scene: Scene, member_id: str) -> None:
    """The member lives on for eight days."""
    scene.now_ms += 8 * DAY_MS
    scene.stall(0)
    assert member_id in scene.group.round.members


def test_a_consumer_group_that_works_loses_the_offsets_of_topics_that_nobody_wants() -> None:
    scene, member_id = working_scene("wanted")
    scene.commit_offsets(
        member_id,
        1,
        "i",
        partitions=(CommitPartition("wanted", 0, 1), CommitPartition("unwanted", 0, 1)),
    )
    keep_alive(scene, member_id)

    scene.expire_offsets()

    assert sorted(scene.group.offsets) == ["wanted"]
    assert scene.group.round.phase == STABLE


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0\0\0\0\x09", b"\xff\xff\0\0\0\0"])
def test_offsets_stay_where_the_subscription_cannot_be_read(metadata: bytes) -> None:
    scene = Scene()
    member_id = scene.static_member("i", protocols=(("range", metadata),))
    scene.advance(3_000)
    scene.sync_all()
    scene.commit_offsets(member_id, 1, "i")
    keep_alive(scene, member_id)

    scene.expire_offsets()

    assert committed(scene) is not None


def test_offsets_of_other_protocol_types_stay_while_there_are_members() -> None:
    scene, member_id = working_scene("other", protocol_type="connect")
    scene.commit_offsets(member_id, 1, "i")
    keep_alive(scene, member_id)

    scene.expire_offsets()

    assert committed(scene) is not None


def test_nothing_expires_while_the_members_rejoin() -> None:
    scene, member_id = working_scene("other")
    scene.commit_offsets(member_id, 1, "i")
    scene.static_member("j")
    scene.now_ms += 8 * DAY_MS

    scene.expire_offsets()

    assert committed(scene) is not None


def test_an_offset_with_a_time_of_its_own_expires_then() -> None:
    scene = Scene()
    scene.commit_offsets(retention_ms=1_000)
    scene.advance(999)
    scene.expire_offsets()
    before = committed(scene)
    scene.advance(1)

    scene.expire_offsets()

    assert before is not None
    assert before.expire_timestamp_ms == WALL_MS + 1_000
    assert committed(scene) is None


def test_an_offset_that_is_on_its_way_does_not_expire() -> None:
    scene = Scene()
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 1),))
    scene.advance(7 * DAY_MS)
    scene.holds = True
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 2),))

    scene.expire_offsets()
    scene.commit()

    kept = committed(scene)
    assert kept is not None
    assert kept.offset == 2


def test_a_group_that_somebody_is_about_to_join_stays() -> None:
    scene, _ = working_scene("topic")
    scene.advance(100_000)
    scene.join()

    scene.expire_offsets()

    assert scene.group.round.pending_members
    assert scene.group.round.phase != DEAD


# -- deletion


def test_a_deleted_group_is_gone_with_its_offsets_once_that_is_durable() -> None:
    scene = Scene()
    scene.commit_offsets()
    scene.holds = True
    ticket = scene.delete_group()
    waits = scene.error(ticket)
    refused = scene.error(scene.join())

    scene.commit()

    assert waits == "waits"
    assert refused == "COORDINATOR_NOT_AVAILABLE"
    assert scene.error(ticket) == "NONE"
    assert not scene.groups.by_id
    scene.restart()
    assert not scene.groups.by_id


def test_a_group_takes_the_offsets_that_are_on_their_way_with_it() -> None:
    scene = Scene()
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 1),))
    scene.holds = True
    scene.commit_offsets(partitions=(CommitPartition("topic", 1, 1),))
    scene.delete_group()

    scene.commit()

    assert not scene.groups.by_id
    scene.restart()
    assert not scene.groups.by_id


def test_a_group_that_could_not_be_deleted_is_as_it_was() -> None:
    scene = Scene()
    scene.commit_offsets()
    scene.holds = True
    ticket = scene.delete_group()

    scene.fail(errors.NOT_ENOUGH_REPLICAS)

    assert scene.error(ticket) == "COORDINATOR_NOT_AVAILABLE"
    assert committed(scene) is not None
    assert scene.error(scene.join()) == "MEMBER_ID_REQUIRED"


def test_a_group_with_members_is_not_deleted() -> None:
    scene, _ = working_scene("topic")

    assert scene.error(scene.delete_group()) == "NON_EMPTY_GROUP"
    assert scene.group.round.phase == STABLE


def test_a_group_that_is_not_there_is_not_found() -> None:
    scene = Scene()

    assert scene.error(scene.delete_group()) == "GROUP_ID_NOT_FOUND"
    assert scene.error(scene.delete_offsets(CommitPartition("t", 0, 0))) == "GROUP_ID_NOT_FOUND"


def test_offsets_of_topics_that_the_group_works_on_are_not_deleted() -> None:
    scene, member_id = working_scene("wanted")
    scene.commit_offsets(
        member_id,
        1,
        "i",
        partitions=(CommitPartition("wanted", 0, 1), CommitPartition("unwanted", 0, 1)),
    )

    ticket = scene.delete_offsets(
        CommitPartition("wanted", 0, 0),
        CommitPartition("unwanted", 0, 0),
        CommitPartition("unwanted", 7, 0),
        CommitPartition("gone", 0, 0, error_code=errors.UNKNOWN_TOPIC_OR_PARTITION),
    )

    assert codes(scene, ticket) == [
        "GROUP_SUBSCRIBED_TO_TOPIC",
        "NONE",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert sorted(scene.group.offsets) == ["wanted"]


def test_offsets_of_other_groups_are_deleted_only_when_they_are_empty() -> None:
    scene, _ = working_scene("topic", protocol_type="connect")

    assert scene.error(scene.delete_offsets(CommitPartition("t", 0, 0))) == "NON_EMPTY_GROUP"


def test_a_deleted_topic_takes_its_offsets_with_it() -> None:
    scene, member_id = working_scene("topic")
    for topic in ("topic", "other"):
        scene.commit_offsets(member_id, 1, "i", partitions=(CommitPartition(topic, 0, 1),))
    scene.holds = True
    scene.commit_offsets(member_id, 1, "i", partitions=(CommitPartition("topic", 1, 1),))

    scene.forget_topic("topic")
    scene.commit()

    assert sorted(scene.group.offsets) == ["other"]


def test_offsets_of_a_topic_that_was_made_again_stay_when_its_predecessor_is_forgotten() -> None:
    scene = Scene()
    old, new = b"1" * 16, b"2" * 16
    scene.commit_offsets(
        partitions=(
            CommitPartition("topic", 0, 7, topic_id=old),
            CommitPartition("topic", 1, 7, topic_id=old),
            CommitPartition("topic", 2, 7, topic_id=old),
        )
    )
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 1, topic_id=new),))
    scene.holds = True
    scene.commit_offsets(partitions=(CommitPartition("topic", 2, 1, topic_id=new),))

    scene.forget_topic("topic", successor_id=new)
    scene.commit()

    found = [committed(scene, partition=index) for index in range(3)]
    assert [each and each.offset for each in found] == [1, None, 1]


def test_a_lowered_limit_of_text_counts_for_new_commits_alone() -> None:
    scene = Scene()
    scene.commit_offsets(partitions=(CommitPartition("topic", 0, 1, metadata="long"),))
    scene.settings = replace(scene.settings, offset_metadata_max_bytes=3)

    ticket = scene.commit_offsets(partitions=(CommitPartition("topic", 0, 2, metadata="long"),))

    assert codes(scene, ticket) == ["OFFSET_METADATA_TOO_LARGE"]
    kept = committed(scene)
    assert kept is not None
    assert kept.offset == 1

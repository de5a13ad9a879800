"""The state of groups: its phases, the choice of a protocol, what is kept and what forgotten."""

from __future__ import annotations

from itertools import product

import pytest
from tests.support.group_scene import KINDS, RANGE, Scene

from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.records import GroupTombstone
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    LEGAL_BEFORE,
    PHASE_NAMES,
    PREPARING_REBALANCE,
    STABLE,
    GroupRound,
    Member,
)
from tarry.group.classic.subscriptions import (
    TOPICS_READ_MAX,
    subscribed_topics,
    topics_of_subscription,
)
from tarry.group.classic.transitions import Draft
from tarry.group.offsets.records import OffsetCommitted, OffsetTombstone
from tarry.group.state import Groups

KAFKAS_TRANSITIONS = {
    (EMPTY, PREPARING_REBALANCE),
    (PREPARING_REBALANCE, COMPLETING_REBALANCE),
    (PREPARING_REBALANCE, EMPTY),
    (COMPLETING_REBALANCE, STABLE),
    (COMPLETING_REBALANCE, PREPARING_REBALANCE),
    (STABLE, PREPARING_REBALANCE),
    (EMPTY, DEAD),
    (DEAD, EMPTY),
}


@pytest.mark.parametrize(("before", "after"), list(product(range(5), range(5))))
def test_a_phase_is_entered_from_where_kafka_enters_it(before: int, after: int) -> None:
    assert (before in LEGAL_BEFORE[after]) == ((before, after) in KAFKAS_TRANSITIONS)


def test_the_phases_are_spelt_as_kafka_spells_them() -> None:
    assert PHASE_NAMES[COMPLETING_REBALANCE] == "CompletingRebalance"
    assert [PHASE_NAMES[each] for each in (EMPTY, STABLE, DEAD)] == ["Empty", "Stable", "Dead"]


@pytest.mark.parametrize(
    ("wishes", "chosen"),
    [
        (["range"], "range"),
        (["sticky,range", "range,sticky", "sticky,range"], "sticky"),
        (["sticky,range", "range,sticky"], "range"),
        (["b,a", "a,b"], "a"),
        (["x,b,a", "a,b", "b,a"], "b"),
        (["x,common", "y,common", "z,common"], "common"),
    ],
)
def test_the_members_vote_for_a_protocol_that_all_support(wishes: list[str], chosen: str) -> None:
    scene = Scene()
    for wish in wishes:
        scene.join(version=3, protocols=tuple((name, b"") for name in wish.split(",")))

    scene.advance(6_000)

    assert len(scene.group.round.members) == len(wishes)
    assert scene.group.round.protocol_name == chosen


def test_a_decision_changes_nothing_until_it_is_taken() -> None:
    scene = Scene()
    scene.static_member("i")
    before = vars(scene.group.round.copy())
    draft = Draft(scene.group, scene.moment)

    draft.complete_join()
    draft.remove_member(scene.group.round.static_members["i"], "no reason")
    draft.begin_rebalance("no reason")

    assert vars(scene.group.round) == before
    assert draft.round.phase == EMPTY


def test_of_a_group_that_was_never_heard_of_nothing_is_kept() -> None:
    scene = Scene()
    scene.heartbeat("a", 1)
    scene.sync("a", 1)
    scene.join("a")
    scene.join(protocols=())
    scene.commit_offsets("a", 5)

    assert not scene.groups.by_id


def test_a_group_of_offsets_alone_lives_as_long_as_one_of_them() -> None:
    groups = Groups(KINDS)
    groups.apply(OffsetCommitted("g", topic="t", partition=0, offset=1))
    groups.apply(OffsetCommitted("g", topic="t", partition=1, offset=1))
    groups.apply(OffsetTombstone("g", topic="t", partition=0))
    assert groups.group("g").exists

    groups.apply(OffsetTombstone("g", topic="t", partition=1))

    assert not groups.by_id


def test_tombstones_of_what_was_never_there_are_passed_over() -> None:
    groups = Groups(KINDS)

    groups.apply(OffsetTombstone("g", topic="t", partition=0))
    groups.apply(GroupTombstone("g"))

    assert not groups.by_id
    assert not CLASSIC.new_group("g").exists


def test_groups_do_not_touch_each_other() -> None:
    groups = Groups(KINDS)
    for group_id in ("a", "b"):
        groups.apply(OffsetCommitted(group_id, topic="t", partition=0, offset=1))

    groups.apply(OffsetTombstone("a", topic="t", partition=0))

    assert list(groups.by_id) == ["b"]


def test_a_thousand_members_join_one_group_and_work() -> None:
    scene = Scene()
    scene.check = lambda: None  # type: ignore[method-assign]
    for _ in range(1_000):
        scene.join(version=3, protocols=RANGE)
    scene.advance(6_000)

    scene.sync_all()

    now = scene.group.round
    assert now.phase == STABLE
    assert len(now.assignments) == 1_000
    assert all(scene.error(each) == "NONE" for each in range(1, scene.tickets + 1))


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        (b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", ["t"]),
        (b"\0\3\0\0\0\2\0\1t\0\1u\xff\xff\xff\xff and what later versions add", ["t", "u"]),
        (b"\0\0\0\0\0\0", []),
        (b"\0\0\xff\xff\xff\xff", []),
        (b"", None),
        (b"\xff\xff\0\0\0\0", None),
        (b"\0\0\x7f\xff\xff\xff", None),
        (b"\0\0\0\0\0\1\0\5t", None),
        (b"\0\0\0\0\0\1\0\1\xff", None),
    ],
)
def test_the_topics_of_a_consumer_are_read_or_it_is_not_understood(
    metadata: bytes, topics: list[str] | None
) -> None:
    assert topics_of_subscription(metadata) == topics


def round_of(*members: tuple[list[str], bytes]) -> GroupRound:
    """Consumers with these topics, each with what it says behind them."""
    now = GroupRound()
    now.protocol_type, now.protocol_name = "consumer", "range"
    for number, (topics, rest) in enumerate(members):
        names = b"".join(len(each).to_bytes(2, "big") + each.encode() for each in topics)
        metadata = b"\0\3" + len(topics).to_bytes(4, "big") + names + rest
        member_id = f"member{number}"
        now.members[member_id] = Member(
            member_id, None, "client", "host", 60_000, 10_000, (("range", metadata),)
        )
    return now


def test_the_topics_of_all_members_are_subscribed() -> None:
    now = round_of((["t", "u"], b"1"), (["t", "u"], b"2"), (["t"], b""), (["v", "t"], b"3"))

    assert list(subscribed_topics(now) or ()) == ["t", "u", "v"]


def test_topics_that_members_have_in_common_are_read_once() -> None:
    topics = [f"t{number}" for number in range(TOPICS_READ_MAX // 2)]

    now = round_of(*((topics, b"%d" % number) for number in range(20)))

    assert list(subscribed_topics(now) or ()) == topics


def test_topics_are_not_known_of_a_group_whose_members_name_too_many() -> None:
    topics = [f"t{number}" for number in range(TOPICS_READ_MAX // 2)]

    assert subscribed_topics(round_of((topics, b""), (topics[1:], b""), (["t0"], b""))) is not None
    assert (
        subscribed_topics(round_of((topics, b""), (topics[1:], b""), (["t0", "t1"], b""))) is None
    )
    assert topics_of_subscription(b"\0\0" + (TOPICS_READ_MAX + 1).to_bytes(4, "big")) is None

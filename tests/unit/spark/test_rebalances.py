"""Rebalances out of the notes of groups: when, why, how long, and the times of members."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.support.spark.told_events import NOON_MS, gathered, note

from tarry.spark.events.group_story import (
    A_DEATH,
    A_LEAVE,
    CUT_OFF,
    EMPTY,
    NO_SYNC,
    OTHER,
    STABLE,
    UNDER_WAY,
    cause_of,
)
from tarry.spark.jobs.rebalances import COLUMNS, RebalanceSums

STARTED = {"kind": "broker", "v": 1, "broker": 1, "what": "started"}


def began(
    at_ms: int, generation_id: int, reason: str, what: str = "RebalanceBegan"
) -> dict[str, object]:
    return note(at_ms, what, generation_id=generation_id, reason=reason)


def stable(
    at_ms: int, generation_id: int, stood_ms: int, count: int = 2
) -> list[dict[str, object]]:
    """The notes that a rebalance ends with."""
    told = {"protocol_name": "range", "leader_id": "a", "member_count": count}
    return [
        note(at_ms, "GenerationBegan", generation_id=generation_id, **told),
        note(at_ms, "BecameStable", generation_id=generation_id, stood_ms=stood_ms),
    ]


def removed(at_ms: int, member: str, reason: str) -> dict[str, object]:
    told = {"instance_id": None, "client_id": "app", "client_host": "/127.0.0.1"}
    return note(at_ms, "MemberRemoved", member_id=member, reason=reason, silent_ms=45_000, **told)


def two_members_one_dies() -> RebalanceSums:
    return gathered(
        [
            began(NOON_MS, 0, "member a joined"),
            began(NOON_MS + 100, 0, "member b joined", "RoundChanged"),
            *stable(NOON_MS + 3_000, 1, 3_000),
            removed(NOON_MS + 60_000, "b", "its session ended"),
            began(NOON_MS + 60_000, 1, "member b was removed: its session ended"),
            *stable(NOON_MS + 60_050, 2, 50, 1),
        ]
    )


def test_a_rebalance_has_its_cause_and_how_long_the_group_stood_still() -> None:
    first, second = two_members_one_dies().rebalances

    assert (first.cause, first.began_ms, first.stood_ms) == ("a member joined", NOON_MS, 3_000)
    assert (first.ended, first.generation_before, first.generation, first.members) == (
        STABLE,
        0,
        1,
        2,
    )
    assert (second.cause, second.stood_ms) == (A_DEATH, 50)
    assert second.notes[0] == "b was removed: its session ended"


def test_members_have_their_time_and_how_long_they_stood_still() -> None:
    found = two_members_one_dies()

    members = {one.member: one for one in found.members}
    dead, alive = members["b"], members["a"]
    assert (dead.joined_ms, dead.ended_ms, dead.end) == (NOON_MS + 100, NOON_MS + 60_000, "died")
    assert (dead.client, dead.stood_ms, dead.rebalances) == ("app", 2_900, 2)
    assert (alive.joined_ms, alive.ended_ms, alive.end) == (NOON_MS, None, "")
    assert (alive.stood_ms, alive.rebalances) == (3_050, 2)
    assert (found.groups[0].died, found.groups[0].stood_ms) == (1, 3_050)


def test_a_rebalance_that_began_before_the_log_is_measured_by_its_end() -> None:
    (one,) = gathered(stable(NOON_MS + 500, 7, 400)).rebalances

    assert (one.began_ms, one.stood_ms, one.generation, one.reason) == (NOON_MS + 100, 400, 7, "")


def test_a_rebalance_that_is_under_way_stands_until_the_end_of_the_log() -> None:
    found = gathered(
        [
            began(NOON_MS, 3, "left: a"),
            note(NOON_MS + 70, "AssignmentMissing", group="other", member_ids=["x"]),
        ]
    )

    (one,) = found.rebalances
    assert (one.ended, one.stood_ms, one.cause) == (UNDER_WAY, 70, A_LEAVE)


def test_a_rebalance_ends_when_nobody_is_left_or_the_broker_ended() -> None:
    empty = gathered(
        [began(NOON_MS, 3, "left: a"), note(NOON_MS + 5, "BecameEmpty", generation_id=4)]
    )
    cut = gathered([began(NOON_MS, 3, "left: a"), {**STARTED, "at_ms": NOON_MS + 9_000}])
    elsewhere = gathered(
        [began(NOON_MS, 3, "left: a"), {**STARTED, "broker": 2, "at_ms": NOON_MS + 9_000}]
    )

    assert [one.ended for one in empty.rebalances] == [EMPTY]
    assert [one.ended for one in cut.rebalances] == [CUT_OFF]
    assert cut.groups[0].stood_ms == 0
    assert [one.ended for one in elsewhere.rebalances] == [UNDER_WAY]


def test_a_static_member_has_one_name_whatever_its_id() -> None:
    found = gathered(
        [
            began(NOON_MS, 0, "member a of instance east joined"),
            *stable(NOON_MS + 10, 1, 10, 1),
            began(NOON_MS + 100, 1, "member a2 of instance east came back: restarted"),
            *stable(NOON_MS + 110, 2, 10, 1),
        ]
    )

    assert [one.member for one in found.members] == ["east"]
    assert [one.cause for one in found.rebalances] == ["a member joined", "a member came back"]


def test_an_id_with_which_nobody_came_is_no_member() -> None:
    found = gathered(
        [{**removed(NOON_MS, "x", "it left"), "note": {"member_id": "x", "client_id": ""}}]
    )

    assert (found.members, found.rebalances) == ([], [])


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("member left-over-1 joined", "a member joined"),
        ("member a joined: the app said: left: b", "a member joined"),
        ("member a changed", "a member changed"),
        ("member a joined again: rebalance enforced", "the leader joined again"),
        ("removed because they did not sync: a, b", NO_SYNC),
        ("member a was removed: its first join was not answered in time", A_DEATH),
        ("the assignment could not be stored: NOT_COORDINATOR", OTHER),
        ("", OTHER),
    ],
)
def test_a_cause_is_read_from_the_brokers_words(reason: str, cause: str) -> None:
    assert cause_of(reason) == cause


def test_groups_are_chosen() -> None:
    told = [*stable(NOON_MS, 1, 5), {**stable(NOON_MS, 1, 5)[1], "group": "other"}]

    found = gathered(told, groups=("other",))

    assert [row.group for row in found.groups] == ["other"]


@given(st.lists(st.sampled_from(["join", "die", "leave", "empty", "stable", "start"]), max_size=40))
def test_no_order_of_notes_breaks_a_story(steps: list[str]) -> None:
    told: list[dict[str, object]] = []
    for place, step in enumerate(steps):
        at_ms = NOON_MS + place * 10
        told += {
            "join": [began(at_ms, place, f"member m{place % 5} joined")],
            "die": [removed(at_ms, f"m{place % 5}", "its session ended")],
            "leave": [removed(at_ms, f"m{place % 5}", "it left")],
            "empty": [note(at_ms, "BecameEmpty", generation_id=place)],
            "stable": stable(at_ms, place, 3),
            "start": [{**STARTED, "at_ms": at_ms}],
        }[step]

    found = gathered(told)

    times = {
        one: (one.joined_ms or NOON_MS, one.ended_ms or NOON_MS + 400) for one in found.members
    }
    assert all(joined <= ended for joined, ended in times.values())
    assert all(0 <= one.stood_ms <= 400 for one in found.rebalances)
    assert sum(row.died for row in found.groups) <= steps.count("die")


spans = st.tuples(st.integers(0, 60), st.integers(0, 20))


@given(st.lists(spans, max_size=12), st.lists(spans, min_size=1, max_size=4))
def test_a_member_stood_still_in_every_rebalance_of_its_time(
    rebalances: list[tuple[int, int]], members: list[tuple[int, int]]
) -> None:
    """The calendar may step, so rebalances may overlap and stand in any order."""
    told: list[dict[str, object]] = [
        event
        for number, (at_ms, stood_ms) in enumerate(rebalances)
        for event in stable(NOON_MS + at_ms, number, stood_ms)
    ]
    for number, (at_ms, stayed_ms) in enumerate(members):
        told.append(began(NOON_MS + at_ms, 0, f"member m{number} joined"))
        told.append(note(NOON_MS + at_ms, "BecameStable", generation_id=0, stood_ms=0))
        told.append(removed(NOON_MS + at_ms + stayed_ms, f"m{number}", "it left"))

    found = gathered(told)

    for one in found.members:
        since_ms = one.joined_ms or 0
        ended_ms = one.ended_ms or max(int(str(event["at_ms"])) for event in told)
        beside = [
            min(each.ended_ms, ended_ms) - max(each.began_ms, since_ms)
            for each in found.rebalances
            if each.began_ms <= ended_ms and each.ended_ms >= since_ms
        ]
        assert (one.rebalances, one.stood_ms) == (len(beside), sum(beside))


def test_a_table_has_its_columns_without_rows_too() -> None:
    pytest.importorskip("pyarrow")

    assert gathered([]).table().column_names == list(COLUMNS)
    assert two_members_one_dies().table().to_pylist()[1]["cause"] == A_DEATH


@pytest.mark.parametrize(
    "change",
    [
        {"at_ms": 10**18},
        {"note": {"generation_id": 2**70}},
        {"note": {"stood_ms": 10**18}},
        {"note": {"stood_ms": -1}},
        {"note": {"parts": [2**70]}},
    ],
)
def test_what_no_broker_tells_is_passed_over(change: dict[str, object]) -> None:
    began = note(NOON_MS, "RebalanceBegan", reason="member a joined")
    stable = note(NOON_MS + 1, "BecameStable", stood_ms=1, generation_id=True)

    found = gathered([began, {**stable, **change}, stable])

    assert (found.tally.events, found.tally.passed_over) == (2, 1)
    (row,) = found.table().to_pylist()
    assert (row["ended"], row["stood_ms"], row["generation"]) == ("stable", 1, None)

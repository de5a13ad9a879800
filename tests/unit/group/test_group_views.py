"""Groups as an operator sees them."""

from __future__ import annotations

import pytest
from tests.support.group_scene import BOTH, KINDS, Scene

from tarry.group.classic.kind import CLASSIC
from tarry.group.offsets.records import OffsetCommitted
from tarry.group.state import Groups
from tarry.group.views import (
    DescribedGroup,
    DescribedMember,
    GroupListing,
    without_case,
)


def working() -> tuple[Scene, str]:
    scene = Scene()
    member_id = scene.static_member("i", client_id="reader")
    scene.advance(3_000)
    scene.sync_all()
    return scene, member_id


def test_a_stable_group_is_described_with_its_protocol_and_assignments() -> None:
    scene, member_id = working()

    assert CLASSIC.described(scene.group) == DescribedGroup(
        "g",
        "Stable",
        "consumer",
        "range",
        (
            DescribedMember(
                member_id, "i", "reader", "/10.0.0.1", BOTH[0][1], f"{member_id}'s".encode()
            ),
        ),
    )


def test_while_members_join_no_protocol_is_named() -> None:
    scene, _ = working()
    scene.static_member("j")
    found = CLASSIC.described(scene.group)

    assert (found.state, found.protocol_name) == ("PreparingRebalance", "")
    assert [each.instance_id for each in found.members] == ["i", "j"]
    assert all(each.metadata == b"" for each in found.members)


def test_an_id_that_was_given_out_is_no_member() -> None:
    scene, member_id = working()
    scene.join()

    assert [each.member_id for each in CLASSIC.described(scene.group).members] == [member_id]


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ([], [], ["g", "offsets"]),
        (["Stable"], [], ["g"]),
        (["EMPTY", "dead"], [], ["offsets"]),
        (["Sleeping"], [], []),
        ([], ["Classic"], ["g", "offsets"]),
        ([], ["consumer", "share"], []),
        (["stable"], ["classic", "consumer"], ["g"]),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: list[str], types: list[str], found: list[str]
) -> None:
    scene, _ = working()
    scene.groups.apply(OffsetCommitted("offsets", topic="t", partition=0, offset=1))

    groups = scene.groups.listed(without_case(states), without_case(types))

    assert [each.group_id for each in groups] == found


def test_a_listed_group_says_its_protocol_type_and_state() -> None:
    scene, _ = working()

    assert scene.groups.listed({}, {}) == [GroupListing("g", "consumer", "Stable", "classic")]
    assert Groups(KINDS).listed({}, {}) == []

"""Bad input: each is answered with Kafka's error, and the group goes on."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from tests.support.group_scene import RANGE, Scene

from tarry.base import errors
from tarry.base.ids import random_uuid
from tarry.base.limits import GROUP_METADATA_BYTES_MAX
from tarry.group.classic import round
from tarry.group.classic.requests import JoinAnswer, LeavingMember
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from tarry.group.notes import MemberRemoved
from tarry.group.offsets.requests import CommitAnswer, CommitPartition
from tarry.group.requests import Answer, GroupSettings

MIB = 1 << 20


def test_an_empty_group_id_is_refused() -> None:
    scene = Scene(group_id="")

    tickets = [
        scene.join(),
        scene.sync("a", 1),
        scene.heartbeat("a", 1),
        scene.leave(LeavingMember("a")),
    ]

    assert [scene.error(each) for each in tickets] == ["INVALID_GROUP_ID"] * 4


def test_a_group_id_that_no_record_can_hold_is_refused() -> None:
    scene = Scene(group_id="é" * 16_384)

    assert scene.error(scene.join()) == "INVALID_GROUP_ID"


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1, 2**31 - 1])
def test_a_session_time_out_outside_its_bounds_is_refused(session_ms: int) -> None:
    scene = Scene()

    assert scene.error(scene.join(session_ms=session_ms)) == "INVALID_SESSION_TIMEOUT"


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_a_session_time_out_are_allowed(session_ms: int) -> None:
    scene = Scene()

    assert scene.error(scene.join(session_ms=session_ms)) == "MEMBER_ID_REQUIRED"


@pytest.mark.parametrize("rebalance_ms", [-1, 0])
def test_who_leaves_no_time_for_a_rebalance_is_dropped_at_once(rebalance_ms: int) -> None:
    scene = Scene()
    ticket = scene.join(version=3, rebalance_ms=rebalance_ms)

    scene.advance(3_000)

    assert scene.error(ticket) == "NONE"
    assert scene.group.round.phase == EMPTY


def test_the_longest_rebalance_time_out_is_taken_as_kafka_takes_it() -> None:
    scene = Scene()

    scene.join(version=3, rebalance_ms=2**31 - 1)
    scene.advance(3_000)

    assert scene.group.round.phase == COMPLETING_REBALANCE
    assert scene.group.round.sync_deadline_ms == 3_000 + 2**31 - 1


def test_no_protocols_or_no_protocol_type_are_refused() -> None:
    scene = Scene()

    assert scene.error(scene.join(protocols=())) == "INCONSISTENT_GROUP_PROTOCOL"
    assert scene.error(scene.join(protocol_type="")) == "INCONSISTENT_GROUP_PROTOCOL"


def test_ten_thousand_protocols_are_voted_on() -> None:
    scene = Scene()
    protocols = tuple((f"p{index}", b"") for index in range(10_000))

    for _ in range(3):
        scene.join(version=3, protocols=protocols)
    scene.join(version=3, protocols=(("p9999", b""),))
    scene.advance(6_000)

    assert scene.group.round.protocol_name == "p9999"


def test_a_protocol_that_is_named_twice_counts_once() -> None:
    scene = Scene()

    scene.join(version=3, protocols=(("range", b"1"), ("range", b"2")))
    scene.join(version=3, protocols=RANGE)
    scene.advance(6_000)

    assert scene.group.round.protocol_counts == {"range": 2}
    leader = next(iter(scene.group.round.members.values()))
    assert leader.metadata("range") == b"1"


def test_names_that_no_record_can_hold_are_refused() -> None:
    scene = Scene()
    long = "x" * 32_768

    assert scene.error(scene.join(protocols=((long, b""),))) == "INCONSISTENT_GROUP_PROTOCOL"
    assert scene.error(scene.join("", long)) == "INVALID_REQUEST"
    assert scene.error(scene.join(client_id=long)) == "INVALID_REQUEST"


def test_a_client_with_the_longest_name_there_can_be_joins_and_is_recorded() -> None:
    scene = Scene()
    member_id = scene.new_member(client_id="x" * 32_767)
    scene.advance(3_000)
    scene.sync_all()

    assert scene.group.round.phase == STABLE
    assert len(member_id) < 2_000


def test_metadata_of_12_megabytes_is_the_logs_to_refuse() -> None:
    scene = Scene()
    scene.join(version=3, protocols=(("range", bytes(12_000_000)),))
    scene.advance(3_000)
    leader_id = scene.group.round.leader_id
    assert leader_id is not None
    scene.holds = True
    ticket = scene.sync(leader_id)

    scene.fail(errors.MESSAGE_TOO_LARGE)

    assert scene.error(ticket) == "UNKNOWN_SERVER_ERROR"


@pytest.mark.interpreted
def test_a_client_that_asks_for_ids_in_a_loop_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    monkeypatch.setattr("tarry.group.classic.joining.PENDING_MEMBERS_MAX", 10)

    first = scene.answers[scene.join()]
    for _ in range(30):
        scene.join()

    assert isinstance(first, JoinAnswer)
    assert len(scene.group.round.pending_members) == 10
    assert len(scene.group.heartbeats) == 10
    assert scene.error(scene.join(first.member_id)) == "UNKNOWN_MEMBER_ID"
    assert round.PENDING_MEMBERS_MAX >= 1_000


def test_ids_that_were_given_out_and_not_used_are_forgotten_with_their_group() -> None:
    scene = Scene()
    for _ in range(100):
        scene.join(session_ms=6_000)

    scene.advance(6_000)

    assert not scene.groups.by_id


def test_a_member_that_was_removed_is_noted_once_with_what_is_known_of_it() -> None:
    scene = Scene()
    scene.join("", "i", client_id="reader")
    scene.advance(3_000)
    scene.sync_all()
    member_id = scene.group.round.static_members["i"]
    scene.advance(1_000)
    scene.heartbeat(member_id, 1, "i")
    scene.advance(10_000)

    removed = [each for each in scene.notes if isinstance(each, MemberRemoved)]
    assert removed == [
        MemberRemoved(
            member_id,
            "i",
            "reader",
            "/10.0.0.1",
            "its session ended",
            10_000,
            "the group is empty",
        )
    ]


def test_a_heartbeat_operation_that_is_late_removes_nobody_who_was_heard_since() -> None:
    scene = Scene()
    member_id = scene.static_member("i")
    scene.advance(3_000)
    scene.sync_all()
    scene.advance(9_000)
    scene.heartbeat(member_id, 1, "i")

    scene.expire("session", member_id)
    scene.expire("join", "")
    scene.expire("sync", "")

    assert member_id in scene.group.round.members
    assert scene.group.round.phase == STABLE


def test_a_member_id_names_its_client_and_is_a_uuid() -> None:
    scene = Scene()
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

    dynamic = scene.new_member(client_id="reader")
    static = scene.static_member("shelf")

    assert re.fullmatch(f"reader-{uuid}", dynamic)
    assert re.fullmatch(f"shelf-{uuid}", static)
    assert len({random_uuid(scene.random) for _ in range(100)}) == 100


def test_a_limit_of_one_member_holds() -> None:
    scene = Scene()
    scene.settings = replace(scene.settings, group_max_size=1)
    tickets = [scene.join(version=3) for _ in range(3)]
    scene.advance(3_000)

    assert [scene.error(each) for each in tickets] == [
        "NONE",
        "GROUP_MAX_SIZE_REACHED",
        "GROUP_MAX_SIZE_REACHED",
    ]


def test_a_full_group_turns_a_static_member_without_its_id_away_as_kafka_does() -> None:
    scene = Scene()
    scene.settings = replace(scene.settings, group_max_size=1)
    member_id = scene.static_member("i")
    scene.advance(3_000)
    scene.sync_all()

    assert scene.error(scene.join("", "i")) == "GROUP_MAX_SIZE_REACHED"
    assert scene.error(scene.join(member_id, "i")) == "NONE"


# -- what a group holds in memory

LARGE = (("range", bytes(10 * MIB)),)


def test_metadata_of_members_together_is_bounded() -> None:
    scene = Scene()
    first = scene.join(version=3, protocols=LARGE)

    second = scene.join(version=3, protocols=LARGE)
    scene.advance(3_000)

    assert scene.error(second) == "GROUP_MAX_SIZE_REACHED"
    assert "bytes of metadata together" in scene.answers[second].reason
    assert scene.error(first) == "NONE"
    assert len(scene.group.round.members) == 1
    assert scene.group.metadata_size <= GROUP_METADATA_BYTES_MAX


def test_a_member_that_joins_again_with_as_much_is_let_in_though_the_group_is_full() -> None:
    scene = Scene()
    scene.static_member("a", protocols=(("range", bytes(9 * MIB)),))
    other = scene.static_member("b", protocols=(("range", bytes(7 * MIB - 1_000)),))

    again = scene.join(other, "b", protocols=(("range", b"x" * (7 * MIB - 1_000)),))
    more = scene.join("", "a", protocols=(("range", bytes(9 * MIB + 1_000)),))

    assert scene.answer(again) is None
    assert scene.error(more) == "GROUP_MAX_SIZE_REACHED"


def test_metadata_is_counted_of_all_protocols_of_a_member() -> None:
    protocols = tuple((f"p{number}", bytes(MIB)) for number in range(20))

    scene = Scene()

    assert scene.error(scene.join(protocols=protocols)) == "GROUP_MAX_SIZE_REACHED"


def test_an_assignment_beyond_the_groups_metadata_is_refused_and_all_rejoin() -> None:
    scene = Scene()
    leader_id = scene.new_member()
    scene.advance(3_000)

    ticket = scene.sync(leader_id, assignments=((leader_id, bytes(GROUP_METADATA_BYTES_MAX)),))

    assert scene.error(ticket) == "UNKNOWN_SERVER_ERROR"
    assert scene.group.round.phase == PREPARING_REBALANCE


def commit_codes(answer: Answer) -> tuple[int, ...]:
    assert isinstance(answer, CommitAnswer)
    return answer.partition_error_codes


def test_texts_of_offsets_are_bounded_on_their_way_and_in_place() -> None:
    settings = GroupSettings(offset_metadata_max_bytes=2**31 - 1)
    scene = Scene(settings)
    scene.holds = True
    text = "x" * 30_000

    for _ in range(2):
        tickets = [
            scene.commit_offsets(partitions=(CommitPartition("t", index, 1, metadata=text),))
            for index in range(600)
        ]
        assert scene.group.metadata_size <= GROUP_METADATA_BYTES_MAX
        refused = [scene.answers[each] for each in tickets if each in scene.answers]
        assert commit_codes(refused[-1]) == (errors.OFFSET_METADATA_TOO_LARGE,)
        scene.commit()
    bare = scene.commit_offsets(partitions=(CommitPartition("t", 1, 2),))
    scene.commit()

    assert commit_codes(scene.answers[bare]) == (errors.NONE,)
    assert scene.group.metadata_size <= GROUP_METADATA_BYTES_MAX - len(text)

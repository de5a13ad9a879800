"""Who reads what, and what members say: against what Kafka's own classes print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.assignor import (
    Assignor,
    PreviousAssignment,
    told_user_data,
)
from tarry.client.core.group.assignment.assignors import (
    ASSIGNORS,
    assign,
    choose_assignors,
    parse_assignors,
)
from tarry.client.core.group.assignment.consumer_protocol import (
    SubscribedMember,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    write_places,
)
from tarry.client.core.group.assignment.sticky import remembered, sticky_user_data
from tarry.client.errors import AssignorFailed
from tarry.wire.reader import MalformedData
from tarry.wire.writer import Writer

# Written by tests/interop/java/Assignors.java with Kafka's jars; test_assignors_of_kafka does it
# again and compares.
GOLDEN = Path(__file__).with_name("golden") / "assignors.jsonl"
CASES = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
BYTES = [case for case in CASES if "bytes" in case]
GIVEN = [case for case in CASES if "given" in case and "racks" not in case]
NEAR = [case for case in CASES if "racks" in case]

OWNED: list[TopicPartition] = [("b", 1), ("a", 3), ("b", 0)]
SAID = Subscription(["b", "a"], b"\x00\x00\x00\x07", OWNED, 7, "r1")

FOUR = {"t": 4}

DEFAULT = "range,cooperative-sticky"


def members(*names: str, topics: list[str] | None = None) -> list[SubscribedMember]:
    return [SubscribedMember(name, None, Subscription(topics or ["t"])) for name in names]


def places(*indexes: int) -> list[TopicPartition]:
    return [("t", index) for index in indexes]


def one_of(case: Any, assignor: str) -> SubscribedMember:
    member_id, instance_id, topics, owned, generation_id = case
    pairs = [(str(topic), int(index)) for topic, index in owned]
    if assignor == "sticky":
        memory = sticky_user_data(PreviousAssignment(pairs, generation_id))
        said = Subscription(topics, memory, [], generation_id)
        return SubscribedMember(member_id, instance_id, said)
    return SubscribedMember(
        member_id, instance_id, Subscription(topics, None, pairs, generation_id)
    )


def with_rack(member: SubscribedMember, rack: str | None) -> SubscribedMember:
    return member._replace(subscription=member.subscription._replace(rack_id=rack))


# --- Bytes


@pytest.mark.parametrize("case", BYTES, ids=lambda case: f"{case['bytes']} {case['version']}")
def test_what_a_member_says_is_byte_for_byte_what_kafka_says(case: Any) -> None:
    version = case["version"]
    newest = {} if version < 0 else {"version": version}
    said = {
        "subscription": lambda: encode_subscription(SAID, **newest),
        "bare subscription": lambda: encode_subscription(Subscription(["a"]), **newest),
        "assignment": lambda: encode_assignment(OWNED, **newest),
        "sticky user data": lambda: sticky_user_data(PreviousAssignment(OWNED, 7)),
        "sticky user data of nothing": lambda: sticky_user_data(PreviousAssignment([], 8)),
        "newest subscription": lambda: encode_subscription(Subscription(["a"])),
        "newest assignment": lambda: encode_assignment(OWNED),
    }[case["bytes"]]()

    assert said is not None
    assert said.hex() == case["hex"]


@pytest.mark.parametrize("version", range(4))
def test_what_was_said_is_read_as_far_as_its_version_says_it(version: int) -> None:
    read = decode_subscription(encode_subscription(SAID, version))

    assert read.topics == ["a", "b"]
    assert read.user_data == SAID.user_data
    assert read.owned == (sorted(OWNED) if version >= 1 else [])
    assert read.generation_id == (7 if version >= 2 else -1)
    assert read.rack_id == ("r1" if version >= 3 else None)


def test_a_newer_subscription_is_read_as_far_as_it_is_known() -> None:
    newer = b"\x00\x09" + encode_subscription(SAID)[2:] + b"what comes later"

    assert decode_subscription(newer).rack_id == "r1"


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert decode_assignment(b"") == []


@pytest.mark.parametrize("cut", range(2, 45, 3))
def test_what_ends_too_soon_is_no_subscription(cut: int) -> None:
    with pytest.raises(MalformedData):
        decode_subscription(encode_subscription(SAID)[:cut])


def test_a_count_beyond_the_bytes_that_are_there_allocates_nothing() -> None:
    with pytest.raises(MalformedData):
        decode_assignment(b"\x00\x00\x7f\xff\xff\xff")


# --- Assignments


@pytest.mark.parametrize("number", range(len(GIVEN)))
def test_the_same_group_is_given_what_kafka_gives_it(number: int) -> None:
    case = GIVEN[number]
    group = [one_of(member, case["assignor"]) for member in case["members"]]
    is_mixed = any(member[2] != case["members"][0][2] for member in case["members"])

    given = ASSIGNORS[case["assignor"]].assign(group, case["counts"])

    expected = {key: [(str(t), int(i)) for t, i in value] for key, value in case["given"].items()}
    if is_mixed and "sticky" in case["assignor"]:
        # Which partitions each reads is the same; the order in which they are named is not.
        given = {key: sorted(value) for key, value in given.items()}
        expected = {key: sorted(value) for key, value in expected.items()}
    assert given == expected


@pytest.mark.parametrize("number", range(len(NEAR)))
def test_a_group_with_racks_is_given_what_kafka_gives_it(number: int) -> None:
    case = NEAR[number]
    group = [
        with_rack(one_of(member, case["assignor"]), rack)
        for member, rack in zip(case["members"], case["member_racks"], strict=True)
    ]
    racks = {
        (topic, index): tuple(held)
        for topic, partitions in case["racks"].items()
        for index, held in enumerate(partitions)
    }

    given = assign(ASSIGNORS[case["assignor"]], group, case["counts"], racks)

    expected = {key: [(str(t), int(i)) for t, i in value] for key, value in case["given"].items()}
    assert given == expected


def test_in_range_the_first_members_take_the_surplus() -> None:
    given = ASSIGNORS["range"].assign(members("c0", "c1", "c2"), FOUR)

    assert given == {"c0": places(0, 1), "c1": places(2), "c2": places(3)}


@pytest.mark.parametrize("name", ["roundrobin", "cooperative-sticky"])
def test_the_first_time_partitions_are_dealt_in_turn(name: str) -> None:
    given = ASSIGNORS[name].assign(members("c0", "c1", "c2"), FOUR)

    assert given == {"c0": places(0, 3), "c1": places(1), "c2": places(2)}


def test_who_lives_keeps_what_he_has_when_another_dies() -> None:
    living = [
        SubscribedMember("c0", None, Subscription(["t"], None, places(0, 3), 1)),
        SubscribedMember("c2", None, Subscription(["t"], None, places(2), 1)),
    ]

    given = ASSIGNORS["cooperative-sticky"].assign(living, FOUR)

    assert given == {"c0": places(0, 3), "c2": places(2, 1)}


def test_what_moves_is_withheld_until_it_was_given_up() -> None:
    old = SubscribedMember("c0", None, Subscription(["t"], None, places(0, 1, 2, 3), 1))
    new = SubscribedMember("c1", None, Subscription(["t"]))

    first = ASSIGNORS["cooperative-sticky"].assign([old, new], FOUR)
    gave_up = SubscribedMember("c0", None, Subscription(["t"], None, first["c0"], 2))
    second = ASSIGNORS["cooperative-sticky"].assign([gave_up, new], FOUR)

    assert first == {"c0": places(0, 1), "c1": []}
    assert second == {"c0": places(0, 1), "c1": places(2, 3)}


def test_a_claim_of_an_older_generation_loses() -> None:
    stale = SubscribedMember("c0", None, Subscription(["t"], None, places(0, 1), 3))
    fresh = SubscribedMember("c1", None, Subscription(["t"], None, places(0, 1), 5))

    given = ASSIGNORS["cooperative-sticky"].assign([stale, fresh], {"t": 2})

    # One of the two moves to the stale one, but only when its owner has given it up.
    assert given == {"c0": [], "c1": places(0)}


def test_what_two_claim_for_one_generation_is_given_to_neither_at_first() -> None:
    both = [
        SubscribedMember(n, None, Subscription(["t"], None, places(0), 3)) for n in ("c0", "c1")
    ]

    given = ASSIGNORS["cooperative-sticky"].assign(both, {"t": 1})

    assert given == {"c0": [], "c1": []}


def test_an_old_client_tells_its_generation_in_its_user_data() -> None:
    stale = SubscribedMember("c0", None, Subscription(["t"], b"\0\0\0\3", places(0)))
    fresh = SubscribedMember("c1", None, Subscription(["t"], b"\0\0\0\5", places(0)))

    given = ASSIGNORS["cooperative-sticky"].assign([stale, fresh], {"t": 1})

    assert given == {"c0": [], "c1": places(0)}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_member_too_many_idles(name: str) -> None:
    given = ASSIGNORS[name].assign(members("a", "b", "c", "d", "e"), FOUR)

    assert given["e"] == []
    assert sum(len(one) for one in given.values()) == 4


@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_topic_that_is_not_there_gives_nothing(name: str) -> None:
    assert ASSIGNORS[name].assign(members("a"), {}) == {"a": []}


def test_a_member_of_the_first_sticky_version_told_no_generation() -> None:
    writer = Writer()
    write_places(writer, places(1, 0))

    assert remembered(writer.joined()) == PreviousAssignment(places(1, 0), -1)


@pytest.mark.parametrize("told", [None, b"", b"\0", b"weights of another assignor"])
def test_user_data_that_no_sticky_member_wrote_is_no_memory(told: bytes | None) -> None:
    assert remembered(told) == PreviousAssignment()


# --- Own assignors


def own(given: Any, **settings: Any) -> Assignor:
    """An assignor that gives this, or calls it."""
    return Assignor("own", given if callable(given) else lambda members, counts: given, **settings)


def fail(*arguments: Any) -> Any:
    raise ZeroDivisionError("no weights")


def test_an_own_assignor_gets_the_members_and_the_counts_and_its_word_counts() -> None:
    def to_the_last(members: Any, counts: Any) -> Any:
        given = {member.member_id: () for member in members}
        return {**given, members[-1].member_id: places(*range(counts["t"]))}

    given = assign(own(to_the_last), members("c0", "c1"), FOUR)

    assert given == {"c0": [], "c1": places(0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (fail, "assign of assignor own raised ZeroDivisionError: no weights"),
        (None, "returned None: return partitions by member id"),
        ({"c0": 7, "c1": []}, "return partitions by member id"),
        ({"c0": places(0, 1)}, "forgot member c1: give an empty list"),
        ({"c0": places(0, 1), "c1": [], "x": []}, "named 'x', which is no member"),
        ({"c0": places(0), "c1": []}, r"forgot partition t \[1\]: give each to one member"),
        ({"c0": places(0, 1), "c1": places(1)}, r"gave t \[1\] to both c0 and c1"),
        ({"c0": places(0, 1, 2), "c1": []}, r"gave t \[2\], which is not there: t has 2 part"),
        ({"c0": places(-1), "c1": []}, r"gave t \[-1\], which is not there"),
        ({"c0": [("u", 0)], "c1": []}, r"gave u \[0\], which is not there: u has 0 partitions"),
        ({"c0": ["t-0"], "c1": []}, "gave 't-0', which is no partition"),
        ({"c0": [], "c1": places(0, 1)}, "to member c1, which is not subscribed to t"),
    ],
)
def test_what_an_own_assignor_does_wrong_is_told(given: Any, sentence: str) -> None:
    group = [*members("c0"), *members("c1", topics=["u"])]
    group = members("c0", "c1") if "subscribed" not in sentence else group

    with pytest.raises(AssignorFailed, match=sentence):
        assign(own(given), group, {"t": 2})


def test_what_an_own_cooperative_assignor_moves_is_held_back_until_it_was_given_up() -> None:
    old = SubscribedMember("c0", None, Subscription(["t"], None, places(0, 1), 1))
    moving = own({"c0": places(0), "c1": places(1)}, is_cooperative=True)

    assert assign(moving, [old, *members("c1")], {"t": 2}) == {"c0": places(0), "c1": []}


def test_an_own_assignor_tells_the_leader_what_it_likes() -> None:
    weighted = own({}, user_data=lambda previous: b"%d" % len(previous.places))

    assert told_user_data(weighted, PreviousAssignment(places(0, 1), 3)) == b"2"
    with pytest.raises(AssignorFailed, match="user_data of assignor own raised ZeroDivisionError"):
        told_user_data(own({}, user_data=fail), PreviousAssignment())
    with pytest.raises(AssignorFailed, match="return bytes or None"):
        told_user_data(own({}, user_data=lambda previous: 7), PreviousAssignment())  # type: ignore[arg-type,return-value]


# --- Settings


def test_assignors_are_chosen_by_setting_or_given_beside_names() -> None:
    mine = own({})

    assert [one.name for one in choose_assignors("roundrobin")] == ["roundrobin"]
    assert choose_assignors(DEFAULT, [mine, "range"]) == [mine, ASSIGNORS["range"]]


@pytest.mark.parametrize(
    ("text", "given", "error", "sentence"),
    [
        ("roundrobin", [own({})], InvalidSetting, "given twice, by partition.assignment.strategy"),
        (DEFAULT, [], InvalidSetting, "assignors is empty"),
        (DEFAULT, "range", TypeError, "assignors takes a list such as"),
        (DEFAULT, [7], TypeError, "takes Assignors and names of Kafka's, not 7"),
        (DEFAULT, ["weighted"], InvalidSetting, "weighted is not one of range"),
        (DEFAULT, [own({}), own({})], InvalidSetting, "two assignors are named own"),
        (DEFAULT, ["range", "range"], InvalidSetting, "two assignors are named range"),
        (DEFAULT, [Assignor("range", fail)], InvalidSetting, "has the name of one of Kafka's"),
    ],
)
def test_assignors_that_cannot_be_meant_are_refused(
    text: str, given: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        choose_assignors(text, given)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("", fail), "takes its name as text"),
        ((7, fail), "takes its name as text"),
        (("own", 7), "assign of Assignor own is no function"),
    ],
)
def test_an_assignor_that_cannot_be_meant_is_refused(arguments: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        Assignor(*arguments)


def test_assignors_are_named_as_kafka_names_them_or_its_classes() -> None:
    named = "roundrobin, org.apache.kafka.clients.consumer.CooperativeStickyAssignor"

    assert [one.name for one in parse_assignors(named)] == ["roundrobin", "cooperative-sticky"]


def test_an_unknown_assignor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match="striky is not one of range, roundrobin"):
        parse_assignors("range,striky")


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("claimed", [("t", -1), ("t", -(2**31)), ("t", 2**31 - 1), ("other", 0)])
def test_a_member_that_claims_what_is_not_there_ends_no_leader(
    name: str, claimed: TopicPartition
) -> None:
    members = [
        SubscribedMember(member_id, None, Subscription(["t"], None, owned, 1))
        for member_id, owned in (("a", [claimed]), ("b", [("t", 0)]))
    ]

    found = assign(ASSIGNORS[name], members, {"t": 2})

    assert sorted(place for places in found.values() for place in places) == [("t", 0), ("t", 1)]

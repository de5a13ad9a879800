"""DescribeGroups and ListGroups: what an operator sees of a broker's groups, in every version."""

from __future__ import annotations

import pytest
from tests.support.broker.group_user import (
    READERS,
    GroupUser,
    Member,
    group_broker,
    stabilize,
    stable_group,
    subscription,
)

from tarry.base import errors
from tarry.broker.coordinator.groups.memory import NOTES_KEY
from tarry.group.classic.notes import AssignmentMissing, RebalanceBegan
from tarry.group.notes import MemberRemoved
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tarry.simulation.by_hand import BrokerByHand

# Kafka's bits of Read, Describe, Delete, DescribeConfigs and AlterConfigs.
GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED = -(2**31)


@pytest.fixture
def hand() -> BrokerByHand:
    """A broker with a group in every state that lasts."""
    hand = group_broker(offsets_topic_num_partitions="3")
    stable_group(hand, 2, "stable")
    preparing = stable_group(hand, 2, "preparing")
    preparing[0].send_join()
    completing = Member(hand, "completing")
    completing.join()
    GroupUser(hand).commit({0: 7}, "empty")
    Member(hand, "pending").get_id()
    connect = Member(hand, "workers", protocol_type="connect", protocols=(("default", b"\xff"),))
    stabilize(connect)
    return hand


def listed(
    hand: BrokerByHand, version: int, states: list[str], types: list[str]
) -> list[tuple[str, str, str, str]]:
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    user = GroupUser(hand)
    answer = user.request(ListGroupsResponse, api_keys.LIST_GROUPS, version, request)
    assert answer.error_code == errors.NONE
    return sorted(
        (each.group_id, each.protocol_type, each.group_state, each.group_type)
        for each in answer.groups
    )


@pytest.mark.parametrize("version", range(6))
def test_all_groups_of_all_partitions_are_listed(hand: BrokerByHand, version: int) -> None:
    whole = [
        ("completing", "consumer", "CompletingRebalance", "classic"),
        ("empty", "", "Empty", "classic"),
        ("pending", "", "Empty", "classic"),
        ("preparing", "consumer", "PreparingRebalance", "classic"),
        ("stable", "consumer", "Stable", "classic"),
        ("workers", "connect", "Stable", "classic"),
    ]

    found = listed(hand, version, [], [])

    assert found == [
        (name, kind, state if version >= 4 else "", sort if version >= 5 else "")
        for name, kind, state, sort in whole
    ]


@pytest.mark.parametrize(
    ("states", "names"),
    [
        (["Stable"], ["stable", "workers"]),
        (["stable", "EMPTY"], ["empty", "pending", "stable", "workers"]),
        (["PreparingRebalance", "CompletingRebalance"], ["completing", "preparing"]),
        (["Dead"], []),
        (["Fancy"], []),
    ],
)
def test_groups_are_listed_by_state(
    hand: BrokerByHand, states: list[str], names: list[str]
) -> None:
    assert [name for name, *_ in listed(hand, 4, states, [])] == names


@pytest.mark.parametrize(
    ("types", "count"), [(["classic"], 6), (["Classic", "consumer"], 6), (["consumer"], 0)]
)
def test_groups_are_listed_by_type(hand: BrokerByHand, types: list[str], count: int) -> None:
    assert len(listed(hand, 5, [], types)) == count


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_described_with_its_members(version: int) -> None:
    hand = group_broker()
    leader = Member(hand, instance_id="one")
    other = Member(hand)
    stabilize(leader, other)

    described = leader.describe(version=version)

    assert (described.error_code, described.group_id) == (errors.NONE, READERS)
    assert (described.group_state, described.protocol_type) == ("Stable", "consumer")
    assert described.protocol_data == "range"
    subscribed = subscription("orders")
    assert [
        (
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            each.member_metadata,
            each.member_assignment,
        )
        for each in described.members
    ] == [
        (
            leader.member_id,
            "one" if version >= 4 else None,
            "by-hand",
            "/10.0.0.1",
            subscribed,
            b"for 0",
        ),
        (other.member_id, None, "by-hand", "/10.0.0.1", subscribed, b"for 1"),
    ]


def test_while_it_rebalances_a_group_shows_members_and_no_protocol(hand: BrokerByHand) -> None:
    user = GroupUser(hand)

    found = [user.describe(group) for group in ("preparing", "completing")]

    assert [(each.group_state, each.protocol_data) for each in found] == [
        ("PreparingRebalance", ""),
        ("CompletingRebalance", ""),
    ]
    assert [len(each.members) for each in found] == [2, 1]
    assert {each.member_metadata for group in found for each in group.members} == {b""}


def test_an_id_that_was_given_out_is_no_member(hand: BrokerByHand) -> None:
    described = GroupUser(hand).describe("pending")

    assert (described.group_state, described.members) == ("Empty", [])


@pytest.mark.parametrize("version", range(7))
def test_an_unknown_group_is_dead_and_from_version_6_on_an_error(version: int) -> None:
    described = GroupUser(group_broker()).describe("nobody", version=version)

    assert described.group_state == "Dead"
    if version >= 6:
        assert described.error_code == errors.GROUP_ID_NOT_FOUND
        assert described.error_message == "Group nobody not found."
    else:
        assert described.error_code == errors.NONE


def test_several_groups_are_described_once_each_in_the_order_of_their_names_in_the_request(
    hand: BrokerByHand,
) -> None:
    request = DescribeGroupsRequest(groups=["workers", "nobody", "empty", "workers"])

    answer = GroupUser(hand).request(DescribeGroupsResponse, api_keys.DESCRIBE_GROUPS, 6, request)

    assert [each.group_id for each in answer.groups] == ["workers", "nobody", "empty"]
    assert [each.group_state for each in answer.groups] == ["Stable", "Dead", "Empty"]


@pytest.mark.parametrize(("asks", "operations"), [(True, GROUP_OPERATIONS), (False, NOT_ASKED)])
def test_operations_are_told_to_who_asks(hand: BrokerByHand, asks: bool, operations: int) -> None:
    request = DescribeGroupsRequest(groups=["stable"], include_authorized_operations=asks)

    answer = GroupUser(hand).request(DescribeGroupsResponse, api_keys.DESCRIBE_GROUPS, 6, request)

    assert answer.groups[0].authorized_operations == operations


def test_notes_of_long_names_and_many_members_stay_short_and_can_be_described() -> None:
    hand = group_broker()
    history = hand.broker.groups.history
    names = tuple(f"{number}" * 900 for number in range(2_000))
    long = "\x01" * 40_000

    history.note(
        READERS,
        [
            AssignmentMissing(names),
            MemberRemoved(long, long, long, long, long, 1, long),
            RebalanceBegan(1, long),
        ],
    )

    asked = DescribeConfigsResource(32, READERS, [NOTES_KEY])
    answer = hand.connect().ask(api_keys.DESCRIBE_CONFIGS, 1, DescribeConfigsRequest([asked]))
    assert isinstance(answer, DescribeConfigsResponse)
    sizes = [len(each.value or "") for each in answer.results[0].configs]
    assert len(sizes) >= 4
    assert max(sizes) < 32_768
    assert "and 1990 others" in "".join(each.value or "" for each in answer.results[0].configs)


def test_the_reason_of_a_member_is_kept_as_far_as_kafkas_clients_send_it() -> None:
    hand = group_broker()
    member = Member(hand, instance_id="i")
    request = member.join_request()
    request.reason = "r" * 1_000

    member.client.ask(api_keys.JOIN_GROUP, 9, request)

    notes = [note for _, _, note in hand.broker.groups.history.notes(READERS)]
    began = next(each for each in notes if isinstance(each, RebalanceBegan))
    assert began.reason.endswith(": " + "r" * 255)

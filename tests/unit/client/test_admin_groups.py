"""Admin calls about groups: coordinators found, lost and found again, and what answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.scripted_admin import serve_admins
from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.client.core.admin.groups import GroupDescription
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.errors import BrokerError
from tarry.client.sync.admin import Admin
from tarry.link.errors import ClientError, TimedOut, UnsupportedVersion
from tarry.protocol import api_keys
from tarry.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse


@pytest.fixture
def cluster() -> GroupCluster:
    return GroupCluster(brokers=3)


@pytest.fixture
def admin(cluster: GroupCluster, monkeypatch: pytest.MonkeyPatch) -> Admin:
    return serve_admins(cluster, monkeypatch)()


def code_of(error: object) -> int:
    assert isinstance(error, BrokerError)
    return error.code


def described(answer: object) -> GroupDescription:
    assert isinstance(answer, GroupDescription)
    return answer


# --- Coordinators


def test_groups_of_several_coordinators_are_asked_at_each_of_them_once(
    admin: Admin, cluster: GroupCluster
) -> None:
    for number in range(6):
        cluster.group(f"g{number}", coordinator_id=1 + number % 3)

    found = admin.describe_groups([f"g{number}" for number in range(6)])

    assert [described(one).coordinator.broker_id for one in found.values()] == [1, 2, 3, 1, 2, 3]
    asked = cluster.requests(api_keys.DESCRIBE_GROUPS)
    assert sorted((one.broker_id, tuple(one.request.groups)) for one in asked) == [
        (1, ("g0", "g3")),
        (2, ("g1", "g4")),
        (3, ("g2", "g5")),
    ]
    assert len(cluster.requests(api_keys.FIND_COORDINATOR)) == 1


def test_brokers_that_take_one_group_a_request_are_asked_for_each(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.ranges[api_keys.FIND_COORDINATOR] = (0, 3)
    for number in range(3):
        cluster.group(f"g{number}", coordinator_id=1 + number)

    found = admin.describe_groups(["g0", "g1", "g2"])

    assert [described(one).coordinator.broker_id for one in found.values()] == [1, 2, 3]


def test_a_group_whose_coordinator_moved_is_looked_up_again_and_the_others_are_not_asked_twice(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.group("moved", coordinator_id=1)
    cluster.group("stays", coordinator_id=3)

    def as_before(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        assert isinstance(cluster, GroupCluster)
        cluster.group("moved").coordinator_id = 2
        return answer

    cluster.script(api_keys.FIND_COORDINATOR, as_before)

    found = admin.describe_groups(["moved", "stays"])

    assert described(found["moved"]).coordinator.broker_id == 2
    asked = [(one.broker_id, one.request.groups) for one in cluster.requests(15)]
    assert asked == [(1, ["moved"]), (3, ["stays"]), (2, ["moved"])]


def test_a_coordinator_that_cannot_be_reached_is_looked_up_again(
    admin: Admin, cluster: GroupCluster
) -> None:
    group = cluster.group("g", coordinator_id=2)
    cluster.refused[cluster.brokers[2]] = "connection refused"

    def then_moved(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        group.coordinator_id = 3
        return answer

    cluster.script(api_keys.FIND_COORDINATOR, then_moved)

    found = admin.describe_groups(["g"])

    assert described(found["g"]).coordinator.broker_id == 3


def test_one_dead_coordinator_does_not_keep_the_answers_of_others(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.group("dead", coordinator_id=2)
    cluster.group("alive", coordinator_id=3)
    cluster.refused[cluster.brokers[2]] = "connection refused"

    found = admin.describe_groups(["dead", "alive"], timeout=2.0)

    assert described(found["alive"]).group_id == "alive"
    assert isinstance(found["dead"], TimedOut)
    assert "group dead" in str(found["dead"])
    assert "connection refused" in str(found["dead"])


@pytest.mark.parametrize(
    "code", [errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE]
)
def test_a_coordinator_that_is_not_ready_is_asked_again(
    admin: Admin, cluster: GroupCluster, code: int
) -> None:
    cluster.group("g")

    def refuse(cluster: ScriptedCluster, seen: Seen) -> Any:
        return FindCoordinatorResponse(
            coordinators=[Coordinator("g", -1, "", -1, code, "not ready")]
        )

    def loading(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        answer.groups[0].error_code = code
        return answer

    cluster.script(api_keys.FIND_COORDINATOR, refuse)
    cluster.script(api_keys.DESCRIBE_GROUPS, loading)
    begin_ms = cluster.now_ms

    found = admin.describe_groups(["g"])

    assert described(found["g"]).state == "Empty"
    # After two pauses, and not when something else turns the core.
    assert 150 <= cluster.now_ms - begin_ms <= 400
    assert len(cluster.requests(api_keys.FIND_COORDINATOR)) == 3


def test_a_refusal_for_good_is_not_repeated(admin: Admin, cluster: GroupCluster) -> None:
    def refuse(cluster: ScriptedCluster, seen: Seen) -> Any:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator("g", -1, "", -1, errors.GROUP_AUTHORIZATION_FAILED, "not for you")
            ]
        )

    cluster.rule(api_keys.FIND_COORDINATOR, refuse)

    found = admin.describe_groups(["g"])

    assert code_of(found["g"]) == errors.GROUP_AUTHORIZATION_FAILED
    assert len(cluster.requests(api_keys.FIND_COORDINATOR)) == 1


def test_a_lookup_that_answers_for_other_groups_is_an_error_and_no_loop(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.rule(
        api_keys.FIND_COORDINATOR,
        lambda cluster, seen: FindCoordinatorResponse(coordinators=[]),
    )

    with pytest.raises(ClientError, match="did not tell the coordinators"):
        admin.describe_groups(["g"])


def test_a_cluster_that_says_nothing_ends_at_the_time_that_was_given(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.rule(api_keys.FIND_COORDINATOR, lambda cluster, seen: SILENCE)
    begin_ms = cluster.now_ms

    found = admin.describe_groups(["g"], timeout=3.0)

    assert isinstance(found["g"], TimedOut)
    assert cluster.now_ms - begin_ms <= 3_100


# --- Lists


def test_groups_of_all_brokers_are_listed_by_name(admin: Admin, cluster: GroupCluster) -> None:
    cluster.group("b", coordinator_id=1)
    cluster.group("a", coordinator_id=3).join("m", ("t", 0))

    listed = admin.list_groups()

    assert [(one.group_id, one.state, one.coordinator_id) for one in listed] == [
        ("a", "Stable", 3),
        ("b", "Empty", 1),
    ]
    assert [one.group_id for one in admin.list_groups(["Stable"])] == ["a"]


def test_a_list_with_holes_is_not_given_out(admin: Admin, cluster: GroupCluster) -> None:
    cluster.refused[cluster.brokers[3]] = "connection refused"

    with pytest.raises(TimedOut, match="connection refused"):
        admin.list_groups(timeout=2.0)


def test_an_answer_that_got_lost_is_asked_for_again(admin: Admin, cluster: GroupCluster) -> None:
    cluster.group("a")
    cluster.script(api_keys.LIST_GROUPS, lambda cluster, seen: CUT)

    assert [one.group_id for one in admin.list_groups()] == ["a"]


def test_a_broker_that_cannot_choose_by_state_is_no_silent_mistake(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.ranges[api_keys.LIST_GROUPS] = (0, 3)
    cluster.group("a")

    with pytest.raises(UnsupportedVersion, match="list all of them"):
        admin.list_groups(["Stable"])

    assert [one.state for one in admin.list_groups()] == [""]


# --- Descriptions


def test_members_come_with_their_partitions(admin: Admin, cluster: GroupCluster) -> None:
    group = cluster.group("g")
    group.join("b", ("t", 2), ("s", 0))
    group.join("a", ("t", 1), instance_id="static")

    members = described(admin.describe_groups(["g"])["g"]).members

    assert [(one.member_id, one.instance_id, one.places) for one in members] == [
        ("a", "static", [("t", 1)]),
        ("b", None, [("s", 0), ("t", 2)]),
    ]


@pytest.mark.parametrize("assignment", [b"\x00", b"\x00\x00\x7f\xff\xff\xff"])
def test_an_assignment_that_means_nothing_is_none(
    admin: Admin, cluster: GroupCluster, assignment: bytes
) -> None:
    cluster.group("g").join("m").member_assignment = assignment

    assert described(admin.describe_groups(["g"])["g"]).members[0].places is None


def test_assignments_of_other_protocols_are_not_read(admin: Admin, cluster: GroupCluster) -> None:
    group = cluster.group("g")
    group.protocol_type = "connect"
    group.join("m", ("t", 1))

    assert described(admin.describe_groups(["g"])["g"]).members[0].places is None


@pytest.mark.parametrize("version", [0, 5, 6])
def test_a_group_that_is_not_there_is_said_so_in_every_version(
    admin: Admin, cluster: GroupCluster, version: int
) -> None:
    cluster.ranges[api_keys.DESCRIBE_GROUPS] = (0, version)

    error = admin.describe_groups(["nope"])["nope"]

    assert code_of(error) == errors.GROUP_ID_NOT_FOUND
    assert str(error) == "group nope does not exist (GROUP_ID_NOT_FOUND)"


def test_a_group_of_a_newer_kind_is_told_from_one_that_is_not_there(
    admin: Admin, cluster: GroupCluster
) -> None:
    """As Apache Kafka 4.1 answers for a group of KIP-848."""

    def newer(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        answer.groups[0].error_message = "Group new is not a classic group."
        return answer

    cluster.script(api_keys.DESCRIBE_GROUPS, newer)

    assert "whose members this client cannot show" in str(admin.describe_groups(["new"])["new"])


# --- Offsets


@pytest.mark.parametrize("version", [2, 5, 7, 8, 9])
def test_committed_offsets_come_in_every_version(
    admin: Admin, cluster: GroupCluster, version: int
) -> None:
    cluster.ranges[api_keys.OFFSET_FETCH] = (1, version)
    cluster.group("g", coordinator_id=2).offsets.update({("t", 1): 7, ("s", 0): 5})

    everything = admin.group_offsets(["g"])["g"]
    some = admin.group_offsets(["g"], [("t", 0), ("t", 1)])["g"]

    assert everything == {
        ("s", 0): CommittedOffset(5, -1, ""),
        ("t", 1): CommittedOffset(7, -1, ""),
    }
    assert some == {("t", 1): CommittedOffset(7, -1, "")}


def test_a_group_that_is_not_there_has_committed_nothing(admin: Admin) -> None:
    assert admin.group_offsets(["nope"]) == {"nope": {}}


def test_offsets_that_are_refused_for_a_partition_are_not_asked_for_again(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.group("g").offsets["t", 0] = 1

    def refuse(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        answer.groups[0].topics[0].partitions[0].error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
        return answer

    cluster.rule(api_keys.OFFSET_FETCH, refuse)

    assert "t [0]" in str(admin.group_offsets(["g"])["g"])
    assert len(cluster.requests(api_keys.OFFSET_FETCH)) == 1


def test_commits_in_the_place_of_a_group_name_no_member_and_no_generation(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.topic("t", partitions=2)
    cluster.group("g", coordinator_id=3)

    outcomes = admin.commit_group_offsets(
        "g", {("t", 1): 9, ("t", 0): 4, ("t", 5): 1}, outcomes=True
    )

    assert [(place, error is None) for place, error in outcomes.items()] == [
        (("t", 0), True),
        (("t", 1), True),
        (("t", 5), False),
    ]
    assert code_of(outcomes["t", 5]) == errors.UNKNOWN_TOPIC_OR_PARTITION
    request = cluster.requests(api_keys.OFFSET_COMMIT)[0].request
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    assert cluster.groups["g"].offsets == {("t", 0): 4, ("t", 1): 9}


def test_a_commit_follows_the_coordinator_though_each_partition_says_that_it_moved(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.topic("t")
    group = cluster.group("g", coordinator_id=1)

    def then_moved(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.default(seen)
        group.coordinator_id = 2
        return answer

    cluster.script(api_keys.FIND_COORDINATOR, then_moved)

    outcomes = admin.commit_group_offsets("g", {("t", 0): 4}, outcomes=True)

    assert outcomes == {("t", 0): None}
    assert [one.broker_id for one in cluster.requests(api_keys.OFFSET_COMMIT)] == [1, 2]


def test_a_group_with_members_is_told_to_be_stopped(admin: Admin, cluster: GroupCluster) -> None:
    cluster.topic("t")
    cluster.group("g").join("m", ("t", 0))

    committed = admin.commit_group_offsets("g", {("t", 0): 4}, outcomes=True)
    forgotten = admin.delete_group_offsets("g", [("t", 0)], outcomes=True)
    deleted = admin.delete_groups(["g"], outcomes=True)

    assert "stop them first" in str(committed["t", 0])
    assert "stop its members first" in str(forgotten["t", 0])
    assert "stop them first" in str(deleted[0].error)
    assert "g" in cluster.groups


def test_groups_and_offsets_are_deleted_each_with_its_own_outcome(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.group("a", coordinator_id=2).offsets.update({("t", 0): 1, ("t", 1): 2})
    cluster.group("b", coordinator_id=3)

    forgotten = admin.delete_group_offsets("a", [("t", 1)], outcomes=True)
    left = dict(cluster.groups["a"].offsets)
    deleted = admin.delete_groups(["a", "nope", "b"], outcomes=True)

    assert forgotten == {("t", 1): None}
    assert left == {("t", 0): 1}
    assert [(one.group_id, one.error is None) for one in deleted] == [
        ("a", True),
        ("nope", False),
        ("b", True),
    ]
    assert cluster.groups == {}


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(admin: Admin) -> None:
    with pytest.raises(BrokerError, match="nope does not exist"):
        admin.delete_group_offsets("nope", [("t", 1)])


# --- Memory


def test_a_broker_without_memory_is_none_and_one_with_notes_gives_them_in_order(
    admin: Admin, cluster: GroupCluster
) -> None:
    cluster.group("g", coordinator_id=2)

    without = admin.group_memory("g")
    cluster.tarry_notes = {
        "g": [
            {"kind": "RebalanceBegan", "at_ms": 5, "generation_id": 1, "reason": "member a joined"},
            *({"kind": "BecameEmpty", "at_ms": 6 + n, "generation_id": 2} for n in range(20)),
        ]
    }
    memory = admin.group_memory("g")

    assert without is None
    assert memory is not None
    assert memory.since_ms == 1_700_000_000_000
    assert [note.at_ms for note in memory.notes] == list(range(5, 26))
    assert memory.notes[0].fields == {"generation_id": 1, "reason": "member a joined"}
    with pytest.raises(BrokerError, match="nope does not exist"):
        admin.group_memory("nope")


def test_closing_ends_an_errand_that_waits(admin: Admin, cluster: GroupCluster) -> None:
    cluster.rule(api_keys.FIND_COORDINATOR, lambda cluster, seen: SILENCE)

    def close_it(cluster: ScriptedCluster, seen: Seen) -> Any:
        admin.close()
        return SILENCE

    cluster.rule(api_keys.FIND_COORDINATOR, close_it)

    with pytest.raises(ClientError, match="closed"):
        admin.describe_groups(["g"])

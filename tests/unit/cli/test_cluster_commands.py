"""`tarry cluster`, `tarry brokers`, `tarry topics reassign` and `elect` over a scripted cluster."""

from __future__ import annotations

import pytest
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_replicas import ReplicaCluster

from tarry.cli import cluster_look


@pytest.fixture
def cluster() -> ReplicaCluster:
    cluster = ReplicaCluster(3)
    cluster.racks = {1: "a", 2: "b"}
    cluster.replicated("orders", [1, 2], [2, 3], [3, 1])
    cluster.replicated("alone", [3])
    return cluster


@pytest.fixture
def tarry(cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    monkeypatch.setattr(cluster_look, "PAUSE_S", 0)
    return CommandRunner(cluster, monkeypatch)


# --- cluster


def test_a_whole_cluster_is_told_as_one(tarry: CommandRunner) -> None:
    told = tarry.ok("cluster status")

    assert told.splitlines()[:5] == [
        "cluster     scripted",
        "controller  1",
        "topics      2 topics, 4 partitions",
        "state       whole",
        "",
    ]
    rows = [line.split() for line in told.splitlines()[5:]]
    assert [row[:1] + row[3:] for row in rows[1:]] == [
        ["1", "lives", "1", "2", "2"],
        ["2", "lives", "1", "2", "2"],
        ["3", "lives", "2", "3", "3"],
    ]
    assert tarry.json("cluster status")["problems"] == []


def test_what_is_missing_is_told(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    cluster.die(3)

    told = tarry.json("cluster status")

    assert told["problems"] == [
        "broker 3 does not live",
        "alone [0]: no leader",
        "orders [1] and 1 more: replica offline",
    ]
    assert told["not_led_by_first_replica"] == 1
    assert [one["is_alive"] for one in told["brokers"]] == [True, True, False]
    shown = tarry.ok("cluster status")
    assert "state       not whole" in shown
    assert "1 partition not led by the first replica (tarry topics elect)" in shown
    assert "alone [0]: no leader" in shown


def test_waiting_ends_when_the_cluster_is_whole(
    tarry: CommandRunner, cluster: ReplicaCluster
) -> None:
    cluster.die(3)
    looks = []

    def live_again(scripted: ReplicaCluster, seen: object) -> object:
        looks.append(seen)
        if len(looks) == 3:
            cluster.live(3)
        return cluster._describe_members(seen)  # type: ignore[arg-type]

    cluster.rule(60, live_again)

    assert tarry.ok("cluster wait --brokers 3") == "whole\n"
    assert len(looks) == 3
    assert tarry.ok("cluster wait -q") == ""


def test_waiting_in_vain_tells_what_is_missing(
    tarry: CommandRunner, cluster: ReplicaCluster
) -> None:
    cluster.die(3)

    told = tarry.refused("cluster wait --for 1ms --brokers 3")

    assert told == (
        "tarry: broker 3 does not live\n"
        "tarry: 2 brokers of 3 live\n"
        "tarry: alone [0]: no leader\n"
        "tarry: orders [1] and 1 more: replica offline\n"
    )


# --- brokers


def test_brokers_are_listed(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    cluster.die(2)

    told = tarry.json("brokers list")

    assert [(one["broker_id"], one["rack"], one["is_alive"]) for one in told] == [
        (1, "a", True),
        (2, "b", False),
        (3, None, True),
    ]
    assert [(one["leads"], one["replicas"], one["in_sync"]) for one in told] == [
        (1, 2, 2),
        (0, 2, 0),
        (3, 3, 3),
    ]
    assert "dead" in tarry.ok("brokers list")


def test_a_broker_is_drained_and_removed(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    told = tarry.ok("brokers drain 3")

    assert [line.split() for line in told.splitlines()] == [
        ["topic", "partition", "replicas", "to", "be"],
        ["alone", "0", "3", "1"],
        ["orders", "1", "2,3", "2,1"],
        ["orders", "2", "3,1", "1,2"],
    ]
    assert all(3 not in one.replicas for one in cluster.partitions.values())
    assert "nothing to move" in tarry.run("brokers drain 3").stderr
    assert "stop it first" in tarry.refused("brokers remove 3")
    cluster.die(3)
    assert tarry.ok("brokers remove 3") == "broker 3 is taken out of the cluster\n"
    assert "there is none" in tarry.refused("brokers remove 3")
    assert "there is no broker 3" in tarry.refused("brokers drain 3")


def test_a_plan_is_only_shown(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    told = tarry.json("brokers drain 3 --dry-run")

    assert [(one["topic"], one["replicas_before"], one["replicas"]) for one in told] == [
        ("alone", [3], [1]),
        ("orders", [2, 3], [2, 1]),
        ("orders", [3, 1], [1, 2]),
    ]
    assert [one.moving_to for one in cluster.partitions.values()] == [None] * 4


def test_a_drain_that_lasts_too_long_goes_on_by_itself(
    tarry: CommandRunner, cluster: ReplicaCluster
) -> None:
    cluster.asks_until_moved = 1_000

    told = tarry.refused("brokers drain 3 --for 1ms")

    assert "3 partitions still under way; they go on by themselves" in told
    assert len(tarry.json("topics reassign")) == 3


def test_too_few_brokers_need_a_word(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    cluster.replicated("wide", [1, 2, 3])

    assert "wide [0] has 3 replicas, with 2 brokers for them" in tarry.refused("brokers drain 3")
    (wide,) = [
        one for one in tarry.json("brokers drain 3 --shrink --dry-run") if one["topic"] == "wide"
    ]
    assert wide["replicas"] == [1, 2]


# --- topics reassign


def test_a_topic_gets_more_replicas(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    told = tarry.json("topics reassign orders -r 3 --wait")

    assert [sorted(one["replicas"]) for one in told] == [[1, 2, 3]] * 3
    assert {one["error"] for one in told} == {None}
    assert sorted(cluster.partitions["orders", 0].replicas) == [1, 2, 3]


def test_an_assignment_is_given_partition_by_partition(
    tarry: CommandRunner, cluster: ReplicaCluster
) -> None:
    tarry.ok("topics reassign orders --assignment 1:2,3:2,1")

    moving = [cluster.partitions["orders", index].moving_to for index in range(3)]
    assert moving == [None, [3, 2], [1]]
    assert [(one["partition"], one["adding"]) for one in tarry.json("topics reassign orders")] == [
        (1, []),
        (2, []),
    ]


def test_what_is_under_way_is_shown_and_cancelled(
    tarry: CommandRunner, cluster: ReplicaCluster
) -> None:
    cluster.asks_until_moved = 100
    tarry.ok("topics reassign alone --brokers 1")

    assert [line.split() for line in tarry.ok("topics reassign").splitlines()] == [
        ["topic", "partition", "replicas", "coming", "going", "in", "sync"],
        ["alone", "0", "1,3", "1", "3", "3"],
    ]
    assert "1 partition back" in tarry.run("topics reassign * --cancel").stderr
    assert "no reassignment is under way" in tarry.run("topics reassign").stderr
    assert "nothing to move" in tarry.run("topics reassign * --cancel").stderr


def test_what_goes_already_is_not_wanted_in_another_place(
    tarry: CommandRunner, cluster: ReplicaCluster
) -> None:
    """While a partition moves it has its old replicas and the new ones."""
    cluster.asks_until_moved = 100
    tarry.ok("topics reassign alone --brokers 1")

    spread = tarry.json("topics reassign alone --brokers 2 --dry-run")
    drained = tarry.json("brokers drain 1 --dry-run")
    again = tarry.json("brokers drain 3 --dry-run")

    assert [one["replicas"] for one in spread] == [[2]]
    assert [one["replicas"] for one in drained if one["topic"] == "alone"] == [[2]]
    assert [one["replicas"] for one in again if one["topic"] == "alone"] == [[1]]


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("orders --cancel -r 2", 2, "give --assignment, --cancel, or --brokers and -r"),
        ("-r 2", 2, "name the topics"),
        ("orders --brokers 1,x", 2, "write them as 1,2,3"),
        ("orders --brokers 1,1", 2, "each once"),
        ("orders --assignment 1:x", 2, "invalid assignment"),
        ("orders --assignment 1", 1, "has 3 partitions, and 1 are assigned"),
        ("orders --brokers 9", 1, "broker 9 does not live"),
        ("orders --brokers 1", 1, "orders [0] has 2 replicas, with 1 broker for them"),
        ("orders --assignment 9,1,1", 1, "orders [0]: an unknown broker"),
        ("nope -r 2", 1, "topic 'nope' does not exist"),
    ],
)
def test_a_wrong_reassignment_is_refused(
    tarry: CommandRunner, line: str, code: int, sentence: str
) -> None:
    assert sentence in tarry.refused(f"topics reassign {line}", code)


# --- topics elect


def test_first_replicas_lead_again(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    cluster.topics["orders"].logs[0].leader_id = 2

    assert tarry.ok("topics elect orders") == (
        "orders [0]: elected\n"
        "orders [1]: is led by its first replica already\n"
        "orders [2]: is led by its first replica already\n"
    )
    assert cluster.topics["orders"].logs[0].leader_id == 1
    assert "every partition is led by its first replica" in tarry.run("topics elect").stderr


def test_an_election_that_cannot_be_fails(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    cluster.die(3)

    assert "orders [2]: it is not in sync" in tarry.refused("topics elect orders -p 2")


def test_an_unclean_election_wants_a_yes(tarry: CommandRunner, cluster: ReplicaCluster) -> None:
    cluster.die(3)
    cluster.partitions["alone", 0].replicas = [3, 1]

    assert "--yes" in tarry.refused("topics elect alone --unclean", 2)
    assert "name the topic" in tarry.refused("topics elect --unclean --yes", 2)
    assert tarry.ok("topics elect alone --unclean --yes") == "alone [0]: elected\n"
    assert cluster.topics["alone"].logs[0].leader_id == 1
    assert tarry.json("topics elect alone --unclean --yes")[0]["done"] is False

"""The commands of docs/several-brokers.md, and Kafka's own tools, over three real brokers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.interop.kafka_server import TOOLS_POM, KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S

TARRY = Path(sys.executable).parent / "tarry"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "several-brokers.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("commands")) as made:
        yield made


def run(cluster: BrokerCluster, line: str, stdin: str = "") -> str:
    """Run a command of the page, which has to stand there, to its end; return what it printed."""
    assert f"tarry {line}" in PAGE.read_text(encoding="utf-8"), line
    return tarry(cluster, *line.replace("'", "").split(), stdin=stdin)


def tarry(cluster: BrokerCluster, *words: str, stdin: str = "") -> str:
    done = subprocess.run(
        [TARRY, *words, "-b", cluster.addresses],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(cluster: BrokerCluster, name: str, *words: str) -> str:
    """Run one of Kafka's tools to its end."""
    try:
        command = java_command(f"org.apache.kafka.tools.{name}", *words, pom=TOOLS_POM)
    except KafkaUnavailable as reason:
        pytest.skip(f"Kafka's tools cannot run here: {reason}")
    command.insert(1, "-XX:TieredStopAtLevel=1")
    done = subprocess.run(
        [*command, "--bootstrap-server", cluster.addresses],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def replicas(cluster: BrokerCluster, topic: str) -> list[list[int]]:
    (told,) = json.loads(tarry(cluster, "topics", "describe", topic, "--json"))
    return [partition["replicas"] for partition in told["partitions"]]


def leads(cluster: BrokerCluster, broker_id: int) -> int:
    told = json.loads(tarry(cluster, "brokers", "list", "--json"))
    return next(int(each["leads"]) for each in told if each["broker_id"] == broker_id)


def test_topics_are_made_moved_and_led_as_the_page_says(cluster: BrokerCluster) -> None:
    run(cluster, "topics create payments -p 6 -r 3 -c min.insync.replicas=2")
    run(cluster, "produce payments", stdin="hello\n")
    assert run(cluster, "cluster wait --for 10m") == "whole\n"
    assert "state       whole" in run(cluster, "cluster status")
    assert [sorted(each) for each in replicas(cluster, "payments")] == [[1, 2, 3]] * 6

    tarry(cluster, "topics", "create", "orders", "-p", "2", "-r", "1")
    run(cluster, "topics reassign orders -r 3 --wait")
    assert [sorted(each) for each in replicas(cluster, "orders")] == [[1, 2, 3]] * 2
    run(cluster, "topics reassign orders --assignment 1:2,2:3")
    wait_until(
        lambda: "yes" if replicas(cluster, "orders") == [[1, 2], [2, 3]] else "", "the assignment"
    )
    assert run(cluster, "topics reassign") == ""
    assert tarry(cluster, "consume", "payments") == "hello\n"


def test_a_broker_that_stops_hands_over_and_gets_its_partitions_back(
    cluster: BrokerCluster,
) -> None:
    tarry(cluster, "topics", "create", "restarted", "-p", "3", "-r", "3")
    cluster.brokers[2].stop()
    assert leads(cluster, 2) == 0
    cluster.start_broker(2)

    run(cluster, "cluster wait --for 10m")
    run(cluster, "topics elect")

    assert leads(cluster, 2) >= 1


def test_kafkas_tools_elect_and_reassign(cluster: BrokerCluster, tmp_path: Path) -> None:
    tarry(cluster, "topics", "create", "by-tools", "--assignment", "1:2,2:1")
    plan = tmp_path / "plan.json"
    moves = [{"topic": "by-tools", "partition": 0, "replicas": [2, 3]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}), encoding="utf-8")
    reassign = "reassign.ReassignPartitionsCommand"

    begun = tool(cluster, reassign, "--reassignment-json-file", str(plan), "--execute")
    wait_until(
        lambda: "yes" if replicas(cluster, "by-tools")[0] == [2, 3] else "", "the reassignment"
    )
    done = tool(cluster, reassign, "--reassignment-json-file", str(plan), "--verify")
    elected = tool(
        cluster,
        "LeaderElectionCommand",
        *("--election-type", "preferred", "--topic", "by-tools", "--partition", "1"),
    )
    described = tool(cluster, "TopicCommand", "--describe", "--topic", "by-tools")

    assert "Successfully started partition reassignment for by-tools-0" in begun
    assert "Reassignment of partition by-tools-0 is completed." in done
    assert "Valid replica already elected" in elected
    assert "Partition: 0\tLeader: 2\tReplicas: 2,3" in described


def test_levels_of_features_are_shown_and_brought_into_force(cluster: BrokerCluster) -> None:
    def levels(*words: str) -> dict[str, int]:
        told = json.loads(tarry(cluster, "cluster", "features", *words, "--json"))
        return {one["name"]: one["level"] for one in told}

    before = levels()
    only_told = levels("tarry.group.configs=1", "--dry-run")
    after = levels("tarry.group.configs=1")
    rows = tarry(cluster, "cluster", "features").splitlines()
    lowered = levels("--downgrade", "tarry.group.configs=0")

    assert before["tarry.group.configs"] == 0
    assert only_told == lowered == {"tarry.group.configs": 0}
    assert after == {"tarry.group.configs": 1}
    assert ["tarry.group.configs", "1", "0", "to", "1"] in [row.split() for row in rows]


def test_a_drained_broker_is_taken_out(cluster: BrokerCluster) -> None:
    """The last one: the cluster has two brokers afterwards."""
    tarry(cluster, "brokers", "drain", "3", "--shrink")
    assert "--shrink" in PAGE.read_text(encoding="utf-8")
    cluster.brokers[3].stop_cleanly()

    assert "broker 3 is taken out" in tarry(cluster, "brokers", "remove", "3")

    told = json.loads(tarry(cluster, "brokers", "list", "--json"))
    assert [each["broker_id"] for each in told] == [1, 2]
    assert tarry(cluster, "consume", "payments") == "hello\n"

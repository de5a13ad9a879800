"""Apache Kafka's console tools and kcat against three brokers with three replicas."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.interop.kafka_server import TOOLS_POM, KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S

from tarry.cluster.state.levels import GROUP_CONFIGS

pytestmark = pytest.mark.slow

RunTool = Callable[..., str]

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
ELECT = f"{TOOLS}.LeaderElectionCommand"
FEATURES = f"{TOOLS}.FeatureCommand"
CONFIGS = "kafka.admin.ConfigCommand"
SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        yield made


@pytest.fixture
def run_tool(cluster: BrokerCluster) -> RunTool:
    """Runs a tool to its end and returns what it printed."""

    def run(tool: str, *words: str) -> str:
        try:
            # kafka-features takes it before its own words only.
            given = ("--bootstrap-server", cluster.addresses, *words)
            command = java_command(tool, *given, pom=TOOLS_POM)
        except KafkaUnavailable as reason:
            pytest.skip(f"Kafka's tools cannot run here: {reason}")
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def create(run_tool: RunTool, name: str, assignment: str) -> None:
    """Make a topic with these replicas, and wait until all of them are in sync."""
    run_tool(TOPICS, "--create", "--topic", name, "--replica-assignment", assignment)
    wanted = [sorted(each.split(":")) for each in assignment.split(",")]
    wait_until(
        lambda: "yes" if [sorted(isr) for _, isr in told(run_tool, name)] == wanted else "",
        f"the replicas of {name} in sync",
    )


def told(run_tool: RunTool, name: str) -> list[tuple[str, list[str]]]:
    """Leader and in-sync replicas of each partition, as kafka-topics tells."""
    described = run_tool(TOPICS, "--describe", "--topic", name)
    return [
        (leader, isr.split(",") if isr else [])
        for leader, isr in re.findall(r"Leader: (\S+)\tReplicas: \S+\tIsr: (\S*)", described)
    ]


def test_kafka_topics_makes_and_describes_three_replicas(run_tool: RunTool) -> None:
    run_tool(TOPICS, "--create", "--topic", "three", "--partitions", "6")
    described = run_tool(TOPICS, "--describe", "--topic", "three")

    assert "PartitionCount: 6\tReplicationFactor: 3" in described
    assert sorted(leader for leader, _ in told(run_tool, "three")) == ["1", "1", "2", "2", "3", "3"]


def test_a_reassignment_is_carried_out_and_verified(run_tool: RunTool, tmp_path: Path) -> None:
    create(run_tool, "moved", "1:2,2:1")
    run_tool(f"{TOOLS}.VerifiableProducer", "--topic", "moved", "--max-messages", "200")
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": "moved", "partition": 0, "replicas": [3, 2]},
        {"topic": "moved", "partition": 1, "replicas": [2, 3]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    words = ("--reassignment-json-file", str(plan))

    begun = run_tool(REASSIGN, "--execute", *words)
    wait_until(
        lambda: "yes" if run_tool(REASSIGN, "--verify", *words).count("is completed.") == 2 else "",
        "the end of the reassignment",
    )
    wait_until(
        lambda: (
            "yes" if [sorted(isr) for _, isr in told(run_tool, "moved")] == [["2", "3"]] * 2 else ""
        ),
        "both new replicas in sync",
    )
    listed = run_tool(REASSIGN, "--list")
    offsets = run_tool(f"{TOOLS}.GetOffsetShell", "--topic", "moved")

    assert "Successfully started partition reassignments for moved-0,moved-1" in begun
    assert "No partition reassignments found." in listed
    assert sum(int(line.split(":")[2]) for line in offsets.splitlines()) == 200


def test_a_preferred_leader_leads_again_when_it_is_elected(
    run_tool: RunTool, cluster: BrokerCluster
) -> None:
    create(run_tool, "led-again", "3:1:2")
    cluster.brokers[3].stop_cleanly()
    without = told(run_tool, "led-again")
    cluster.start_broker(3)
    wait_until(
        lambda: "yes" if len(told(run_tool, "led-again")[0][1]) == 3 else "", "broker 3 in sync"
    )
    where = ("--topic", "led-again", "--partition", "0")
    elected = run_tool(ELECT, "--election-type", "preferred", *where)

    assert without[0][0] in ("1", "2")
    assert "3" not in without[0][1]
    assert "led-again-0" in elected
    assert told(run_tool, "led-again")[0][0] == "3"


def features(run_tool: RunTool) -> dict[str, tuple[str, str, str]]:
    """Lowest and highest level that is known, and the level in force, as kafka-features tells."""
    rows = re.findall(
        r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+"
        r"FinalizedVersionLevel: (\S+)",
        run_tool(FEATURES, "describe"),
    )
    return {name: (low, high, level) for name, low, high, level in rows}


def test_kafka_features_tells_levels_and_brings_them_into_force(run_tool: RunTool) -> None:
    before = features(run_tool)
    feature = f"{GROUP_CONFIGS}=1"

    run_tool(FEATURES, "upgrade", "--feature", feature, "--dry-run")
    only_told = features(run_tool)
    run_tool(FEATURES, "upgrade", "--feature", feature)
    after = features(run_tool)
    run_tool(FEATURES, "downgrade", "--feature", f"{GROUP_CONFIGS}=0")
    lowered = features(run_tool)

    assert before[GROUP_CONFIGS] == only_told[GROUP_CONFIGS] == ("0", "1", "0")
    assert before["group.version"] == ("0", "0", "0")
    assert after[GROUP_CONFIGS] == ("0", "1", "1")
    assert lowered[GROUP_CONFIGS] == ("0", "1", "0")


def test_kafka_configs_keeps_settings_of_a_group(run_tool: RunTool) -> None:
    group = ("--entity-type", "groups", "--entity-name", "billing")
    change = "consumer.session.timeout.ms=50000"

    run_tool(CONFIGS, "--alter", *group, "--add-config", change)
    told_by_tool = run_tool(CONFIGS, "--describe", *group)
    in_force = features(run_tool)[GROUP_CONFIGS][2]
    run_tool(CONFIGS, "--alter", *group, "--delete-config", change.partition("=")[0])
    unset = run_tool(CONFIGS, "--describe", *group)

    assert change in told_by_tool
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000" in told_by_tool
    assert in_force == "1"
    assert change not in unset


def test_kcat_lists_leaders_and_replicas(run_tool: RunTool, cluster: BrokerCluster) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    create(run_tool, "listed", "1:2:3,2:3:1")
    done = subprocess.run(
        ["kcat", "-b", cluster.brokers[2].address, "-L", "-t", "listed"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )

    assert "3 brokers:" in done.stdout
    assert "partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3" in done.stdout
    assert "partition 1, leader 2, replicas: 2,3,1, isrs: " in done.stdout

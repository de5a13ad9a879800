"""Apache Kafka's console tools against our broker."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.kafka_server import TOOLS_POM, KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S
from tests.support.raw_client import RawClient, one_batch

RunTool = Callable[..., str]

TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def run_tool(shared_broker: BrokerProcess) -> RunTool:
    """Runs a tool to its end and returns what it printed, one that `fails` its errors too."""

    def run(tool: str, *words: str, fails: bool = False) -> str:
        where = ["--bootstrap-server", shared_broker.address]
        if tool == f"{TOOLS}.ProducerPerformance":
            where = []
        try:
            command = java_command(tool, *where, *words, pom=TOOLS_POM)
        except KafkaUnavailable as reason:
            pytest.skip(f"Kafka's tools cannot run here: {reason}")
        # Tools live for a second: compiling them well is not worth the while.
        command.insert(1, "-XX:TieredStopAtLevel=1")
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if fails:
            return done.stdout + done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_kafka_topics_creates_describes_and_deletes(run_tool):
    topics = f"{TOOLS}.TopicCommand"
    words = ["--partitions", "2", "--config", "retention.ms=3600000"]

    created = run_tool(topics, "--create", "--topic", "by-tools", *words)
    described = run_tool(topics, "--describe", "--topic", "by-tools")
    run_tool(topics, "--delete", "--topic", "by-tools")
    listed = run_tool(topics, "--list")

    assert "Created topic by-tools." in created
    assert "PartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=3600000" in described
    assert "Topic: by-tools\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1" in described
    assert "by-tools" not in listed.splitlines()


def test_kafka_producers_offsets_and_console_consumer_agree(run_tool, shared_broker):
    count = ["--max-messages", "20"]
    where = ["--partition", "0", "--offset", "15", "--max-messages", "5"]
    where += ["--timeout-ms", f"{PATIENCE_S}000"]

    verified = run_tool(f"{TOOLS}.VerifiableProducer", "--topic", "verified", *count)
    offsets = run_tool(f"{TOOLS}.GetOffsetShell", "--topic", "verified")
    consumed = run_tool(f"{TOOLS}.consumer.ConsoleConsumer", "--topic", "verified", *where)
    measured = run_tool(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", "verified", "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={shared_broker.address}"),
    )

    told = [json.loads(line) for line in verified.splitlines()]
    assert [one["offset"] for one in told if one["name"] == "producer_send_success"] == [*range(20)]
    assert "verified:0:20" in offsets.splitlines()
    assert consumed.split() == ["15", "16", "17", "18", "19"]
    assert "2000 records sent" in measured


def test_kafka_configs_and_broker_api_versions_read_the_broker(run_tool):
    entity = ["--entity-type", "brokers", "--entity-name", "1", "--all"]

    configs = run_tool("kafka.admin.ConfigCommand", "--describe", *entity)
    versions = run_tool(f"{TOOLS}.BrokerApiVersionsCommand")

    assert "log.segment.bytes=1073741824" in configs
    assert "Produce(0): 0 to 13 [usable: 13]" in versions
    assert "Fetch(1): 4 to 18 [usable: 18]" in versions


def test_kafka_configs_changes_topics_and_brokers(run_tool, shared_broker):
    configs = "kafka.admin.ConfigCommand"
    topic = ["--entity-type", "topics", "--entity-name", "changed"]
    broker = ["--entity-type", "brokers", "--entity-name", "1"]
    every = ["--entity-type", "brokers", "--entity-default"]
    with RawClient(shared_broker.port) as client:
        client.create_topic("changed", segment_ms="5")

    both = ["--add-config", "cleanup.policy=[compact,delete]", "--delete-config", "segment.ms"]
    run_tool(configs, "--alter", *topic, *both)
    run_tool(configs, "--alter", *every, "--add-config", "log.retention.ms=7200000")
    run_tool(configs, "--alter", *broker, "--add-config", "log.retention.ms=3600000")
    told_of_topic = run_tool(configs, "--describe", *topic)
    told_of_broker = run_tool(configs, "--describe", *broker)

    assert "cleanup.policy=compact,delete" in told_of_topic
    assert "segment.ms" not in told_of_topic
    assert "log.retention.ms=3600000" in told_of_broker
    assert (
        "DYNAMIC_BROKER_CONFIG:log.retention.ms=3600000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000" in told_of_broker
    )


def test_kafkas_tools_grow_a_topic_delete_its_records_and_tell_its_size(
    run_tool, shared_broker, tmp_path
):
    with RawClient(shared_broker.port) as client:
        # By default the records are too old to be kept, whenever the broker looks at their age.
        client.create_topic("shrunk", retention_ms="-1")
        for _ in range(20):
            client.produce(one_batch(b"x"), "shrunk")
    offsets = tmp_path / "offsets.json"
    asked = {"topic": "shrunk", "partition": 0, "offset": 7}
    offsets.write_text(json.dumps({"partitions": [asked], "version": 1}))

    run_tool(f"{TOOLS}.TopicCommand", "--alter", "--topic", "shrunk", "--partitions", "3")
    deleted = run_tool(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(offsets))
    told = run_tool(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", "shrunk")

    assert "partition: shrunk-0\tlow_watermark: 7" in deleted
    (directory,) = json.loads(told.splitlines()[-1])["brokers"][0]["logDirs"]
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert sorted(sizes) == ["shrunk-0", "shrunk-1", "shrunk-2"]
    assert sizes["shrunk-0"] > 0 == sizes["shrunk-1"]
    assert directory["error"] is None


def test_kafkas_tools_say_what_tarry_does_not_have(run_tool, shared_broker):
    features = run_tool(f"{TOOLS}.FeatureCommand", "describe")
    users = run_tool("kafka.admin.ConfigCommand", "--describe", "--entity-type", "users")
    transactions = run_tool(f"{TOOLS}.TransactionsCommand", "list")
    acls = run_tool(f"{TOOLS}.AclCommand", "--list", fails=True)
    quorum = run_tool(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status", fails=True)
    words = ["--entity-type", "users", "--entity-name", "anna", "--alter", "--add-config"]
    quota = run_tool("kafka.admin.ConfigCommand", *words, "producer_byte_rate=5", fails=True)
    login = run_tool("kafka.admin.ConfigCommand", *words, "SCRAM-SHA-256=[password=x]", fails=True)

    assert "Feature: transaction.version" in features
    assert features.count("FinalizedVersionLevel: 0 ") == 7
    assert users.strip() == ""
    assert transactions.splitlines()[1:] == []
    assert "SecurityDisabledException: No Authorizer is configured on the broker" in acls
    assert "there is no KRaft quorum: this broker keeps its metadata itself" in quorum
    assert "this broker has no quotas yet" in quota
    assert "this broker has no logins yet" in login

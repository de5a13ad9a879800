"""What `tarry topics` prints of outcomes and topics."""

from __future__ import annotations

import pytest
from tests.support.cli.command_runner import CommandRunner
from tests.support.client.scripted_groups import GroupCluster

from tarry.cli.topic_description import TopicDescription, topic_json
from tarry.client.core.topic import Topic


@pytest.fixture
def tarry(monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    cluster = GroupCluster()
    cluster.topic("a")
    return CommandRunner(cluster, monkeypatch)


def test_a_topic_that_may_exist_is_left_as_it_is(tarry: CommandRunner) -> None:
    assert tarry.ok("topics create a --if-not-exists") == "a: exists already, nothing changed\n"


def test_one_refused_topic_fails_the_command(tarry: CommandRunner) -> None:
    result = tarry.run("topics create a b")

    assert result.exit_code == 1
    assert result.stdout == "b: created (1 partition, 1 replica each)\n"
    assert result.stderr.startswith("tarry: a: there")


def test_outcomes_are_printed_as_json(tarry: CommandRunner) -> None:
    result = tarry.run("topics delete a b -y --json")

    assert result.exit_code == 1
    assert '"topic": "a",\n    "done": true' in result.stdout
    assert "topic 'b' does not exist" in result.stderr


def test_topic_ids_are_printed_as_kafka_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    topic = Topic("orders")
    topic.topic_id = bytes.fromhex("54789193ff99479cab35039d4e7d2ecf")

    TopicDescription(topic, []).print(all_configs=False)

    assert "orders  VHiRk_-ZR5yrNQOdTn0uzw  0 partitions" in capsys.readouterr().out
    assert topic_json(topic)["topic_id"] == "VHiRk_-ZR5yrNQOdTn0uzw"

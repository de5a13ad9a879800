"""A group's offsets go from Apache Kafka to Tarry and back by files, as in a move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.test_groups_command_against_kafka import GroupCli, numbers
from tests.support.broker_process import BrokerProcess


@pytest.fixture
def brokers(apache_kafka: str, tmp_path: Path) -> Iterator[tuple[GroupCli, GroupCli]]:
    broker = BrokerProcess(tmp_path / "broker")
    (tmp_path / "broker").mkdir()
    broker.start({})
    yield GroupCli(apache_kafka, is_tarry=False), GroupCli(broker.address, is_tarry=True)
    broker.close()


@pytest.mark.parametrize("direction", ["from Kafka", "to Kafka"])
def test_offsets_are_copied_from_one_broker_to_the_other(
    brokers: tuple[GroupCli, GroupCli], tmp_path: Path, direction: str
) -> None:
    source, target = brokers if direction == "from Kafka" else brokers[::-1]
    # Other tests have the same Apache Kafka.
    topic = group = f"copied-{direction.replace(' ', '-')}"
    for cli in (source, target):
        cli.ok("topics", "create", topic, "-p", "2")
        numbers(cli, topic, 10, 2)
    reset = ["groups", "reset-offsets", group]
    source.ok(*reset, "--topic", f"{topic}:0", "--to-offset", "7", "--execute", "--create")
    source.ok(*reset, "--topic", f"{topic}:1", "--to-offset", "3", "--execute")
    file = tmp_path / "offsets.csv"

    file.write_bytes(source.ok("groups", "export", group))
    target.ok(*reset, "--from-file", str(file), "--execute", "--create")

    assert file.read_text() == f"{topic},0,7\n{topic},1,3\n"
    committed = [one["committed_offset"] for one in target.describe(group)["offsets"]]
    assert committed == [7, 3]
    target.ok("groups", "delete", group, "-y")
    source.ok("groups", "delete", group, "-y")

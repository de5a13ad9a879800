"""`tarry spark waits`: the event log of a broker by the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.spark.told_events import wait_until_told

from tarry.broker.events.kinds import OperationsEvent
from tarry.cli.spark.commands import spark
from tarry.cluster.topic_names import EVENTS_TOPIC
from tarry.testing import Tarry

pytest.importorskip("pyarrow")

# A produce waits where its records are flushed.
EVENTS = {"events.enable": "true", "events.interval.ms": "100", "flush.policy": "commit"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    """A broker whose event log tells of produces."""
    with Tarry(EVENTS) as tarry:
        tarry.topic("orders")
        tarry.send("orders", b"a", b"b", b"c")
        wait_until_told(
            tarry.bootstrap,
            lambda events: any(
                isinstance(one, OperationsEvent)
                and (one.purgatory, one.subject) == ("Produce", "orders")
                for one in events
            ),
        )
        yield tarry


def run(broker: Tarry, *words: str) -> Result:
    return CliRunner().invoke(spark, [*words, "-b", broker.bootstrap])


def test_waits_are_told_as_a_table_and_as_json(broker: Tarry) -> None:
    table = run(broker, "waits", "--purgatory", "Produce", "--of", "orders")
    told = json.loads(run(broker, "waits", "--of", "orders", "--json").stdout)

    assert table.exit_code == 0
    assert table.stdout.splitlines()[0].split()[:3] == ["purgatory", "of", "operations"]
    assert table.stdout.splitlines()[1].split()[:2] == ["Produce", "orders"]
    produce = next(row for row in told["subjects"] if row["purgatory"] == "Produce")
    assert produce["completed"] >= 1
    assert produce["p99"]["at_least_ms"] <= produce["p99"]["at_most_ms"] <= produce["longest_ms"]


def test_a_report_is_a_file(broker: Tarry, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    path = tmp_path / "waits.html"

    told = run(broker, "waits", "--html", str(path))

    assert told.exit_code == 0
    assert f"the report is in {path}" in told.stderr
    assert "<h2>Produce</h2>" in path.read_text()


def test_an_archive_of_the_events_tells_the_same(broker: Tarry, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    made = run(broker, "archive", EVENTS_TOPIC, "--to", lake, "--local")

    told = run(broker, "waits", "--of", "orders", "--archive", lake)
    elsewhere = run(broker, "waits", "--archive", str(tmp_path / "nowhere"))

    assert made.exit_code == 0
    assert told.stdout.splitlines()[1].split()[:2] == ["Produce", "orders"]
    assert elsewhere.exit_code == 1
    assert "has no archive of __tarry_events" in elsewhere.stderr


def test_a_time_of_which_nothing_is_told_is_no_error(broker: Tarry) -> None:
    told = run(broker, "waits", "--since", "2020-01-01", "--until", "2020-01-02")

    assert (told.exit_code, told.stdout) == (0, "")
    assert "no wait in this time" in told.stderr


def test_wrong_times_are_wrong_usage(broker: Tarry) -> None:
    backwards = run(broker, "waits", "--since", "-1h", "--until", "-2h")
    unknown = run(broker, "waits", "--since", "yesterday")
    nothing = run(broker, "waits", "--interval", "0s")

    assert [one.exit_code for one in (backwards, unknown, nothing)] == [2, 2, 2]
    assert "--since is not before --until" in backwards.stderr
    assert "invalid time 'yesterday'" in unknown.stderr
    assert "more than nothing" in nothing.stderr


def test_a_broker_without_an_event_log_is_told() -> None:
    with Tarry() as tarry:
        told = run(tarry, "waits")

    assert told.exit_code == 1
    assert "events.enable=true" in told.stderr

"""`tarry spark waits`, `rebalances` and `lag`: the event log of a broker by the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.spark.told_events import wait_until_told

from tarry.broker.events.kinds import Event, GroupNoteEvent, OperationsEvent
from tarry.cli.spark.commands import spark
from tarry.cluster.state.topic_names import EVENTS_TOPIC
from tarry.testing import Tarry

pytest.importorskip("pyarrow")

EVENTS = {
    "events.enable": "true",
    "events.interval.ms": "100",
    # A produce waits where its records are flushed.
    "flush.policy": "commit",
    "group.min.session.timeout.ms": "500",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    """A broker whose event log tells of produces, and of a group with a member that died."""
    with Tarry(EVENTS) as tarry:
        tarry.topic("orders")
        tarry.send("orders", b"a", b"b", b"c")
        with tarry.consumer(
            "orders",
            group_id="billing",
            # Its commit comes in time on a busy machine too.
            session_timeout_ms=3_000,
            heartbeat_interval_ms=100,
            heartbeat_mode="poll",
            enable_auto_commit=False,
        ) as member:
            while not member.poll(1.0):
                pass
            member.commit({("orders", 0): 1})
            # It polls no more, so nothing is heard of it.
            wait_until_told(
                tarry.bootstrap, lambda events: has_produce(events) and has_death(events)
            )
        yield tarry


def has_produce(events: list[Event]) -> bool:
    places = [(one.purgatory, one.subject) for one in events if isinstance(one, OperationsEvent)]
    return ("Produce", "orders") in places


def has_death(events: list[Event]) -> bool:
    notes = [one.what for one in events if isinstance(one, GroupNoteEvent)]
    return "BecameStable" in notes and "BecameEmpty" in notes


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


def test_rebalances_are_told_with_their_causes(broker: Tarry, tmp_path: Path) -> None:
    table = run(broker, "rebalances", "--html", str(tmp_path / "rebalances.html"))
    as_json = run(broker, "rebalances", "--group", "billing", "--json")
    assert as_json.exit_code == 0, as_json.output
    told = json.loads(as_json.stdout)

    assert table.exit_code == 0
    assert table.stdout.count(" billing ") == len(told["rebalances"])
    assert "1 members died" in table.stderr
    (member,) = told["members"]
    assert (member["end"], member["reason"]) == ("died", "its session ended")
    assert member["joined_ms"] < member["ended_ms"]
    assert told["rebalances"][0]["cause"] == "a member joined"
    assert told["groups"][0]["died"] == 1
    page = (tmp_path / "rebalances.html").read_text()
    assert "<h2>Group billing</h2>" in page
    assert "died: its session ended" in page


def test_lag_is_told_by_the_log_and_by_samples(broker: Tarry, tmp_path: Path) -> None:
    logged = run(broker, "lag", "--html", str(tmp_path / "lag.html"))
    sampled = run(broker, "lag", "--sample", "10ms", "--for", "20ms", "--json")

    assert (logged.exit_code, sampled.exit_code) == (0, 0)
    assert logged.stdout.splitlines()[1].split()[:7] == [
        "billing",
        "orders",
        "0",
        "1",
        "3",
        "2",
        "2",
    ]
    assert "<h2>Group billing</h2>" in (tmp_path / "lag.html").read_text()
    (partition,) = json.loads(sampled.stdout)["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (1, 3, 2)
    assert "Ctrl-C ends it early" in sampled.stderr


def test_a_time_of_sampling_without_samples_is_wrong_usage(broker: Tarry) -> None:
    told = run(broker, "lag", "--for", "5m")

    assert told.exit_code == 2
    assert "--for needs --sample" in told.stderr


@pytest.mark.parametrize("words", [("--since", "-1h"), ("--until", "-1m"), ("--archive", "lake")])
def test_a_sample_of_another_time_is_wrong_usage(broker: Tarry, words: tuple[str, str]) -> None:
    told = run(broker, "lag", "--sample", "10ms", *words)

    assert told.exit_code == 2
    assert "--sample asks the cluster how it is now: leave out --since" in told.stderr


def test_an_archive_of_the_events_tells_the_same(broker: Tarry, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    made = run(broker, "archive", EVENTS_TOPIC, "--to", lake, "--local")

    told = run(broker, "waits", "--purgatory", "Produce", "--archive", lake)
    elsewhere = run(broker, "waits", "--archive", str(tmp_path / "nowhere"))

    assert made.exit_code == 0
    assert told.stdout.splitlines()[1].split()[:2] == ["Produce", "orders"]
    assert elsewhere.exit_code == 1
    assert "has no archive of __tarry_events" in elsewhere.stderr


def test_a_time_of_which_nothing_is_told_is_no_error(broker: Tarry) -> None:
    told = run(broker, "waits", "--since", "2020-01-01", "--until", "2020-01-02")

    assert (told.exit_code, told.stdout) == (0, "")
    assert "no wait in this time" in told.stderr


@pytest.mark.parametrize("command", ["rebalances", "lag"])
def test_nothing_told_makes_a_report_that_says_so(
    broker: Tarry, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "report.html"
    told = run(broker, command, "--until", "2020-01-02", "--html", str(path))

    assert (told.exit_code, told.stdout) == (0, "")
    assert "told" in told.stderr or "tells" in told.stderr
    assert "in this time" in path.read_text()


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
        told = [run(tarry, command) for command in ("waits", "rebalances", "lag")]

    assert [one.exit_code for one in told] == [1, 1, 1]
    assert all("events.enable=true" in one.stderr for one in told)
    assert "--sample 10s" in told[2].stderr


def test_the_health_of_a_pipeline_is_told_from_its_lines(tmp_path: Path) -> None:
    lines, page = tmp_path / "progress.jsonl", tmp_path / "health.html"
    line = {"at": "2026-11-22T12:00:00Z", "stage": "clean", "batch": 1, "records": 50}
    told = {**line, "seconds": 2.0, "lag": 7, "rejected": {"decode": 3}, "late": 0}
    lines.write_text(f"{json.dumps(told)}\n\nnot a line of progress\n")

    table = CliRunner().invoke(spark, ["health", str(lines), "--html", str(page)])
    as_json = CliRunner().invoke(spark, ["health", str(lines), "--json"])
    missing = CliRunner().invoke(spark, ["health", str(tmp_path / "nowhere")])

    assert table.stdout.splitlines()[1].split() == ["clean", "1", "50", "25", "3", "0", "7"]
    assert "passed over" in table.stderr
    assert "<h2>Throughput</h2>" in page.read_text()
    (stage,) = json.loads(as_json.stdout)["stages"]
    assert (stage["rejected"], stage["records_per_second"]) == ({"decode": 3}, 25.0)
    assert missing.exit_code == 1
    assert "nowhere" in missing.stderr

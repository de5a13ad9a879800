"""Pages about archives and replays: their commands that take a Spark, on the Spark of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.spark.page_examples import commands_of, needs_spark, run_line

from tarry.cli.places import parse_fixed_time_ms
from tarry.testing import Tarry

MINUTE_MS = 60_000


@pytest.fixture
def broker() -> Iterator[Tarry]:
    """A broker of these pages' own, which keeps records of the times that they name."""
    settings = {"log.retention.ms": "-1", "log.message.timestamp.after.max.ms": str(2**63 - 1)}
    with Tarry(settings) as tarry:
        yield tarry


def only(lines: list[str], begin: str) -> str:
    """Return the only line that begins so."""
    (line,) = [line for line in lines if line.startswith(begin)]
    return line


@pytest.mark.usefixtures("commands_share_spark")
def test_a_topic_is_archived_and_a_part_of_it_replayed_as_the_pages_say(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
    monkeypatch.chdir(tmp_path)
    archived = commands_of("archive-with-spark.md")
    replayed = commands_of("replay-after-a-bug.md")
    replay = only([line for line in replayed if needs_spark(line)], "tarry spark replay ")
    words = replay.split()
    begin_ms, end_ms = (
        parse_fixed_time_ms(option, words[words.index(option) + 1])
        for option in ("--from", "--until")
    )
    times = [begin_ms - 1, begin_ms, begin_ms + MINUTE_MS, end_ms - 1, end_ms]
    broker.topic("orders")
    with broker.producer() as producer:
        for number, at_ms in enumerate(times):
            producer.send("orders", b"%d" % number, partition=0, timestamp=at_ms)

    told = run_line(only([line for line in archived if needs_spark(line)], "tarry spark archive "))
    whole = run_line(only(archived, "tarry spark verify "))
    run_line(only(replayed, "tarry topics create orders.again "))
    written = run_line(replay)
    again = run_line(replay)

    assert told.startswith("5 records in ")
    assert whole.startswith("whole ")
    assert written == "3 records in orders.again\n"
    assert again.startswith("this replay is finished: 3 records in orders.again.")
    found = [(record.value, record.timestamp) for record in broker.records("orders.again")]
    assert found == [(b"%d" % number, times[number]) for number in (1, 2, 3)]

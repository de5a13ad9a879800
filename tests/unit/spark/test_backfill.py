"""A backfill without Spark: what it stands for, what it reads, and what it refuses."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.spark.archive.contents import ArchiveContents
from tarry.spark.archive.manifest import ArchivedFile, OffsetSpan
from tarry.spark.backfill.backfill import NEVER_MS, BackfillOptions
from tarry.spark.backfill.closed import watermark_ms
from tarry.spark.backfill.plan import (
    AskedBackfill,
    BackfillRefused,
    FrozenBackfill,
    WindowSpan,
    choose_aggregate,
    files_of,
    lacking,
    rest_of,
    share_out,
    spans_of,
)
from tarry.spark.backfill.results import moment_of
from tarry.spark.backfill.state import (
    BackfillState,
    ResultCounts,
    numbers_of,
    remove_old,
    state_path,
)
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.reading.plan import ReadRange

DAY_MS = 24 * 3_600_000
HOUR_MS = 3_600_000
NOON_MS = 1_760_000_000_000 // DAY_MS * DAY_MS + 12 * HOUR_MS

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"] }
decode = { format = "text" }
clean = { topic = "orders.clean", rejected = "orders.rejected" }
"""
AGGREGATE = """\
[[aggregate]]
name = "%s"
window = "1h"
values = { orders = "count(*)" }
topic = "%s"
"""


def pipeline(tmp_path: Path, *names: str) -> Pipeline:
    path = tmp_path / "orders.toml"
    path.write_text(FILE + "".join(AGGREGATE % (name, name) for name in names))
    return read_pipeline(path, {})


def asked(**changed: Any) -> AskedBackfill:
    given: dict[str, Any] = {"window": "1h", "name": "revenue"} | changed
    time = given.pop("time", None)
    return AskedBackfill("orders", given, {"time": time}, "clean", "/lake")


def frozen(*spans: OffsetSpan, **changed: Any) -> FrozenBackfill:
    return FrozenBackfill("id", asked(**changed), list(spans), NOON_MS)


def file(hours: int, first: int, end: int) -> ArchivedFile:
    """A file of records of an hour, so many hours from noon."""
    time = datetime.fromtimestamp(NOON_MS / 1000, UTC) + timedelta(hours=hours)
    path = f"topic=clean/date={time:%Y-%m-%d}/hour={time:%H}/{first}.parquet"
    return ArchivedFile(path, "", "clean", 0, first, end, end - first, 100, "")


def contents(*files: ArchivedFile) -> ArchiveContents:
    bounds = (min(one.first for one in files), max(one.end for one in files))
    return ArchiveContents("hour", {("clean", 0): list(files)}, {("clean", 0): bounds})


# --- What is asked.


def test_the_only_aggregate_needs_no_name(tmp_path: Path) -> None:
    assert choose_aggregate(pipeline(tmp_path, "revenue"), None).name == "revenue"


@pytest.mark.parametrize(
    ("names", "name", "sentence"),
    [
        ((), None, "has no \\[\\[aggregate"),
        (("revenue", "visits"), None, "name one of the aggregates.*: revenue, visits"),
        (("revenue", "visits"), "revenu", "no aggregate 'revenu'; did you mean revenue"),
        (("revenue", "visits"), "x", "no aggregate 'x'; there are revenue, visits"),
    ],
)
def test_another_aggregate_is_refused(
    tmp_path: Path, names: tuple[str, ...], name: str | None, sentence: str
) -> None:
    with pytest.raises(BackfillRefused, match=sentence):
        choose_aggregate(pipeline(tmp_path, *names), name)


def test_times_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(BackfillRefused, match="is not before its end"):
        BackfillOptions(from_ms=5, until_ms=5)


# --- Offsets.


def test_offsets_begin_with_the_archive_and_end_with_the_log() -> None:
    held = contents(file(0, 5, 20))
    starts, ends = {("clean", 0): 12, ("clean", 1): 3}, {("clean", 0): 25, ("clean", 1): 9}

    spans = spans_of("clean", held, starts, ends)

    assert spans == [OffsetSpan(0, 5, 25), OffsetSpan(1, 3, 9)]
    assert rest_of(frozen(*spans), held) == [
        ReadRange("clean", 0, 20, 25),
        ReadRange("clean", 1, 3, 9),
    ]


def test_an_archive_that_has_all_of_the_log_is_whole_and_leaves_nothing_to_be_read() -> None:
    held = contents(file(0, 0, 20))

    spans = spans_of("clean", held, {("clean", 0): 20}, {("clean", 0): 20})

    assert spans == [OffsetSpan(0, 0, 20)]
    assert rest_of(frozen(*spans), held) == []
    # The log begins where the archive ends, or behind what is asked for.
    for start, end in ((20, 30), (25, 20)):
        assert lacking("clean", [OffsetSpan(0, 0, end)], held, {("clean", 0): start}, {}) == []
    assert lacking("clean", [OffsetSpan(0, 0, 21)], held, {("clean", 0): 21}, {}) == [
        "clean [0] lacks offsets 20 to 21"
    ]


def test_an_archive_of_other_topics_or_of_more_than_the_log_is_refused() -> None:
    held = contents(file(0, 0, 20))

    with pytest.raises(BackfillRefused, match=r"no topic 'visits'.*; it has clean"):
        spans_of("visits", held, {}, {})
    with pytest.raises(BackfillRefused, match="up to offset 20, and the log ends at 10"):
        spans_of("clean", held, {("clean", 0): 0}, {("clean", 0): 10})


def test_records_that_nobody_has_are_told() -> None:
    held = contents(file(0, 5, 20))
    spans = [OffsetSpan(0, 5, 40)]

    told = lacking("clean", spans, held, {("clean", 0): 30}, {("clean", 0): 7})
    whole = lacking(
        "clean", [OffsetSpan(0, 0, 40)], contents(file(0, 0, 20)), {("clean", 0): 9}, {}
    )

    assert told == [
        "clean [0] begins at offset 5",
        "clean [0] lacks 7 offsets that were lost before",
        "clean [0] lacks offsets 20 to 30",
    ]
    assert whole == []


# --- Files.


@pytest.mark.parametrize(
    ("changed", "hours"),
    [
        # Events are as old as their records.
        ({}, [9, 10, 11, 12]),
        # An event is a day ahead of its record at most, and late without a bound.
        ({"time": "at"}, [-15, -14, 8, 9, 10, 11, 12, 13, 40]),
        # A session may begin at any time.
        ({"window": None}, [-16, -15, -14, 8, 9, 10, 11, 12, 13, 40]),
    ],
)
def test_files_are_those_that_may_have_events_of_the_windows(
    changed: dict[str, Any], hours: list[int]
) -> None:
    # Those on both sides of a bound end or begin exactly there.
    every = [-16, -15, -14, 8, 9, 10, 11, 12, 13, 40]
    held = contents(*(file(hour, place * 10, place * 10 + 10) for place, hour in enumerate(every)))
    ten_ms, twelve_ms = NOON_MS + 10 * HOUR_MS, NOON_MS + 12 * HOUR_MS

    found = files_of(
        frozen(OffsetSpan(0, 0, 100), **changed), held, WindowSpan(ten_ms, twelve_ms, 2**60)
    )

    assert [every[one.first // 10] for one, _ in found] == hours


def test_windows_that_are_open_need_no_records_of_later_times() -> None:
    held = contents(file(-1, 0, 10), file(0, 10, 20))

    found = files_of(frozen(OffsetSpan(0, 0, 20)), held, WindowSpan(None, None, NOON_MS))

    assert [one.first for one, _ in found] == [0]


def test_files_before_the_first_offset_and_behind_the_last_one_are_left_out() -> None:
    held = contents(file(-1, 0, 10), file(-1, 10, 20), file(-1, 20, 30))

    found = files_of(frozen(OffsetSpan(0, 10, 20)), held, WindowSpan(None, None, NOON_MS))

    assert [one.first for one, _ in found] == [10]


def test_tasks_have_files_of_about_one_size() -> None:
    files = [(file(0, number, number + 1), OffsetSpan(0, 0, 9)) for number in range(7)]

    assert [len(task) for task in share_out(files, 250)] == [3, 3, 1]


@pytest.mark.parametrize(("bound_ms", "hours"), [(0, [9, 10]), (1, [9, 10, 11]), (-1, [9, 10])])
def test_records_at_a_bound_are_those_of_windows_before_it(bound_ms: int, hours: list[int]) -> None:
    """Of windows that end by 11 o'clock no record is of 11 o'clock: windows are half open."""
    every = [9, 10, 11]
    held = contents(*(file(hour, place * 10, place * 10 + 10) for place, hour in enumerate(every)))
    closed_ms = NOON_MS + 11 * HOUR_MS + bound_ms

    found = files_of(frozen(OffsetSpan(0, 0, 30)), held, WindowSpan(None, None, closed_ms))

    assert [every[one.first // 10] for one, _ in found] == hours


# --- Where the stream is.


def checkpoint(path: Path, *batches: tuple[int, bool]) -> None:
    for name in ("offsets", "commits"):
        (path / name).mkdir()
    for number, (watermark, is_done) in enumerate(batches):
        metadata = json.dumps({"batchWatermarkMs": watermark, "conf": {}})
        (path / "offsets" / str(number)).write_text(f"v1\n{metadata}\n{{}}\n")
        if is_done:
            (path / "commits" / str(number)).write_text("v1\n{}")


def test_a_stage_has_closed_what_its_last_done_batch_closed(tmp_path: Path) -> None:
    checkpoint(tmp_path, (0, True), (1_000, True), (2_000, False))

    assert watermark_ms(tmp_path) == 1_000


def test_a_stage_that_never_ran_has_closed_nothing(tmp_path: Path) -> None:
    assert watermark_ms(tmp_path / "nothing") is None


def test_a_bound_that_no_event_reaches_is_a_time_all_the_same() -> None:
    # Without any event that is well nothing is closed; and a user may give any number.
    assert moment_of(NEVER_MS) == datetime(2, 1, 1, tzinfo=UTC)
    assert moment_of(10**18).year == 9998
    assert moment_of(NOON_MS + 1) == datetime(2025, 10, 9, 12, 0, 0, 1_000, tzinfo=UTC)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, (1_000, True))
    (tmp_path / "offsets" / "0").write_text("v1\n")

    with pytest.raises(BackfillRefused, match="does not tell how far the stage has come"):
        watermark_ms(tmp_path)


# --- State.


def test_the_first_start_freezes_a_run(tmp_path: Path) -> None:
    path = state_path(tmp_path, asked())
    first = BackfillState(path, 1).freeze(asked(), [OffsetSpan(0, 0, 9)], NOON_MS)
    second = BackfillState(path, 1).freeze(asked(), [OffsetSpan(0, 0, 99)], NOON_MS + 1)

    assert second == first
    assert numbers_of(path) == [1]
    assert state_path(tmp_path, asked(window="2h")) != path


def test_counts_are_those_of_its_last_computation(tmp_path: Path) -> None:
    state = BackfillState(tmp_path, 1)
    state.freeze(asked(), [], 0)
    state.note(ResultCounts(windows=5, new=5))
    state.note(ResultCounts(windows=5, new=4, changed=1))

    assert state.counts() == ResultCounts(windows=5, new=4, changed=1)


def test_counts_are_durable_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = BackfillState(tmp_path, 1)
    state.freeze(asked(), [], 0)
    flushed: dict[int, int] = {}
    named: list[bool] = []
    flush, rename = os.fsync, os.replace

    def noting_flush(descriptor: int) -> None:
        found = os.fstat(descriptor)
        flushed[found.st_ino] = found.st_size
        flush(descriptor)

    def noting_rename(source: Path, target: Path) -> None:
        found = source.stat()
        named.append(flushed.get(found.st_ino) == found.st_size)
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noting_flush)
    monkeypatch.setattr(os, "replace", noting_rename)
    state.note(ResultCounts(windows=5))

    assert named == [True]
    assert state.counts() == ResultCounts(windows=5)


def test_files_of_killed_starts_and_old_runs_go(tmp_path: Path) -> None:
    for number in range(1, 13):
        state = BackfillState(tmp_path, number)
        state.freeze(asked(), [], 0)
        (state.path / "task-1.batches").touch()
        state.finish(ResultCounts())
    remove_old(tmp_path)

    assert numbers_of(tmp_path) == list(range(3, 13))
    assert list(tmp_path.glob("*/task-*")) == []
    assert BackfillState(tmp_path, 12).finished() == ResultCounts()


def test_a_damaged_state_says_what_to_do(tmp_path: Path) -> None:
    state = BackfillState(tmp_path, 1)
    state.freeze(asked(), [], 0)
    (state.path / "backfill.json").write_text("{")

    with pytest.raises(BackfillRefused, match=f"Remove {tmp_path}, and the next start"):
        state.frozen()

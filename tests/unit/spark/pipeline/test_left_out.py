"""Ranges that a stage left out: what sources note, as progress takes it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tarry.spark.pipeline.left_out import LeftOut
from tarry.spark.reading.loss import DataLost, LostOffsets, LostRange, note_lost, raise_or_tell

GONE = LostRange("orders", 1, 3, 9, "the log starts at 9")
CUT = LostRange("orders", 0, 6, 10, "read before: the log was cut", was_read=True)
DELETED = LostRange("payments", 0, 5, None, "the topic was deleted")


def offsets(*lost: LostRange) -> list[LostOffsets]:
    return [LostOffsets(one.topic, one.partition, one.first, one.end, one.reason) for one in lost]


def test_each_range_is_taken_once_though_a_micro_batch_notes_it_again(tmp_path: Path) -> None:
    path = tmp_path / "clean.lost.jsonl"
    note_lost([DELETED], str(path))
    left_out = LeftOut(path)

    # Rows that an earlier run left out do not count for this one.
    assert left_out.take() == []
    note_lost([GONE, CUT], str(path))
    assert left_out.take() == offsets(GONE, CUT)
    note_lost([CUT, DELETED], str(path))
    assert left_out.take() == offsets(DELETED)
    assert left_out.take() == []


def test_a_line_that_is_not_whole_yet_is_taken_later_and_a_broken_one_never(
    tmp_path: Path,
) -> None:
    path = tmp_path / "clean.lost.jsonl"
    left_out = LeftOut(path)
    assert left_out.take() == []
    note_lost([GONE, CUT], str(path))
    whole = path.read_bytes()

    path.write_bytes(whole[:-20])
    assert left_out.take() == offsets(GONE)
    path.write_bytes(whole[:-20] + b"\n")
    note_lost([DELETED], str(path))
    assert left_out.take() == offsets(DELETED)


def test_a_file_that_does_not_take_it_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tarry.spark"):
        raise_or_tell([GONE, CUT], is_failure=False, file=str(tmp_path))

    told = [record.getMessage() for record in caplog.records]
    assert "not read, because failOnDataLoss is false: orders [1] from offset 3 to 9" in told[0]
    assert told[1].startswith("read, and gone since; reading goes on at the first of these offs")
    assert told[2] == f"{tmp_path} does not take what was left out: Is a directory"


def test_nothing_is_left_out_where_a_loss_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "clean.lost.jsonl"

    with pytest.raises(DataLost, match="What the query made of records that are gone stays"):
        raise_or_tell([GONE, CUT], is_failure=True, file=str(path))
    raise_or_tell([], is_failure=False, file=str(path))

    assert not path.exists()

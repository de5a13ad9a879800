"""Rows of one partition out of many files: those of a range, by their offsets."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tarry.spark.archive import ordered_rows as module
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused
from tarry.spark.archive.ordered_rows import FileRows, most_at_once, ordered_rows

pytest.importorskip("pyarrow")
import pyarrow as pa
import pyarrow.parquet as pq


def write(path: Path, number: int, offsets: list[int]) -> ArchivedFile:
    name = f"{number}.parquet"
    table = pa.table({"offset": pa.array(offsets, pa.int64()), "file": [number] * len(offsets)})
    # Several row groups, so that some of them are left out.
    pq.write_table(table, path / name, row_group_size=4)
    size = (path / name).stat().st_size
    return ArchivedFile(name, "", "t", 0, offsets[0], offsets[-1] + 1, len(offsets), size, "")


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    owners=st.lists(st.integers(-1, 3), min_size=1, max_size=60),
    bounds=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    batch_rows=st.integers(1, 7),
    open_max=st.sampled_from([1, 2, 100]),
)
def test_files_with_offsets_in_turns_are_merged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owners: list[int],
    bounds: tuple[int, int],
    batch_rows: int,
    open_max: int,
) -> None:
    # The file of each offset; -1: the log has no record there.
    by_file = {
        number: [offset for offset, owner in enumerate(owners) if owner == number]
        for number in range(4)
    }
    files = [write(tmp_path, number, offsets) for number, offsets in by_file.items() if offsets]
    first, end = min(bounds), max(bounds)
    monkeypatch.setattr(module, "ROWS_MAX", batch_rows)
    monkeypatch.setattr(module, "OPEN_FILES_MAX", open_max)
    monkeypatch.setattr(module, "SLICE_ROWS", batch_rows)

    found = [
        (row["offset"], row["file"])
        for rows in ordered_rows(tmp_path, files, first, end)
        for row in rows.to_pylist()
    ]

    assert found == [
        (offset, owner)
        for offset, owner in enumerate(owners)
        if owner >= 0 and first <= offset < end
    ]


def test_few_of_many_files_with_offsets_in_turns_are_open_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path, number, list(range(number, 400, 20))) for number in range(20)]
    monkeypatch.setattr(module, "OPEN_FILES_MAX", 8)
    opened: list[int] = []

    class CountedRows(FileRows):
        def __init__(self, *given: Any) -> None:
            opened.append(1)
            super().__init__(*given)

        def close(self) -> None:
            opened.append(-1)
            super().close()

    monkeypatch.setattr(module, "FileRows", CountedRows)

    found = [
        offset
        for rows in ordered_rows(tmp_path, files, 0, 400)
        for offset in rows.column("offset").to_pylist()
    ]

    assert found == list(range(400))
    assert most_at_once(files) == 20
    assert max(accumulate(opened)) <= 8


def test_a_file_that_is_gone_or_cut_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, 0, [1, 2])
    (tmp_path / file.path).write_bytes(b"PAR1")

    with pytest.raises(ArchiveRefused, match=r"has 4 bytes, and the archive wrote"):
        list(ordered_rows(tmp_path, [file], 0, 9))
    (tmp_path / file.path).unlink()
    with pytest.raises(ArchiveRefused, match="is missing: bring it back"):
        list(ordered_rows(tmp_path, [file], 0, 9))

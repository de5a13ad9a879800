"""Ordered rows: those of one partition, out of the files of an archive, by their offsets.

Files of one partition may hold offsets in turns, since the time of a record decides its file.  Each
file is sorted, so they are merged, and only batches that are in turn are in memory.  Very many such
files are read one after the other, slice by slice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX: Final = 16_384
# So many files that are read side by side have batches of full size.
FULL_FILES_MAX: Final = 16
BUFFER_BYTES: Final = 64 * 1024

# Files that are open at once; a process may often open a thousand.
OPEN_FILES_MAX: Final = 256
# Rows of a slice, about, where more files than that have offsets in turns.
SLICE_ROWS: Final = 262_144
OFFSET: Final = "offset"


def ordered_rows(
    path: Path, files: Sequence[ArchivedFile], first: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition with offsets from `first` to before `end`, in order.

    `path` is the archive's.  Raises ArchiveRefused for a file that is missing or has another size.
    """
    waiting = [file for file in files if file.first < end and file.end > first]
    waiting.sort(key=lambda file: file.first)
    most = most_at_once(waiting)
    if most > OPEN_FILES_MAX:
        return _by_slices(path, waiting, first, end)
    # Many files have few rows each in memory.
    rows_max = max(1, ROWS_MAX * FULL_FILES_MAX // max(most, FULL_FILES_MAX))
    return _in_turn(path, waiting, (first, end), rows_max)


def most_at_once(files: Iterable[ArchivedFile]) -> int:
    """Return how many files at most have an offset in common."""
    # An end comes before a begin at the same offset.
    steps = sorted([(file.first, 1) for file in files] + [(file.end, -1) for file in files])
    return max(accumulate(step for _, step in steps), default=0)


def _in_turn(
    path: Path, waiting: list[ArchivedFile], bounds: tuple[int, int], rows_max: int
) -> Iterator[pa.RecordBatch]:
    """Read files side by side, each as far as it is in turn."""
    opened: list[FileRows] = []
    try:
        while waiting or opened:
            if not opened:
                opened.append(FileRows(path, waiting.pop(0), bounds, rows_max))
            last = min((one.last for one in opened if one.is_open), default=-1)
            while waiting and waiting[0].first <= last:
                opened.append(FileRows(path, waiting.pop(0), bounds, rows_max))
                if opened[-1].is_open:
                    last = min(last, opened[-1].last)
            yield from _merged([one.take(last) for one in opened if one.is_open])
            opened = [one for one in opened if one.is_open]
    finally:
        for one in opened:
            one.close()


def _by_slices(
    path: Path, files: list[ArchivedFile], first: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Read one file after the other, for one slice of offsets after the other.

    A file is read as often as it has slices, which costs time and neither files nor memory.
    """
    first, end = max(first, files[0].first), min(end, max(file.end for file in files))
    span = max(file.end for file in files) - files[0].first
    size = max(1, span * SLICE_ROWS // sum(file.rows for file in files))
    for begin in range(first, end, size):
        bounds = begin, min(begin + size, end)
        parts: list[pa.RecordBatch] = []
        for file in files:
            if file.first < bounds[1] and file.end > begin:
                rows = FileRows(path, file, bounds, ROWS_MAX)
                while rows.is_open:
                    parts.append(rows.take(rows.last))
        yield from _merged(parts)


def _merged(parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow.compute as pc

    parts = [part for part in parts if part.num_rows]
    if len(parts) < 2:
        yield from parts
        return
    # The same columns, whatever wrote the file.
    parts = [part.select(parts[0].schema.names).cast(parts[0].schema) for part in parts]
    table = load_pyarrow().Table.from_batches(parts)
    yield from table.take(pc.sort_indices(table.column(OFFSET))).combine_chunks().to_batches()


class FileRows:
    """Rows of one file that are still to be taken; `is_open` while there are any."""

    def __init__(
        self, path: Path, file: ArchivedFile, bounds: tuple[int, int], rows_max: int
    ) -> None:
        import pyarrow.parquet as pq

        where = path / file.path
        check_size(where, file)
        # Without a buffer all of a row group is read with its first rows.
        is_one_of_many = rows_max < ROWS_MAX
        self._file: Any = pq.ParquetFile(where, buffer_size=BUFFER_BYTES if is_one_of_many else 0)
        self._first, self._end = bounds
        groups = _groups_within(self._file.metadata, *bounds)
        self._batches: Any = self._file.iter_batches(rows_max, row_groups=groups)
        self._rows: Any = None
        self.is_open = True
        # Offset of the last row at hand.
        self.last = -1
        self._advance()

    def take(self, last: int) -> pa.RecordBatch:
        """Take the rows at hand up to this offset."""
        rows = self._rows
        count = bisect_right(rows.column(OFFSET), last, key=_as_number)
        self._rows = rows.slice(count)
        if count == rows.num_rows:
            self._advance()
        return rows.slice(0, count)

    def close(self) -> None:
        """Close the file."""
        self.is_open = False
        self._file.close()

    def _advance(self) -> None:
        for batch in self._batches:
            offsets = batch.column(OFFSET)
            begin = bisect_left(offsets, self._first, key=_as_number)
            behind = bisect_left(offsets, self._end, key=_as_number)
            if begin < behind:
                self._rows = batch.slice(begin, behind - begin)
                self.last = offsets[behind - 1].as_py()
                return
        self.close()


def check_size(path: Path, file: ArchivedFile) -> None:
    """Refuse a file that is not there, or not as large as its manifest says."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise ArchiveRefused(
            f"{path} is missing: bring it back from a backup; `tarry spark verify` tells what else "
            "is wrong"
        ) from None
    if size != file.bytes:
        raise ArchiveRefused(
            f"{path} has {size} bytes, and the archive wrote {file.bytes}: bring it back from a "
            "backup"
        )


def _as_number(scalar: Any) -> int:
    number: int = scalar.as_py()
    return number


def _groups_within(metadata: Any, first: int, end: int) -> list[int]:
    """Return the row groups that have offsets of a range."""
    column = metadata.schema.names.index(OFFSET)
    found: list[int] = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(column).statistics
        is_known = statistics is not None and statistics.has_min_max
        if not is_known or (statistics.min < end and statistics.max >= first):
            found.append(group)
    return found

"""Job `compact`: small files of an archive become larger ones, directory by directory."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tarry.spark.archive.archive import COMPRESSIONS
from tarry.spark.archive.compactions import FileCompaction
from tarry.spark.archive.contents import read_contents
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused
from tarry.spark.archive.merging import MergeTask, directory_of, merge_files, mergeable
from tarry.spark.archive.workers import OwnWorker, SparkWorkers, Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tarry.spark")

TARGET_BYTES: Final = 128 * 1024 * 1024
REPLACED_KEPT_SECONDS: Final = 3600

# Compactions whose replaced files are removed under one lock.
REMOVED_AT_ONCE: Final = 64

# Files that workers read before the directories they are of are changed.
WAVE_BYTES: Final = 2 * 1024 * 1024 * 1024


@dataclass(frozen=True)
class CompactOptions:
    """Options of a compaction."""

    # Size that merged files come near to; files of less than half of it are merged.
    target_bytes: int = TARGET_BYTES
    compression: str = "zstd"
    # How long replaced files are kept out of sight, for readers that had listed them.
    replaced_kept_seconds: float = REPLACED_KEPT_SECONDS

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise ArchiveRefused(
                f"compression={self.compression!r} is none of {', '.join(COMPRESSIONS)}"
            )
        if self.target_bytes < 1:
            raise ArchiveRefused("a file has one byte at the least")


@dataclass
class CompactSummary:
    """Sums of what a compaction has merged."""

    directories: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records: int = 0

    def add(self, compaction: FileCompaction) -> None:
        """Count a directory."""
        self.directories += 1
        self.files_before += len(compaction.replaced)
        self.files_after += len(compaction.files)
        self.bytes_before += sum(file.bytes for file in compaction.replaced)
        self.bytes_after += sum(file.bytes for file in compaction.files)
        self.records += sum(file.rows for file in compaction.files)


def compact(
    spark: SparkSession | None, path: Path, options: CompactOptions | None = None
) -> Iterator[CompactSummary]:
    """Merge small files of the archive at `path`; yield the sums after each directory.

    A run that is killed leaves the archive whole, and two runs may be at it at the same time.
    """
    workers = OwnWorker() if spark is None else SparkWorkers(spark)
    yield from Compactor(workers, ArchiveDirectory(path), options or CompactOptions()).run()


class Compactor:
    """Run of the job, in a directory."""

    def __init__(
        self, workers: Workers, directory: ArchiveDirectory, options: CompactOptions
    ) -> None:
        self._workers = workers
        self._directory = directory
        self._options = options
        # Paths of the files that were replaced since the run began, up to a compaction's number.
        self._gone: dict[str, None] = {}
        self._known = 0

    def run(self) -> Iterator[CompactSummary]:
        """Merge what is small now."""
        directory, options = self._directory, self._options
        directory.bound()
        self._known = max(directory.compactions.numbers(), default=0)
        contents = read_contents(directory)
        # Rounds that came in meanwhile are brought into the table, if there is one.
        directory.newest()
        files = [file for placed in contents.files.values() for file in placed]
        directory.compactions.check_table(files)
        summary = CompactSummary()
        for wave in _waves(mergeable(files, options.target_bytes)):
            run = directory.new_run()
            try:
                for compaction in self._wave(run, wave):
                    summary.add(compaction)
                    yield summary
            finally:
                directory.drop(run)
        numbers = directory.compactions.numbers()
        # In parts: whoever waits for the lock does not wait for all of it.
        for first in range(0, len(numbers), REMOVED_AT_ONCE):
            part = numbers[first : first + REMOVED_AT_ONCE]
            with directory.compactions.lock(is_needed=True):
                directory.compactions.settle()
                directory.compactions.remove_replaced(part, options.replaced_kept_seconds)

    def _wave(self, run: str, wave: Sequence[list[list[ArchivedFile]]]) -> Iterator[FileCompaction]:
        """Merge the files of some directories, and change each of these."""
        tasks = [
            MergeTask(
                str(self._directory.path),
                run,
                self._options.compression,
                number,
                directory_of(groups[0][0]),
                groups,
            )
            for number, groups in enumerate(wave)
        ]
        try:
            told = self._workers.each(
                lambda number: msgspec.json.encode(merge_files(tasks[number])), len(tasks)
            )
        except Exception:
            if not self._are_gone([file for task in tasks for file in _files(task)]):
                raise
            # What is left of them is merged by the next run.
            log.warning("files of %d directories were merged by another run", len(tasks))
            return
        for task, one in zip(tasks, told, strict=True):
            files = msgspec.json.decode(one, type=list[ArchivedFile])
            compaction = self._commit(task, files)
            if compaction is not None:
                yield compaction

    def _commit(self, task: MergeTask, files: list[ArchivedFile]) -> FileCompaction | None:
        """Make new files count in place of others; None if another run has merged some of them."""
        compactions = self._directory.compactions
        replaced = _files(task)
        with compactions.lock(is_needed=True):
            compactions.settle()
            if self._are_gone(replaced):
                log.warning("files of %s were merged by another run", task.directory)
                return None
            number = max(compactions.numbers(), default=0) + 1
            now_ms = int(time.time() * 1000)
            compaction = FileCompaction(number, now_ms, task.directory, replaced, files)
            compactions.commit(compaction)
            compactions.settle()
        return compaction

    def _are_gone(self, files: Sequence[ArchivedFile]) -> bool:
        """Return whether a compaction has replaced one of these files since the run began."""
        # Each is read once: a run makes one for each directory.
        for compaction in self._directory.compactions.since(self._known):
            self._gone.update((file.path, None) for file in compaction.replaced)
            self._known = compaction.number
        return any(file.path in self._gone for file in files)


def _files(task: MergeTask) -> list[ArchivedFile]:
    return [file for group in task.groups for file in group]


def _waves(groups: Sequence[list[ArchivedFile]]) -> Iterator[list[list[list[ArchivedFile]]]]:
    """Yield the groups of some directories at a time, those of one directory together."""
    by_directory: dict[str, list[list[ArchivedFile]]] = {}
    for group in groups:
        by_directory.setdefault(directory_of(group[0]), []).append(group)
    wave: list[list[list[ArchivedFile]]] = []
    size = 0
    for placed in by_directory.values():
        wave.append(placed)
        size += sum(file.bytes for group in placed for file in group)
        if size >= WAVE_BYTES:
            yield wave
            wave, size = [], 0
    if wave:
        yield wave

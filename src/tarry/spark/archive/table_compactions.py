"""Compactions of an archive with a Delta table: merged files take the others' place in its log.

A compaction counts when its manifest is there; then its files are moved beside those that they
replace, and one commit of the table removes these and adds those, without a change of data.  The
commit bears the number of the compaction, as that of a round bears its own.  Replaced files stay
for a while: older versions of the table have them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tarry.spark.archive.compactions import FileCompaction, FileCompactions
from tarry.spark.archive.delta import ArchiveTable
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused
from tarry.spark.durable_files import flush_directory


class TableCompactions(FileCompactions):
    """Compactions of the archive at `path`, whose table is laid out `by` hour, day or none."""

    def __init__(self, path: Path, by: str) -> None:
        super().__init__(path)
        self.by = by
        # Newest one that the table was seen to have: what it has stays, and a look reads its log.
        self._done = 0

    def settle(self) -> None:
        """Bring the newest compaction into the table, wherever its run was killed; the lock is
        held."""
        compaction = self.unsettled()
        if compaction is None:
            return
        self.move_files(compaction)
        self.table().merge(compaction.number, compaction.replaced, compaction.files)
        self._done = max(self._done, compaction.number)

    def move_files(self, compaction: FileCompaction) -> None:
        """Move merged files to their place, where nothing names them yet."""
        for file in compaction.files:
            path = self.path / file.path
            if not path.exists():
                with suppress(FileNotFoundError):
                    os.rename(self.path / file.staged, path)
            if not path.exists():
                raise ArchiveRefused(
                    f"{path} is missing, which compaction {compaction.number} of the archive has "
                    "written: bring it back from a backup"
                )
        flush_directory(self.path / compaction.directory)

    def check_table(self, files: Iterable[ArchivedFile]) -> None:
        """Refuse a table that something else has rewritten: its log names other files then."""
        table = self.table()
        known = table.paths(table.snapshot())
        for file in files:
            if file.path not in known:
                raise ArchiveRefused(
                    f"the Delta table {self.path} does not have {file.path} any more: something "
                    "else has rewritten it (OPTIMIZE, DELETE). Let that merge its files; this job "
                    "merges what the archive has written"
                )

    def remove_replaced(self, numbers: Iterable[int], kept_seconds: float) -> None:
        """Remove files that these compactions replaced so long ago, which the newest version does
        not have."""
        before_ms = (time.time() - kept_seconds) * 1000
        for number in numbers:
            compaction = self.read(number)
            if compaction.made_ms <= before_ms:
                for file in compaction.replaced:
                    with suppress(FileNotFoundError):
                        (self.path / file.path).unlink()

    def table(self) -> ArchiveTable:
        """Return the table."""
        return ArchiveTable(self.path, self.by)

    def _is_done(self, compaction: FileCompaction) -> bool:
        if compaction.number > self._done:
            table = self.table()
            self._done = table.compaction_of(table.snapshot())
        return compaction.number <= self._done

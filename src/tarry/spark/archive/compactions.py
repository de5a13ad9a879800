"""Compactions of an archive: files that took the place of others, directory by directory.

A compaction counts when its manifest is there; then the directory of its files is changed for a
twin that has the new files in place of the old ones.  Both have each record once, and where the
file system can exchange two directories, a reader finds one or the other.

Whoever changes what readers see has the archive's lock: a file that a round publishes is never
moved into a directory that is just going.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.archive.exchange import exchange
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused, check_version
from tarry.spark.durable_files import create_if_absent, encode, flush_directory, make_directories
from tarry.spark.file_locks import LockHeld, held

COMPACTIONS: Final = "_tarry/compactions"
TWINS: Final = "_tarry/twins"
LOCK: Final = "_tarry/lock"

# Who has the lock moves files of one directory, or writes a commit of a table.
LOCK_SECONDS_MAX: Final = 120.0


class ArchiveLocked(ArchiveRefused):
    """Another process keeps the archive's lock; another start may find it free."""


class FileCompaction(msgspec.Struct, frozen=True):
    """Compaction of one directory: `files` hold what `replaced` held."""

    number: int
    made_ms: int
    directory: str
    replaced: list[ArchivedFile]
    files: list[ArchivedFile]
    version: int = 1


class FileCompactions:
    """Compactions of the archive at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def numbers(self) -> list[int]:
        """Return the numbers of the compactions that count, in order."""
        with suppress(FileNotFoundError):
            names = os.listdir(self.path / COMPACTIONS)
            return sorted(int(name[:-5]) for name in names if name[:-5].isdigit())
        return []

    def read(self, number: int) -> FileCompaction:
        """Read one.  Raises ArchiveRefused if it is damaged."""
        path = self._manifest(number)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=FileCompaction)
        except msgspec.MsgspecError as error:
            raise ArchiveRefused(
                f"{path} cannot be read: {error}. Bring it back from a backup; without it nobody "
                "knows which files the archive has"
            ) from None
        check_version(found.version, str(path))
        return found

    def since(self, number: int) -> list[FileCompaction]:
        """Read all behind a number, in order."""
        return [self.read(one) for one in self.numbers() if one > number]

    @contextmanager
    def lock(self, *, is_needed: bool) -> Iterator[None]:
        """Have the archive's lock, which ends with the process at the latest.

        Where the file system has no locks there are no compactions, and nothing needs it.  Raises
        ArchiveLocked where another process keeps it: one that was stopped would for ever.
        """
        make_directories((self.path / LOCK).parent)
        try:
            with held(self.path / LOCK, LOCK_SECONDS_MAX) as has_locks:
                if is_needed and not has_locks:
                    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(self.path / LOCK))
                yield
        except LockHeld as other:
            raise ArchiveLocked(
                f"process {other.owner} has had the lock of the archive {self.path} for "
                f"{LOCK_SECONDS_MAX:.0f} s: see whether it stands still, let it go on or end it, "
                "and start the same command again. Nothing is lost: what was archived counts"
            ) from None

    def is_settled(self) -> bool:
        """Return whether readers see what the newest compaction made."""
        return self.unsettled() is None

    def unsettled(self) -> FileCompaction | None:
        """Return the newest compaction, unless readers see what it made, or there is none."""
        numbers = self.numbers()
        if not numbers:
            return None
        newest = self.read(numbers[-1])
        return None if self._is_done(newest) else newest

    def commit(self, compaction: FileCompaction) -> None:
        """Make a compaction count; the lock is held, and the one before is settled."""
        make_directories(self.path / COMPACTIONS)
        is_ours = create_if_absent(self._manifest(compaction.number), encode(compaction))
        assert is_ours

    def settle(self) -> None:
        """Let readers see what the newest compaction made, wherever its run was killed; the lock
        is held."""
        compaction = self.unsettled()
        if compaction is None:
            return
        place = self.path / compaction.directory
        twin = self._twin(compaction.number)
        if place.exists():
            self.build_twin(compaction, place, twin)
            if not exchange(place, twin):
                self.move_away(place, self._old(compaction.number))
                os.rename(twin, place)
        elif twin.exists():
            # The run was killed between the two renames.
            os.rename(twin, place)
        flush_directory(place.parent)
        flush_directory(twin.parent)

    def build_twin(self, compaction: FileCompaction, place: Path, twin: Path) -> None:
        """Make the directory that takes the place, out of second names of files."""
        self._check_staged(compaction)
        # A twin in part has second names only.
        shutil.rmtree(twin, ignore_errors=True)
        make_directories(twin)
        shutil.copymode(place, twin)
        for file in compaction.files:
            os.link(self.path / file.staged, twin / Path(file.path).name)
        others = {Path(file.path).name for file in (*compaction.replaced, *compaction.files)}
        for name in sorted(os.listdir(place)):
            if name not in others:
                os.link(place / name, twin / name)
        flush_directory(twin)

    def _check_staged(self, compaction: FileCompaction) -> None:
        """Refuse to change a directory for which a merged file is gone.

        If it was changed before, the replaced files have no other names than those of the twin.
        """
        for file in compaction.files:
            if (self.path / file.staged).exists():
                continue
            manifest = self._manifest(compaction.number)
            sentence = (
                f"{self.path / file.path} is missing, which compaction {compaction.number} of the "
                "archive has written: bring it back from a backup"
            )
            originals = [Path(one.path).name for one in compaction.replaced]
            for kept in (self._twin(compaction.number), self._old(compaction.number)):
                there = sum((kept / name).exists() for name in originals)
                if there == len(originals):
                    place = self.path / compaction.directory
                    made = ", ".join(Path(one.path).name for one in compaction.files)
                    sentence += (
                        f", or undo the compaction while no job runs: move the files of {kept}, "
                        f"which it was made of, to {place}, remove {made} there, and remove "
                        f"{manifest}"
                    )
                elif there:
                    sentence += (
                        f". {there} of the {len(originals)} files that it was made of are in "
                        f"{kept}: leave them there"
                    )
            raise ArchiveRefused(sentence)

    def move_away(self, place: Path, old: Path) -> None:
        """Move a directory out of readers' sight, where directories cannot be exchanged."""
        os.rename(place, old)

    def check_table(self, files: Iterable[ArchivedFile]) -> None:
        """Refuse files that the table does not have: there is none here."""

    def remove_replaced(self, numbers: Iterable[int], kept_seconds: float) -> None:
        """Remove files that these compactions replaced so long ago; the lock is held, and all is
        settled."""
        before_ms = (time.time() - kept_seconds) * 1000
        for number in numbers:
            paths = [one for one in (self._twin(number), self._old(number)) if one.exists()]
            if paths and self.read(number).made_ms <= before_ms:
                for path in paths:
                    shutil.rmtree(path, ignore_errors=True)

    def _is_done(self, compaction: FileCompaction) -> bool:
        return all((self.path / file.path).exists() for file in compaction.files)

    def _manifest(self, number: int) -> Path:
        return self.path / COMPACTIONS / f"{number:012}.json"

    def _twin(self, number: int) -> Path:
        return self.path / TWINS / f"{number:012}"

    def _old(self, number: int) -> Path:
        return self.path / TWINS / f"{number:012}.old"


def holders_of(compactions: Iterable[FileCompaction]) -> dict[str, ArchivedFile]:
    """Return by path of each replaced file which file has its rows now."""
    holders: dict[str, ArchivedFile] = {}
    for compaction in sorted(compactions, key=lambda one: one.number, reverse=True):
        for old in compaction.replaced:
            holder = next(file for file in compaction.files if _holds(file, old))
            holders[old.path] = holders.get(holder.path, holder)
    return holders


def _holds(file: ArchivedFile, old: ArchivedFile) -> bool:
    is_same = (file.topic, file.partition) == (old.topic, old.partition)
    return is_same and file.first <= old.first and old.end <= file.end

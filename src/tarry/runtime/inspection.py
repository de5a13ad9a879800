"""Inspection of a data directory whose broker is stopped: reading it under a shared lock.

It writes nothing, not even the lock's file.  A running broker's directory is refused, because bytes
that are not flushed yet would look like damage.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from tarry.base.errors import StorageError, TarryError
from tarry.log.recovery.points import (
    CLEAN_MARKER,
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    decode_recovery_points,
)
from tarry.log.recovery.verification import Finding, VerifiedLog, verify_log
from tarry.log.small_files import read_file
from tarry.runtime.directory import FORMAT, FORMAT_NAME, LOCK_NAME
from tarry.runtime.files import OsLogFile, ReadOnlyDisk
from tarry.runtime.refusal import reason_of

# `Finding` and `VerifiedLog` are re-exported for the code that prints them.
__all__ = [
    "Finding",
    "Hold",
    "InspectedDirectory",
    "InspectionRefused",
    "Verified",
    "VerifiedLog",
    "hold",
    "open_file",
    "verify_directory",
]

# Directory of a partition, TOPIC-PARTITION, or of its companion log.  A deleted topic's directory
# ends in -delete, another topic's in -stray.
_PARTITION: Final = re.compile(r"(.+)-([0-9]+)(\.schedule)?", re.ASCII)
_DIGITS: Final = 10


class InspectionRefused(TarryError):
    """Refusal of an inspection that is impossible at present; the text says what to do."""


class InspectedDirectory:
    """Data directory, or one partition's directory in it, locked against a broker's start."""

    def __init__(self, path: str) -> None:
        full = os.path.abspath(path)
        if not os.path.isdir(full):
            what = "is not a directory" if os.path.exists(full) else "does not exist"
            raise InspectionRefused(f"{path} {what}: name a data directory (log.dirs)")
        is_partition = _holds_segments(full)
        self.root = os.path.dirname(full) if is_partition else full
        self._lock_descriptor = _lock(self.root)
        try:
            self.disk = ReadOnlyDisk(self.root)
            self.directories = [os.path.basename(full)] if is_partition else self._partitions(path)
            # A copied directory of one partition has no broker that could have crashed.
            is_alone = is_partition and not self.disk.exists(FORMAT_NAME)
            self.was_clean = is_alone or self.disk.exists(CLEAN_MARKER)
        except BaseException:
            self.close()
            raise

    def _partitions(self, path: str) -> list[str]:
        try:
            names = [name[:-1] for name in self.disk.paths() if name.endswith("/")]
        except StorageError as error:
            raise InspectionRefused(f"{path}: {error}") from None
        found = [name for name in names if _PARTITION.fullmatch(name)]
        if not found and not self.disk.exists(FORMAT_NAME):
            raise InspectionRefused(
                f"{path} holds no data of Tarry: name the directory that log.dirs names"
            )
        return sorted(found, key=_by_topic)

    def size_bytes(self) -> int:
        """Return the bytes that a verification reads: the size of all segments."""
        total = 0
        for directory in self.directories:
            for name in os.listdir(os.path.join(self.root, directory)):
                if name.endswith(".log"):
                    total += os.path.getsize(os.path.join(self.root, directory, name))
        return total

    def close(self) -> None:
        """Release the lock, so that a broker may start."""
        if self._lock_descriptor >= 0:
            os.close(self._lock_descriptor)
            self._lock_descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _holds_segments(path: str) -> bool:
    try:
        return any(name.endswith(".log") for name in os.listdir(path))
    except OSError as error:
        raise InspectionRefused(f"{path} cannot be read: {reason_of(error)}") from None


def _by_topic(directory: str) -> tuple[str, int, str]:
    parts = _PARTITION.fullmatch(directory)
    assert parts is not None
    topic, partition = parts[1], parts[2]
    # A longer number is no partition's; such directories sort by their names.
    if len(partition) < _DIGITS:
        return (topic, int(partition), directory)
    return (directory, 0, directory)


def _lock(root: str) -> int:
    """Take a shared lock and return its descriptor; -1 if there is no lock file, as in a copy."""
    name = os.path.join(root, LOCK_NAME)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise InspectionRefused(f"{name} cannot be read: {reason_of(error)}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InspectionRefused(
            f"a broker is running on {root}: stop it first, or look at a copy of the directory"
        ) from None
    return descriptor


class Verified:
    """Findings of a verification in a whole directory."""

    def __init__(self, root: str, *, was_clean: bool) -> None:
        self.root = root
        self.was_clean = was_clean
        self.logs: list[VerifiedLog] = []
        # Findings about files that belong to no partition.
        self.findings: list[Finding] = []

    @property
    def is_damaged(self) -> bool:
        return any(one.is_damage for one in self.findings) or any(
            log.is_damaged for log in self.logs
        )


def verify_directory(
    inspected: InspectedDirectory, on_bytes: Callable[[str, int], None] | None = None
) -> Verified:
    """Read everything; `on_bytes` gets the partition and the number of bytes just read."""
    verified = Verified(inspected.root, was_clean=inspected.was_clean)
    verified.findings.extend(_format_findings(inspected))
    points = _recovery_points(inspected, verified)
    for directory in inspected.directories:
        point = None
        if points is not None:
            point = points.get(directory) or RecoveryPoint(directory, "")

        def told(size: int, directory: str = directory) -> None:
            if on_bytes is not None:
                on_bytes(directory, size)

        try:
            log = verify_log(
                inspected.disk,
                directory,
                point,
                was_clean=inspected.was_clean,
                on_bytes=told,
            )
        except StorageError as error:
            log = VerifiedLog(directory)
            log.add(Finding(directory, str(error), is_damage=True))
        verified.logs.append(log)
    if points is not None and len(inspected.directories) > 1:
        verified.findings.extend(_lost(points.values(), inspected))
    return verified


def _format_findings(inspected: InspectedDirectory) -> list[Finding]:
    content = read_file(inspected.disk, FORMAT_NAME)
    if content is None:
        return []
    text = content.decode("ascii", "replace").strip()
    if not text.isdigit():
        return [Finding(FORMAT_NAME, "holds no number: a broker refuses to start", is_damage=True)]
    if int(text) > FORMAT:
        raise InspectionRefused(
            f"the data in {inspected.root} has format {text}, written by a newer Tarry; this one "
            f"reads format {FORMAT}"
        )
    return []


def _recovery_points(
    inspected: InspectedDirectory, verified: Verified
) -> dict[str, RecoveryPoint] | None:
    """Read the recovery points by directory; None if they are unknown."""
    disk = inspected.disk
    if not disk.exists(RECOVERY_POINTS_FILE):
        return {} if disk.exists(FORMAT_NAME) else None
    content = read_file(disk, RECOVERY_POINTS_FILE)
    points = None if content is None else decode_recovery_points(content)
    if points is None:
        problem = "cannot be read, or its CRC does not match; a start reads all logs instead"
        verified.findings.append(Finding(RECOVERY_POINTS_FILE, problem, is_damage=True))
    return points


def _lost(points: Iterable[RecoveryPoint], inspected: InspectedDirectory) -> list[Finding]:
    """Return findings for missing directories that a recovery point names.  After a crash they may
    be those of a deleted topic."""
    there = dict.fromkeys(inspected.directories)
    return [
        Finding(
            row.directory,
            "missing: a recovery point names it",
            is_damage=inspected.was_clean,
        )
        for row in points
        if row.directory not in there and any(segment.size for segment in row.segments)
    ]


class Hold:
    """Shared lock of the data directory around a path, while it is read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def hold(path: str) -> Hold:
    """Lock the data directory of a file, of a partition, or itself; refuse a running broker's."""
    full = os.path.abspath(path)
    if not os.path.exists(full):
        raise InspectionRefused(f"{path} does not exist")
    for root in (full, os.path.dirname(full), os.path.dirname(os.path.dirname(full))):
        if os.path.exists(os.path.join(root, LOCK_NAME)):
            return Hold(_lock(root))
    return Hold(-1)


def open_file(path: str) -> OsLogFile:
    """Open one file by its path for reading, without a lock."""
    try:
        return OsLogFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise InspectionRefused(f"{path} cannot be read: {reason_of(error).lower()}") from None

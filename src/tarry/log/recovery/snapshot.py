"""Snapshots of the state derived from a log: files `<offset>.snapshot` beside the segments.

A snapshot is the listener's state before `offset`, behind a CRC.  Recovery need not walk over older
batches then.  The last two are kept: the older one serves if the log is cut a little.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Disk, LogFile
from tarry.log.recovery.listing import SNAPSHOT_SUFFIX, Listing
from tarry.log.small_files import read_file
from tarry.wire.crc32c import crc32c

SNAPSHOTS_KEPT: Final = 2


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


def write_snapshot(disk: Disk, directory: str, offset: int, data: bytes) -> LogFile:
    """Write a snapshot, replacing an older file; return the file, which has to be flushed."""
    file = disk.open(snapshot_path(directory, offset), create=True)
    file.truncate(0)
    file.append([crc32c(data).to_bytes(4, "big"), data])
    return file


def read_snapshot(disk: Disk, directory: str, offset: int) -> bytes | None:
    """Read a snapshot's data; None if it is missing or damaged."""
    content = read_file(disk, snapshot_path(directory, offset))
    if content is None or len(content) < 4:
        return None
    data = content[4:]
    return data if crc32c(data) == int.from_bytes(content[:4], "big") else None


def remove_old_snapshots(disk: Disk, directory: str, offset: int) -> None:
    """Keep the snapshot at `offset` and the one before."""
    older = [found for found in Listing(disk, directory).snapshot_offsets if found <= offset]
    for found in older[:-SNAPSHOTS_KEPT]:
        disk.remove(snapshot_path(directory, found))

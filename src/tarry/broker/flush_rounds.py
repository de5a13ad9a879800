"""Flush rounds: one gathered write per touched log and turn, one flush round at a time.

A round covers every log that was written since the last one; what is appended while it is under
way shares the next (ARCHITECTURE.md, "Durability").  A failed round is never tried again: the
kernel may have dropped the dirty pages, so a second success would prove nothing.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.doors import Disk, LogFile
from tarry.base.errors import StorageError
from tarry.log.owner import LogOwner


@mypyc_attr(allow_interpreted_subclasses=True)
class FlushListener:
    """Is told that a flush of its own, outside the rounds, is durable."""

    def on_flushed(self, flush_id: int) -> None:
        """The flush with this id has ended well; one that failed stops the broker."""


class FlushRounds:
    """The logs that were touched, that are dirty, and the round that is under way."""

    def __init__(self, disk: Disk, trouble: DiskTrouble) -> None:
        self.disk = disk
        self.trouble = trouble
        self.touched: list[LogOwner] = []
        self.dirty: dict[LogOwner, None] = {}
        # Owners whose watchers should be checked in this turn.
        self.advanced: list[LogOwner] = []
        self.flush_id = -1
        self.owners: list[LogOwner] = []
        self.offsets: list[int] = []

    def touch(self, owner: LogOwner) -> None:
        """The owner's log has a tail to write in this turn."""
        if not owner.is_touched:
            owner.is_touched = True
            self.touched.append(owner)

    def write(self) -> None:
        """Write every touched tail.  A write that fails concerns its own log alone."""
        touched = self.touched
        if not touched:
            return
        self.touched = []
        for owner in touched:
            owner.is_touched = False
            if owner.is_closed:
                continue
            try:
                owner.log.write()
            except StorageError as error:
                self.trouble.report(f"write to {owner.name} failed, nothing of it is kept", error)
                owner.on_write_failed()
                continue
            log = owner.log
            if (
                owner.is_flushed_at_once
                or log.written_end_offset - log.flushed_offset >= log.config.flush_messages
            ):
                self.dirty[owner] = None
            if owner.on_written():
                self.advanced.append(owner)

    def maybe_begin(self) -> None:
        """Begin the next round unless one is under way or nothing is dirty."""
        if self.flush_id >= 0 or not self.dirty:
            return
        files: list[LogFile] = []
        directories: dict[str, None] = {}
        owners: list[LogOwner] = []
        offsets: list[int] = []
        for owner in self.dirty:
            if owner.is_closed:
                continue
            offsets.append(owner.log.collect_flush(files, directories))
            owners.append(owner)
        self.dirty = {}
        self.owners = owners
        self.offsets = offsets
        self.flush_id = self.disk.begin_flush(files, list(directories))

    def end(self) -> None:
        """The round is durable: tell its owners."""
        owners = self.owners
        offsets = self.offsets
        self.flush_id = -1
        self.owners = []
        self.offsets = []
        for index in range(len(owners)):
            owner = owners[index]
            if owner.is_closed:
                continue
            owner.log.flushed(offsets[index])
            if owner.on_flushed(offsets[index]):
                self.advanced.append(owner)

    def is_idle(self) -> bool:
        """True when everything that waits for a flush has got it."""
        return self.flush_id < 0 and not self.touched and not self.dirty

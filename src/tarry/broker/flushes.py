"""Flushes: one gathered write for each touched log and turn, one flush round at a time.

A round covers the logs that were written since the last one, up to a thousand.  Records that are
appended during a round are flushed by the next one (ARCHITECTURE.md, "Durability").  Beside the
rounds there are single flushes, each with a step that follows it.  A failed round is never tried
again: the kernel may have dropped the dirty pages, so a later success would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.doors import Disk, LogFile
from tarry.base.errors import StorageError, TooManyOpenFiles
from tarry.base.limits import FLUSHED_LOGS_PER_ROUND_MAX
from tarry.base.probe import Probe
from tarry.broker.part import Parts
from tarry.log.owner import LogOwner
from tarry.partition.replicated_log import ReplicatedLog


class Flushes:
    """The touched and the dirty logs, and the flush round and the single flushes under way."""

    def __init__(self, disk: Disk, trouble: DiskTrouble, probe: Probe) -> None:
        self.disk = disk
        self.trouble = trouble
        self.probe = probe
        self.touched: list[LogOwner] = []
        self.dirty: dict[LogOwner, None] = {}
        # Owners of logs whose last write the disk has refused.
        self.refused: dict[LogOwner, None] = {}
        # Partitions whose ends have moved since the parts were last informed.
        self._moved: list[LogOwner] = []
        self._steps: dict[int, Callable[[int], None]] = {}
        self.flush_id = -1
        # True if a write of this turn had no file left to open, or a round could open no directory.
        self.lacks_files = False
        # Number of flush rounds that have ended.
        self.rounds_total = 0
        self.owners: list[LogOwner] = []
        self.offsets: list[int] = []

    def touch(self, owner: LogOwner) -> None:
        """Note that the owner's log has a tail to write in this turn."""
        if not owner.is_touched:
            owner.is_touched = True
            self.touched.append(owner)

    def write(self) -> None:
        """Write every touched tail.  A failed write affects its own log only."""
        self.lacks_files = False
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
                if isinstance(error, TooManyOpenFiles):
                    self.lacks_files = True
                self.trouble.report(f"write to {owner.name} failed, nothing of it is kept", error)
                self.refused[owner] = None
                owner.on_write_failed()
                if owner.log.has_undurable_cut:
                    # A crash could bring the bytes back, though clients are told of a failure.
                    self.dirty[owner] = None
                continue
            if self.refused:
                self.refused.pop(owner, None)
            log = owner.log
            if (
                owner.is_flushed_at_once
                or log.written_end_offset - log.flushed_offset >= log.config.flush_messages
            ):
                self.dirty[owner] = None
            if owner.on_written():
                self._moved.append(owner)

    def ask_for(self, owner: LogOwner) -> None:
        """Flush the owner's log in the next round."""
        self.dirty[owner] = None

    def give_files_back(self, owners: Iterable[LogOwner]) -> None:
        """Add all logs with unflushed bytes to the next round, so that their files can be closed.

        With `flush.policy=os` nothing else flushes them soon.
        """
        for owner in owners:
            if (
                not owner.is_closed
                and not owner.is_flushed_at_once
                and owner.log.has_unflushed_bytes
            ):
                self.dirty[owner] = None

    def maybe_begin(self) -> None:
        """Begin the next round unless one is under way or nothing is dirty.

        A round opens the directories in which its logs have new names, and the files of logs whose
        last write found no descriptor.  If the process may not open so many, half of these logs are
        left to later rounds, then half again.  If not even one of them can be opened, the round
        takes only the logs that need nothing opened, and the next turn tries the others again.  A
        round that could not begin has not failed, so it loses nothing.
        """
        if self.flush_id >= 0 or not self.dirty:
            return
        owners = self._first_dirty()
        try:
            self._begin(owners)
        except TooManyOpenFiles as error:
            self._begin_part(owners, error)

    def _begin_part(self, owners: list[LogOwner], error: TooManyOpenFiles) -> None:
        """Begin a round of as many of these owners as can open what they need."""
        needy = [owner for owner in owners if owner.log.unflushed.must_open]
        others = [owner for owner in owners if not owner.log.unflushed.must_open]
        count = len(needy) // 2
        while count > 0 and not self._try_begin([*needy[:count], *others]):
            count //= 2
        if count > 0:
            # These owners come before others, for which the round had no room.
            self.dirty = dict.fromkeys([*needy[count:], *self.dirty])
            return
        self.trouble.report(f"the flush of {needy[0].name} cannot begin", error)
        self.lacks_files = True
        # Behind the others: a thousand owners that cannot be flushed must not be every round.
        self.dirty = dict.fromkeys([*self.dirty, *needy])
        if others:
            self._begin(others)

    def _try_begin(self, owners: list[LogOwner]) -> bool:
        try:
            self._begin(owners)
        except TooManyOpenFiles:
            return False
        return True

    def _first_dirty(self) -> list[LogOwner]:
        """Take the logs of the next round, those that have waited longest."""
        owners: list[LogOwner] = []
        rest: dict[LogOwner, None] = {}
        for owner in self.dirty:
            if owner.is_closed:
                continue
            if len(owners) < FLUSHED_LOGS_PER_ROUND_MAX:
                owners.append(owner)
            else:
                rest[owner] = None
        self.dirty = rest
        return owners

    def _begin(self, owners: list[LogOwner]) -> None:
        """Begin a round of these owners; `TooManyOpenFiles` leaves them as they were."""
        files: list[LogFile] = []
        directories: dict[str, None] = {}
        offsets: list[int] = []
        try:
            for owner in owners:
                offsets.append(owner.log.collect_flush(files, directories))
            self.flush_id = self.disk.begin_flush(files, list(directories))
        except TooManyOpenFiles:
            for index in range(len(offsets)):
                owners[index].log.flush_refused(offsets[index])
            raise
        self.owners = owners
        self.offsets = offsets

    def then(self, flush_id: int, step: Callable[[int], None]) -> None:
        """Call `step` with the id of a single flush once that flush has ended well."""
        self._steps[flush_id] = step

    def on_flushed(self, flush_id: int) -> None:
        """React to a flush that has ended well; a failed flush stops the broker."""
        if flush_id == self.flush_id:
            self.rounds_total += 1
            self.probe.on_flush(len(self.owners), "")
            self._end_round()
            return
        step = self._steps.pop(flush_id, None)
        if step is not None:
            step(flush_id)

    def tell_moved(self, parts: Parts) -> None:
        """Report to the parts which partitions' ends have moved."""
        moved = self._moved
        if not moved:
            return
        self._moved = []
        for owner in moved:
            assert isinstance(owner, ReplicatedLog)
            parts.on_moved(owner)

    def _end_round(self) -> None:
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
                self._moved.append(owner)

    def has_work_left(self) -> bool:
        """Return whether a turn without an event would write or flush something."""
        if len(self.touched) > 0:
            return True
        return self.flush_id < 0 and len(self.dirty) > 0 and not self.lacks_files

    def is_idle(self) -> bool:
        """True if no write or flush is under way or waits to begin."""
        return self.flush_id < 0 and not self.touched and not self.dirty

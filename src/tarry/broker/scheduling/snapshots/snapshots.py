"""Snapshots of a partition's schedule: a file beside the companion log S, for the next load.

A snapshot is a hint, derived from the two logs.  It is written under a temporary name, some blocks
a turn, and gets its name once both logs are durable as far as it speaks of them.  A leader writes
its state.  A follower has none: it begins with its last snapshot, reads what counts since, writes
the next one, and drops the state.  Hot.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from mypy_extensions import i64

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.doors import LogFile
from tarry.base.errors import CorruptData, StorageError
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.scheduling.snapshots.counted_load import CountedLoad
from tarry.broker.scheduling.snapshots.snapshot_load import snapshot_path
from tarry.log.compaction.checkpoint import CLEANED_SUFFIX, remove_later
from tarry.log.log import Log
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.notes import CheckpointNote
from tarry.schedule.snapshot import SnapshotHeader, SnapshotWriter
from tarry.schedule.state import ScheduleState

# With this suffix a start removes what a broker that was killed has left.
_TEMPORARY_SUFFIX: Final = ".new" + CLEANED_SUFFIX
_NO_FLUSH: Final = -1

# Blocks that one step writes: up to four thousand entries.
_BLOCKS_PER_STEP: Final = 4

# Offsets by which S has to grow before another snapshot is worth writing: a start reads them in
# half a second.
SNAPSHOT_OFFSETS_MIN: Final = 50_000
LOOK_MS: Final = 5_000
# A snapshot has 48 bytes for each pending body.  The next one is written when S has grown by an
# eighth of their number.  A leader, which has all in memory, writes one after this time at least.
_GROWN_PART: Final = 8
_AGE_MS: Final = 60_000
# Offsets of S behind the last snapshot that a follower reads at once: a quarter of the entries
# within these bounds.  While it reads, it has an object of some 200 bytes for each body.
_READ_PART: Final = 4
_READ_MIN: Final = 500_000
_READ_MAX: Final = 1_000_000
# It is doubled so often at most if its last checkpoint does not count here.
_READ_DOUBLINGS_MAX: Final = 2
# The pause after a snapshot that was given up, which doubles with each one, up to an hour.
_PAUSE_MS: Final = 60_000
_DOUBLINGS_MAX: Final = 6


class SnapshotSettings:
    """Settings of how often snapshots are written."""

    def __init__(self) -> None:
        # open: tests and the simulation write them more often
        self.offsets_min: int = SNAPSHOT_OFFSETS_MIN
        # Time between two looks at the followed partitions.
        # open: the simulation looks more often
        self.look_ms: int = LOOK_MS


class ScheduleSnapshots:
    """Writing of one partition's snapshots, by its leader or by a follower."""

    def __init__(
        self,
        companion: ReplicatedLog,
        turn: Turn,
        flushes: Flushes,
        settings: SnapshotSettings,
        trouble: DiskTrouble,
        spent: list[CountedLoad],
    ) -> None:
        self._companion = companion
        self._partition = companion.leadership.records
        self._turn = turn
        self._flushes = flushes
        self._settings = settings
        self._trouble = trouble
        # Loads that have ended, whose memory the owner of this list frees in steps.
        self._spent = spent
        self._path = snapshot_path(companion)
        # Offset of S up to which the last snapshot speaks, and its entries.  A follower may not
        # know these before it has read the snapshot.
        self.s_offset = 0
        self._entry_count = 0
        # When the last snapshot was begun, and how many were given up since one was written.
        self._begun_ms = 0
        self._failures = 0
        # How often the part of S that a follower reads at once was doubled since.
        self._read_doublings = 0
        # A follower's load, and the state that is written: that of the leader, or of the load.
        self._load: CountedLoad | None = None
        self._state: ScheduleState | None = None
        self._writer: SnapshotWriter | None = None
        self._file: LogFile | None = None
        # What the snapshot speaks of that is under way; None without one.
        self._header: SnapshotHeader | None = None
        # True while a written snapshot waits for its flush and for those of both logs.
        self._is_written = False
        self._flush_id = _NO_FLUSH

    def lead(self, state: ScheduleState, s_offset: int) -> None:
        """Write the leader's state from now on; its load has begun with a snapshot that speaks of S
        up to `s_offset`."""
        self._state = state
        self.s_offset = s_offset
        self._entry_count = state.pending.count
        self._begun_ms = self._turn.now_ms

    def leave_role(self) -> None:
        """Drop the state, and what is under way: this broker leads no more, or from now on."""
        self._drop()
        self._state = None

    @property
    def is_followed(self) -> bool:
        """Return whether another broker leads the partition."""
        return not self._companion.leadership.is_leader

    @property
    def is_closed(self) -> bool:
        """Return whether this broker has given the replica up."""
        return self._companion.is_closed

    @property
    def is_under_way(self) -> bool:
        """Return whether a snapshot is being read or written, or waits for its name."""
        return self._load is not None or self._header is not None

    @property
    def is_reading(self) -> bool:
        """Return whether a follower reads its logs, or holds their state."""
        return self._load is not None

    @property
    def has_steps(self) -> bool:
        """Return whether a step would read or write something, or give a snapshot its name."""
        if self._is_written:
            return self._is_durable()
        return self.is_under_way

    def is_due(self) -> bool:
        """Return whether another snapshot is worth writing, and can be written."""
        companion = self._companion
        if companion.log.written_end_offset < self.s_offset:
            # The log was cut below what the last snapshot speaks of: that snapshot counts no more.
            self.s_offset = 0
            self._entry_count = 0
        grown = companion.high_watermark - self.s_offset
        if grown < self._settings.offsets_min or self.is_under_way:
            return False
        age_ms = self._turn.now_ms - self._begun_ms
        if self._failures and age_ms < _PAUSE_MS << min(self._failures - 1, _DOUBLINGS_MAX):
            return False
        if companion.log.flaw_offset >= 0 or self._partition.log.flaw_offset >= 0:
            return False
        if self.is_followed:
            is_worth = grown >= min(self._entry_count // _GROWN_PART, _READ_MAX)
            return is_worth and self._may_read()
        state = self._state
        if state is None or not state.can_be_kept:
            return False
        if companion.is_behind_epoch() or self._partition.is_behind_epoch():
            # An earlier leader may have released bodies that do not count as committed here yet.
            return False
        return age_ms >= _AGE_MS or grown * _GROWN_PART >= state.pending.count

    def _may_read(self) -> bool:
        """Return whether a follower can read both logs now.  While it does, neither is compacted,
        so that a position stays where it is."""
        companion = self._companion
        for log in (companion.log, self._partition.log):
            if log.is_being_cut or log.compaction.is_under_way:
                return False
        # Until a record of the time after an unclean election is here, the companion log may be
        # copied anew: compaction may have dropped what is scheduled again.
        return companion.log.leader_epochs.latest_epoch >= companion.leadership.row.unclean_epoch

    def step(self) -> None:
        """Go on with a snapshot, or begin one that is due."""
        if self._is_written:
            self._publish()
            return
        if not self.is_under_way and not self.is_due():
            # It was due when it was put in line: what recurs or is damaged may have come since.
            return
        try:
            if self.is_followed and self._header is None:
                self._read_on()
                return
            if self._header is None:
                self._begin_led()
            self._write_on()
        except StorageError as error:
            self._trouble.report(
                f"the snapshot of the scheduled records of {self._partition.name} cannot be "
                "written, and a start would take longer",
                error,
            )
            self._give_up()
        except CorruptData:
            # A leader reports what is damaged; a follower tries again later.
            if self._load is not None and self._load.is_short:
                self._read_more()
            self._give_up()

    def drop_if_cut(self) -> None:
        """Drop what a follower has read, if a log is closed or was cut since."""
        load = self._load
        if load is not None and load.is_cut:
            self._give_up()

    def _give_up(self) -> None:
        self._failures += 1
        self._drop()

    def _drop(self) -> None:
        writer, file = self._writer, self._file
        if writer is not None:
            writer.end()
        if file is not None:
            file.close()
        if self._header is not None:
            with suppress(StorageError):
                remove_later(self._companion.log.disk, self._path + _TEMPORARY_SUFFIX)
        self._leave_load()
        self._writer = None
        self._file = None
        self._header = None
        self._is_written = False
        self._flush_id = _NO_FLUSH

    # -- a follower

    def _read_more(self) -> None:
        """Read a larger part of S the next time."""
        self._read_doublings = min(self._read_doublings + 1, _READ_DOUBLINGS_MAX)

    def _leave_load(self) -> None:
        load = self._load
        if load is not None:
            load.end()
            self._spent.append(load)
            self._load = None
            self._state = None

    def _read_on(self) -> None:
        load = self._load
        if load is None:
            self._begun_ms = self._turn.now_ms
            grown_max = min(max(self._entry_count // _READ_PART, _READ_MIN), _READ_MAX)
            grown_max <<= self._read_doublings
            load = self._load = CountedLoad(self._partition, self._companion, grown_max=grown_max)
        is_read = load.step()
        found = load.snapshot
        if found.header is not None and found.header.s_offset > self.s_offset:
            # This process had not seen the snapshot before.
            self.s_offset = found.header.s_offset
            self._entry_count = found.entry_count
            self._leave_load()
            return
        if not is_read:
            return
        assert load.state is not None
        if not load.state.can_be_kept:
            raise CorruptData("a snapshot has no room for what recurs")
        self._state = load.state
        if load.hole_end > 0:
            # A later checkpoint may have let compaction drop bodies that took over these ids.
            load.state.released.forget_ids()
        self._begin(load.s_offset, load.c, load.hole_end)

    # -- writing

    def _begin_led(self) -> None:
        state, partition = self._state, self._partition
        assert state is not None
        self._begun_ms = self._turn.now_ms
        s_high_watermark = self._companion.high_watermark
        state.commit_parked(s_high_watermark)
        state.commit_released(partition.high_watermark)
        self._begin(state.snapshot_offset(s_high_watermark), partition.high_watermark, 0)

    def _begin(self, s_offset: int, c: int, hole_end: int) -> None:
        """Begin to write the state, which speaks of S up to `s_offset`, and of P up to `c`.

        A cancel before `hole_end` may be missing.
        """
        companion, state = self._companion, self._state
        assert state is not None
        leadership = companion.leadership
        checkpoint = CheckpointNote(
            c, _epoch_before(self._partition.log, c), state.watermarks.copy(), []
        )
        header = SnapshotHeader(
            leadership.topic_id,
            leadership.index,
            s_offset,
            _epoch_before(companion.log, s_offset),
            checkpoint,
            unclean_epoch=leadership.row.unclean_epoch,
            hole_end=hole_end,
        )
        self._header = header
        self._file = companion.log.disk.open(self._path + _TEMPORARY_SUFFIX, create=True)
        self._file.truncate(0)
        self._writer = SnapshotWriter(state, header)

    def _write_on(self) -> None:
        writer, file, state = self._writer, self._file, self._state
        assert writer is not None
        assert file is not None
        assert state is not None
        blocks: list[bytes | memoryview] = []
        while len(blocks) < _BLOCKS_PER_STEP and not writer.is_over:
            blocks.append(writer.next())
        file.append(blocks)
        if writer.has_failed:
            self._give_up()
        elif writer.is_over:
            writer.end()
            self._entry_count = state.pending.count
            self._leave_load()
            self._writer = None
            self._is_written = True
            self._flush_id = self._companion.log.disk.begin_flush([file], [])
            self._flushes.then(self._flush_id, self._on_flushed)

    def _on_flushed(self, flush_id: int) -> None:
        file = self._file
        # The flushed snapshot may have been given up, and another one begun.
        if flush_id == self._flush_id and file is not None:
            self._flush_id = _NO_FLUSH
            self._file = None
            file.close()
            # With `flush.policy=os` nothing else flushes the logs soon.
            for log in (self._companion, self._partition):
                self._flushes.ask_for(log)

    def _is_durable(self) -> bool:
        header = self._header
        if header is None or self._flush_id != _NO_FLUSH:
            return False
        s_flushed: i64 = self._companion.log.flushed_offset
        p_flushed: i64 = self._partition.log.flushed_offset
        return s_flushed >= header.s_offset and p_flushed >= header.checkpoint.c

    def _publish(self) -> None:
        """Give a written snapshot its name if both logs are durable as far as it speaks of them."""
        header = self._header
        if header is None or not self._is_durable():
            return
        checkpoint = header.checkpoint
        has_s = _has(self._companion.log, header.s_offset, header.s_epoch)
        if not has_s or not _has(self._partition.log, checkpoint.c, checkpoint.c_epoch):
            # A log was cut since, as after an unclean election.
            self._give_up()
            return
        disk = self._companion.log.disk
        try:
            # If the broker is killed between the two, the next load reads S from its start.
            remove_later(disk, self._path)
            disk.rename(self._path + _TEMPORARY_SUFFIX, self._path)
        except StorageError as error:
            self._trouble.report(f"{self._path} cannot get its name", error)
            self._give_up()
            return
        if header.s_offset > self.s_offset:
            self._failures = self._read_doublings = 0
        else:
            # The last snapshot does not count any more, and this one says less.
            self._failures += 1
            self._read_more()
        self.s_offset = header.s_offset
        self._header = None
        self._is_written = False


def _epoch_before(log: Log, offset: int) -> int:
    """Return the epoch of the record before this offset; -1 at offset 0."""
    return log.epoch_at(offset - 1) if offset > 0 else -1


def _has(log: Log, offset: int, epoch: int) -> bool:
    """Return whether the record before an offset has this epoch, or lies before the log's start."""
    return offset <= log.log_start_offset or log.epoch_at(offset - 1) == epoch

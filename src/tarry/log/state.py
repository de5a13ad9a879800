"""State of a log beside its segments: recovery point and report, compaction, listener.  Hot."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.log.recovery.points import NO_SNAPSHOT, RecoveryPoint
from tarry.records.batch import BatchHeader


class RecoveryPointState:
    """The last recovery point of one log, to see what has changed since."""

    def __init__(self) -> None:
        self.offset = -1
        # What the file may say after a crash: more than `offset` if a renaming was given up.
        self.offset_max = -1
        self.log_start_offset = -1
        self.snapshot_offset = NO_SNAPSHOT
        self.epochs_version = -1
        # The log's count of written bytes then.
        self.written_bytes = 0
        # The log's count of swaps of compacted segments then.
        self.swaps = 0
        # When a recovery point was tried last, whether it came about or not.
        self.tried_ms = 0
        # A new one is being written.
        self.is_under_way = False
        # Compaction waits for a new one.
        self.is_wanted = False
        # A new one may not pass this offset, because a cut is waiting (-1: it may).
        self.limit_offset: i64 = -1
        # A new one says that the log is empty and begins there, because a restart is waiting (-1:
        # none is).
        self.restart_offset: i64 = -1
        # The last one says so already.
        self.is_restart = False
        # A new one says that the compaction checkpoint is void: a cut takes what it speaks of.
        self.voids_compaction = False
        # Compaction checkpoints up to this generation are void.
        self.void_generation: i64 = 0
        self.high_watermark_hint: i64 = -1

    def take_over(self, row: RecoveryPoint, written_bytes: int, epochs_version: int) -> None:
        """Take over what a recovery point holds; `epochs_version` is -1 if the epochs had not
        changed.
        """
        self.offset = row.recovery_offset
        self.offset_max = row.recovery_offset
        self.log_start_offset = row.log_start_offset
        self.snapshot_offset = row.snapshot_offset
        self.void_generation = row.void_generation
        self.high_watermark_hint = row.high_watermark_hint
        self.written_bytes = written_bytes
        if epochs_version >= 0:
            self.epochs_version = epochs_version


class RecoveryReport:
    """Report of one opening of a log."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        # Bytes past the recovery point that were read again.
        self.scanned_bytes = 0
        # Bytes below it that were read because a snapshot or an index was missing.
        self.walked_bytes = 0
        # A torn tail: how many bytes were cut off, and the offset at which the log now ends.
        self.torn_bytes = 0
        self.torn_offset = -1
        self.torn_reason = ""
        # Segments that were left over and removed: paths without suffix.
        self.removed_segments: list[str] = []
        # Damage to what was durable; nothing was cut.
        self.flaw_offset = -1
        self.flaw_reason = ""

    @property
    def is_quiet(self) -> bool:
        """Return true if there is nothing to tell."""
        return not (self.scanned_bytes or self.torn_bytes or self.flaw_reason)


class CompactionState:
    """Invariant: cleaned_offset <= end_offset but while the first swaps of a pass are done."""

    def __init__(self) -> None:
        # Records below it have been compared with all later ones below it.
        self.cleaned_offset: i64 = 0
        # Segments that begin below it are compaction's and may have gaps.
        self.end_offset: i64 = 0
        # Of the last swap or attempt at one: it makes the names of new files unique.
        self.generation: i64 = 0
        # Swaps of this life: a recovery point from before the last one says what is no more.
        self.swaps: i64 = 0
        # Segments are being read: none of them may go.
        self.is_under_way = False
        # Up to there, while it is under way.
        self.target_offset: i64 = 0

    def take_over(self, generation: i64, cleaned_offset: i64, end_offset: i64) -> None:
        """Take what a compaction checkpoint says."""
        self.generation = generation
        self.cleaned_offset = cleaned_offset
        self.end_offset = end_offset


class CutState:
    """State of a cut or a restart of the log that takes several turns (`recovery/truncation`)."""

    def __init__(self) -> None:
        # From the first call to the one that ends it: nothing may be appended.
        self.is_under_way = False
        # Files were cut, and what is derived from the log is not what is left of it.
        self.has_begun = False
        # What the listener is still to be told begins here; -1: it was not looked at yet.
        self.listener_offset: i64 = -1

    def end(self) -> None:
        self.is_under_way = False
        self.has_begun = False
        self.listener_offset = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class LogListener:
    """State derived from a log, which follows its recovery and truncation."""

    def reset(self) -> None:
        """Forget everything: what follows comes from the log."""

    def load_snapshot(self, data: bytes) -> bool:
        """Take over what `take_snapshot` gave; False if it is not usable."""
        return False

    def take_snapshot(self) -> bytes | None:
        """Return the state after the last written batch; None if there is nothing to keep."""
        return None

    def truncate(self, end_offset: int) -> bool:
        """Follow a cut to `end_offset`; False if everything has to come from the log again."""
        return False

    def on_recovered_batch(self, header: BatchHeader) -> None:
        """Take a batch that the log kept and the snapshot did not know, in order of offsets."""

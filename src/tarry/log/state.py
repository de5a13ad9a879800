"""State of a log beside its files: recovery point and report, compaction, cut, listener.  Hot."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.log.recovery.points import NO_SNAPSHOT, RecoveryPoint
from tarry.records.batch import BatchHeader


@mypyc_attr(acyclic=True)
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
        # A round that is under way writes a new one.
        self.is_in_round = False
        # Compaction waits for a new one.
        self.is_wanted = False
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


@mypyc_attr(acyclic=True)
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
        self.removed_segments: tuple[str, ...] = ()
        # Damage to what was durable; nothing was cut.
        self.flaw_offset = -1
        self.flaw_reason = ""

    @property
    def is_quiet(self) -> bool:
        """Return true if there is nothing to report."""
        return not (self.scanned_bytes or self.torn_bytes or self.flaw_reason)


@mypyc_attr(acyclic=True)
class CompactionState:
    """Invariant: cleaned_offset <= end_offset but while the first swaps of a pass are done."""

    def __init__(self) -> None:
        # Records below it have been compared with all later ones below it.
        self.cleaned_offset: i64 = 0
        # Segments that begin below it are compaction's and may have gaps.
        self.end_offset: i64 = 0
        # Number of the last swap, done or tried: it makes the names of new files unique.
        self.generation: i64 = 0
        # Swaps since the start: a recovery point from before the last one names replaced segments.
        self.swaps: i64 = 0
        # Offset up to which a compaction is reading; no segment below may be removed. -1: none is
        # under way.
        self.target_offset: i64 = -1

    @property
    def is_under_way(self) -> bool:
        return self.target_offset >= 0

    def take_over(self, generation: i64, cleaned_offset: i64, end_offset: i64) -> None:
        """Take what a compaction checkpoint says."""
        self.generation = generation
        self.cleaned_offset = cleaned_offset
        self.end_offset = end_offset


# States of a cut, and of a restart, which gives the whole log up.
NO_CUT: Final = 0
# The cut was asked for; a compaction may have to end first.
ASKED: Final = 1
# The next recovery point has to be at `offset` or below, and void what compaction did behind it.
LOWERING: Final = 2
# Files are cut until the log ends at `offset`.
CUTTING: Final = 3
# The log has its end; the listener is still to receive the batches from `offset` on.
RESTORING: Final = 4
# The next recovery point says that the log is empty and begins at `offset`.
GIVING_UP: Final = 5
# The recovery point on disk says that the log is empty; all files are removed.
EMPTYING: Final = 6

NEXT_STATES: Final[dict[int, tuple[int, ...]]] = {
    NO_CUT: (ASKED,),
    ASKED: (LOWERING, CUTTING, GIVING_UP, NO_CUT),
    LOWERING: (LOWERING, CUTTING, GIVING_UP, NO_CUT, ASKED),
    CUTTING: (RESTORING, GIVING_UP),
    RESTORING: (NO_CUT, GIVING_UP),
    GIVING_UP: (EMPTYING,),
    EMPTYING: (NO_CUT,),
}


@mypyc_attr(acyclic=True)
class Cut:
    """A cut or a restart of the log; `recovery/truncation` takes its steps, over several turns.

    The log takes batches in the state NO_CUT alone.
    """

    def __init__(self) -> None:
        self.state = NO_CUT
        self.offset: i64 = -1

    def enter(self, state: int, offset: i64 = -1) -> None:
        """Go to the next state; what `offset` means depends on it."""
        assert state in NEXT_STATES[self.state], (self.state, state)
        self.state = state
        self.offset = offset

    def follow_start(self, log_start_offset: i64) -> None:
        """Ask for the cut again if the log starts behind its offset by now: all of it is given up.

        A recovery point below the log's start would name batches that were deleted.
        """
        if self.state == LOWERING and self.offset < log_start_offset:
            self.enter(ASKED)

    @property
    def is_under_way(self) -> bool:
        return self.state != NO_CUT

    @property
    def has_begun(self) -> bool:
        """Return true while indexes, epochs and snapshots may describe batches that were cut off:
        no recovery point can be taken.
        """
        return self.state in (CUTTING, RESTORING, EMPTYING)

    @property
    def must_end(self) -> bool:
        """Return true if files were cut, or a recovery point may say that the log is empty."""
        return self.state >= CUTTING


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

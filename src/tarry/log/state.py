"""State of a log beside its files: recovery point and report, compaction, cut, listener.  Hot."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.log.recovery.points import NO_SNAPSHOT, RecoveryPoint
from tarry.records.batch import BatchHeader


@mypyc_attr(acyclic=True)
class RecoveryPointState:
    """The last recovery point of one log, to compare the log with."""

    def __init__(self) -> None:
        self.offset = -1
        # Highest offset that the file may have after a crash: more than `offset` if a round was
        # abandoned after its renaming.
        self.offset_max = -1
        self.log_start_offset = -1
        self.snapshot_offset = NO_SNAPSHOT
        self.epochs_version = -1
        # `Log.written_bytes` at the recovery point.
        self.written_bytes = 0
        # `CompactionState.swaps` at the recovery point.
        self.swaps = 0
        # Time of the last attempt at a recovery point, successful or not, in monotonic ms.
        self.tried_ms = 0
        # True if the round under way writes a new recovery point of this log.
        self.is_in_round = False
        # True if compaction waits for a new recovery point.
        self.is_wanted = False
        # Generation up to which compaction checkpoints are void.
        self.void_generation: i64 = 0
        self.high_watermark_hint: i64 = -1

    def take_over(self, row: RecoveryPoint, written_bytes: int, epochs_version: int) -> None:
        """Take over a recovery point that is now durable; `epochs_version` is -1 if the epochs had
        not changed.
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
        # Bytes beyond the recovery point that recovery read.
        self.scanned_bytes = 0
        # Bytes below it that recovery read because a snapshot or an index was missing.
        self.walked_bytes = 0
        # A torn tail: how many bytes were cut off, and the offset at which the log now ends.
        self.torn_bytes = 0
        self.torn_offset = -1
        self.torn_reason = ""
        # Left-over segments that recovery removed: paths without suffix.
        self.removed_segments: tuple[str, ...] = ()
        # Damage to durable bytes; nothing was cut.
        self.flaw_offset = -1
        self.flaw_reason = ""


@mypyc_attr(acyclic=True)
class CompactionState:
    """State of compaction; cleaned_offset <= end_offset except during the first swaps of a pass."""

    def __init__(self) -> None:
        # Offset below which each record has been compared with all later ones below it.
        self.cleaned_offset: i64 = 0
        # Offset below which segments were written by compaction and may have gaps.
        self.end_offset: i64 = 0
        # Number of the last swap, done or tried: it makes the names of new files unique.
        self.generation: i64 = 0
        # Swaps in this process: a recovery point older than the last one names replaced segments.
        self.swaps: i64 = 0
        # Offset up to which a compaction reads; no segment below may be removed.  -1: no compaction
        # is under way.
        self.target_offset: i64 = -1

    @property
    def is_under_way(self) -> bool:
        return self.target_offset >= 0

    def take_over(self, generation: i64, cleaned_offset: i64, end_offset: i64) -> None:
        """Take over the content of a compaction checkpoint."""
        self.generation = generation
        self.cleaned_offset = cleaned_offset
        self.end_offset = end_offset


# States of a `Cut`: of a cut, and of a restart, which gives the whole log up.
NO_CUT: Final = 0
# A cut or restart was asked for; a compaction may have to end first.
ASKED: Final = 1
# The next recovery point must be at `offset` or below, and void compaction's work behind it.
LOWERING: Final = 2
# Files are cut until the log ends at `offset`.
CUTTING: Final = 3
# The log has its end; the listener still has to receive the batches from `offset` on.
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

    A batch may be appended only in the state NO_CUT.
    """

    def __init__(self) -> None:
        self.state = NO_CUT
        self.offset: i64 = -1

    def enter(self, state: int, offset: i64 = -1) -> None:
        """Go to the next state; each state gives `offset` its own meaning."""
        assert state in NEXT_STATES[self.state], (self.state, state)
        self.state = state
        self.offset = offset

    def follow_start(self, log_start_offset: i64) -> None:
        """Go back to ASKED if the log start has passed the offset: the whole log is then given up.

        A recovery point below the log start would name batches that were deleted.
        """
        if self.state == LOWERING and self.offset < log_start_offset:
            self.enter(ASKED)

    @property
    def is_under_way(self) -> bool:
        return self.state != NO_CUT

    @property
    def has_begun(self) -> bool:
        """True while indexes, epochs and snapshots may describe batches that were cut off.

        No recovery point can be taken in that time.
        """
        return self.state in (CUTTING, RESTORING, EMPTYING)

    @property
    def must_end(self) -> bool:
        """True if files were cut, or a recovery point may say that the log is empty."""
        return self.state >= CUTTING


@mypyc_attr(allow_interpreted_subclasses=True)
class LogListener:
    """Listener: state derived from a log, which follows its recovery and truncation."""

    def reset(self) -> None:
        """Forget everything; the log's batches are reported again."""

    def load_snapshot(self, data: bytes) -> bool:
        """Take over the bytes of a `take_snapshot`; return False if they are not usable."""
        return False

    def take_snapshot(self) -> bytes | None:
        """Return the state after the last written batch as bytes; None if there is no state."""
        return None

    def truncate(self, end_offset: int) -> bool:
        """Follow a cut to `end_offset`; return False if all batches must be reported again."""
        return False

    def on_recovered_batch(self, header: BatchHeader) -> None:
        """Take a batch that the log kept and the snapshot lacks; calls come in order of offsets."""

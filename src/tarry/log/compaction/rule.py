"""Rule of a compaction, which decides what stays: the seam between `Compaction` and its purposes.

A compaction reads the log in passes.  It shows batches to its rule (`mapped`), so that the rule
knows the later records.  Then, if the rule asks for that, it shows each batch once more (`weigh`),
so that the rule can choose segments.  Then it copies these and asks for each batch what stays
(`kept`).  `KeyRule` keeps the last record of each key; `schedule/keeping` the needed parts of a
companion log.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.effort import Effort
from tarry.log.log import Log
from tarry.log.segment import Segment
from tarry.records.batch import NO_TIMESTAMP, BatchHeader
from tarry.records.rebuild import empty_batch


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchWork:
    """Work on the batch that begins at `at` of `block`, in steps."""

    def __init__(self, header: BatchHeader, block: bytes, at: i64) -> None:
        self.header = header
        self.block = block
        self.at: i64 = at
        # The rebuilt batch; None if the batch stays unchanged (`is_kept`) or goes.
        self.encoded: bytes | None = None
        self.is_kept = True
        self.max_timestamp: i64 = header.max_timestamp
        self.dropped_count: i64 = 0
        self.keyless_count: i64 = 0

    @property
    def has_mapped(self) -> bool:
        """True if something of the batch may be mapped already."""
        return False

    def settle(self, encoded: bytes | None, dropped_count: i64) -> None:
        """Settle that no record stays; `encoded` is the batch to keep in its place, if any."""
        self.encoded = encoded
        self.is_kept = False
        self.max_timestamp = NO_TIMESTAMP
        self.dropped_count = dropped_count

    def try_map(self, effort: Effort) -> bool:
        """Map the batch while effort is left; return True when all of it is mapped."""
        raise NotImplementedError

    def try_keep(self, effort: Effort) -> bool:
        """Find what stays while effort is left; return True when that is done.  `CorruptData` if
        the batch cannot be opened: it stays unchanged.
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class CompactionRule:
    """Rule of one compaction.

    `checks_crc`: a batch that does not match its CRC is a flaw of the log, and no part of it is
    copied.
    """

    def __init__(self, log: Log, *, checks_crc: bool) -> None:
        self.log = log
        self.checks_crc = checks_crc
        # Leader epoch of the batches met so far, and whether the last one was the first of its.
        self.epoch_met: i64 = -1
        self.is_first_of_epoch = False

    def begin_pass(self, target_offset: i64) -> i64:
        """Return the offset from which a pass maps the log; -1 if nothing is left to do."""
        raise NotImplementedError

    def map_end(self, target_offset: i64) -> i64:
        """Return the offset up to which the log is mapped: at or behind the target, and not in a
        part that may be cut off."""
        raise NotImplementedError

    def has_room(self, header: BatchHeader) -> bool:
        """Return True if this pass can map one more batch."""
        raise NotImplementedError

    def mapped(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        """Begin to map the batch that the walk has just passed; None if that is done."""
        raise NotImplementedError

    def must_weigh(self) -> bool:
        """Return True if each batch must be weighed, after the mapping, before the rule chooses
        segments."""
        return False

    def begin_weighing(self, segment: Segment) -> None:
        """Begin to weigh a segment; all segments come, in their order."""

    def weigh(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> None:
        """Weigh the batch that the walk has just passed."""

    def choose(self, segments: list[Segment]) -> list[Segment]:
        """Return the segments that must be copied, in their order."""
        return segments

    def size_left(self, segment: Segment) -> i64:
        """Return how many bytes may stay of a segment."""
        return segment.size

    def begin_copying(self, now_wall_ms: i64) -> None:
        """Begin to copy, after the mapping."""
        self.meet_epoch(-1)

    def begin_source(self, segment: Segment) -> None:
        """Begin to copy a segment."""

    def kept(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        """Begin to find what stays of the batch that the walk has just passed; None if all of it
        does."""
        raise NotImplementedError

    def meet(self, header: BatchHeader) -> None:
        """Take the next batch in the order of the log, before it is weighed or copied."""
        if header.last_offset < self.log.log_start_offset:
            self.is_first_of_epoch = False
            return
        self.is_first_of_epoch = header.leader_epoch > self.epoch_met
        if self.is_first_of_epoch:
            self.epoch_met = header.leader_epoch

    def meet_epoch(self, leader_epoch: i64) -> None:
        """Continue behind a batch of this leader epoch; -1: at the begin of the log."""
        self.epoch_met = leader_epoch

    def keeps_header(self, header: BatchHeader) -> bool:
        """Return True if the batch just met must stay without its records for what its header says.

        The first batch of each leader epoch stays.  A follower learns from it where the epoch
        begins.  If it were missing, the follower would let the epoch begin at a later batch.  As
        leader it would then let others keep batches that were never committed.
        """
        return self.is_first_of_epoch

    def emptied(self, header: BatchHeader) -> bytes:
        """Return a batch without its records, which stays for what its header says."""
        return empty_batch(header)

    def placeholder(self, header: BatchHeader) -> bytes:
        """Return the batch that a segment has in place of its last one if no other stays in it."""
        return empty_batch(header)

    def cleaned_offset(self, end_offset: i64) -> i64:
        """Return the log's cleaned offset after a pass that has mapped up to `end_offset`."""
        raise NotImplementedError

    def try_clear(self, entries_max: i64) -> bool:
        """Drop about `entries_max` entries of the map; return True when none is left."""
        raise NotImplementedError

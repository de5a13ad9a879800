"""Rule of what stays of a log that is compacted: the seam between `Compaction` and its purposes.

A compaction goes over the log in passes.  It shows batches to its rule (`mapped`), so that the rule
knows what follows later; then, if the rule asks for that, each batch once more (`weigh`), so that
the rule can choose segments; then it copies these and asks of each batch what stays (`kept`).
`KeyRule` keeps the last record of each key; `schedule/keeping` what a companion log needs.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.effort import Effort
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
        # The batch made anew, when that was needed; `is_kept` alone: it stays as it is.
        self.encoded: bytes | None = None
        self.is_kept = True
        self.max_timestamp: i64 = header.max_timestamp
        self.dropped_count: i64 = 0
        self.keyless_count: i64 = 0

    @property
    def has_mapped(self) -> bool:
        """Return true if something of the batch may be noted already."""
        return False

    def settle(self, encoded: bytes | None, dropped_count: i64) -> None:
        """Settle that nothing stays, or the batch made anew, without records and times."""
        self.encoded = encoded
        self.is_kept = False
        self.max_timestamp = NO_TIMESTAMP
        self.dropped_count = dropped_count

    def try_map(self, effort: Effort) -> bool:
        """Note what the batch says as far as the effort goes; True when all of it is done."""
        raise NotImplementedError

    def try_keep(self, effort: Effort) -> bool:
        """Find what stays as far as the effort goes; True when all of it is done.  `CorruptData` if
        the batch cannot be opened: it stays as it is.
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class CompactionRule:
    """Rule of one compaction.

    `checks_crc`: a batch that its CRC does not fit is a flaw of the log, and no part of it is
    copied.
    """

    def __init__(self, *, checks_crc: bool) -> None:
        self.checks_crc = checks_crc

    def begin_pass(self, target_offset: i64) -> i64:
        """Return from which offset a pass maps the log; -1: nothing is left to do."""
        raise NotImplementedError

    def map_end(self, target_offset: i64) -> i64:
        """Return up to which offset the log is mapped: at or behind the target, below what may be
        cut off."""
        raise NotImplementedError

    def has_room(self, header: BatchHeader) -> bool:
        """Return whether this pass can map one more batch."""
        raise NotImplementedError

    def mapped(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        """Begin to map the batch that the walk has gone over last; None if that is done."""
        raise NotImplementedError

    def must_weigh(self) -> bool:
        """Return, when all is mapped, whether each batch is to be weighed before the rule chooses
        segments."""
        return False

    def begin_weighing(self, segment: Segment) -> None:
        """Begin to weigh a segment; all of them come, in their order."""

    def weigh(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> None:
        """Weigh the batch that the walk has gone over last."""

    def choose(self, segments: list[Segment]) -> list[Segment]:
        """Return those of the segments that are to be copied, in their order."""
        return segments

    def size_left(self, segment: Segment) -> i64:
        """Return how many bytes may be left of a segment."""
        return segment.size

    def begin_copying(self, now_wall_ms: i64) -> None:
        """Begin to copy what was mapped by now."""

    def begin_source(self, segment: Segment) -> None:
        """Begin to copy a segment."""

    def kept(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        """Begin to find what stays of the batch that the walk has gone over last; None: all of it
        does."""
        raise NotImplementedError

    def keeps_sequence(self, header: BatchHeader) -> bool:
        """Return whether a batch of which nothing stays has to be known as its producer's."""
        raise NotImplementedError

    def placeholder(self, header: BatchHeader) -> bytes:
        """Return what stands in a segment of which nothing else stays, in place of its last
        batch."""
        return empty_batch(header)

    def cleaned_offset(self, end_offset: i64) -> i64:
        """Return the log's cleaned offset after a pass that was mapped to `end_offset`."""
        raise NotImplementedError

    def try_clear(self, entries_max: i64) -> bool:
        """Drop about so much of what was mapped; True when nothing is left."""
        raise NotImplementedError

"""Rule for the compaction of a companion log S: what a rebuild may still need, on any replica.

Each replica compacts its own S, by what S itself says below its high watermark: a follower has no
state of the schedule.  s-offsets stay.  Let K be the last checkpoint there that counts here (k: the
offset of its note).  It was written in the last unclean epoch or later, and c of K is not above P's
high watermark.  What stays:

    body              with a place that waits: no note cancels it, and K does not say that it is
                      done; one that recurs waits until a note cancels it
    body, emptied     one of its producer's last batches, for their sequences, or one whose note
                      stays
    first batch       of each leader epoch, for the others' cuts; a note stays whole
    scheduled note    of a body that waits; or one that cancels what K does not say is done
    cancelled note    of what K does not say is done, or if its due time is not noted
    checkpoint        K and those behind it
    anything else     then nothing is compacted: a newer release, or a damaged disk

Why a rebuild finds the same with and without the rest, also on a replica that has compacted less,
more or nothing, and that was fetching meanwhile:

1. What a rule goes by is committed (below both high watermarks), so it is never cut off but by an
   unclean election.
2. Let X be any replica, and o < k an offset which X does not have since a replica, X or one that X
   has copied from, has dropped it by K.  A replica is elected only with all that is committed, so X
   then has K, or a checkpoint K' behind K for which K was dropped.
3. K' says of each body that it is done if K does: watermarks only rise, ranges of s-offsets only
   join, and what is done is pending at no leader, so that it is never an exception again.
4. X takes K' or a later checkpoint (K' counts, by 1).  If o was a body, it was done by K, or
   cancelled by a committed note: X needs no body for what is done.  If o was a note that cancels
   body b, K says that b is done, and so does the checkpoint that X takes, whether X has b or not.
   If o was an earlier checkpoint, X does not take it.
5. A body and its note go together.  A note at the end of a segment stays, since its body may stay
   in the next one; a note without its body is dead.

So nothing is lost (only what is done or cancelled goes), doubled or brought back (a replica that
has a body which is done has what says so), or early (no due time is changed).  After an unclean
election 1 holds for the elected replica's own logs: K counted in its own P.  Any other replica
gives its S up if something was ever dropped in it, and copies it anew
(`Followed.must_begin_anew`).

Bounds: one compaction remembers only the newest cancels, as many as its buffer holds.  The bodies
of older cancels stay until a later compaction.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.effort import Effort
from tarry.log.compaction.rule import BatchWork, CompactionRule
from tarry.log.index.epoch_index import EpochIndex
from tarry.log.log import Log
from tarry.log.segment import Segment
from tarry.records.batch import HEADER_SIZE, BatchHeader, has_valid_crc
from tarry.records.rebuild import RebuiltBatch, empty_batch
from tarry.schedule.noted_checkpoint import NotedCheckpoint, counts
from tarry.schedule.notes import (
    EACH_ITS_OWN,
    NEVER_DONE,
    CancelledNote,
    CheckpointNote,
    ScheduledNote,
    ScheduleNote,
    read_note,
)
from tarry.schedule.places import NOT_RELEASED
from tarry.schedule.release_identity import NO_S_OFFSET

# Decisions about a batch: nothing of it stays, its header stays, or all of it.
DROP: Final = 0
EMPTY: Final = 1
KEEP: Final = 2

# Bytes that a copy of a segment must save at least.
GAIN_BYTES_MIN: Final = 1_024
# Effort of reading one KiB of a note, in units of `Effort`.
_NOTE_KIB_UNITS: Final = 40
# Memory of one remembered cancel, with its place in a dictionary.
_CANCEL_BYTES: Final = 128


class PartitionFacts:
    """Facts about the partition's records P, by which a checkpoint of S counts or not."""

    def __init__(
        self, epochs: EpochIndex, start_offset: int, high_watermark: int, unclean_epoch: int
    ) -> None:
        self.epochs = epochs
        self.start_offset = start_offset
        self.high_watermark = high_watermark
        self.unclean_epoch = unclean_epoch

    def counts(self, checkpoint: CheckpointNote, leader_epoch: int) -> bool:
        """Return whether P has all releases of the checkpoint, committed here for good."""
        if leader_epoch < self.unclean_epoch:
            return False
        return counts(checkpoint, self.epochs, self.start_offset, self.high_watermark)


class _DecidedBatch(BatchWork):
    """Batch about which the rule has decided already."""

    def try_keep(self, effort: Effort) -> bool:
        return True


class CompanionRule(CompactionRule):
    """Rule of one compaction.  `refusal` says why nothing is compacted; "" if something may be.

    `known_end` is S's high watermark.  `kept_ends` are the batches that S keeps for the sequences
    of their producers: the producer id of each, by the last offset of the batch.
    """

    def __init__(
        self,
        log: Log,
        facts: PartitionFacts,
        known_end: i64,
        kept_ends: dict[int, int],
        buffer_bytes: i64,
    ) -> None:
        # A damaged batch is copied as it is; the damage is reported when it is to be released.
        super().__init__(log, checks_crc=False)
        self.refusal = ""
        self.taken: NotedCheckpoint | None = None
        # True if the last checkpoint that was mapped does not count yet.
        self.is_behind = False
        self._facts = facts
        self.known_end: i64 = known_end
        self._kept_ends = kept_ends
        self._start_offset: i64 = log.log_start_offset
        self._cancels_max: int = max(buffer_bytes // _CANCEL_BYTES, 1)
        self._cancelled: dict[int, None] = {}
        self._has_begun = False
        # Mapping: the scheduled note that was read last, and the offset that its body must have.
        self._note: ScheduledNote | None = None
        self._body_offset: i64 = NO_S_OFFSET
        # Weighing and copying: what stays of the body at `_body_offset`, decided with its note.
        self._body_decision: i64 = DROP
        # Decisions about bodies that begin a segment while their notes end the segment before.
        self._first_bodies: dict[int, i64] = {}
        # For each segment, the leader epoch before it.
        self._epochs_before: dict[int, int] = {}
        # Bytes that stay of each segment, by its base offset; base offset of the weighed segment.
        self._sizes_left: dict[int, i64] = {}
        self._weighed: i64 = -1

    # -- mapping

    def begin_pass(self, target_offset: i64) -> i64:
        if self._has_begun:
            return -1
        self._has_begun = True
        return self._start_offset

    def map_end(self, target_offset: i64) -> i64:
        return max(self.known_end, target_offset)

    def has_room(self, header: BatchHeader) -> bool:
        # Mapping ends at the first refusal: nothing will be compacted.
        return not self.refusal

    def mapped(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        offset = header.base_offset
        note = self._note
        body_offset = self._body_offset
        self._note = None
        self._body_offset = NO_S_OFFSET
        if header.is_control:
            _spend_note(header, effort)
            self._map_note(header, walk)
        elif note is not None and body_offset == offset:
            for s_offset in note.cancelled:
                self._add_cancelled(s_offset)
        elif header.size != HEADER_SIZE and offset != self._start_offset:
            self.refusal = f"the batch at offset {offset} has no note that says when it is due"
        return None

    def _map_note(self, header: BatchHeader, walk: BatchWalk) -> None:
        offset = int(header.base_offset)
        data = walk.batch_bytes(header)
        if not has_valid_crc(data, 0, header):
            self.refusal = f"the note at offset {offset} does not match its CRC"
            return
        note = read_note(data, 0, header)
        if isinstance(note, ScheduledNote):
            if note.due_ms == EACH_ITS_OWN and not note.places:
                self.refusal = f"the note at offset {offset} says no times"
            self._note = note
            self._body_offset = offset + 1
        elif isinstance(note, CancelledNote):
            self._add_cancelled(note.s_offset)
        elif isinstance(note, CheckpointNote):
            self.is_behind = not self._facts.counts(note, int(header.leader_epoch))
            if not self.is_behind:
                self.taken = NotedCheckpoint(offset, note)
        else:
            self.refusal = f"the note at offset {offset} cannot be read"

    def _add_cancelled(self, s_offset: int) -> None:
        cancelled = self._cancelled
        cancelled[s_offset] = None
        if len(cancelled) > self._cancels_max:
            del cancelled[next(iter(cancelled))]

    def must_weigh(self) -> bool:
        self._note = None
        self._body_offset = NO_S_OFFSET
        return self._may_compact

    @property
    def _may_compact(self) -> bool:
        return not self.refusal and self.taken is not None

    # -- what stays

    def decide(self, header: BatchHeader, data: bytes, *, is_last: bool) -> i64:
        """Decide what stays of a batch, in the order of the log; `data` is that of a note, which
        may be the last batch of its segment.
        """
        if not header.is_control:
            return self._decide_body(header)
        offset = int(header.base_offset)
        note = read_note(data, 0, header)
        if isinstance(note, ScheduledNote):
            must_stay = self._decide_scheduled(offset, note, is_last=is_last)
        elif isinstance(note, CancelledNote):
            must_stay = self._is_needed(note.s_offset, note.due_ms)
        else:
            must_stay = self._must_stay(offset, note)
        # A note without its content could not be told from a body.
        return KEEP if must_stay or super().keeps_header(header) else DROP

    def _decide_next(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> i64:
        """Decide what stays of the batch that the walk has passed last."""
        data = b""
        if header.is_control:
            _spend_note(header, effort)
            data = walk.batch_bytes(header)
        return self.decide(header, data, is_last=walk.position >= walk.end)

    def _must_stay(self, offset: int, note: ScheduleNote) -> bool:
        taken = self.taken
        return not isinstance(note, CheckpointNote) or taken is None or offset >= taken.offset

    def _decide_scheduled(self, offset: int, note: ScheduledNote, *, is_last: bool) -> bool:
        """Decide what stays of the body behind a note; return whether the note must stay."""
        is_needed = False
        for index, s_offset in enumerate(note.cancelled):
            is_needed = is_needed or self._is_needed(s_offset, note.cancelled_dues[index])
        waits = self._waits(offset + 1, note)
        self._body_offset = offset + 1
        self._body_decision = KEEP if waits else EMPTY if is_needed else DROP
        return waits or is_needed or is_last

    def _decide_body(self, header: BatchHeader) -> i64:
        decision: i64 = DROP
        if header.base_offset == self._body_offset:
            decision = self._body_decision
        if decision == DROP and self.keeps_header(header):
            decision = EMPTY
        if decision == EMPTY and header.size == HEADER_SIZE:
            return KEEP
        return decision

    def _waits(self, s_offset: int, note: ScheduledNote) -> bool:
        """Return whether a record of the body at `s_offset` waits."""
        if note.due_ms != EACH_ITS_OWN:
            return self._waits_until(s_offset, note.due_ms, recurs=False)
        for place in note.places:
            if place.due_ms != NOT_RELEASED and self._waits_until(
                s_offset + place.first, place.due_ms, recurs=place.terms is not None
            ):
                return True
        return False

    def _waits_until(self, s_offset: int, due_ms: int, *, recurs: bool) -> bool:
        if s_offset in self._cancelled:
            return False
        taken = self.taken
        return recurs or taken is None or not taken.is_done(due_ms, s_offset)

    def _is_needed(self, s_offset: int, due_ms: int) -> bool:
        """Return whether a rebuild may still need the note that cancels this body."""
        if s_offset == NO_S_OFFSET:
            # A note that cancels no body only witnesses that its leader led.
            return False
        taken = self.taken
        return taken is None or due_ms == NEVER_DONE or not taken.is_done(due_ms, s_offset)

    def keeps_header(self, header: BatchHeader) -> bool:
        return self._keeps_sequence(header) or super().keeps_header(header)

    def _keeps_sequence(self, header: BatchHeader) -> bool:
        if not header.has_producer_id:
            return False
        producer_id = self._kept_ends.get(int(header.last_offset))
        return producer_id is not None and i64(producer_id) == header.producer_id

    def placeholder(self, header: BatchHeader) -> bytes:
        rebuilt = RebuiltBatch(header)
        # Clear the control bit: an empty control batch would be a note that cannot be read.
        rebuilt.attributes = 0
        return rebuilt.encode()

    # -- weighing

    def begin_weighing(self, segment: Segment) -> None:
        base_offset = segment.base_offset
        self._weighed = base_offset
        self._epochs_before[int(base_offset)] = int(self.epoch_met)
        self._sizes_left[int(base_offset)] = 0
        if self._body_offset == base_offset:
            self._first_bodies[int(base_offset)] = self._body_decision

    def weigh(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> None:
        decision = self._decide_next(header, walk, effort)
        left: i64 = header.size if decision == KEEP else HEADER_SIZE if decision == EMPTY else 0
        self._sizes_left[int(self._weighed)] += left

    def choose(self, segments: list[Segment]) -> list[Segment]:
        if not self._may_compact:
            return []
        chosen: list[Segment] = []
        for index, segment in enumerate(segments):
            is_chosen = self._is_worth(segment)
            if not is_chosen and 2 * segment.size <= i64(self.log.config.segment_bytes):
                # A small segment is joined with what stays of a segment beside it.
                is_chosen = index > 0 and self._is_worth(segments[index - 1])
                if index + 1 < len(segments) and self._is_worth(segments[index + 1]):
                    is_chosen = True
            if is_chosen:
                chosen.append(segment)
        return chosen

    def _is_worth(self, segment: Segment) -> bool:
        """Return whether less than half of a segment stays, and a copy saves enough bytes."""
        left = self.size_left(segment)
        return 2 * left < segment.size and segment.size - left >= GAIN_BYTES_MIN

    def size_left(self, segment: Segment) -> i64:
        return self._sizes_left[int(segment.base_offset)]

    # -- copying

    def begin_source(self, segment: Segment) -> None:
        self.meet_epoch(self._epochs_before.get(int(segment.base_offset), -1))
        self._body_offset = segment.base_offset
        self._body_decision = self._first_bodies.get(int(segment.base_offset), DROP)

    def kept(self, header: BatchHeader, walk: BatchWalk, effort: Effort) -> BatchWork | None:
        decision = self._decide_next(header, walk, effort)
        if decision != KEEP:
            batch = _DecidedBatch(header, b"", 0)
            encoded = empty_batch(header) if decision == EMPTY else None
            batch.settle(encoded, 0 if header.is_control else header.record_count)
            return batch
        block, at = walk.block, walk.place_in_block()
        if at + header.size > len(block):
            block, at = walk.batch_bytes(header), 0
        return _DecidedBatch(header, block, at)

    def cleaned_offset(self, end_offset: i64) -> i64:
        return self.log.compaction.cleaned_offset

    def try_clear(self, entries_max: i64) -> bool:
        return True


def _spend_note(header: BatchHeader, effort: Effort) -> None:
    """Spend the effort of reading a note, which may have thousands of places."""
    effort.spend_bytes(header.size, _NOTE_KIB_UNITS)

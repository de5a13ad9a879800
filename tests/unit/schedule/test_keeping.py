"""Rule by which a companion log is compacted: what stays, and when nothing is touched."""

from __future__ import annotations

import pytest
from tests.support.schedule.companion_replica import CompanionReplica

from tarry.base.errors import StorageError
from tarry.log.compaction.compaction import DONE
from tarry.log.compaction.effort import Effort
from tarry.log.index.epoch_index import EpochIndex
from tarry.records.batch import HEADER_SIZE
from tarry.records.builder import BatchBuilder
from tarry.schedule.keeping import PartitionFacts
from tarry.schedule.notes import (
    ANY_OFFSET,
    EACH_ITS_OWN,
    CancelledNote,
    CheckpointNote,
    GapNote,
    ScheduledNote,
    ScheduleNote,
    Watermark,
)
from tarry.schedule.places import RecordPlace
from tarry.schedule.recurring.terms import RecurrenceTerms

SEGMENT_BYTES = 8_000
# Of a checkpoint that says nothing of what is due later.
NOW_MS = 100
FAR_MS = 10_000


class Companion:
    """A companion log, and the partition's records beside it: ten of them, in epoch 0."""

    def __init__(self) -> None:
        self.replica = CompanionReplica(7, SEGMENT_BYTES)
        self.epochs = EpochIndex()
        self.epochs.assign(0, 0)
        self.unclean_epoch = -1
        self.p_high_watermark = 10

    def note(self, note: ScheduleNote, epoch: int = 0) -> int:
        return self.replica.append(note.encode(5), epoch)

    def park(self, due_ms: int, size: int = 300, epoch: int = 0, **producer: int) -> int:
        return self.park_by(ScheduledNote(due_ms), size, epoch=epoch, **producer)

    def park_by(
        self, note: ScheduledNote, size: int = 300, count: int = 1, epoch: int = 0, **terms: int
    ) -> int:
        self.note(note, epoch)
        builder = BatchBuilder()
        for _ in range(count):
            builder.append(1, b"k", bytes(size))
        return self.replica.append(builder.build(**terms), epoch)

    def fill(self, due_ms: int = 1, epoch: int = 0) -> None:
        """Park what is due, and is done by the next checkpoint, until another segment begins."""
        segments = len(self.replica.log.segments)
        while len(self.replica.log.segments) == segments:
            self.park(due_ms, epoch=epoch)

    def checkpoint(self, *exceptions: int, due_ms: int = NOW_MS, c: int = 5, epoch: int = 0) -> int:
        mark = Watermark(ANY_OFFSET, due_ms, ANY_OFFSET)
        return self.note(CheckpointNote(c, 0, [mark], list(exceptions)), epoch)

    def compact(self) -> None:
        self.replica.s_high_watermark = self.replica.end
        self.replica.compact(self.facts)

    @property
    def facts(self) -> PartitionFacts:
        return PartitionFacts(self.epochs, 0, self.p_high_watermark, self.unclean_epoch)

    def sizes(self) -> dict[int, int]:
        """Bytes of each batch that is there, by its offset."""
        return {int(header.base_offset): len(data) for header, data in self.replica.batches()}


def test_what_waits_stays_with_its_note_and_what_is_done_goes() -> None:
    log = Companion()
    far = log.park(FAR_MS)
    done = log.park(10)
    log.fill()
    last = log.checkpoint()

    log.compact()

    sizes = log.sizes()
    assert {far - 1, far, last} <= {*sizes}
    assert not {done - 1, done} & {*sizes}
    assert min(log.replica.log.segments[0].size, 800) < 800


def test_what_a_checkpoint_excepts_stays() -> None:
    log = Companion()
    pending = log.park(10)
    log.fill()
    log.checkpoint(pending)

    log.compact()

    assert {pending - 1, pending} <= {*log.sizes()}


def test_what_is_cancelled_goes_at_once_and_the_cancel_when_it_would_have_been_due() -> None:
    log = Companion()
    far = log.park(FAR_MS)
    cancel = log.note(CancelledNote(far, due_ms=FAR_MS))
    log.fill()
    log.checkpoint()
    log.compact()
    before = {*log.sizes()}

    log.checkpoint(due_ms=FAR_MS)
    log.fill()
    log.checkpoint(due_ms=FAR_MS)
    log.compact()

    assert far not in before
    assert cancel in before
    assert cancel not in log.sizes()


def test_a_cancel_without_a_due_time_stays() -> None:
    log = Companion()
    far = log.park(FAR_MS)
    cancel = log.note(CancelledNote(far))
    log.fill()
    log.checkpoint(due_ms=2 * FAR_MS)

    log.compact()

    assert cancel in log.sizes()


def test_a_note_that_witnesses_goes() -> None:
    log = Companion()
    log.park(10)
    witness = log.note(CancelledNote(-1))
    log.fill()
    log.checkpoint()

    log.compact()

    assert witness not in log.sizes()


def test_a_follower_of_a_compacted_companion_log_knows_where_each_leader_epoch_began() -> None:
    log = Companion()
    began = []
    for epoch in (0, 2, 5):
        began.append(log.checkpoint(epoch=epoch))
        log.fill(epoch=epoch)
    log.checkpoint(epoch=5)
    log.compact()
    follower = Companion()

    follower.replica.copy_from(log.replica, 10_000)

    for replica in (log.replica, follower.replica):
        assert replica.log.leader_epochs.epochs == [0, 2, 5]
        assert replica.log.leader_epochs.start_offsets == began


def test_a_body_stays_behind_its_note_where_a_leader_epoch_begins() -> None:
    log = Companion()
    log.fill()
    far = log.park(FAR_MS, epoch=1)
    log.fill(epoch=1)
    log.checkpoint(epoch=1)

    log.compact()

    assert log.sizes()[far] > HEADER_SIZE


def test_of_a_record_that_was_moved_on_only_the_notes_stay() -> None:
    log = Companion()
    first = log.park(FAR_MS, size=2_000)
    second = log.park_by(ScheduledNote(FAR_MS + 1, None, [first], [FAR_MS]), 2_000)
    third = log.park_by(ScheduledNote(FAR_MS + 2, None, [second], [FAR_MS + 1]), 2_000)
    log.fill()
    log.checkpoint()

    log.compact()

    sizes = log.sizes()
    assert first not in sizes
    # The note before it cancels the first one: it stays, with a body that has no records.
    assert sizes[second] == HEADER_SIZE
    assert sizes[third] > 2_000
    assert {second - 1, third - 1} <= {*sizes}
    assert _waiting(log) == [third]


def _waiting(log: Companion) -> list[int]:
    rebuild = log.replica.begin_rebuild()
    rebuild.begin_releases(log.epochs, 0, 10, 10)
    state = rebuild.finish(log.replica.end)
    found = []
    while (body := state.take_due(1 << 60)) is not None:
        found.append(body.s_offset)
    return found


def test_one_record_of_a_batch_that_waits_keeps_the_batch() -> None:
    log = Companion()
    places = [RecordPlace(0, 1, 10), RecordPlace(1, 1, FAR_MS)]
    body = log.park_by(ScheduledNote(EACH_ITS_OWN, places), count=2)
    gone = log.park_by(ScheduledNote(EACH_ITS_OWN, [RecordPlace(0, 2, 10)]), count=2)
    log.fill()
    log.checkpoint()

    log.compact()

    assert body in log.sizes()
    assert gone not in log.sizes()


def test_a_record_that_recurs_stays_until_it_is_cancelled() -> None:
    log = Companion()
    terms = RecurrenceTerms("* * * * *", "UTC", 0, end_ms=-1, count=-1, misfire="once")
    bodies = [
        log.park_by(ScheduledNote(EACH_ITS_OWN, [RecordPlace(0, 1, 10, b"", terms)]))
        for _ in range(2)
    ]
    log.note(CancelledNote(bodies[1]))
    log.fill()
    log.checkpoint(due_ms=2 * FAR_MS)

    log.compact()

    assert bodies[0] in log.sizes()
    assert bodies[1] not in log.sizes()


def test_the_last_checkpoint_stays_and_those_before_it_go() -> None:
    log = Companion()
    log.park(10, size=SEGMENT_BYTES // 2)
    early = log.checkpoint(c=2)
    last = log.checkpoint(c=5)
    log.fill()
    log.fill()
    log.compact()

    assert early not in log.sizes()
    assert last in log.sizes()


@pytest.mark.parametrize("why", ["ahead", "another epoch", "unclean"])
def test_a_checkpoint_that_does_not_count_here_says_nothing(why: str) -> None:
    log = Companion()
    done = log.park(10)
    log.fill()
    log.checkpoint()
    if why == "ahead":
        log.p_high_watermark = 4
    elif why == "another epoch":
        log.epochs.assign(3, 4)
    else:
        log.unclean_epoch = 1

    log.compact()

    assert done in log.sizes()


def test_a_checkpoint_above_the_high_watermark_says_nothing() -> None:
    log = Companion()
    done = log.park(10)
    log.fill()
    log.replica.s_high_watermark = log.replica.end
    log.checkpoint()

    log.replica.compact(log.facts)

    assert done in log.sizes()


def test_the_last_batches_of_each_producer_stay_known_without_their_records() -> None:
    log = Companion()
    terms = {"producer_id": 9, "producer_epoch": 0}
    bodies = [log.park(10, base_sequence=number, **terms) for number in range(8)]
    log.fill()
    log.checkpoint()

    log.compact()
    log.replica.disk.crash()
    log.replica.open()

    sizes = log.sizes()
    assert [sizes.get(each) for each in bodies] == [None] * 3 + [HEADER_SIZE] * 5
    known = [batch.last_sequence for _, batch in log.replica.producers.kept_batches()]
    assert known == [3, 4, 5, 6, 7]


def test_a_segment_that_is_half_alive_is_left_alone() -> None:
    log = Companion()
    while len(log.replica.log.segments) < 3:
        log.park(FAR_MS)
        log.park(FAR_MS)
        log.park(1)
    log.checkpoint()
    before = log.sizes()

    log.compact()

    assert log.sizes() == before


def test_what_is_left_of_segments_goes_together() -> None:
    log = Companion()
    far = []
    for _ in range(6):
        far.append(log.park(FAR_MS))
        log.fill()
    log.checkpoint()

    log.compact()
    log.compact()

    assert len(log.replica.log.segments) == 2
    assert _waiting(log) == far
    assert log.replica.compactions == 1


@pytest.mark.parametrize("odd", ["damaged", "newer"])
def test_where_a_note_cannot_be_read_nothing_is_compacted(odd: str) -> None:
    log = Companion()
    done = log.park(10)
    note = bytearray(GapNote().encode(5))
    if odd == "damaged":
        note = bytearray(CancelledNote(done).encode(5))
        note[-3] ^= 1
    log.replica.append(bytes(note), 0)
    log.fill()
    log.checkpoint()

    log.compact()

    assert done in log.sizes()
    assert len(log.replica.refusals) == 1


def test_a_body_that_is_damaged_and_waits_is_copied_as_it_is() -> None:
    log = Companion()
    far = log.park(FAR_MS)
    log.fill()
    log.checkpoint()
    log.replica.cover()
    path = log.replica.log.segments[0].path + ".log"
    before = log.replica.disk.content(path)
    at = before.index(bytes(300))
    log.replica.disk.flip_bit(path, at + 150)

    log.compact()

    data = next(data for header, data in log.replica.batches() if header.base_offset == far)
    assert bytes(300) not in data
    assert log.replica.log.flaw_offset < 0


def test_a_full_disk_leaves_the_old_segments() -> None:
    log = Companion()
    far = log.park(FAR_MS)
    log.fill()
    log.checkpoint()
    log.replica.s_high_watermark = log.replica.end
    log.replica.cover()
    before = log.sizes()
    compaction = log.replica.begin(log.facts)
    assert compaction is not None
    log.replica.disk.capacity_bytes = log.replica.disk.used_bytes() + 10

    with pytest.raises(StorageError):
        while compaction.step(Effort(), 0) != DONE:
            pass
    compaction.abandon()

    assert log.sizes() == before
    assert far in before


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_crash_at_any_flush_loses_nothing(is_power_lost: bool) -> None:
    flushes = 0
    while True:
        log = Companion()
        far = [log.park(FAR_MS)]
        log.fill()
        far.append(log.park(FAR_MS))
        log.fill()
        log.checkpoint()
        log.replica.s_high_watermark = log.replica.end
        log.replica.cover()
        is_done = _compact_until(log, flushes)
        if is_power_lost:
            log.replica.disk.crash()
        else:
            log.replica.disk.kill()
        log.replica.open()

        assert _waiting(log) == far
        if is_done:
            return
        flushes += 1


def _compact_until(log: Companion, flushes: int) -> bool:
    """Compact until so many flushes have ended; True if it comes to its end before."""
    compaction = log.replica.begin(log.facts)
    assert compaction is not None
    while True:
        flush_id = compaction.step(Effort(), 0)
        while flush_id >= 0:
            if flushes == 0:
                return False
            flushes -= 1
            assert log.replica.disk.complete_flush(flush_id).error == ""
            flush_id = compaction.on_flushed()
        if flush_id == DONE:
            return True

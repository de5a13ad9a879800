"""A rebuild finds the same waiting records on each replica, however its companion log is compacted.

Three replicas with logs of their own, on simulated disks: one leads, the others copy from it a few
batches at a time, also through the holes that its compaction has left, and each compacts when it
likes, by what it knows to be committed.  Any replica that has all that is committed may lead next.
The oracle is a dictionary of what waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.model.test_schedule_rebuild import LogOfBatches
from tests.support.schedule.companion_replica import CompanionReplica

from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.schedule.bodies import bodies_of, noted_due_ms
from tarry.schedule.keeping import CompanionRule, PartitionFacts
from tarry.schedule.notes import (
    EACH_ITS_OWN,
    CancelledNote,
    CheckpointNote,
    ScheduledNote,
    read_note,
)
from tarry.schedule.places import RecordPlace
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.terms import RecurrenceTerms
from tarry.schedule.release_identity import NO_S_OFFSET, released_batch, released_s_offset
from tarry.schedule.state import ScheduleState

FOREVER = 2**62
RECORDS_MAX = 3


def body_of(count: int, producer_id: int, sequence: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(1, b"k", b"v" * 250)
    return builder.build(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


class Replicas:
    """One partition on three brokers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.replicas = [CompanionReplica(seed + number) for number in range(3)]
        self.leader = self.replicas[0]
        self.p = LogOfBatches()
        self.s_high_watermark = 0
        self.clock = 1_000
        self.epoch = 0
        # By s-offset, what S has and is neither released nor cancelled.
        self.waiting: dict[int, int] = {}
        # s-offsets of what was released, and of what was cancelled with the offset of the note.
        self.released: set[int] = set()
        self.cancelled: dict[int, int] = {}
        self.sequences = {5: 0, 6: 0}
        self.compactions = self.led = self.new_disks = 0
        self.leader.append(CheckpointNote(0, -1, [], []).encode(0), 0)
        self.state = self._rebuilt(self.leader)

    # --- Steps.

    def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.30:
            self.park()
        elif chance < 0.36:
            self.cancel()
        elif chance < 0.42:
            self.move()
        elif chance < 0.52:
            self.release()
        elif chance < 0.60:
            self.p.flush(self.rng.choice((0, 0, 2)))
            self.state.commit_released(self.p.high_watermark)
        elif chance < 0.73:
            self.clock += self.rng.choice((1, 5, 20, 60, -30))
        elif chance < 0.76:
            self.note_checkpoint()
        elif chance < 0.86:
            self.copy()
        elif chance < 0.96:
            self.compact()
        elif chance < 0.97:
            self.retain()
        elif chance < 0.985:
            self.lead()
        else:
            self.kill()

    def park(self, cancelled: tuple[int, ...] = ()) -> None:
        count = self.rng.randint(1, RECORDS_MAX)
        dues = [self.clock + self.rng.choice((1, 3, 10, 50, 5_000)) for _ in range(count)]
        terms = RecurrenceTerms("* * * * *", "UTC", 0, end_ms=-1, count=-1, misfire="once")
        bodies = [self.state.waiting(s_offset) for s_offset in cancelled]
        note_of = [noted_due_ms(body) for body in bodies]
        kind = self.rng.random()
        if kind < 0.6:
            note = ScheduledNote(dues[0], None, list(cancelled), note_of)
        else:
            places = [RecordPlace(number, 1, due) for number, due in enumerate(dues)]
            if kind < 0.65:
                places[-1].terms = terms
                places[-1].due_ms = FOREVER
            note = ScheduledNote(EACH_ITS_OWN, places, list(cancelled), note_of)
        producer_id = self.rng.choice((5, 6))
        batch = body_of(count, producer_id, self.sequences[producer_id])
        self.sequences[producer_id] += count
        offset = self.leader.append(note.encode(self.clock), self.epoch)
        s_offset = self.leader.append(batch, self.epoch)
        for gone in cancelled:
            self.state.cancel(gone, offset, offset)
            self.cancelled[gone] = s_offset
            del self.waiting[gone]
        for body in bodies_of(note, s_offset, self.epoch, count, len(batch)):
            self.waiting[body.s_offset] = body.due_ms
            self.state.park(body, self.clock)

    def cancel(self) -> None:
        body = self._some_waiting()
        if body is not None:
            note = CancelledNote(body, due_ms=noted_due_ms(self.state.waiting(body)))
            offset = self.leader.append(note.encode(self.clock), self.epoch)
            self.state.cancel(body, offset, offset)
            self.cancelled[body] = offset
            del self.waiting[body]

    def move(self) -> None:
        body = self._some_waiting()
        if body is not None:
            self.park((body,))

    def _some_waiting(self) -> int | None:
        offsets = [each for each in self.waiting if self.state.waiting(each) is not None]
        return self.rng.choice(offsets) if offsets else None

    def release(self) -> None:
        for _ in range(self.rng.randint(1, 6)):
            body = self.state.take_due(self.clock)
            if body is None:
                return
            assert not isinstance(body, RecurringBody)
            batch = released_batch(body_of(body.record_count, -1, -1), body.s_offset)
            place = self.p.append(batch, self.epoch)
            self.state.add_release(body, place)
            self.released.add(body.s_offset)
            del self.waiting[body.s_offset]

    def note_checkpoint(self) -> None:
        c = self.p.high_watermark
        note = self.state.checkpoint(c, self.p.epochs.epoch_of(c - 1) if c else -1)
        assert note is not None
        self.leader.append(note.encode(self.clock), self.epoch)

    def retain(self) -> None:
        """Let P begin at c of the last checkpoint below S's high watermark."""
        for header, data in self.leader.batches():
            if header.is_control and header.base_offset < self.s_high_watermark:
                note = read_note(data, 0, header)
                self.p.start = max(self.p.start, getattr(note, "c", 0))
        self.p.epochs.truncate_start(self.p.start)

    def copy(self) -> None:
        """Let a follower copy; the high watermark is what two replicas have."""
        follower = self.rng.choice([each for each in self.replicas if each is not self.leader])
        follower.copy_from(self.leader, self.rng.choice((1, 3, 100)))
        ends = sorted(each.end for each in self.replicas)
        self.s_high_watermark = max(self.s_high_watermark, ends[1])
        self.state.commit_parked(self.s_high_watermark)
        for each in (self.leader, follower):
            each.s_high_watermark = min(each.end, self.s_high_watermark)
            each.p_high_watermark = self.p.high_watermark

    def compact(self) -> None:
        replica = self.rng.choice(self.replicas)
        p = self.p
        facts = PartitionFacts(p.epochs, p.start, replica.p_high_watermark, -1)
        replica.compact(facts)
        assert replica.refusals == []

    def in_sync(self) -> list[CompanionReplica]:
        return [each for each in self.replicas if each.end >= self.s_high_watermark]

    def lead(self) -> None:
        """Let another replica lead, or the same one again; who has more gets an empty disk."""
        self.p.flush(0)
        self.leader = self.rng.choice(self.in_sync())
        self.epoch += 1
        self.led += 1
        end = self.leader.end
        for number, each in enumerate(self.replicas):
            if each.end > end:
                self.replicas[number] = CompanionReplica(self.rng.randrange(1 << 30))
                self.compactions += each.compactions
                self.new_disks += 1
        self.waiting = {at: due for at, due in self.waiting.items() if at < end}
        self.cancelled = {at: note for at, note in self.cancelled.items() if note < end}
        self.state = self._rebuilt(self.leader)
        # A record waits again if the note that cancelled it is lost.
        found = self._found(self.leader)
        assert {*self.waiting} <= {s_offset for _, s_offset in found}
        self.waiting = {s_offset: due_ms for due_ms, s_offset in found}

    def kill(self) -> None:
        """Let a follower be killed and start again."""
        follower = self.rng.choice([each for each in self.replicas if each is not self.leader])
        follower.disk.kill()
        follower.open()

    # --- What must hold.

    def check(self) -> None:
        """Check that each replica that may lead finds every committed record that waits."""
        committed = sorted(
            (due_ms, s_offset)
            for s_offset, due_ms in self.waiting.items()
            if s_offset < self.s_high_watermark
        )
        for replica in self.in_sync():
            found = self._found(replica)
            if replica.end == self.leader.end:
                expected = [(due_ms, s_offset) for s_offset, due_ms in self.waiting.items()]
                assert found == sorted(expected)
            assert {*committed} <= {*found}
            offsets = {s_offset for _, s_offset in found}
            gone = {at for at, note in self.cancelled.items() if note < self.s_high_watermark}
            assert not offsets & (self.released | gone)

    def _found(self, replica: CompanionReplica) -> list[tuple[int, int]]:
        state = self._rebuilt(replica)
        state.commit_parked(replica.end)
        found: list[tuple[int, int]] = []
        while (body := state.take_due(2**63 - 2)) is not None:
            due_ms = FOREVER if isinstance(body, RecurringBody) else body.due_ms
            found.append((due_ms, body.s_offset))
        return found

    def _rebuilt(self, replica: CompanionReplica) -> ScheduleState:
        rebuild = replica.begin_rebuild()
        p = self.p
        begin = rebuild.begin_releases(p.epochs, p.start, p.end, p.high_watermark)
        for offset, epoch, batch in p.batches:
            header = decode_batch_header(batch, 0)
            s_offset = int(released_s_offset(header))
            if offset >= max(begin, p.start) and s_offset != NO_S_OFFSET:
                rebuild.add_release(s_offset, epoch, offset, int(header.record_count))
        return rebuild.finish(min(replica.end, self.s_high_watermark))


def run(seed: int, steps: int = 200) -> Replicas:
    replicas = Replicas(seed)
    for step in range(steps):
        replicas.step()
        try:
            replicas.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, step {step}") from error
    return replicas


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_a_rebuild_finds_the_same_however_each_replica_has_compacted(first: int) -> None:
    compactions = led = 0
    for seed in range(first, first + 8):
        replicas = run(seed)
        compactions += replicas.compactions
        compactions += sum(each.compactions for each in replicas.replicas)
        led += replicas.led

    assert compactions > 10
    assert led > 8


# --- Faults that the model has to find.


def drop_what_waits(patch: pytest.MonkeyPatch) -> None:
    """Of the bodies that wait, some go."""
    honest = CompanionRule._waits_until

    def waits(self: CompanionRule, s_offset: int, due_ms: int, *, recurs: bool) -> bool:
        return s_offset % 5 != 0 and honest(self, s_offset, due_ms, recurs=recurs)

    patch.setattr(CompanionRule, "_waits_until", waits)


def drop_a_cancel_with_its_body(patch: pytest.MonkeyPatch) -> None:
    """A follower that has the body, and copies on from behind it, never hears of the cancel."""
    patch.setattr(CompanionRule, "_is_needed", lambda self, s_offset, due_ms: False)


def drop_a_note_whose_body_is_in_the_next_segment(patch: pytest.MonkeyPatch) -> None:
    honest = CompanionRule.decide
    patch.setattr(
        CompanionRule,
        "decide",
        lambda self, header, data, *, is_last: honest(self, header, data, is_last=False),
    )


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "plant",
    [
        drop_what_waits,
        drop_a_cancel_with_its_body,
        drop_a_note_whose_body_is_in_the_next_segment,
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(40):
            run(seed)

"""What a new leader finds pending is what is in S and has no release in P: after any life.

Two logs of real batches, each flushed by itself and cut by crashes and failed writes anywhere
behind its flushed end; a clock that is stepped; checkpoints, behind which P's start may go.  The
oracle is a list: every body of S that no batch of P has released.

In some lives replicas that lag behind are elected, uncleanly: both logs lose what was committed,
and offsets are given again.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tarry.log.index.epoch_index import EpochIndex
from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.schedule import entry_order, rebuild as rebuilding
from tarry.schedule.entry_order import EntryOrder
from tarry.schedule.noted_checkpoint import NotedCheckpoint
from tarry.schedule.notes import ANY_OFFSET, ScheduledNote, read_note
from tarry.schedule.pending import Body, PendingBodies
from tarry.schedule.rebuild import Rebuild
from tarry.schedule.release_identity import NO_S_OFFSET, released_batch, released_s_offset
from tarry.schedule.state import ScheduleState
from tarry.schedule.watermarks import ScheduleWatermarks


class LogOfBatches:
    """Log in memory: offset, leader epoch and bytes of each batch."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        self.end = 0
        self.high_watermark = 0
        self.start = 0
        self.epochs = EpochIndex()

    def append(self, batch: bytes, epoch: int) -> int:
        base_offset = self.end
        self.epochs.assign(epoch, base_offset)
        self.batches.append((base_offset, epoch, batch))
        self.end += decode_batch_header(batch, 0).record_count
        return base_offset

    def flush(self, left: int) -> None:
        """Let the high watermark pass all but the last batches."""
        for offset, _, batch in self.batches[: max(0, len(self.batches) - left)]:
            end = offset + decode_batch_header(batch, 0).record_count
            self.high_watermark = max(self.high_watermark, end)

    def lag(self, rng: random.Random) -> None:
        """Become the log of a replica that has flushed only a part of it."""
        self.high_watermark = 0
        self.flush(rng.choice((0, 1, 3, 9, 20)))

    def cut(self, rng: random.Random) -> None:
        """Keep any number of the batches that are not flushed."""
        flushed = sum(1 for offset, _, _ in self.batches if offset < self.high_watermark)
        del self.batches[rng.randint(flushed, len(self.batches)) :]
        self.end = self.high_watermark
        if self.batches:
            offset, _, batch = self.batches[-1]
            self.end = offset + decode_batch_header(batch, 0).record_count
        self.epochs.truncate_end(self.end)


def body_of(count: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(1, b"k", b"v")
    return builder.build(producer_id=5, producer_epoch=0, base_sequence=0)


class Lives:
    """Lives of a leader, one after the other."""

    def __init__(self, seed: int, *, is_unclean: bool = False) -> None:
        self.rng = random.Random(seed)
        self.is_unclean = is_unclean
        self.s = LogOfBatches()
        self.p = LogOfBatches()
        self.clock = 1_000
        self.epoch = 0
        # By s-offset, what S has: due time and leader epoch.
        self.due: dict[int, tuple[int, int]] = {}
        self.state = ScheduleState(PendingBodies(), ScheduleWatermarks([]))
        note = self.state.checkpoint(0, -1)
        assert note is not None
        self.s.append(note.encode(0), 0)

    def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.35:
            self.park()
        elif chance < 0.40:
            self.p.append(body_of(self.rng.randint(1, 3)), self.epoch)
        elif chance < 0.55:
            self.s.flush(self.rng.choice((0, 0, 1, 3)))
            self.state.commit_parked(self.s.high_watermark)
        elif chance < 0.68:
            self.release(self.rng.randint(1, 4))
        elif chance < 0.78:
            self.p.flush(self.rng.choice((0, 0, 1, 3)))
            self.state.commit_released(self.p.high_watermark)
        elif chance < 0.84:
            self.clock = max(0, self.clock + self.rng.choice((1, 3, 10, 10, 40, 400, -5, -500)))
        elif chance < 0.91:
            self.note_checkpoint()
        elif chance < 0.93:
            if not self.is_unclean:
                self.retain()
        elif chance < 0.95:
            self.take_and_put_back()
        elif chance < (0.96 if self.is_unclean else 0.98):
            self.fail_to_write()
        else:
            self.crash()

    def park(self) -> None:
        due_ms = self.clock + self.rng.choice((1, 2, 5, 20, 300))
        count = self.rng.randint(1, 3)
        self.s.append(ScheduledNote(due_ms).encode(self.clock), self.epoch)
        batch = body_of(count)
        s_offset = self.s.append(batch, self.epoch)
        self.due[s_offset] = due_ms, self.epoch
        self.state.park(Body(s_offset, due_ms, self.epoch, count, len(batch)), self.clock)

    def release(self, most: int) -> None:
        previous = (-1, -1)
        for _ in range(most):
            body = self.state.take_due(self.clock)
            if body is None:
                return
            assert body.due_ms <= self.clock
            assert body.s_offset < self.s.high_watermark
            assert previous < (body.due_ms, body.s_offset)
            previous = (body.due_ms, body.s_offset)
            batch = next(batch for at, _, batch in self.s.batches if at == body.s_offset)
            place = self.p.append(released_batch(batch, body.s_offset), self.epoch)
            self.state.add_release(body, place)

    def take_and_put_back(self) -> None:
        body = self.state.take_due(self.clock)
        if body is not None:
            self.state.put_back(body)

    def fail_to_write(self) -> None:
        self.rng.choice((self.s, self.p)).cut(self.rng)
        self.state.rollback_parked(self.s.end)
        self.state.rollback_released(self.p.end)
        self._forget_bodies()

    def note_checkpoint(self) -> None:
        c = self.p.high_watermark
        note = self.state.checkpoint(c, self.p.epochs.epoch_of(c - 1) if c else -1)
        assert note is not None
        self.s.append(note.encode(self.clock), self.epoch)

    def retain(self) -> None:
        """Let P begin at c of the last checkpoint below S's high watermark."""
        for offset, _, batch in self.s.batches:
            header = decode_batch_header(batch, 0)
            if header.is_control and offset < self.s.high_watermark:
                note = read_note(batch, 0, header)
                self.p.start = max(self.p.start, getattr(note, "c", 0))
        self.p.epochs.truncate_start(self.p.start)

    def crash(self) -> None:
        if self.is_unclean and self.rng.random() < 0.5:
            for log in (self.s, self.p):
                log.lag(self.rng)
        self.s.cut(self.rng)
        self.p.cut(self.rng)
        self._forget_bodies()
        # What a start has kept is flushed.
        self.s.high_watermark = self.s.end
        self.p.high_watermark = self.p.end
        self.epoch += 1
        self.state = self._rebuilt()

    def check(self) -> None:
        """A rebuild now finds what is not released, and the living state has as much."""
        # The last leader epoch in which P has a release of each s-offset.
        released = {
            released_s_offset(decode_batch_header(batch, 0)): epoch
            for _, epoch, batch in self.p.batches
        }
        expected = sorted(
            (due_ms, s_offset)
            for s_offset, (due_ms, epoch) in self.due.items()
            if released.get(s_offset, -1) < epoch
        )

        rebuilt = self._rebuilt()
        rebuilt.commit_parked(self.s.end)
        found: list[tuple[int, int]] = []
        while (body := rebuilt.take_due(2**62)) is not None:
            found.append((body.due_ms, body.s_offset))

        assert found == expected
        assert self.state.count == len(expected)

    def _forget_bodies(self) -> None:
        for s_offset in [each for each in self.due if each >= self.s.end]:
            del self.due[s_offset]

    def _rebuilt(self) -> ScheduleState:
        rebuild = Rebuild()
        for offset, epoch, batch in self.s.batches:
            header = decode_batch_header(batch, 0)
            if header.is_control:
                rebuild.add_note(offset, read_note(batch, 0, header))
            else:
                rebuild.add_body(offset, epoch, header.record_count, len(batch))
        p = self.p
        begin = rebuild.begin_releases(p.epochs, p.start, p.end, p.high_watermark)
        for offset, epoch, batch in p.batches:
            header = decode_batch_header(batch, 0)
            s_offset = released_s_offset(header)
            if offset >= begin and s_offset != NO_S_OFFSET:
                rebuild.add_release(s_offset, epoch, offset, int(header.record_count))
        assert rebuild.flaws == []
        return rebuild.finish(self.s.high_watermark)


def run(seed: int, *, is_unclean: bool) -> None:
    lives = Lives(seed, is_unclean=is_unclean)
    for step in range(80):
        lives.step()
        try:
            lives.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, step {step}") from error


@pytest.mark.parametrize(
    ("first", "is_unclean"), [(0, False), (100, False), (200, False), (300, False), (0, True)]
)
def test_a_rebuild_finds_what_is_not_released(first: int, is_unclean: bool) -> None:
    for seed in range(first, first + 100):
        run(seed, is_unclean=is_unclean)


# --- Faults that the oracle has to find.


def forget_exceptions(patch: pytest.MonkeyPatch) -> None:
    """Take pending bodies at or below W for released: a checkpoint names no exceptions."""
    patch.setattr(NotedCheckpoint, "is_exception", lambda self, s_offset: False)


def apply_watermarks_behind_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    honest = NotedCheckpoint.is_done
    patch.setattr(
        NotedCheckpoint,
        "is_done",
        lambda self, due_ms, s_offset: honest(
            NotedCheckpoint(ANY_OFFSET, self.checkpoint), due_ms, s_offset
        ),
    )


def take_any_checkpoint(patch: pytest.MonkeyPatch) -> None:
    """It counts although P is not the log that it speaks of."""
    patch.setattr(rebuilding, "counts", lambda *rest: True)


def ask_for_no_epoch(patch: pytest.MonkeyPatch) -> None:
    """A release counts for whatever body has its s-offset now."""
    honest = Rebuild.add_release
    patch.setattr(
        Rebuild,
        "add_release",
        lambda self, s_offset, epoch, *rest: honest(self, s_offset, 2**31, *rest),
    )


def read_no_further_than_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    honest = Rebuild.add_release

    def add_release(self: Rebuild, s_offset: int, epoch: int, offset: int, count: int) -> None:
        if offset < self._p_high_watermark:
            honest(self, s_offset, epoch, offset, count)

    patch.setattr(Rebuild, "add_release", add_release)


def keep_what_s_has_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScheduleState, "rollback_parked", lambda self, s_end_offset: False)


def keep_releases_that_p_has_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScheduleState, "rollback_released", lambda self, p_end_offset: None)


def lose_the_last_entry_of_a_block_that_is_split(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entry_order, "CHUNK_ENTRIES_MAX", 2)
    honest = EntryOrder._split

    def split(self: EntryOrder, index: int) -> None:
        del self._chunks[index].data[-self._width :]
        honest(self, index)

    patch.setattr(EntryOrder, "_split", split)


def put_the_edge_of_a_block_an_entry_too_far(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entry_order, "CHUNK_ENTRIES_MAX", 2)
    honest = EntryOrder._split

    def split(self: EntryOrder, index: int) -> None:
        honest(self, index)
        width = self._width
        self._bounds[index + 1] = bytes(self._chunks[index + 1].data[width : 2 * width])

    patch.setattr(EntryOrder, "_split", split)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("plant", "is_unclean"),
    [
        (forget_exceptions, False),
        (apply_watermarks_behind_the_checkpoint, False),
        (take_any_checkpoint, True),
        (ask_for_no_epoch, True),
        (read_no_further_than_the_high_watermark, False),
        (keep_what_s_has_lost, False),
        (keep_releases_that_p_has_lost, False),
        (lose_the_last_entry_of_a_block_that_is_split, False),
        (put_the_edge_of_a_block_an_entry_too_far, False),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], is_unclean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(300):
            run(seed, is_unclean=is_unclean)

"""Recurring bodies in the state of a schedule: released again and again, rolled back, cancelled."""

from __future__ import annotations

import pytest

from tarry.base.limits import INSTANCES_UNDER_WAY_MAX
from tarry.log.index.epoch_index import EpochIndex
from tarry.schedule.notes import (
    ANY_OFFSET,
    EACH_ITS_OWN,
    CancelledNote,
    CheckpointNote,
    ScheduledNote,
    Watermark,
)
from tarry.schedule.pending import NEVER, Body, PendingBodies
from tarry.schedule.places import RecordPlace
from tarry.schedule.rebuild import Rebuild
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.recurring.terms import NotedRecurrence, RecurrenceTerms
from tarry.schedule.state import ScheduleState
from tarry.schedule.watermarks import ScheduleWatermarks

TERMS = RecurrenceTerms("* * * * *", "UTC", 0, end_ms=-1, count=-1, misfire="all")


def recurring(s_offset: int = 2, due_ms: int = 10, schedule_id: bytes = b"") -> RecurringBody:
    return RecurringBody(s_offset, due_ms, 0, 100, TERMS, place=0, schedule_id=schedule_id)


class Led:
    """A state with one recurring body, whose instances are due at 10, 20, 30, …"""

    def __init__(self, schedule_id: bytes = b"") -> None:
        self.state = ScheduleState(PendingBodies(), ScheduleWatermarks([]))
        self.body = recurring(schedule_id=schedule_id)
        self.state.park(self.body, 0)
        self.state.commit_parked(9)
        self.end = 0
        self.now_ms = 0

    def release(self, *, is_last: bool = False) -> int:
        body = self.state.take_due(10_000)
        assert body is self.body
        due_ms = self.body.search_ms + 10
        self.body.begin_instance(due_ms)
        self.state.add_instance(self.body, self.end)
        self.state.await_next(self.body, None if is_last else due_ms + 10, self.now_ms)
        self.end += 1
        return due_ms

    def facts(self) -> tuple[int, int, int, int]:
        body = self.body
        return body.last_ms, body.released_count, body.committed_ms, body.committed_count


def test_it_waits_again_as_soon_as_it_was_released() -> None:
    led = Led()

    released = [led.release() for _ in range(3)]
    led.state.commit_released(2)

    assert released == [10, 20, 30]
    assert led.facts() == (30, 3, 20, 2)
    assert led.state.next_due_ms() == 40


def test_one_that_is_late_lets_others_go_first() -> None:
    led = Led()
    led.state.park(Body(4, 50, 0, 1, 100), 0)
    led.state.commit_parked(9)
    led.now_ms = 100

    released = led.release()
    body = led.state.take_due(100)

    assert released == 10
    assert body is not None
    assert body.s_offset == 4
    assert led.state.next_due_ms() == 100


def test_a_release_that_is_lost_brings_it_back_to_the_first_instance_that_was_not_kept() -> None:
    led = Led()
    for _ in range(4):
        led.release()
    led.state.commit_released(1)

    led.state.rollback_released(2)
    led.end = 2

    assert led.facts() == (20, 2, 10, 1)
    assert led.state.next_due_ms() <= 30
    assert led.release() == 30


@pytest.mark.parametrize("is_last", [False, True])
def test_one_that_was_cancelled_does_not_come_back_with_a_release_that_is_lost(
    is_last: bool,
) -> None:
    led = Led()
    led.release()
    if not is_last:
        led.state.cancel(2, 11, 11)
    else:
        led.release(is_last=True)
        led.state.commit_released(1)
        assert led.state.take_due(10_000) is led.body
        led.state.end(led.body, 11)

    led.state.rollback_released(0 if not is_last else 1)

    assert led.state.next_due_ms() == NEVER
    assert led.state.recurring == {}


def test_one_whose_cancel_is_lost_after_its_release_comes_for_that_instance() -> None:
    led = Led(b"id")
    led.release()
    led.state.cancel(2, 11, 11)
    led.state.rollback_released(0)

    led.state.rollback_parked(11)
    led.end = 0

    assert led.release() == 10
    assert led.state.cancellable(b"id") == 2


@pytest.mark.parametrize("is_lost", [False, True])
def test_one_that_has_ended_is_kept_until_its_last_release_counts(is_lost: bool) -> None:
    led = Led(b"id")
    led.release()
    led.release(is_last=True)
    resting = (led.state.count, led.state.first_offset(), led.state.cancellable(b"id"))

    if is_lost:
        led.state.rollback_released(1)
    else:
        led.state.commit_released(1)

    assert resting == (1, 2, None)
    assert led.state.next_due_ms() <= 20
    assert led.state.take_due(10_000) is led.body
    assert led.facts()[:2] == ((10, 1) if is_lost else (20, 2))


def test_the_note_of_an_end_that_is_lost_is_told() -> None:
    led = Led()
    led.release(is_last=True)
    led.state.commit_released(1)
    assert led.state.take_due(10_000) is led.body
    led.state.end(led.body, 11)

    has_lost_end = led.state.rollback_parked(11)

    assert has_lost_end
    assert led.state.recurring == {2: led.body}
    assert not led.state.rollback_parked(11)


def test_a_cancel_of_something_else_that_is_lost_is_no_lost_end() -> None:
    led = Led()
    led.state.cancel(2, 11, 11)

    assert not led.state.rollback_parked(11)


def test_no_more_of_them_are_under_way_than_allowed() -> None:
    led = Led(b"id")
    for _ in range(INSTANCES_UNDER_WAY_MAX):
        led.release()
    held = led.state.next_due_ms()
    cancellable = led.state.cancellable(b"id")

    led.state.commit_released(1)

    assert (held, cancellable) == (NEVER, 2)
    assert led.release() == 10 * (INSTANCES_UNDER_WAY_MAX + 1)


def test_one_that_rests_can_be_cancelled() -> None:
    led = Led(b"id")
    for _ in range(INSTANCES_UNDER_WAY_MAX):
        led.release()
    led.state.cancel(2, 11, 11)

    led.state.commit_released(led.end)

    assert led.state.next_due_ms() == NEVER
    assert led.state.first_offset() == 2
    led.state.commit_parked(12)
    assert led.state.first_offset() == ANY_OFFSET


# --- Asked for.


def test_it_waits_while_its_instances_are_under_way() -> None:
    led = Led(b"id")
    for _ in range(INSTANCES_UNDER_WAY_MAX):
        found = (led.state.waiting(2), led.state.release_of(2), led.state.released_offset(2))
        assert found == (led.body, None, None)
        assert not led.state.is_being_released(b"id")
        led.release()
    # It rests.
    assert (led.state.next_due_ms(), led.state.waiting_in(0, 9)) == (NEVER, [led.body])
    led.state.commit_released(1)

    assert led.state.waiting(2) is led.body
    assert led.state.waiting_in(0, 9) == [led.body]
    assert led.state.released_offset(2) is None
    assert led.state.cancellable(b"id") == 2


def test_one_that_has_ended_is_its_last_release_until_that_counts() -> None:
    led = Led(b"id")
    led.release()
    led.release(is_last=True)
    led.state.commit_released(1)
    release = led.state.release_of(2)
    under_way = (led.state.waiting(2), led.state.released_offset(2))

    led.state.commit_released(2)

    assert release is not None
    assert (release.base_offset, under_way) == (1, (None, 0))
    assert led.state.is_being_released(b"id")
    assert (led.state.waiting(2), led.state.release_of(2)) == (None, None)
    assert led.state.released_offset(2) == 1


@pytest.mark.parametrize("is_lost", [False, True])
def test_one_whose_end_is_noted_is_remembered_by_its_id_and_place(is_lost: bool) -> None:
    led = Led(b"id")
    led.release(is_last=True)
    led.state.commit_released(1)
    assert led.state.take_due(10_000) is led.body
    led.state.end(led.body, 11)

    if is_lost:
        led.state.rollback_parked(11)
    else:
        led.state.commit_parked(12)

    assert led.state.waiting(2) is None
    assert led.state.released_offset(2) == 0
    assert led.state.ids.offset_of(b"id") == (2 if is_lost else None)
    assert is_lost or led.state.released.s_offset_of(b"id") == 2


def test_one_that_was_taken_back_is_not_released_by_what_counts_later() -> None:
    led = Led(b"id")
    led.release()
    led.state.cancel(2, 11, 11)

    led.state.commit_released(1)
    led.state.commit_parked(12)

    assert (led.state.release_of(2), led.state.released_offset(2)) == (None, None)
    assert led.state.released.s_offset_of(b"id") is None


def test_the_end_of_one_whose_id_another_one_has_says_nothing_of_that() -> None:
    led = Led(b"id")
    led.release(is_last=True)
    led.state.park(Body(10, 50, 0, 1, 100, schedule_id=b"id"), 0)
    led.state.commit_released(1)
    assert led.state.take_due(49) is led.body

    led.state.end(led.body, 12)

    assert led.state.ids.offset_of(b"id") == 10
    assert led.state.ids.cancelled_offset_of(b"id") is None


# --- Checkpoints.


def test_a_checkpoint_names_what_is_alive_and_no_exception_for_it() -> None:
    led = Led()
    state = led.state
    state.park(Body(4, 50, 0, 1, 100), 0)
    state.park(recurring(6), 0)
    state.park(recurring(8), 0)
    state.commit_parked(7)
    state.pending.forget(6)
    led.release()
    body = state.pending.forget(4)
    assert body is not None
    state.add_release(body, 1)
    led.end = 2
    state.commit_released(2)
    state.cancel(8, 12, 12)
    # Under way: a checkpoint speaks of what counts.
    assert led.release() == 20

    note = state.checkpoint(2, 0)

    assert note is not None
    assert note.exceptions == []
    assert [(each.due_ms, each.s_offset) for each in note.watermarks] == [(50, 4)]
    noted = [(each.s_offset, each.last_ms, each.count) for each in note.recurrences]
    assert noted == [(2, 10, 1), (6, 0, 0)]


# --- Rebuilt.


class Read:
    """A rebuild of a companion log with one recurring body at the s-offset 2."""

    def __init__(self, checkpoint: CheckpointNote | None = None, *, epoch: int = 0) -> None:
        self.rebuild = Rebuild()
        place = RecordPlace(0, 1, 10, b"id", TERMS)
        self.rebuild.add_note(1, ScheduledNote(EACH_ITS_OWN, [place]))
        self.rebuild.add_body(2, epoch, 1, 100)
        if checkpoint is not None:
            self.rebuild.add_note(3, checkpoint)

    def finish(self, *releases: tuple[int, int, int], p_high_watermark: int = 100) -> ScheduleState:
        """`releases`: leader epoch, offset and due time."""
        epochs = EpochIndex()
        epochs.assign(0, 0)
        self.rebuild.begin_releases(epochs, 0, 100, p_high_watermark)
        for leader_epoch, offset, due_ms in releases:
            self.rebuild.add_instance(2, leader_epoch, offset, due_ms)
        return self.rebuild.finish(100)


def facts_of(state: ScheduleState) -> tuple[int, int, int, int]:
    (body,) = state.recurring.values()
    return body.last_ms, body.released_count, body.committed_ms, body.committed_count


def a_checkpoint(*recurrences: NotedRecurrence) -> CheckpointNote:
    # The watermark would cover the body, if it spoke of it.
    checkpoint = CheckpointNote(5, 0, [Watermark(ANY_OFFSET, 1_000, 90)], [], list(recurrences))
    checkpoint.noted_ms = 777
    return checkpoint


@pytest.mark.parametrize(
    ("checkpoint", "releases", "facts"),
    [
        (None, [], (0, 0, 0, 0)),
        (None, [(0, 5, 10), (0, 6, 20)], (20, 2, 20, 2)),
        (NotedRecurrence(2, 40, 4), [], (40, 4, 40, 4)),
        (NotedRecurrence(2, 40, 4), [(0, 5, 50), (1, 7, 60)], (60, 6, 60, 6)),
        # What the checkpoint speaks of already, and what was said of another body.
        (NotedRecurrence(2, 40, 4), [(0, 5, 40)], (40, 4, 40, 4)),
        (NotedRecurrence(9, 40, 4), [], (777, 0, 777, 0)),
    ],
)
def test_how_far_it_came_is_the_later_of_the_checkpoint_and_the_releases(
    checkpoint: NotedRecurrence | None,
    releases: list[tuple[int, int, int]],
    facts: tuple[int, int, int, int],
) -> None:
    read = Read(None if checkpoint is None else a_checkpoint(checkpoint))

    state = read.finish(*releases)

    assert facts_of(state) == facts
    assert state.next_due_ms() == max(facts[0], 10)


def test_a_release_of_an_earlier_epoch_than_its_body_is_of_another_one() -> None:
    state = Read(epoch=3).finish((2, 5, 10), (3, 6, 20))

    assert facts_of(state) == (20, 1, 20, 1)


def test_what_does_not_count_yet_is_under_way_and_can_be_lost() -> None:
    state = Read().finish((0, 5, 10), (0, 6, 20), (0, 7, 30), p_high_watermark=6)
    before = facts_of(state)

    state.rollback_released(7)
    state.commit_released(7)

    assert before == (30, 3, 10, 1)
    assert facts_of(state) == (20, 2, 20, 2)


@pytest.mark.parametrize("cancel_first", [False, True])
def test_what_was_cancelled_is_not_there(cancel_first: bool) -> None:
    read = Read()
    read.rebuild.add_note(4, CancelledNote(2))

    state = read.finish((0, 5, 10), p_high_watermark=5 if cancel_first else 6)
    state.rollback_released(5)

    assert state.recurring == {}
    assert state.next_due_ms() == NEVER


@pytest.mark.parametrize("has_come", [False, True])
def test_what_has_ended_by_itself_is_remembered_and_what_was_taken_back_is_not(
    has_come: bool,
) -> None:
    read = Read()
    read.rebuild.add_note(4, CancelledNote(2, has_come=has_come))

    state = read.finish((0, 5, 10))

    assert state.recurring == {}
    assert state.released_offset(2) == (5 if has_come else None)
    assert state.released.s_offset_of(b"id") == (2 if has_come else None)


def test_a_checkpoint_that_knows_no_recurring_bodies_doubles_nothing() -> None:
    state = Read(a_checkpoint()).finish()

    # An older release wrote it when its calendar showed 777.
    assert facts_of(state)[0] == 777


def test_no_checkpoint_is_written_while_the_note_of_a_recurring_body_is_damaged() -> None:
    rebuild = Rebuild()
    rebuild.add_body(2, 0, 1, 100)
    epochs = EpochIndex()
    epochs.assign(0, 0)
    rebuild.begin_releases(epochs, 0, 100, 100)
    rebuild.add_instance(2, 0, 5, 10)

    state = rebuild.finish(100)

    assert state.damaged_count == 1
    assert state.checkpoint(50, 0) is None

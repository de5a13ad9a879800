"""What is pending: parked, committed, released, rolled back."""

from __future__ import annotations

import pytest

from tarry.base.limits import CHECKPOINT_EXCEPTIONS_MAX
from tarry.schedule.notes import ANY_OFFSET, Watermark
from tarry.schedule.pending import NEVER, Body, PendingBodies
from tarry.schedule.state import ScheduleState
from tarry.schedule.watermarks import ScheduleWatermarks


def a_state(watermarks: list[Watermark] | None = None) -> ScheduleState:
    return ScheduleState(PendingBodies(), ScheduleWatermarks(watermarks or []))


def body(s_offset: int, due_ms: int, record_count: int = 1) -> Body:
    return Body(s_offset, due_ms, 0, record_count, 100)


def due_now(state: ScheduleState, now_wall_ms: int) -> list[int]:
    taken: list[int] = []
    while True:
        found = state.take_due(now_wall_ms)
        if found is None:
            return taken
        taken.append(found.s_offset)


def test_bodies_come_by_due_time_then_arrival() -> None:
    state = a_state()
    for s_offset, due_ms in ((2, 50), (4, 10), (6, 50), (8, 30)):
        state.park(body(s_offset, due_ms), 0)
    state.commit_parked(9)

    assert due_now(state, 49) == [4, 8]
    assert state.next_due_ms() == 50
    assert due_now(state, 50) == [2, 6]
    assert state.next_due_ms() == NEVER


def test_what_lies_above_the_high_watermark_is_not_released() -> None:
    state = a_state()
    state.park(body(2, 20), 0)
    state.park(body(4, 10), 0)

    state.commit_parked(4)

    assert due_now(state, 100) == [2]
    assert state.count == 1


def test_what_the_companion_log_has_not_kept_is_forgotten() -> None:
    state = a_state()
    state.park(body(2, 20), 0)
    state.park(body(4, 10), 0)

    state.rollback_parked(3)
    state.park(body(4, 70), 0)
    state.commit_parked(5)

    assert due_now(state, 100) == [2, 4]


def test_a_release_that_the_partition_has_not_kept_is_pending_again() -> None:
    state = a_state()
    for s_offset in (2, 4, 6):
        state.park(body(s_offset, s_offset, record_count=3), 0)
    state.commit_parked(9)
    place = 100
    while (found := state.take_due(10)) is not None:
        state.add_release(found, place)
        place += 3

    state.rollback_released(103)

    assert due_now(state, 10) == [4, 6]


def test_counts_and_bytes_follow_what_is_pending() -> None:
    pending = PendingBodies()
    for s_offset, due_ms in ((2, 50), (4, 10), (7, 90)):
        pending.add(body(s_offset, due_ms, record_count=2))

    pending.forget(4)
    pending.take_due(60)

    assert (pending.count, pending.record_count, pending.size) == (1, 2, 100)
    assert pending.furthest_due_ms() == 90
    assert pending.forget(4) is None


def release(state: ScheduleState, now_wall_ms: int, p_offset: int) -> None:
    found = state.take_due(now_wall_ms)
    assert found is not None
    state.add_release(found, p_offset)


def test_a_checkpoint_tells_the_watermark_and_what_is_open_below_it() -> None:
    state = a_state()
    for s_offset, due_ms in ((2, 10), (4, 20), (6, 30)):
        state.park(body(s_offset, due_ms), 0)
    state.commit_parked(9)
    release(state, 15, 0)
    release(state, 25, 1)
    # Parked late: due before what was released.
    state.park(body(10, 5), 30)
    state.commit_parked(11)
    state.park(body(12, 15), 30)
    state.commit_released(2)

    checkpoint = state.checkpoint(2, 0)

    assert checkpoint is not None
    assert [(w.due_ms, w.s_offset) for w in checkpoint.watermarks] == [(20, 4)]
    assert checkpoint.exceptions == [10, 12]


def test_a_damaged_body_is_kept_for_a_later_state() -> None:
    state = a_state()
    for s_offset, due_ms in ((2, 10), (4, 20), (6, 30)):
        state.park(body(s_offset, due_ms), 0)
    state.commit_parked(9)
    damaged = state.take_due(15)
    assert damaged is not None
    state.set_aside(damaged)
    release(state, 25, 0)
    state.commit_released(1)

    checkpoint = state.checkpoint(1, 0)

    assert checkpoint is not None
    assert [(w.due_ms, w.s_offset) for w in checkpoint.watermarks] == [(20, 4)]
    assert checkpoint.exceptions == [2]
    assert state.first_offset() == 2
    assert (state.count, state.damaged_count) == (2, 1)
    assert due_now(state, 100) == [6]


def test_no_checkpoint_is_written_of_too_many_damaged_bodies() -> None:
    state = a_state()
    for s_offset in range(2, CHECKPOINT_EXCEPTIONS_MAX + 3):
        state.set_aside(body(s_offset, 10))

    assert state.checkpoint(0, -1) is None


def test_releases_above_the_high_watermark_are_not_in_a_checkpoint() -> None:
    state = a_state()
    state.park(body(2, 10), 0)
    state.park(body(4, 20), 0)
    state.commit_parked(9)
    release(state, 15, 0)
    release(state, 25, 1)
    state.commit_released(1)

    checkpoint = state.checkpoint(1, 0)

    assert checkpoint is not None
    assert [(w.due_ms, w.s_offset) for w in checkpoint.watermarks] == [(10, 2)]
    assert checkpoint.exceptions == []


def test_after_a_clock_was_set_back_new_bodies_are_no_exceptions() -> None:
    # A clock that ran an hour ahead has released what was due until then.
    state = a_state([Watermark(ANY_OFFSET, 3_600_000, 4)])
    for s_offset in range(10, 1_000, 2):
        state.park(body(s_offset, 1_000 + s_offset), 1_000)
    state.commit_parked(2_000)

    checkpoint = state.checkpoint(0, -1)

    assert checkpoint is not None
    assert checkpoint.exceptions == []
    assert [w.before_offset for w in checkpoint.watermarks] == [10, ANY_OFFSET]


def test_a_watermark_that_has_caught_up_stands_for_those_before_it() -> None:
    state = a_state([Watermark(ANY_OFFSET, 3_600_000, 4)])
    state.park(body(10, 3_600_000), 1_000)
    state.commit_parked(11)
    release(state, 3_600_000, 0)
    state.commit_released(1)

    checkpoint = state.checkpoint(1, 0)

    assert checkpoint is not None
    assert [(w.before_offset, w.due_ms, w.s_offset) for w in checkpoint.watermarks] == [
        (ANY_OFFSET, 3_600_000, 10)
    ]


def test_the_first_body_that_is_needed_may_be_parked_pending_or_under_way() -> None:
    state = a_state()
    found = [state.first_offset()]
    for s_offset, due_ms in ((2, 10), (4, 10), (6, 90)):
        state.park(body(s_offset, due_ms), 0)
    found.append(state.first_offset())
    state.commit_parked(7)
    found.append(state.first_offset())

    # The release of the first is lost with P's tail, that of the second counts.
    for base_offset in (100, 101):
        taken = state.take_due(50)
        assert taken is not None
        state.add_release(taken, base_offset)
    found.append(state.first_offset())
    state.rollback_released(100)
    found.append(state.first_offset())
    for base_offset in (100, 101):
        taken = state.take_due(50)
        assert taken is not None
        state.add_release(taken, base_offset)
        state.commit_released(base_offset + 1)
        found.append(state.first_offset())

    assert found == [ANY_OFFSET, 2, 2, 2, 2, 4, 6]


def test_another_body_may_come_at_the_offset_of_one_that_was_forgotten() -> None:
    pending = PendingBodies()
    pending.add(body(2, 50))
    pending.forget(2)
    pending.add(body(2, 50, record_count=3))
    pending.add(body(4, 50))

    taken = [pending.take_due(50) for _ in range(3)]

    assert [(each.s_offset, each.record_count) for each in taken if each is not None] == [
        (2, 3),
        (4, 1),
    ]


def test_a_body_waits_for_readers_until_the_note_of_its_cancel_counts() -> None:
    state = a_state()
    state.park(body(2, 20), 0)
    seen = [bool(state.waiting_in(2, 1))]
    state.commit_parked(3)
    state.cancel(2, 5, 5)
    seen.append(bool(state.waiting_in(2, 1)))
    state.rollback_parked(5)
    seen.append(bool(state.waiting_in(2, 1)))
    state.cancel(2, 5, 5)

    state.commit_parked(6)

    assert seen == [True, True, True]
    assert not state.waiting_in(2, 1)


@pytest.mark.parametrize(
    ("note", "high_watermark", "expected"),
    # The note counts with the batch at 6: read without it, the batch would cancel nothing.
    [(5, 5, 5), (5, 6, 5), (5, 7, 7), (6, 6, 6), (6, 7, 7)],
)
def test_a_snapshot_does_not_stand_between_a_note_and_the_batch_with_which_it_cancels(
    note: int, high_watermark: int, expected: int
) -> None:
    state = a_state()
    state.park(body(2, 20), 0)
    state.commit_parked(4)

    state.cancel(2, 6, note)
    state.commit_parked(high_watermark)

    assert state.snapshot_offset(high_watermark) == expected


def test_a_range_of_offsets_waits_if_one_of_them_does() -> None:
    state = a_state()
    state.park(body(4, 20), 0)
    state.park(body(9, 20), 0)

    for high_watermark in (0, 10):
        state.commit_parked(high_watermark)
        found = [bool(state.waiting_in(first, 3)) for first in range(11)]
        assert found == [2 <= first <= 4 or 7 <= first <= 9 for first in range(11)]


def test_a_body_that_is_being_released_waits_no_more() -> None:
    state = a_state()
    state.park(body(2, 20), 0)
    state.commit_parked(3)

    taken = state.take_due(20)
    assert taken is not None
    state.add_release(taken, 0)

    assert not state.waiting_in(2, 1)

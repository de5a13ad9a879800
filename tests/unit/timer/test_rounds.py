"""What is the own of the wheel with rounds: one bucket for many rounds, what a limit leaves."""

from __future__ import annotations

from tarry.timer.entry import TimerEntry
from tarry.timer.rounds import RoundsTimer


def added(timer: RoundsTimer, *deadlines_ms: int) -> list[TimerEntry]:
    entries = [TimerEntry(deadline_ms) for deadline_ms in deadlines_ms]
    for entry in entries:
        assert timer.add(entry)
    return entries


def test_entries_of_different_rounds_share_a_bucket_and_come_in_their_own() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    entries = added(timer, 445, 5, 25, 2005)

    buckets = {timer._buckets.index(entry._holder) for entry in entries}  # type: ignore[arg-type]
    came = [timer.advance(now_ms) for now_ms in (4, 5, 24, 25, 444, 445, 2004, 2005)]

    first, second, third, fourth = entries
    assert buckets == {5}
    assert came == [[], [second], [], [third], [], [first], [], [fourth]]


def test_a_jump_over_many_rounds_sorts_what_one_bucket_held() -> None:
    timer = RoundsTimer(0, wheel_size=4)
    wanted = [17, 1, 13, 9, 5, 2, 14, 6]
    added(timer, *wanted)

    due = timer.advance(100)

    assert [entry.deadline_ms for entry in due] == sorted(wanted)


def test_nobody_is_woken_for_a_round_that_has_nothing_to_give() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    near, _far = added(timer, 5, 445)

    before = timer.next_due_ms()
    timer.advance(5)
    after = timer.next_due_ms()

    assert not near.is_pending
    assert before == 5
    assert after == 445


def test_the_wake_up_of_a_cancelled_entry_stays_and_brings_nothing() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    near, far = added(timer, 5, 445)

    timer.cancel(near)

    assert timer.next_due_ms() == 5
    assert timer.advance(5) == []
    assert timer.next_due_ms() == 445
    assert timer.advance(445) == [far]


def test_what_a_limit_left_over_lies_apart_and_is_not_looked_for_again() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    entries = added(timer, *[5] * 10, *[25] * 1000)

    first = timer.advance(5, 4)
    left = list(timer._due.entries)
    timer.cancel(entries[5])
    rest = timer.advance(5)

    assert first == entries[:4]
    assert left == entries[9:3:-1]
    assert rest == [entries[4], *entries[6:10]]
    assert timer.advance(25) == entries[10:]


def test_what_stays_for_a_later_round_is_not_moved_until_most_has_left() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    entries = added(timer, 5, 25, 45, 65, 85)

    timer.advance(45)
    place_after_three = entries[4]._place
    timer.advance(65)
    place_after_four = entries[4]._place

    assert place_after_three == 4
    assert place_after_four == 0


def test_deadlines_assigned_behind_its_back_do_not_turn_the_time_back() -> None:
    timer = RoundsTimer(0, wheel_size=3)
    entries = added(timer, 446, 446)
    for entry in entries:
        entry.deadline_ms = 498
    came = [timer.advance(now_ms) for now_ms in range(446, 500)]

    first = timer.advance(500, 1)

    assert came == [[]] * 54
    assert first == entries[:1]
    assert timer.current_ms == 499
    assert timer.advance(500) == entries[1:]


def test_cancelling_keeps_the_memory_of_a_bucket_bounded() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    (held,) = added(timer, 350)
    for _ in range(1000):
        first, second = added(timer, 350, 350)
        timer.cancel(first)
        timer.cancel(second)

    assert held._holder is not None
    assert len(held._holder.entries) < 10


def test_a_bucket_emptied_from_both_ends_keeps_no_holes() -> None:
    timer = RoundsTimer(0, wheel_size=20)
    entries = added(timer, *[5] * 1000)
    for entry in [*entries[:700], *reversed(entries[700:])]:
        timer.cancel(entry)

    (entry,) = added(timer, 25)

    assert timer._buckets[5].entries == [entry]


def test_ties_come_in_the_order_of_adding_across_advances_and_a_moved_entry_is_the_last() -> None:
    timer = RoundsTimer(0)
    first, moved = added(timer, 445, 445)
    timer.advance(399)
    (second,) = added(timer, 445)

    timer.reschedule(moved, 445)

    assert timer.advance(445) == [first, second, moved]

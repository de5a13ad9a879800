"""Periodic entries: the grid, the delay, what is missed; no timer runs here but the pure one."""

from __future__ import annotations

import pytest

from tarry.timer.heap import HeapTimer
from tarry.timer.periodic import PeriodicEntry
from tarry.timer.pure import PureTimer
from tarry.timer.rounds import RoundsTimer
from tarry.timer.wheel import TimingWheel


class Recorded(PeriodicEntry):
    """Writes down its beats and what it missed."""

    def __init__(self, first_deadline_ms: int, period_ms: int, fixed_delay: bool = False) -> None:
        super().__init__(first_deadline_ms, period_ms, fixed_delay)
        self.log: list[str] = []

    def beat(self) -> None:
        self.log.append("beat")

    def on_missed(self, beats: int) -> None:
        self.log.append(f"missed {beats}")


class Failing(PeriodicEntry):
    """Every beat of it is an error."""

    def beat(self) -> None:
        raise RuntimeError("the beat failed")


def run_until(timer: PureTimer, end_ms: int, step_ms: int) -> list[tuple[int, int]]:
    """Go to the end in steps; when a beat ran, and the deadline that it was due at."""
    beats: list[tuple[int, int]] = []
    for now_ms in range(step_ms, end_ms + 1, step_ms):
        for entry in timer.advance(now_ms):
            assert isinstance(entry, PeriodicEntry)
            beats.append((now_ms, entry.deadline_ms))
            entry.run_beat(now_ms)
            timer.add(entry)
    return beats


def test_a_fixed_rate_keeps_to_its_grid_however_late_every_beat_is() -> None:
    entry = Recorded(10, period_ms=10)

    for deadline_ms in range(10, 10_000, 10):
        entry.begin_beat(deadline_ms + 9)
        entry.end_beat(deadline_ms + 9)

    assert entry.deadline_ms == 10_000
    assert entry.missed_total == 0


@pytest.mark.parametrize(
    ("now_ms", "missed", "next_ms"),
    [(100, 0, 110), (109, 0, 110), (110, 1, 120), (119, 1, 120), (1000, 90, 1010)],
)
def test_beats_that_passed_unrun_are_counted_and_never_made_up_for(
    now_ms: int, missed: int, next_ms: int
) -> None:
    entry = Recorded(100, period_ms=10)

    told = entry.begin_beat(now_ms)

    assert told == missed
    assert entry.missed_total == missed
    assert entry.deadline_ms == next_ms


def test_missed_beats_are_told_before_the_beat_and_only_if_there_are_any() -> None:
    entry = Recorded(100, period_ms=10)

    entry.run_beat(100)
    entry.run_beat(145)

    assert entry.log == ["beat", "missed 3", "beat"]
    assert entry.missed_total == 3


def test_a_beat_before_its_deadline_counts_as_that_beat() -> None:
    entry = Recorded(100, period_ms=10)

    missed = entry.begin_beat(40)

    assert missed == 0
    assert entry.deadline_ms == 110


def test_a_fixed_delay_counts_from_the_end_of_the_beat_and_misses_nothing() -> None:
    entry = Recorded(100, period_ms=10, fixed_delay=True)

    missed = entry.begin_beat(500)
    entry.end_beat(777)

    assert missed == 0
    assert entry.deadline_ms == 787
    assert entry.missed_total == 0


def test_a_fixed_rate_does_not_care_how_long_a_beat_takes() -> None:
    entry = Recorded(100, period_ms=10)

    entry.begin_beat(100)
    entry.end_beat(135)

    assert entry.deadline_ms == 110
    assert entry.begin_beat(135) == 2


def test_a_fixed_rate_works_on_a_negative_clock() -> None:
    entry = Recorded(-100, period_ms=30)

    missed = entry.begin_beat(-35)

    assert missed == 2
    assert entry.deadline_ms == -10


def test_an_error_in_a_beat_comes_through_and_leaves_the_entry_ready_for_the_next() -> None:
    rate = Failing(10, period_ms=10)
    delay = Failing(10, period_ms=10, fixed_delay=True)

    with pytest.raises(RuntimeError, match="the beat failed"):
        rate.run_beat(12)
    with pytest.raises(RuntimeError, match="the beat failed"):
        delay.run_beat(12)

    assert rate.deadline_ms == 20
    assert delay.deadline_ms == 22


def test_a_pending_entry_has_no_beat_so_that_its_timer_stays_whole() -> None:
    wheel = TimingWheel(0)
    entry = Recorded(10, period_ms=10)
    wheel.add(entry)

    with pytest.raises(ValueError, match="pending still"):
        entry.run_beat(10)

    assert entry.deadline_ms == 10
    assert wheel.cancel(entry)


@pytest.mark.parametrize("period_ms", [0, -1])
def test_a_period_below_one_millisecond_is_refused(period_ms: int) -> None:
    with pytest.raises(ValueError, match=f"a period of {period_ms} ms; it must be at least 1"):
        PeriodicEntry(0, period_ms)


def test_a_period_that_is_not_an_int_is_refused() -> None:
    with pytest.raises(TypeError, match=r"an int of milliseconds, not 0\.5"):
        PeriodicEntry(0, 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"an int of milliseconds, not 0\.5"):
        PeriodicEntry(0, 5).run_beat(0.5)  # type: ignore[arg-type]


@pytest.fixture(params=[TimingWheel, HeapTimer, RoundsTimer])
def timer(request: pytest.FixtureRequest) -> PureTimer:
    pure: PureTimer = request.param(0)
    return pure


def test_on_every_timer_the_beats_come_at_their_grid(timer: PureTimer) -> None:
    timer.add(Recorded(25, period_ms=25))

    beats = run_until(timer, end_ms=110, step_ms=1)

    assert beats == [(25, 25), (50, 50), (75, 75), (100, 100)]


def test_on_a_timer_that_is_turned_seldom_the_beats_are_late_and_do_not_drift(
    timer: PureTimer,
) -> None:
    entry = Recorded(25, period_ms=25)
    timer.add(entry)

    beats = run_until(timer, end_ms=280, step_ms=70)

    assert beats == [(70, 25), (140, 75), (210, 150), (280, 225)]
    assert entry.missed_total == 1 + 2 + 2 + 2


def test_on_every_timer_beats_are_cancelled_and_moved_like_any_entry(timer: PureTimer) -> None:
    moved, gone = Recorded(10, period_ms=10), Recorded(10, period_ms=10)
    timer.add(moved)
    timer.add(gone)

    assert timer.reschedule(moved, 15)
    assert timer.cancel(gone)

    assert run_until(timer, end_ms=40, step_ms=1) == [(15, 15), (25, 25), (35, 35)]

"""Ten million pending entries on each timer: all come, once, in order, none early, none late.

Compiled the wheel has 10,000,000 entries, heap and wheel with rounds, whose entries take more
memory or time, 1,000,000; interpreted it is a twentieth.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

import tarry
from tarry.timer.entry import TimerEntry
from tarry.timer.heap import HeapTimer
from tarry.timer.rounds import RoundsTimer
from tarry.timer.wheel import TimingWheel

AnyTimer = TimingWheel | HeapTimer | RoundsTimer

# Requests wait for a minute at most, sessions for some; a few for a year.
MINUTE_MS = 60_000
YEAR_MS = 365 * 86_400_000

STEP_MS = 997
PART_ENTRIES = 10_000

COUNTS: dict[Callable[[int], AnyTimer], int] = {
    TimingWheel: 10_000_000,
    HeapTimer: 1_000_000,
    RoundsTimer: 1_000_000,
}

# An expired entry gets this deadline: a second expiry would stand at the front, too early.
CAME_MS = -1


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """So many entries are looked at for garbage again and again; there is none."""
    gc.disable()
    yield
    gc.enable()


def deadlines_of(first: int, end: int) -> list[int]:
    """Deadlines that look drawn; one of a thousand is within a year, the others in a minute."""
    drawn = [number * 2_654_435_761 % 4_294_967_291 % MINUTE_MS + 1 for number in range(first, end)]
    drawn[::1000] = [
        number * 2_654_435_761 % 4_294_967_291 % YEAR_MS + 1 for number in range(first, end, 1000)
    ]
    return drawn


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("make", COUNTS)
def test_millions_of_entries_all_come_once_and_in_their_time(
    make: Callable[[int], AnyTimer],
) -> None:
    count = COUNTS[make] if tarry.FORM == "compiled" else COUNTS[make] // 20
    timer = make(0)
    deadlines_sum = 0
    wanted = 0
    for first in range(0, count, PART_ENTRIES):
        deadlines = deadlines_of(first, first + PART_ENTRIES)
        entries = list(map(TimerEntry, deadlines))
        assert all(map(timer.add, entries))
        assert all(map(timer.cancel, entries[5::16]))
        del deadlines[5::16]
        wanted += len(deadlines)
        deadlines_sum += sum(deadlines)
    assert len(timer) == wanted

    came = 0
    came_sum = 0
    last_ms = 0
    for before_ms, now_ms in pairwise(steps_ms()):
        while (due_ms := timer.next_due_ms()) is not None and due_ms <= now_ms:
            part = timer.advance(now_ms, PART_ENTRIES)
            if not part:
                continue
            deadlines_ms = [entry.deadline_ms for entry in part]
            assert deadlines_ms == sorted(deadlines_ms)
            assert deadlines_ms[0] > before_ms
            assert deadlines_ms[0] >= last_ms
            last_ms = deadlines_ms[-1]
            assert last_ms <= now_ms
            came += len(part)
            came_sum += sum(deadlines_ms)
            for entry in part:
                entry.deadline_ms = CAME_MS
        assert len(timer) == wanted - came

    assert came == wanted
    assert came_sum == deadlines_sum
    assert timer.next_due_ms() is None


def steps_ms() -> list[int]:
    """The times to advance to: through the minute in steps, through the year in twelve."""
    return [
        *range(0, MINUTE_MS + STEP_MS, STEP_MS),
        *range(YEAR_MS // 12, YEAR_MS + 12, YEAR_MS // 12),
    ]

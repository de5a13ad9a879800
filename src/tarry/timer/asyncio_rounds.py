"""Rounds of expiry: a timing wheel in the hands of one event loop.

What the asyncio face stands on: entries by the loop's own seconds, one wake-up for all of them,
and rounds in which what is due runs, in parts between which the loop has its turn.  Invariants:
nothing runs while `loop.time()` is before its `when`; what is due runs by `when`, ties in the
order in which they were added; what is added during a round runs in a later one, and what is
cancelled during a round does not run in it, both as with asyncio.

A round's part moves at most `MOVES_MAX` entries of the wheel and runs at most `CALLS_MAX`.  So
that a part does not end within a tick, whose entries lie in the wheel in order of coming, up to
`TICK_ENTRIES_MAX` more are taken; above that a tick runs in lots of that size, each in order.

A finalizer or signal handler may call in the middle of any change that is made here, and a
finalizer cancels in whatever thread it happens to run.  Therefore changes are made one at a
time: while `_is_busy`, what comes only marks its entry and leaves it in `_inbox`, which whoever is
busy empties afterwards.  Between looking at the mark and setting it no other code can run.
"""

from __future__ import annotations

from asyncio import _get_running_loop
from heapq import heappop, heappush
from math import inf
from threading import get_ident
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from tarry.timer.asyncio_wake import WakeUp, ceil_ms, floor_ms
from tarry.timer.entry import TimerEntry, TimerShutDown
from tarry.timer.wheel import TimingWheel

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# Of an entry: it waits, in the wheel or for its turn in a round; it does not, because it was not
# added or has run; it was cancelled.
WAITING: Final = 0
IDLE: Final = 1
CANCELLED: Final = 2

MOVES_MAX: Final = 1000
CALLS_MAX: Final = 1000
TICK_ENTRIES_MAX: Final = 4096

# Farther away is never: a thousand years, which infinity is taken for as well.
FAR_MS: Final = 1 << 45
FAR_SECONDS: Final = FAR_MS / 1000.0

# The number of an entry that is not counted as pending.
UNCOUNTED: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class LoopEntry(TimerEntry):
    """An entry that is due when the loop's clock reaches `_when`, in seconds."""

    __slots__ = ("_number", "_state", "_when")

    def __init__(self) -> None:
        super().__init__(0)
        self._when = 0.0
        self._number = UNCOUNTED
        self._state = IDLE

    def drop(self) -> None:
        """Told when the timer is closed and the entry will not run."""

    def what(self) -> object:
        """Return what runs, for reports."""
        return self


class ExpiryRounds:
    """Adds, cancels, moves and runs entries within `loop`, in its thread."""

    __slots__ = (
        "_batch",
        "_batch_next",
        "_has_thread",
        "_inbox",
        "_is_busy",
        "_late",
        "_number",
        "_tick_ms",
        "_wake",
        "_wheel",
        "has_dropped",
        "is_closed",
        "loop",
        "pending",
    )

    def __init__(self, loop: AbstractEventLoop, tick_ms: int, wheel_size: int) -> None:
        self.loop = loop
        self._has_thread = hasattr(loop, "_thread_id")
        self._wheel = TimingWheel(floor_ms(loop.time()), tick_ms, wheel_size)
        self._tick_ms = tick_ms
        self._wake = WakeUp(loop, self._on_wake)
        # What a round has still to run, from `_batch_next` on; and a heap of what was due when it
        # was added.
        self._batch: list[LoopEntry] = []
        self._batch_next = 0
        self._late: list[tuple[float, int, LoopEntry]] = []
        self._number = 0
        # Whether a change is being made, and the entries that came meanwhile.
        self._is_busy = False
        self._inbox: list[LoopEntry] = []
        # How many entries have not run and are not cancelled.
        self.pending = 0
        self.is_closed = False
        # Whether what was pending at the close was dropped.
        self.has_dropped = False

    def count(self) -> int:
        """Count what is pending, less what other threads have cancelled until now."""
        if self._inbox and not self._is_busy and not self._is_elsewhere():
            self._settle()
        return self.pending

    def add(self, entry: LoopEntry, when: float) -> None:
        """Let the entry run as soon as the loop's clock has reached `when`."""
        if self.is_closed or not self._is_here():
            self._check_use()
        assert entry._state != WAITING
        if self._is_busy:
            self._deadline_ms(when)  # refuses here, and not where it is put later
            entry._number = 0
            entry._state = WAITING
            self.pending += 1
            self._put_later(entry, when)
            return
        self._is_busy = True
        # The mark first: what is cancelled from now on is found in the inbox.
        entry._state = WAITING
        try:
            self._put(entry, when)
        except BaseException:
            entry._state = IDLE
            entry._number = UNCOUNTED
            self._end_change()
            raise
        self.pending += 1
        self._is_busy = False
        if self._inbox:
            self._settle()

    def cancel(self, entry: LoopEntry) -> bool:
        """Cancel the entry, from any thread; return false if it ran already or was cancelled."""
        if entry._state != WAITING:
            entry._state = CANCELLED
            return False
        # The mark is what counts; taking out of the wheel only saves space.
        entry._state = CANCELLED
        if self._is_busy or self._is_elsewhere():
            self._inbox.append(entry)
            return True
        self._is_busy = True
        try:
            self._take_out(entry)
        except BaseException:
            self._end_change()
            raise
        self._is_busy = False
        if self._inbox:
            self._settle()
        return True

    def move(self, entry: LoopEntry, when: float) -> None:
        """Let a waiting entry run at another time."""
        self.check_use()
        self._deadline_ms(when)  # refuses before anything has changed
        if self._is_busy:
            self._put_later(entry, when)
            return
        self._is_busy = True
        try:
            self._put(entry, when)
        finally:
            self._end_change()

    def check_use(self) -> None:
        """Raise what `add` would raise here: closed, or not the loop's thread."""
        if self.is_closed or not self._is_here():
            self._check_use()

    def close(self, run_pending: bool) -> int:
        """Run or drop all that waits; how many that were.  Nothing is taken after that."""
        if self.is_closed:
            return 0
        self._check_thread()
        is_loop_closed = self.loop.is_closed()
        if run_pending and is_loop_closed:
            raise RuntimeError(
                "nothing can run, the timer's event loop is closed; close() without run_pending "
                "drops what is pending"
            )
        if self._is_busy:
            raise RuntimeError(
                "the timer was closed in the middle of one of its own calls, by a finalizer or a "
                "signal handler; let that do loop.call_soon_threadsafe(timer.close)"
            )
        self._settle()
        self.is_closed = True
        self.has_dropped = not run_pending
        entries = self._take_all()
        entries = [entry for entry in entries if entry._state == WAITING]
        _put_in_order(entries)
        try:
            ended = 0
            for entry in entries:
                # What runs may cancel what comes after it.
                if entry._state == WAITING:
                    ended += 1
                    if run_pending:
                        self._run(entry)
        finally:
            for entry in entries:
                if entry._state == WAITING:
                    entry._state = CANCELLED
                    if not is_loop_closed:
                        entry.drop()
                entry._number = UNCOUNTED
            self.pending = 0
        return ended

    def _take_all(self) -> list[LoopEntry]:
        """Take out everything, for the end."""
        self._is_busy = True
        try:
            self._wake.stop()
            entries = self._batch[self._batch_next :]
            self._batch = []
            self._batch_next = 0
            for _, _, late in self._late:
                entries.append(late)
            self._late = []
            for entry in self._wheel.advance(FAR_MS + self._tick_ms):
                assert isinstance(entry, LoopEntry)
                entries.append(entry)
        finally:
            self._end_change()
        return entries

    def _end_change(self) -> None:
        self._is_busy = False
        if self._inbox:
            self._settle()

    def _settle(self) -> None:
        """Do what came while a change was being made."""
        self._is_busy = True
        try:
            # The same list always: another thread may be about to append to it.
            while self._inbox:
                entry = self._inbox.pop(0)
                if entry._number == UNCOUNTED:
                    continue  # it has run or was taken out already
                if entry._state == WAITING:
                    self._put(entry, entry._when)
                else:
                    self._take_out(entry)
        finally:
            self._is_busy = False

    def _take_out(self, entry: LoopEntry) -> None:
        entry._number = UNCOUNTED
        self.pending -= 1
        self._wheel.cancel(entry)

    def _put_later(self, entry: LoopEntry, when: float) -> None:
        """Leave the entry to a busy thread, which puts it at its time when it is done."""
        entry._when = when
        self._inbox.append(entry)

    def _put(self, entry: LoopEntry, when: float) -> None:
        """Put the entry where it runs at `when`, from wherever it lies."""
        deadline_ms = self._deadline_ms(when)
        # First what the loop may refuse; a wake-up for nothing does no harm.
        if deadline_ms < self._wake.at_ms:
            self._wake.hasten(deadline_ms)
        wheel = self._wheel
        if entry._holder is not None:
            wheel.cancel(entry)
        entry.deadline_ms = deadline_ms
        entry._when = when
        number = self._number
        self._number = number + 1
        entry._number = number
        if not wheel.add(entry):
            heappush(self._late, (when, number, entry))

    def _deadline_ms(self, when: float) -> int:
        """Return the first tick, in ms, that is not before `when`."""
        if not -FAR_SECONDS < when < FAR_SECONDS:
            if when != when:  # noqa: PLR0124, because only NaN differs from itself
                raise ValueError("the time is NaN, which no clock reaches; give a number")
            return FAR_MS if when > 0.0 else -FAR_MS
        deadline_ms = ceil_ms(when)
        tick_ms = self._tick_ms
        if tick_ms == 1:
            return deadline_ms
        return -(-deadline_ms // tick_ms) * tick_ms

    def _on_wake(self) -> None:
        """Run one part of a round; the loop calls it."""
        if self.is_closed:
            return
        try:
            self._begin_part()
            self._run_part()
        finally:
            if not self.is_closed:
                self._end_part()

    def _begin_part(self) -> None:
        self._is_busy = True
        try:
            self._wake.begin_round()
            if self._batch_next >= len(self._batch):
                self._gather(floor_ms(self.loop.time()))
        finally:
            self._end_change()

    def _end_part(self) -> None:
        self._is_busy = True
        try:
            self._wake.end_round(self._next_ms())
        finally:
            self._end_change()

    def _gather(self, now_ms: int) -> None:
        """Take what is due: what was late when it came, and from the wheel."""
        batch: list[LoopEntry] = []
        late = self._late
        while late and len(batch) < MOVES_MAX:
            _, _, entry = heappop(late)
            batch.append(entry)
        if late:
            # What is due after the last of these has its turn after those that are left.
            now_ms = min(now_ms, self._deadline_ms(batch[-1]._when))
        wheel = self._wheel
        due = wheel.advance(now_ms, MOVES_MAX)
        current_ms = wheel.current_ms
        next_ms = wheel.next_due_ms()
        if due and next_ms is not None and next_ms <= current_ms:
            due.extend(wheel.advance(current_ms, TICK_ENTRIES_MAX))
        for taken in due:
            assert isinstance(taken, LoopEntry)
            batch.append(taken)
        _put_in_order(batch)
        self._batch = batch
        self._batch_next = 0

    def _run_part(self) -> None:
        """Run the next entries of the batch; the rest stays for the loop's next turn."""
        end = min(len(self._batch), self._batch_next + CALLS_MAX)
        # `close` from within an entry leaves the batch empty.
        while self._batch_next < end and not self.is_closed:
            entry = self._batch[self._batch_next]
            self._batch_next += 1
            # One that was moved while it waited here lies in the wheel again.
            if entry._state == WAITING and entry._holder is None:
                self._run(entry)
        if self._batch_next >= len(self._batch):
            self._batch = []
            self._batch_next = 0

    def _run(self, entry: LoopEntry) -> None:
        entry._state = IDLE
        # It may have been cancelled since the look at its state.
        if entry._number != UNCOUNTED:
            entry._number = UNCOUNTED
            self.pending -= 1
        try:
            entry.expire()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.report(entry, error)

    def report(self, entry: LoopEntry, error: BaseException) -> None:
        """Hand an error to the loop's exception handler, as asyncio does."""
        self.loop.call_exception_handler(
            {
                "message": f"Exception in callback {entry.what()!r} of a timer",
                "exception": error,
                "handle": entry,
            }
        )

    def _next_ms(self) -> int | None:
        if self._batch or self._late:
            return self._wheel.current_ms
        return self._wheel.next_due_ms()

    def _check_use(self) -> None:
        """Refuse what comes after the end or from elsewhere."""
        if self.is_closed:
            raise TimerShutDown("the timer is closed and takes nothing any more; make a new one")
        if self.loop.is_closed():
            raise RuntimeError("the timer's event loop is closed; make a timer on the new loop")
        self._check_thread()
        # A loop that does not run yet may be prepared, but not from within another: whoever waits
        # there would wait for ever.
        here = _get_running_loop()
        if here is not None and here is not self.loop:
            raise RuntimeError(
                "the timer belongs to another event loop than the one that runs here; each loop "
                "needs its own timer"
            )

    def _check_thread(self) -> None:
        """Refuse a foreign thread while the loop runs."""
        if self._is_elsewhere():
            raise RuntimeError(
                "the timer was used outside the thread that runs its event loop; hand the call "
                "over with loop.call_soon_threadsafe()"
            )

    def _is_elsewhere(self) -> bool:
        """Return true if the loop runs in another thread."""
        return not self._is_here() and self.loop.is_running()

    def _is_here(self) -> bool:
        """Return true if the loop runs in this thread.

        asyncio's own loop keeps the thread that runs it; to ask asyncio for the running loop takes
        a system call on Python 3.11, and more time than all the rest of a cancel.
        """
        if self._has_thread:
            return bool(self.loop._thread_id == get_ident())  # type: ignore[attr-defined]
        return _get_running_loop() is self.loop


def _put_in_order(entries: list[LoopEntry]) -> None:
    """Sort entries by `when`, ties by the order in which they were added.  Most lists are sorted
    already.
    """
    when = -inf
    number = -1
    for entry in entries:
        if entry._when < when or (entry._when == when and entry._number < number):
            entries.sort(key=_number_of)
            entries.sort(key=_when_of)
            return
        when = entry._when
        number = entry._number


def _number_of(entry: LoopEntry) -> int:
    return entry._number


def _when_of(entry: LoopEntry) -> float:
    return entry._when

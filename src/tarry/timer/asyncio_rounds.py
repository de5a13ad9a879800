"""Rounds of expiry: a timing wheel that one event loop turns.

The asyncio face stands on this module: entries by the loop's own seconds, one wake-up for all of
them, and rounds in which due entries run, in parts between which the loop has its turn.
Invariants: no entry runs while `loop.time()` is before its `when`; due entries run by `when`, ties
in the order in which they were added; an entry added during a round runs in a later one, and an
entry cancelled during a round does not run in it, both as with asyncio.

A part of a round moves at most `MOVES_MAX` entries of the wheel and runs at most `CALLS_MAX`.  The
entries of one tick lie in the wheel in order of coming, and a part should not end within a tick:
it takes up to `TICK_ENTRIES_MAX` more of them.  A larger tick runs in lots of that size, each in
order.

A finalizer or signal handler may call in the middle of any change that is made here, and a
finalizer cancels in any thread.  Therefore changes are made one at a time: while `_is_busy`, a call
only marks its entry and leaves it in `_inbox`, which the busy call empties afterwards.  Between the
look at the mark and its setting no other code can run.
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

# States of an entry: it waits in the wheel or for its turn in a round; it was not added, or has
# run; it was cancelled.
WAITING: Final = 0
IDLE: Final = 1
CANCELLED: Final = 2

MOVES_MAX: Final = 1000
CALLS_MAX: Final = 1000
TICK_ENTRIES_MAX: Final = 4096

# Times farther away than this, a thousand years, count as never; so does infinity.
FAR_MS: Final = 1 << 45
FAR_SECONDS: Final = FAR_MS / 1000.0

# `_number` of an entry that is not counted as pending.
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
        """React to a close of the timer: the entry will not run."""

    def what(self) -> object:
        """Return the object that runs, for reports."""
        return self


class ExpiryRounds:
    """Rounds that add, cancel, move and run entries within `loop`, in its thread."""

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
        # Entries that a round has still to run, from `_batch_next` on; and a heap of entries that
        # were due when they were added.
        self._batch: list[LoopEntry] = []
        self._batch_next = 0
        self._late: list[tuple[float, int, LoopEntry]] = []
        self._number = 0
        # True while a change is made; and the entries that came meanwhile.
        self._is_busy = False
        self._inbox: list[LoopEntry] = []
        # Number of entries that have not run and are not cancelled.
        self.pending = 0
        self.is_closed = False
        # True if the close dropped the pending entries.
        self.has_dropped = False

    def count(self) -> int:
        """Count the pending entries, without those that other threads have cancelled until now."""
        if self._inbox and not self._is_busy and not self._is_elsewhere():
            self._settle()
        return self.pending

    def add(self, entry: LoopEntry, when: float) -> None:
        """Run the entry as soon as the loop's clock has reached `when`."""
        if self.is_closed or not self._is_here():
            self._check_use()
        assert entry._state != WAITING
        if self._is_busy:
            self._deadline_ms(when)  # raises here, and not when it is put
            entry._number = 0
            entry._state = WAITING
            self.pending += 1
            self._put_later(entry, when)
            return
        self._is_busy = True
        # Set the mark first: an entry that is cancelled from now on is found in the inbox.
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
        """Cancel the entry, from any thread; return False if it has run or was cancelled."""
        if entry._state != WAITING:
            entry._state = CANCELLED
            return False
        # The mark decides; removal from the wheel only saves space.
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
        """Run a waiting entry at another time."""
        self.check_use()
        self._deadline_ms(when)  # raises before anything has changed
        if self._is_busy:
            self._put_later(entry, when)
            return
        self._is_busy = True
        try:
            self._put(entry, when)
        finally:
            self._end_change()

    def check_use(self) -> None:
        """Raise the error that `add` would raise here: closed, or not the loop's thread."""
        if self.is_closed or not self._is_here():
            self._check_use()

    def close(self, run_pending: bool) -> int:
        """Run or drop all waiting entries; return how many.  No entry is taken after that."""
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
                # An entry that runs may cancel a later one.
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
        """Take out all entries, for the close."""
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
        """Make the changes that came while another change was made."""
        self._is_busy = True
        try:
            # Keep the same list: another thread may be about to append to it.
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
        """Leave the entry to the busy call, which puts it at its time afterwards."""
        entry._when = when
        self._inbox.append(entry)

    def _put(self, entry: LoopEntry, when: float) -> None:
        """Put the entry at `when`, from wherever it lies."""
        deadline_ms = self._deadline_ms(when)
        # The loop may refuse a wake-up, so ask for it first; a needless one does no harm.
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
        """Take the due entries: those that were late when added, and those of the wheel."""
        batch: list[LoopEntry] = []
        late = self._late
        while late and len(batch) < MOVES_MAX:
            _, _, entry = heappop(late)
            batch.append(entry)
        if late:
            # Entries due after the last one of `batch` must not come before those left in `late`.
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
        # An entry that calls `close` leaves the batch empty.
        while self._batch_next < end and not self.is_closed:
            entry = self._batch[self._batch_next]
            self._batch_next += 1
            # An entry that was moved while it waited here lies in the wheel again.
            if entry._state == WAITING and entry._holder is None:
                self._run(entry)
        if self._batch_next >= len(self._batch):
            self._batch = []
            self._batch_next = 0

    def _run(self, entry: LoopEntry) -> None:
        entry._state = IDLE
        # The entry may have been cancelled since the look at its state.
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
        """Pass an error to the loop's exception handler, as asyncio does."""
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
        """Refuse a call after the close or from elsewhere."""
        if self.is_closed:
            raise TimerShutDown("the timer is closed and takes nothing any more; make a new one")
        if self.loop.is_closed():
            raise RuntimeError("the timer's event loop is closed; make a timer on the new loop")
        self._check_thread()
        # A loop that does not run yet may be prepared, but not from within another one: a task that
        # waits there would wait for ever.
        here = _get_running_loop()
        if here is not None and here is not self.loop:
            raise RuntimeError(
                "the timer belongs to another event loop than the one that runs here; each loop "
                "needs its own timer"
            )

    def _check_thread(self) -> None:
        """Refuse another thread while the loop runs."""
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

        asyncio's own loop keeps the id of its thread.  To ask asyncio for the running loop takes a
        system call on Python 3.11, and more time than the rest of a cancel.
        """
        if self._has_thread:
            return bool(self.loop._thread_id == get_ident())  # type: ignore[attr-defined]
        return _get_running_loop() is self.loop


def _put_in_order(entries: list[LoopEntry]) -> None:
    """Sort entries by `when`, ties by the order in which they were added; most lists are sorted
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

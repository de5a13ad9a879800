"""Rounds of expiry: a timing wheel in the hands of one event loop.

What the asyncio face stands on: entries by the loop's own seconds, one wake-up for all of them,
and rounds in which what is due runs, in parts between which the loop has its turn.  Invariants:
nothing runs while `loop.time()` is before its `when`; what is due runs by `when`, ties in the
order in which they were added; what is added during a round runs in a later one, and what is
cancelled during a round does not run in it, both as with asyncio.

A round's part moves at most `MOVES_MAX` entries of the wheel and runs at most `CALLS_MAX`.  So
that a part does not end within a tick, whose entries lie in the wheel in order of coming, up to
`TICK_ENTRIES_MAX` more are taken; above that a tick runs in lots of that size, each in order.
"""

from __future__ import annotations

from asyncio import _get_running_loop
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

# No thread has this identity.
NO_THREAD: Final = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class LoopEntry(TimerEntry):
    """An entry that is due when the loop's clock reaches `_when`, in seconds."""

    __slots__ = ("_number", "_state", "_when")

    def __init__(self) -> None:
        super().__init__(0)
        self._when = 0.0
        self._number = 0
        self._state = IDLE

    def drop(self) -> None:
        """Told when the timer is closed and the entry will not run."""

    def what(self) -> object:
        """What runs, for reports."""
        return self


class ExpiryRounds:
    """Adds, cancels, moves and runs entries within `loop`, in its thread."""

    __slots__ = (
        "_batch",
        "_batch_next",
        "_late",
        "_number",
        "_thread_ident",
        "_tick_ms",
        "_wake",
        "_wheel",
        "is_closed",
        "loop",
        "pending",
    )

    def __init__(self, loop: AbstractEventLoop, tick_ms: int, wheel_size: int) -> None:
        self.loop = loop
        self._wheel = TimingWheel(floor_ms(loop.time()), tick_ms, wheel_size)
        self._tick_ms = tick_ms
        self._wake = WakeUp(loop, self._on_wake)
        # What a round has still to run, from `_batch_next` on; and what was due when it was added.
        self._batch: list[LoopEntry] = []
        self._batch_next = 0
        self._late: list[LoopEntry] = []
        self._number = 0
        # How many entries have not run and are not cancelled.
        self.pending = 0
        self.is_closed = False
        # The thread that was last seen running the loop.
        self._thread_ident = NO_THREAD

    def add(self, entry: LoopEntry, when: float) -> None:
        """Let the entry run as soon as the loop's clock has reached `when`."""
        if get_ident() != self._thread_ident or not self.loop.is_running():
            self._check_use()
        assert entry._state != WAITING
        self._put(entry, when)
        self.pending += 1

    def cancel(self, entry: LoopEntry) -> bool:
        """The entry shall not run; False: it ran already or was cancelled."""
        if entry._state != WAITING:
            entry._state = CANCELLED
            return False
        if get_ident() != self._thread_ident:
            self._check_thread()
        # The mark first: it is what counts, even if a finalizer cancels amid a move of the wheel.
        entry._state = CANCELLED
        self.pending -= 1
        self._wheel.cancel(entry)
        return True

    def move(self, entry: LoopEntry, when: float) -> None:
        """Let a waiting entry run at another time."""
        if get_ident() != self._thread_ident or not self.loop.is_running():
            self._check_use()
        self._deadline_ms(when)  # refuses before the entry has left its place
        self._wheel.cancel(entry)
        self._put(entry, when)

    def check_use(self) -> None:
        """Raise what `add` would raise here: closed, or not the loop's thread."""
        if get_ident() != self._thread_ident or not self.loop.is_running():
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
        self.is_closed = True
        self._thread_ident = NO_THREAD
        self._wake.stop()
        entries = self._batch[self._batch_next :]
        self._batch = []
        self._batch_next = 0
        entries.extend(self._late)
        self._late = []
        for entry in self._wheel.advance(FAR_MS + self._tick_ms):
            assert isinstance(entry, LoopEntry)
            entries.append(entry)
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
            self.pending = 0
        return ended

    def _put(self, entry: LoopEntry, when: float) -> None:
        deadline_ms = self._deadline_ms(when)
        entry.deadline_ms = deadline_ms
        entry._when = when
        entry._number = self._number
        self._number += 1
        if not self._wheel.add(entry):
            self._late.append(entry)
        if deadline_ms < self._wake.at_ms:
            self._hasten(entry)
        entry._state = WAITING

    def _hasten(self, entry: LoopEntry) -> None:
        """Be woken for this entry; if the loop refuses, the timer stays as it was."""
        try:
            self._wake.hasten(entry.deadline_ms)
        except BaseException:
            if not self._wheel.cancel(entry):
                self._late.pop()
            raise

    def _deadline_ms(self, when: float) -> int:
        """The first tick that is not before `when`."""
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
        """One part of a round; called by the loop."""
        if self.is_closed:
            return
        self._thread_ident = get_ident()
        self._wake.begin_round()
        try:
            if self._batch_next >= len(self._batch):
                self._gather(floor_ms(self.loop.time()))
            self._run_part()
        finally:
            if not self.is_closed:
                self._wake.end_round(self._next_ms())

    def _gather(self, now_ms: int) -> None:
        """Take what is due: what was late when it came, and from the wheel."""
        batch = self._late
        self._late = []
        wheel = self._wheel
        due = wheel.advance(now_ms, MOVES_MAX)
        current_ms = wheel.current_ms
        next_ms = wheel.next_due_ms()
        if due and next_ms is not None and next_ms <= current_ms:
            due.extend(wheel.advance(current_ms, TICK_ENTRIES_MAX))
        for entry in due:
            assert isinstance(entry, LoopEntry)
            batch.append(entry)
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
        """Refuse a foreign thread while the loop runs; remember the loop's thread."""
        loop = self.loop
        if not loop.is_running():
            return
        if _get_running_loop() is not loop:
            raise RuntimeError(
                "the timer was used outside the thread that runs its event loop; hand the call "
                "over with loop.call_soon_threadsafe()"
            )
        self._thread_ident = get_ident()


def _put_in_order(entries: list[LoopEntry]) -> None:
    """By `when`, ties by the order in which they were added.  Mostly they lie so already."""
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

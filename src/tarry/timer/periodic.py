"""Periodic entry: it is due again and again, on any timer of the contract.

Invariants: beats of one entry never overlap, because the owner adds the entry again only after its
beat; beats do not drift, because a fixed rate keeps to the grid `first_deadline_ms + n *
period_ms` however long a beat takes; there is no burst after a pause, because of several due beats
one runs and the others are reported as missed.  Rate and delay mean the same as in the JDK's
`ScheduledExecutorService`, which however makes up for missed beats in a burst.

The entry has no timer and no clock.  Its owner does three steps for one beat, or calls `run_beat`
for them; on a pure timer that is

    for entry in timer.advance(now_ms):
        entry.run_beat(now_ms)
        timer.add(entry)        # False: the next beat is due already
"""

from __future__ import annotations

from typing import SupportsIndex

from mypy_extensions import mypyc_attr

from tarry.timer.entry import TimerEntry, ms_of


@mypyc_attr(allow_interpreted_subclasses=True)
class PeriodicEntry(TimerEntry):
    """A timer entry with a period.  A subclass defines `beat`, and `on_missed` if it cares.

    `first_deadline_ms` and `period_ms` are ints on the clock of the timer; a period is at least
    1 ms.  With a fixed rate (the default) a beat is due every `period_ms` from the first deadline
    on.  With `fixed_delay` it is due `period_ms` after the end of the one before, and none is ever
    missed.  `missed_total` counts the beats that were reported to `on_missed`.
    """

    __slots__ = ("fixed_delay", "is_stopped", "missed_total", "period_ms")

    def __init__(
        self, first_deadline_ms: SupportsIndex, period_ms: SupportsIndex, fixed_delay: bool = False
    ) -> None:
        period_ms = ms_of(period_ms)
        if period_ms < 1:
            raise ValueError(f"a period of {period_ms} ms; it must be at least 1")
        super().__init__(first_deadline_ms)
        self.period_ms: int = period_ms
        self.fixed_delay = fixed_delay
        self.missed_total = 0
        self.is_stopped = False

    def _described(self) -> str:
        return f"{super()._described()}, every {self.period_ms} ms"

    def expire(self) -> None:
        """Refuse with a RuntimeError that names `run_beat`, because a beat needs the present time,
        and the entry must be added to its timer again.
        """
        raise RuntimeError(
            "a periodic entry runs by run_beat(now_ms), and is then added to its timer again"
        )

    def beat(self) -> None:
        """Do the work of every deadline; to be overridden."""

    def on_missed(self, beats: int) -> None:
        """React, before the beat, to `beats` whole beats after the due one that did not run."""

    def stop(self) -> None:
        """Stop the beats: none follows this one.  The owner must not add the entry again."""
        self.is_stopped = True

    def begin_beat(self, now_ms: SupportsIndex) -> int:
        """Begin a beat; return how many were missed; at a fixed rate move the deadline to the next.

        The next deadline is the first point of the grid after `now_ms`.  A beat that runs before
        its deadline counts as the one of that deadline.
        """
        if self.is_pending:
            raise ValueError("the entry is pending still; a beat begins when its timer gave it out")
        now_ms = ms_of(now_ms)
        if self.fixed_delay:
            return 0
        late_ms = now_ms - self.deadline_ms
        missed = late_ms // self.period_ms if late_ms > 0 else 0
        self.deadline_ms += (missed + 1) * self.period_ms
        self.missed_total += missed
        return missed

    def end_beat(self, now_ms: SupportsIndex) -> None:
        """End a beat; with a fixed delay move the deadline to a period after `now_ms`."""
        if self.fixed_delay:
            self.deadline_ms = ms_of(now_ms) + self.period_ms

    def run_beat(self, now_ms: SupportsIndex) -> None:
        """Run one beat that takes no time, for an owner whose clock is an argument.

        An error in `on_missed` or `beat` is raised; the entry may be added again all the same.
        """
        missed = self.begin_beat(now_ms)
        try:
            if missed > 0:
                self.on_missed(missed)
            self.beat()
        finally:
            self.end_beat(now_ms)

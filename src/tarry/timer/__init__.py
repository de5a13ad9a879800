"""The hierarchical timing wheel; time is an argument, so it runs in any loop."""

from __future__ import annotations

from tarry.timer.wheel import TimerEntry, TimingWheel

__all__ = ["TimerEntry", "TimingWheel"]

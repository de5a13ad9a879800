"""Checker of turns: no broker asks for one immediate turn after the other without end.

Long work takes tens of turns in a run, whose logs are small.  A broker that waits for its disk,
for time or for other brokers asks for no turn at all.
"""

from __future__ import annotations

from typing import Final

from tarry.broker.broker import Broker

# The longest work of 500 seeds, the loading of groups, took 22 turns.
_IN_A_ROW_MAX: Final = 100


class TurnChecker:
    """Checker that counts the turns of one life that were asked for at once, in a row."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def on_life_begins(self) -> None:
        """Start the count again."""
        self._in_a_row = 0

    def after_turn(self, broker: Broker) -> list[str]:
        """Return a sentence if too many turns in a row asked for the next one at once."""
        if not broker.has_work_left():
            self._in_a_row = 0
            return []
        self._in_a_row += 1
        if self._in_a_row != _IN_A_ROW_MAX:
            return []
        return [f"{_IN_A_ROW_MAX} turns in a row were due at once, and none of them was the last"]

"""Parts of a turn: the kinds of waiting requests and of longer work, under one contract.

The broker calls all parts of one list in every step of a turn.  Counters, shutdown and the
simulation's question whether anything waits use the same list, so a new kind of waiting request is
one more entry.  Hot.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from mypy_extensions import mypyc_attr

from tarry.base.partition_row import PartitionRow
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.partition.topic import HostedTopic
from tarry.purgatory.operation import DelayedOperation
from tarry.purgatory.purgatory import Purgatory
from tarry.timer.wheel import TimingWheel


@mypyc_attr(allow_interpreted_subclasses=True)
class Part:
    """Part of a turn.  Every method has a default that does nothing."""

    def step(self) -> None:
        """Do a bounded share of longer work whose records join this turn's write."""

    def settle(self) -> None:
        """Continue after this turn's write, which may have failed."""

    def on_moved(self, partition: ReplicatedLog) -> None:
        """React to a moved end or start of the partition's log, or to its close."""

    def on_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """React to a replica's new row or life, which `leadership` has taken already.

        `before` is the row before, None for a new replica.  `was_leader` says whether this broker
        led under that row.
        """

    def on_hosted(self, hosted: HostedTopic) -> None:
        """React to a hosted topic whose logs, or some more of them, are open now."""

    def on_given_up(self, hosted: HostedTopic) -> None:
        """React to the deletion of a topic, whose logs are neither read nor written from now on."""

    def complete(self, budget: int) -> int:
        """Complete at most `budget` operations; return what is left of the budget."""
        return budget

    def has_work_left(self) -> bool:
        """Return whether a turn without an event would do something at once."""
        return False

    def purgatories(self) -> list[Purgatory]:
        """Return the purgatories in which this part's operations wait."""
        return []

    def on_stall(self) -> None:
        """React to a time during which the process did not run and could not receive anything."""

    def stop(self) -> None:
        """Answer requests that would hold up a stop; the broker takes nothing new from now on."""


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingPart(Part):
    """A part whose operations wait in one purgatory.

    A touched key is checked once, in this turn's step of completions or, if the budget is spent, in
    the next turn's.  If `completions_wake_nobody`, no completion makes another operation ready, so
    each operation is tried once in a step, however many of its keys were touched.
    """

    completions_wake_nobody = False

    def __init__(self, timer: TimingWheel, name: str) -> None:
        self.purgatory = Purgatory(timer, name)
        self._walk = 0
        self.touched: dict[Hashable, None] = {}

    def try_or_watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> None:
        """Complete the operation now, or let it wait under its keys."""
        self.purgatory.try_complete_else_watch(operation, keys)

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> None:
        """Let an operation wait under its keys; the caller has tried it already."""
        self.purgatory.watch(operation, keys)

    def touch(self, key: Hashable) -> None:
        """Try the operations under `key` in the next step of completions."""
        self.touched[key] = None

    def complete(self, budget: int) -> int:
        touched = self.touched
        if not touched:
            return budget
        purgatory = self.purgatory
        if self.completions_wake_nobody:
            self._walk += 1
        for key in list(touched):
            if budget <= 0:
                return 0
            budget -= purgatory.check_and_complete(key, budget, walk=self._walk)
            if budget > 0:
                del touched[key]
        return budget

    def has_work_left(self) -> bool:
        return len(self.touched) > 0

    def purgatories(self) -> list[Purgatory]:
        return [self.purgatory]


P = TypeVar("P", bound=Part)


class Parts:
    """Parts of a broker, in the order of the turn."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._listening: list[Part] = []

    def add(self, part: P) -> P:
        """Add a part behind the others, and return it."""
        self._parts.append(part)
        return part

    def add_listening(self, part: Part) -> None:
        """Add a part that is told of stalls and of the stop alone, so that it costs no turn
        anything.
        """
        self._listening.append(part)

    def step(self) -> None:
        """Let every part do a share of its longer work."""
        for part in self._parts:
            part.step()

    def settle(self) -> None:
        """Let every part continue after the turn's write."""
        for part in self._parts:
            part.settle()

    def on_moved(self, partition: ReplicatedLog) -> None:
        """Report to every part that a partition's log has moved, or that it is closed."""
        for part in self._parts:
            part.on_moved(partition)

    def on_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Report a replica's new row or life to every part."""
        for part in self._parts:
            part.on_role(leadership, before, was_leader)

    def on_hosted(self, hosted: HostedTopic) -> None:
        """Report to every part that logs of a hosted topic are open now."""
        for part in self._parts:
            part.on_hosted(hosted)

    def on_given_up(self, hosted: HostedTopic) -> None:
        """Report to every part that a topic was deleted."""
        for part in self._parts:
            part.on_given_up(hosted)

    def complete(self, budget: int) -> None:
        """Complete at most `budget` operations, but at least one of each part that has any."""
        for part in self._parts:
            budget = part.complete(max(budget, 1))

    def has_work_left(self) -> bool:
        """Return whether any part would do something in a turn without an event."""
        return any(part.has_work_left() for part in self._parts)

    def purgatories(self) -> list[Purgatory]:
        """Return every purgatory of the broker."""
        return [purgatory for part in self._parts for purgatory in part.purgatories()]

    def on_stall(self) -> None:
        """Report to every part that the process did not run for a while."""
        for part in self._parts:
            part.on_stall()
        for part in self._listening:
            part.on_stall()

    def stop(self) -> None:
        """Let every part answer the requests that would hold up a stop."""
        for part in self._parts:
            part.stop()
        for part in self._listening:
            part.stop()

"""The list of parts: its order, the budget of completions, and a part with one purgatory."""

from __future__ import annotations

from tests.support.partition_scene import PartitionScene

from tarry.broker.part import Part, Parts, WaitingPart
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.operation import DelayedOperation
from tarry.timer.wheel import TimingWheel


class Recorded(Part):
    """Writes down what it is asked, and spends some of the budget."""

    def __init__(self, name: str, log: list[str], cost: int = 0) -> None:
        self.name = name
        self.log = log
        self.cost = cost

    def step(self) -> None:
        self.log.append(f"{self.name} step")

    def settle(self) -> None:
        self.log.append(f"{self.name} settle")

    def on_moved(self, partition: ReplicatedLog) -> None:
        self.log.append(f"{self.name} {partition.name}")

    def complete(self, budget: int) -> int:
        self.log.append(f"{self.name} {budget}")
        return max(budget - self.cost, 0)

    def has_work_left(self) -> bool:
        return self.cost > 0

    def on_stall(self) -> None:
        self.log.append(f"{self.name} stall")

    def stop(self) -> None:
        self.log.append(f"{self.name} stop")


class Ready(DelayedOperation):
    """Completes when it is told to."""

    is_ready = False

    def try_complete(self) -> bool:
        return self.is_ready and self.force_complete()

    def on_complete(self) -> None:
        """Answers nobody."""


def two_parts(cost: int = 0) -> tuple[Parts, list[str]]:
    log: list[str] = []
    parts = Parts()
    parts.add(Recorded("first", log, cost))
    parts.add(Recorded("second", log))
    return parts, log


def waiting(count: int) -> tuple[WaitingPart, list[Ready]]:
    """A part in which operations wait under their numbers."""
    part = WaitingPart(TimingWheel(0), "Test")
    operations = [Ready(1_000) for _ in range(count)]
    for number, operation in enumerate(operations):
        part.watch(operation, [number])
    return part, operations


def test_every_part_is_asked_in_the_order_of_the_list() -> None:
    parts, log = two_parts()

    parts.step()
    parts.settle()
    parts.on_moved(PartitionScene().partition)
    parts.on_stall()
    parts.stop()

    steps = ["step", "settle", "orders-0", "stall", "stop"]
    assert log == [f"{name} {step}" for step in steps for name in ("first", "second")]


def test_a_part_gets_what_those_before_it_left_of_the_budget() -> None:
    parts, log = two_parts(cost=3)

    parts.complete(10)

    assert log == ["first 10", "second 7"]


def test_a_part_may_complete_one_operation_though_the_budget_is_spent() -> None:
    parts, log = two_parts(cost=20)

    parts.complete(10)

    assert log == ["first 10", "second 1"]


def test_work_is_left_while_one_part_has_some() -> None:
    assert two_parts(cost=1)[0].has_work_left()
    assert not two_parts()[0].has_work_left()


def test_the_purgatories_of_all_parts_are_one_list() -> None:
    parts = Parts()
    first = parts.add(waiting(1)[0])
    parts.add(Part())
    second = parts.add(waiting(1)[0])

    assert parts.purgatories() == [first.purgatory, second.purgatory]


def test_a_touched_key_is_checked_once() -> None:
    part, operations = waiting(1)
    operations[0].is_ready = True

    before = operations[0].is_completed
    part.touch(0)
    has_work = part.has_work_left()
    left = part.complete(10)

    assert (before, has_work) == (False, True)
    assert operations[0].is_completed
    assert left == 9
    assert not part.has_work_left()


def test_keys_that_the_budget_does_not_reach_stay_touched() -> None:
    part, operations = waiting(3)
    for number, operation in enumerate(operations):
        operation.is_ready = True
        part.touch(number)

    left = part.complete(2)
    done_first = [operation.is_completed for operation in operations]
    part.complete(2)

    assert left == 0
    assert done_first == [True, True, False]
    assert all(operation.is_completed for operation in operations)

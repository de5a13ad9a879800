"""Operations with a payload: what they need is theirs until they complete, and not longer."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest
from tests.support.purgatory_faces import Face

from tarry.purgatory import PayloadOperation, Purgatory, ThreadedPurgatory

AnyPurgatory = Purgatory | ThreadedPurgatory


class Order:
    """What waits for its number to arrive."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.arrived = 0


class WaitForArrival(PayloadOperation[Order]):
    def __init__(self, deadline_ms: int, payload: Order, told: list[int]) -> None:
        super().__init__(deadline_ms, payload)
        self.told = told

    def is_ready(self, payload: Order) -> bool:
        return payload.arrived >= payload.wanted

    def complete_with(self, payload: Order) -> None:
        self.told.append(payload.arrived)


def test_it_completes_with_its_payload_when_that_is_ready(purgatory: AnyPurgatory) -> None:
    told: list[int] = []
    order = Order(2)
    purgatory.try_complete_else_watch(WaitForArrival(1000, order, told), ["a", "b"])
    assert purgatory.check_and_complete("a") == 0

    order.arrived = 3

    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    assert told == [3]


@pytest.mark.parametrize("end", ["checked", "forced", "expired", "shut down"])
def test_its_payload_is_free_however_it_ends_while_it_lingers(
    face: Face, purgatory: AnyPurgatory, end: str
) -> None:
    told: list[int] = []
    order = Order(1)
    operation = WaitForArrival(20, order, told)
    purgatory.try_complete_else_watch(operation, ["a", "b"])
    payload = weakref.ref(order)
    ends: dict[str, Callable[[], object]] = {
        "checked": lambda: purgatory.check_and_complete("a"),
        "forced": operation.force_complete,
        "expired": lambda: face.advance(20),
        "shut down": lambda: purgatory.shutdown(expire_pending=True),
    }
    order.arrived = end == "checked"
    del order

    ends[end]()

    assert operation.is_completed
    assert operation.payload is None
    assert payload() is None
    assert told == [end == "checked"]


def test_a_completed_one_asks_its_condition_no_more() -> None:
    told: list[int] = []
    operation = WaitForArrival(20, Order(0), told)

    tried = [operation.try_complete() for _ in range(2)]

    assert tried == [True, False]
    assert told == [0]


def test_without_a_condition_only_the_deadline_ends_it(face: Face, purgatory: AnyPurgatory) -> None:
    told: list[str] = []

    class Deadline(PayloadOperation[str]):
        def complete_with(self, payload: str) -> None:
            told.append(payload)

    purgatory.try_complete_else_watch(Deadline(20, "too late"), ["a"])
    completed = purgatory.check_and_complete("a")
    face.advance(20)

    assert completed == 0
    assert told == ["too late"]


class Unanswered(PayloadOperation[int]):
    pass


class Asynchronous(PayloadOperation[int]):
    async def complete_with(self, payload: int) -> None:  # type: ignore[override]
        raise AssertionError


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Unanswered, "Unanswered has no complete_with, so nobody .* define complete_with"),
        (Asynchronous, r"Asynchronous\.complete_with is a coroutine function"),
    ],
)
def test_a_class_that_would_answer_nobody_is_refused(
    purgatory: AnyPurgatory, kind: type[PayloadOperation[int]], sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        purgatory.try_complete_else_watch(kind(20, 1), ["a"])

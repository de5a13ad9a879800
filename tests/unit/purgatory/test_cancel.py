"""One operation is cancelled: from under its keys and from the timer, at once."""

from __future__ import annotations

import gc
import weakref

import pytest
from tests.support.purgatory_faces import Face, Operation, watch

from tarry.purgatory import Purgatory, ThreadedPurgatory

AnyPurgatory = Purgatory | ThreadedPurgatory


def test_a_cancelled_operation_is_out_of_timer_and_keys_and_others_stay(
    face: Face, purgatory: AnyPurgatory
) -> None:
    one = watch(purgatory, "a", "b")
    other = watch(purgatory, "a")

    assert purgatory.cancel(one)

    assert one.happened == []
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (1, 1, 1)
    one.is_ready = other.is_ready = True
    assert (purgatory.check_and_complete("b"), purgatory.check_and_complete("a")) == (0, 1)
    assert other.happened == ["completed"]


def test_a_cancelled_operation_is_answered_by_who_cancels_it(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")

    purgatory.cancel(operation)

    assert operation.force_complete()
    assert operation.happened == ["completed"]
    assert purgatory.completed_total == 0


def test_only_the_first_cancel_finds_the_operation_waiting(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")

    assert [purgatory.cancel(operation) for _ in range(2)] == [True, False]


def test_an_operation_that_was_not_handed_in_cannot_be_cancelled(purgatory: AnyPurgatory) -> None:
    operation = Operation()

    assert not purgatory.cancel(operation)

    assert not purgatory.try_complete_else_watch(operation, ["a"])


@pytest.mark.parametrize("end", ["completed", "expired"])
def test_a_cancel_takes_from_its_keys_what_has_ended_and_lingers(
    face: Face, purgatory: AnyPurgatory, end: str
) -> None:
    operation = watch(purgatory, "a", "b", deadline_ms=20)
    if end == "completed":
        operation.force_complete()
    else:
        face.advance(20)
    lingering = purgatory.watched

    assert not purgatory.cancel(operation)

    assert (lingering, purgatory.watched) == (2, 0)
    assert purgatory._watchers == {}


def test_an_operation_may_be_cancelled_in_its_own_expiration(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = watch(purgatory, "a", deadline_ms=20)
    operation.at_last = lambda: purgatory.cancel(operation)

    face.advance(20)

    assert operation.happened == ["completed", "expired"]
    assert (purgatory.watched, purgatory.expired_total) == (0, 1)


def test_a_cancelled_operation_is_free(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a", "b")
    watch(purgatory, "a", "b")
    reference = weakref.ref(operation)

    gc.disable()
    try:
        purgatory.cancel(operation)
        del operation

        assert reference() is None
    finally:
        gc.enable()


def test_a_condition_may_cancel_its_own_operation(face: Face, purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")
    operation.in_try = lambda: purgatory.cancel(operation)

    assert purgatory.check_and_complete("a") == 0

    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert operation.happened == []


def test_a_completion_may_cancel_the_next_under_the_key_that_is_checked(
    purgatory: AnyPurgatory,
) -> None:
    first, second, third = (watch(purgatory, "a") for _ in range(3))
    first.is_ready = second.is_ready = third.is_ready = True
    first.then = lambda: purgatory.cancel(second)

    assert purgatory.check_and_complete("a") == 2

    assert second.happened == []
    assert purgatory.watched == 0


def test_an_operation_of_another_purgatory_is_refused(face: Face, purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")
    other = face.another("other")

    with pytest.raises(ValueError, match="only that one cancels"):
        other.cancel(operation)

    assert purgatory.cancel(operation)


def test_after_a_shutdown_there_is_nothing_to_cancel(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")
    purgatory.shutdown()

    assert not purgatory.cancel(operation)


def test_each_of_thousands_under_one_key_can_be_cancelled(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operations = [watch(purgatory, "a", "b") for _ in range(2500)]

    assert all(purgatory.cancel(operation) for operation in operations)

    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)


class Fickle:
    """A key whose hash fails when it is told to."""

    fails = False

    def __hash__(self) -> int:
        if self.fails:
            raise ValueError("no hash")
        return 7


def test_a_key_that_fails_keeps_no_operation_from_being_cancelled(
    face: Face, purgatory: AnyPurgatory
) -> None:
    key = Fickle()
    operation = Operation()
    purgatory.try_complete_else_watch(operation, [key, "a"])
    watch(purgatory, "a")
    key.fails = True

    assert purgatory.cancel(operation)

    assert (purgatory.delayed, face.in_timer()) == (1, 1)
    key.fails = False
    assert purgatory.check_and_complete(key) == 0
    assert purgatory.cancel_for_key("a")
    assert purgatory.cancel_for_key(key) == []
    assert purgatory.watched == 0

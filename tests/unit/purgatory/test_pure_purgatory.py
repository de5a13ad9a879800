"""The purgatory for one thread: one try, errors at once, listeners, and how long was waited."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from tests.support.purgatory_faces import Operation, PureFace, watch

from tarry.purgatory import DelayedOperation, OperationListener, Purgatory


@pytest.fixture
def purgatory(pure: PureFace) -> Purgatory:
    return pure.purgatory


class Waits(OperationListener):
    """Listener that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Hashable, int, bool]] = []

    def on_completed(
        self, operation: DelayedOperation, key: Hashable, waited_ms: int, is_expired: bool
    ) -> None:
        self.told.append((key, waited_ms, is_expired))


# -- tries


def test_an_operation_is_tried_once_when_it_is_handed_in(purgatory: Purgatory) -> None:
    assert watch(purgatory, "a", "b").tries == 1


def test_what_the_caller_has_tried_is_watched_without_another_try(purgatory: Purgatory) -> None:
    operation = Operation()

    assert not purgatory.watch(operation, ["a"])

    assert operation.tries == 0
    operation.is_ready = True
    assert purgatory.check_and_complete("a") == 1


def test_what_is_watched_past_its_deadline_expires_at_once(
    pure: PureFace, purgatory: Purgatory
) -> None:
    operation = Operation(0)

    assert purgatory.watch(operation, ["a"])

    assert operation.happened == ["completed", "expired"]
    assert (purgatory.watched, purgatory.delayed, pure.in_timer()) == (0, 0, 0)
    assert (purgatory.completed_total, purgatory.expired_total) == (1, 1)


def test_what_was_completed_before_is_not_watched(purgatory: Purgatory) -> None:
    operation = Operation()
    operation.force_complete()

    assert purgatory.watch(operation, ["a"])

    assert (purgatory.watched, purgatory.delayed) == (0, 0)


# -- errors


def fail() -> None:
    raise ValueError("broken")


def test_an_error_of_a_condition_ends_the_check_and_the_next_one_tries_the_others(
    purgatory: Purgatory,
) -> None:
    before, broken, after = (watch(purgatory, "a") for _ in range(3))
    before.is_ready = after.is_ready = True
    broken.in_try = fail

    with pytest.raises(ValueError, match="broken"):
        purgatory.check_and_complete("a")

    assert (before.is_completed, after.is_completed) == (True, False)
    assert (purgatory.delayed, purgatory.completed_total) == (2, 1)
    broken.in_try = list
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched == 1


def test_after_an_error_a_shutdown_is_asked_for_again(pure: PureFace, purgatory: Purgatory) -> None:
    operations = [watch(purgatory, "a", "b") for _ in range(3)]
    operations[0].then = fail

    with pytest.raises(ValueError, match="broken"):
        purgatory.shutdown(expire_pending=True)

    assert [operation.is_completed for operation in operations] == [True, False, False]
    assert purgatory.shutdown(expire_pending=True) == 2
    assert all(operation.is_completed for operation in operations)
    assert (purgatory.watched, purgatory.delayed, pure.in_timer()) == (0, 0, 0)


# -- how long was waited


def test_waits_are_counted_by_the_bit_length_of_their_ms(
    pure: PureFace, purgatory: Purgatory
) -> None:
    begun_ms = 0
    for waited_ms in (0, 1, 2, 3, 4, 500, 1 << 40):
        operation = watch(purgatory, "a", deadline_ms=1 << 50)
        begun_ms += waited_ms
        pure.wheel.set_time(begun_ms)
        operation.force_complete()

    counted = {number: count for number, count in enumerate(purgatory.waits) if count}
    assert counted == {0: 1, 1: 1, 2: 2, 3: 1, 9: 1, 31: 1}
    assert sum(purgatory.waits) == purgatory.completed_total


def test_a_wait_begins_at_the_time_that_was_reported_last(
    pure: PureFace, purgatory: Purgatory
) -> None:
    pure.advance(10)
    pure.wheel.set_time(500)
    pure.wheel.set_time(400)
    operation = watch(purgatory, "a")

    pure.advance(508)
    operation.force_complete()

    assert operation.since_ms == 500
    assert purgatory.waits[4] == 1


def test_what_is_cancelled_has_not_waited(purgatory: Purgatory) -> None:
    purgatory.cancel(watch(purgatory, "a"))
    watch(purgatory, "a")
    purgatory.shutdown()

    assert sum(purgatory.waits) == 0


def test_every_listener_is_told_of_every_completion(pure: PureFace, purgatory: Purgatory) -> None:
    first, second = Waits(), Waits()
    purgatory.listen(first)
    completed = watch(purgatory, "a", "b")
    purgatory.listen(second)
    watch(purgatory, "c", deadline_ms=20)
    pure.wheel.set_time(7)
    completed.force_complete()
    purgatory.cancel(watch(purgatory, "d"))
    pure.advance(20)

    assert first.told == [("a", 7, False), ("c", 20, True)]
    assert second.told == first.told

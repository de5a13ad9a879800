"""Both purgatories when something else fails or piles up: bad keys, nested checks, long lists."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.purgatory_faces import FACES, Face, Operation, PureFace, ThreadedFace, watch

from tarry.purgatory import DelayedOperation, Purgatory, ThreadedPurgatory

AnyPurgatory = Purgatory | ThreadedPurgatory
MakeFace = type[PureFace] | type[ThreadedFace]


class Key:
    """A key that is no plain value: its hash changes or fails."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.error: BaseException | None = None

    def __hash__(self) -> int:
        if self.error is not None:
            raise self.error
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        return self is other


def watch_key(purgatory: AnyPurgatory, *keys: object) -> Operation:
    operation = Operation()
    assert not purgatory.try_complete_else_watch(operation, list(keys))
    return operation


# -- what fails between a completion and its answer


@pytest.mark.parametrize("error", [ZeroDivisionError(), MemoryError()])
@pytest.mark.parametrize("make", FACES)
def test_a_key_that_fails_in_a_purge_keeps_no_other_operation_from_its_answer(
    make: MakeFace, error: Exception
) -> None:
    face = make(purge_interval=2)
    purgatory = face.purgatory
    operations = [watch(purgatory, f"own {number}") for number in range(6)]
    bad = Key(1)
    of_bad_key = watch_key(purgatory, bad)
    of_bad_key.force_complete()
    bad.error = error

    answers = [operation.force_complete() for operation in operations]

    assert answers == [True] * 6
    assert [operation.happened for operation in operations] == [["completed"]] * 6
    assert (purgatory.completed_total, purgatory.delayed, face.in_timer()) == (7, 0, 0)
    assert purgatory.watched <= 2


@pytest.mark.parametrize("make", FACES)
def test_an_interrupt_in_a_purge_passes_when_the_answer_is_given(make: MakeFace) -> None:
    face = make(purge_interval=2)
    purgatory = face.purgatory
    operations = [watch(purgatory, "a") for _ in range(4)]
    kept = watch(purgatory, "b")
    bad = Key(1)
    watch_key(purgatory, bad).force_complete()
    bad.error = KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        for operation in operations:
            operation.force_complete()

    done = [operation for operation in operations if operation.is_completed]
    assert done
    assert all(operation.happened == ["completed"] for operation in done)
    assert purgatory.delayed == face.in_timer() == 5 - len(done)
    assert kept.force_complete()


@pytest.mark.interpreted
@pytest.mark.parametrize("end", ["completed", "expired"])
def test_a_timer_that_cannot_cancel_keeps_nobody_from_the_answer(
    face: Face, purgatory: AnyPurgatory, end: str
) -> None:
    class Broken:
        """A timer that does not cancel."""

        now_ms = 0

        def cancel(self, operation: object) -> bool:
            raise ArithmeticError("broken")

    operation = watch(purgatory, "a")
    purgatory.timer = Broken()  # type: ignore[assignment]

    with pytest.raises(ArithmeticError, match="broken"):
        operation.force_complete() if end == "completed" else operation.expire()

    assert operation.happened == ["completed", "expired"][: 1 + (end == "expired")]
    assert (purgatory.delayed, purgatory.completed_total) == (0, 1)
    assert not operation.force_complete()


@pytest.mark.parametrize("make", FACES)
def test_a_cancel_returns_what_it_cancelled_whatever_the_purge_meets(make: MakeFace) -> None:
    purgatory = make(purge_interval=2).purgatory
    bad = Key(1)
    watch_key(purgatory, bad).force_complete()
    bad.error = ZeroDivisionError()
    operations = [watch(purgatory, "a", f"own {number}") for number in range(4)]

    cancelled = purgatory.cancel_for_key("a")

    assert cancelled == operations
    assert (purgatory.delayed, purgatory.watched) == (0, 0)


def test_a_key_whose_hash_has_changed_ends_with_the_shutdown(
    face: Face, purgatory: AnyPurgatory
) -> None:
    key = Key(1)
    watch_key(purgatory, key, "a")
    key.number = 2

    assert purgatory.shutdown() == 1
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert len(purgatory._watchers) == 0


@pytest.mark.parametrize("make", FACES)
def test_a_key_whose_hash_has_changed_is_purged(make: MakeFace) -> None:
    purgatory = make(purge_interval=2).purgatory
    keys = [Key(number) for number in range(4)]
    operations = [watch_key(purgatory, key) for key in keys]
    for key in keys:
        key.number += 10

    for operation in operations:
        operation.force_complete()

    assert purgatory.watched <= 2


# -- calls from inside a completion


@pytest.mark.parametrize("expire_pending", [False, True])
def test_a_completion_may_shut_down_the_purgatory_that_is_being_checked(
    face: Face, purgatory: AnyPurgatory, expire_pending: bool
) -> None:
    operations = [watch(purgatory, "a", "b") for _ in range(3)]
    operations[1].is_ready = True
    ended: list[int] = []
    operations[1].then = lambda: ended.append(purgatory.shutdown(expire_pending))

    completed = purgatory.check_and_complete("a")

    assert (completed, ended) == (1, [2])
    assert operations[0].is_completed == operations[2].is_completed == expire_pending
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert len(purgatory._watchers) == 0


def test_a_completion_may_cancel_the_key_that_is_being_checked(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operations = [watch(purgatory, "a") for _ in range(3)]
    operations[0].is_ready = True
    cancelled: list[DelayedOperation] = []
    late: list[Operation] = []

    def cancel_and_watch() -> None:
        cancelled.extend(purgatory.cancel_for_key("a"))
        late.append(watch(purgatory, "a"))

    operations[0].then = cancel_and_watch
    completed = purgatory.check_and_complete("a")

    assert completed == 1
    assert cancelled == operations[1:]
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (1, 1, 1)
    late[0].is_ready = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched == 0


# -- long lists


def test_a_limited_check_sweeps_what_it_walked_and_no_more(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operations = [watch(purgatory, "a") for _ in range(10)]
    for number in (1, 8):
        operations[number].force_complete()
    operations[2].is_ready = True

    completed = purgatory.check_and_complete("a", 1)

    assert completed == 1
    tries = [operation.tries - face.tries for operation in operations[:5]]
    assert tries == [1, 0, 1, 0, 0]
    assert purgatory.watched == 8
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.watched == 7


def test_a_key_is_drained_oldest_first_past_one_that_goes_on_waiting(
    face: Face, purgatory: AnyPurgatory
) -> None:
    laggard = watch(purgatory, "a")
    order: list[int] = []
    for number in range(100):
        operation = watch(purgatory, "a")
        operation.is_ready = True
        operation.then = lambda number=number: order.append(number)

    left = []
    while purgatory.check_and_complete("a", 7) == 7:
        left.append(purgatory.watched)

    assert order == list(range(100))
    assert left == [101 - 7 * drained for drained in range(1, 15)]
    assert laggard.tries == face.tries + 15
    assert purgatory.watched == 1


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6, None])
def test_a_check_inside_a_walk_hides_nobody_from_it(
    purgatory: AnyPurgatory, limit: int | None
) -> None:
    first = [watch(purgatory, "a") for _ in range(5)]
    later: list[Operation] = []

    def more_come_and_are_checked() -> None:
        first[0].in_try = list
        later.extend(watch(purgatory, "a") for _ in range(5))
        for operation in [first[3], *later]:
            operation.is_ready = True
        purgatory.check_and_complete("a", limit)
        first[4].is_ready = True
        purgatory.check_and_complete("a", limit)

    first[0].in_try = more_come_and_are_checked
    purgatory.check_and_complete("a")
    purgatory.check_and_complete("a")

    done = [operation.is_completed for operation in first]
    assert done == [False, False, False, True, True]
    assert all(operation.is_completed for operation in later)
    assert purgatory.watched == 3


@pytest.mark.parametrize("make", FACES)
def test_a_purge_of_many_keys_goes_in_parts(make: MakeFace) -> None:
    purgatory = make(purge_interval=100).purgatory
    operations = [watch(purgatory, f"own {number}") for number in range(4000)]

    swept = []
    for operation in operations:
        before = purgatory.watched
        operation.force_complete()
        swept.append(before - purgatory.watched)

    assert max(swept) == 500  # a key and a watcher each are a step of a thousand
    assert purgatory.watched <= 100


@pytest.mark.parametrize("end", ["cancel", "drop", "expire"])
def test_thousands_under_one_key_end_at_once_and_in_order(
    face: Face, purgatory: AnyPurgatory, end: str
) -> None:
    order: list[int] = []

    def note(number: int) -> Callable[[], None]:
        return lambda: order.append(number)

    operations = [watch(purgatory, "a", "b") for _ in range(2500)]
    for number, operation in enumerate(operations):
        operation.then = note(number)

    if end == "cancel":
        assert purgatory.cancel_for_key("a") == operations
        assert purgatory.cancel_for_key("b") == []
    else:
        assert purgatory.shutdown(expire_pending=end == "expire") == 2500

    assert order == (list(range(2500)) if end == "expire" else [])
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)


def test_keys_that_come_and_go_during_a_purge_are_all_swept(purgatory: AnyPurgatory) -> None:
    operations = [watch(purgatory, f"own {number}", "all") for number in range(3000)]
    for operation in operations[:1500]:
        operation.force_complete()
    for number, operation in enumerate(operations[1500:]):
        operation.force_complete()
        purgatory.check_and_complete(f"own {number * 7 % 3000}")
        watch(purgatory, f"new {number}").force_complete()

    kept = watch(purgatory, "kept")
    while purgatory.watched > 2001:
        watch(purgatory, "more").force_complete()

    assert purgatory.delayed == 1
    assert purgatory.watched == sum(len(watchers) for watchers in purgatory._watchers.values())
    assert len(purgatory._sweeping.lists) == len(purgatory._watchers)
    assert kept.force_complete()

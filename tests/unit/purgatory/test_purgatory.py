"""Delayed operations and their purgatories: what completes, what expires, what lingers.

One suite over both faces, `Purgatory` and `ThreadedPurgatory`; Kafka's DelayedOperationTest is
among it, in our words.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import MappingProxyType

import pytest
from tests.support.purgatory_faces import (
    FACES,
    TRIES,
    Face,
    Failing,
    Operation,
    PureFace,
    ThreadedFace,
    watch,
)

from tarry.purgatory import DelayedOperation, Purgatory, PurgatoryShutDown, ThreadedPurgatory
from tarry.timer import HeapTimer, TimingWheel

AnyPurgatory = Purgatory | ThreadedPurgatory


def test_an_operation_whose_condition_holds_never_waits(purgatory: AnyPurgatory) -> None:
    operation = Operation(is_ready=True)

    completed = purgatory.try_complete_else_watch(operation, ["a", "b"])

    assert completed
    assert operation.happened == ["completed"]
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_each_key_completes_what_waits_under_it_once(purgatory: AnyPurgatory) -> None:
    first = watch(purgatory, "a")
    second = watch(purgatory, "b")
    assert purgatory.check_and_complete("a") == 0

    first.is_ready = second.is_ready = True

    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("b") == 0
    assert first.happened == second.happened == ["completed"]


def test_a_key_that_nobody_watches_completes_nothing(purgatory: AnyPurgatory) -> None:
    assert purgatory.check_and_complete("unknown") == 0


def test_an_operation_expires_at_its_deadline_and_not_before(
    face: Face, purgatory: AnyPurgatory
) -> None:
    short = watch(purgatory, "a", deadline_ms=20)
    long = watch(purgatory, "a", deadline_ms=200_000)

    face.advance(19)
    before = list(short.happened)
    face.advance(20)

    assert before == []
    assert short.happened == ["completed", "expired"]
    assert long.happened == []
    assert purgatory.expired_total == 1
    assert purgatory.delayed == 1


def test_expiry_tries_the_condition_once_more(face: Face, purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a", deadline_ms=20)
    operation.is_ready = True

    face.advance(20)

    assert operation.happened == ["completed"]
    assert purgatory.expired_total == 0
    assert purgatory.completed_total == 1


def test_an_operation_past_its_deadline_expires_at_once(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = Operation(0)

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert completed
    assert operation.happened == ["completed", "expired"]
    assert purgatory.delayed == face.in_timer() == 0


def test_only_the_first_completion_counts(face: Face, purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a", deadline_ms=20)

    assert operation.force_complete()
    assert not operation.force_complete()
    face.advance(50)
    operation.expire()

    assert operation.happened == ["completed"]
    assert purgatory.completed_total == 1


def test_completion_leaves_the_timer_at_once_and_other_keys_when_checked(
    face: Face, purgatory: AnyPurgatory
) -> None:
    watch(purgatory, "a")
    second = watch(purgatory, "a", "b")
    third = watch(purgatory, "a", "b", "c")
    assert (purgatory.delayed, purgatory.watched) == (3, 6)

    second.force_complete()
    assert purgatory.delayed == face.in_timer() == 2
    third.force_complete()
    assert purgatory.delayed == face.in_timer() == 1

    watched = []
    for key in "abc":
        purgatory.check_and_complete(key)
        watched.append(purgatory.watched)
    assert watched == [4, 2, 1]


@pytest.mark.parametrize("make", FACES)
def test_completed_watchers_are_purged_once_enough_have_gathered(
    make: type[PureFace] | type[ThreadedFace],
) -> None:
    purgatory = make(purge_interval=10).purgatory
    operations = [watch(purgatory, f"own {number}") for number in range(11)]

    for operation in operations[:10]:
        operation.force_complete()
    before = purgatory.watched
    operations[10].force_complete()

    assert before == 11
    assert purgatory.watched == 0
    assert purgatory._watchers == {}


@pytest.mark.parametrize("make", FACES)
def test_a_purge_waits_until_as_many_are_finished_as_are_pending(
    make: type[PureFace] | type[ThreadedFace],
) -> None:
    purgatory = make(purge_interval=2).purgatory
    operations = [watch(purgatory, "a") for _ in range(10)]

    for operation in operations[:5]:
        operation.force_complete()
    before = purgatory.watched
    operations[5].force_complete()

    assert before == 10
    assert purgatory.watched == 4


@pytest.mark.parametrize("make", FACES)
def test_watchers_left_by_a_cancel_are_purged_too(
    make: type[PureFace] | type[ThreadedFace],
) -> None:
    purgatory = make(purge_interval=2).purgatory
    watch(purgatory, "a", "b", "c", "d")

    purgatory.cancel_for_key("a")

    assert purgatory.watched == 0
    assert purgatory._watchers == {}


def test_a_key_named_twice_is_watched_once(purgatory: AnyPurgatory) -> None:
    watch(purgatory, "a", "a")

    assert purgatory.watched == 1


def test_a_limit_counts_completions_and_leaves_the_rest_watched(purgatory: AnyPurgatory) -> None:
    operations = [watch(purgatory, "a") for _ in range(5)]
    for operation in operations[1:]:
        operation.is_ready = True

    counts = [purgatory.check_and_complete("a", 3) for _ in range(2)]

    assert counts == [3, 1]
    assert [operation.is_completed for operation in operations] == [False, *[True] * 4]
    assert purgatory.watched == 1


def test_cancelling_a_key_returns_what_waited_and_completes_nothing(
    face: Face, purgatory: AnyPurgatory
) -> None:
    first = watch(purgatory, "a")
    second = watch(purgatory, "a", "b")
    watch(purgatory, "b")

    cancelled = purgatory.cancel_for_key("a")

    assert cancelled == [first, second]
    assert first.happened == second.happened == []
    assert purgatory.delayed == face.in_timer() == 1
    second.is_ready = True
    assert purgatory.check_and_complete("b") == 0
    assert purgatory.watched == 1


def test_a_cancelled_operation_can_still_be_answered_by_who_cancelled_it(
    purgatory: AnyPurgatory,
) -> None:
    watch(purgatory, "a")

    (cancelled,) = purgatory.cancel_for_key("a")

    assert cancelled.force_complete()
    assert purgatory.delayed == 0


def test_cancelling_an_unknown_key_returns_nothing(purgatory: AnyPurgatory) -> None:
    assert purgatory.cancel_for_key("unknown") == []


def test_cancelling_leaves_out_what_is_completed_already(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a", "b")
    operation.force_complete()

    assert purgatory.cancel_for_key("b") == []


def test_a_check_from_inside_a_completion_misses_nobody(purgatory: AnyPurgatory) -> None:
    first = watch(purgatory, "a")
    second = watch(purgatory, "a")

    def first_becomes_ready() -> None:
        first.is_ready = True
        purgatory.check_and_complete("a")

    second.is_ready = True
    second.then = first_becomes_ready
    purgatory.check_and_complete("a")

    assert first.happened == ["completed"]
    assert purgatory.watched == 0


def test_an_operation_added_from_inside_a_completion_is_kept(purgatory: AnyPurgatory) -> None:
    first = watch(purgatory, "a")
    late: list[Operation] = []
    first.is_ready = True
    first.then = lambda: late.append(watch(purgatory, "a"))

    completed = purgatory.check_and_complete("a")

    assert completed == 1
    late[0].is_ready = True
    assert purgatory.check_and_complete("a") == 1


def test_completion_may_come_from_the_outside_while_the_key_is_walked(
    purgatory: AnyPurgatory,
) -> None:
    operations = [watch(purgatory, "a") for _ in range(3)]
    operations[0].is_ready = True
    operations[0].then = operations[1].force_complete
    operations[1].is_ready = True

    completed = purgatory.check_and_complete("a")

    assert completed == 1
    assert operations[1].happened == ["completed"]
    assert purgatory.watched == 1


def test_two_purgatories_share_a_timer_and_count_on_their_own(face: Face) -> None:
    produce, fetch = face.another("produce"), face.another("fetch")
    watch(produce, "a", deadline_ms=10)
    watch(fetch, "a", deadline_ms=30)

    face.advance(10)

    assert (produce.expired_total, produce.delayed) == (1, 0)
    assert (fetch.expired_total, fetch.delayed) == (0, 1)


# -- errors of the operations' own code


@pytest.mark.parametrize(("make", "first"), TRIES)
def test_an_operation_whose_condition_fails_when_handed_in_does_not_wait(
    make: type[Face], first: int
) -> None:
    face = make()
    purgatory = face.purgatory
    operation = Failing(first)

    with pytest.raises(ValueError, match=f"try {first}"):
        purgatory.try_complete_else_watch(operation, ["a", "b"])

    assert purgatory.delayed == face.in_timer() == 0
    purgatory.check_and_complete("a")
    purgatory.check_and_complete("b")
    assert purgatory.watched == 0
    assert operation.happened == []


def test_an_error_ends_neither_the_wait_nor_the_next_check(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")

    def fail() -> None:
        raise ValueError("once")

    operation.in_try = fail
    with pytest.raises(ValueError, match="once"):
        purgatory.check_and_complete("a")
    operation.in_try = list
    operation.is_ready = True

    assert purgatory.check_and_complete("a") == 1
    assert operation.happened == ["completed"]


def test_an_operation_whose_completion_fails_is_completed_all_the_same(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = watch(purgatory, "a")
    operation.is_ready = True

    def fail() -> None:
        raise ValueError("no answer")

    operation.then = fail
    with pytest.raises(ValueError, match="no answer"):
        purgatory.check_and_complete("a")

    assert operation.is_completed
    assert not operation.force_complete()
    purgatory.check_and_complete("a")
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert purgatory.completed_total == 1


def test_an_operation_whose_condition_fails_at_the_deadline_expires(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = Failing(face.tries + 1, deadline_ms=20)
    purgatory.try_complete_else_watch(operation, ["a"])

    face.advance(20)

    assert operation.happened == ["completed", "expired"]
    assert [str(error) for error in face.errors] == [f"try {face.tries + 1}"]
    assert (purgatory.delayed, purgatory.expired_total) == (0, 1)


def test_an_expiry_that_fails_is_counted_and_stops_no_other(
    face: Face, purgatory: AnyPurgatory
) -> None:
    first = watch(purgatory, "a", deadline_ms=20)
    second = watch(purgatory, "a", deadline_ms=21)

    def fail() -> None:
        raise ValueError("no answer")

    first.then = fail
    face.advance(30)

    assert first.happened == ["completed"]
    assert second.happened == ["completed", "expired"]
    assert [str(error) for error in face.errors] == ["no answer"]
    assert (purgatory.completed_total, purgatory.expired_total, purgatory.delayed) == (2, 2, 0)


def test_an_interrupt_passes_at_once_and_leaves_the_counters_right(
    purgatory: AnyPurgatory,
) -> None:
    first = watch(purgatory, "a")
    second = watch(purgatory, "a")
    first.is_ready = second.is_ready = True

    def interrupt() -> None:
        raise KeyboardInterrupt

    first.then = interrupt
    with pytest.raises(KeyboardInterrupt):
        purgatory.check_and_complete("a")

    assert (first.is_completed, second.is_completed) == (True, False)
    assert purgatory.delayed == 1
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched == 0


# -- operations that call in from their own code


def test_a_condition_that_cancels_its_own_key_may_still_complete(
    purgatory: AnyPurgatory,
) -> None:
    operation = watch(purgatory, "a")
    operation.is_ready = True
    operation.in_try = lambda: purgatory.cancel_for_key("a")

    completed = purgatory.check_and_complete("a")

    assert completed == 1
    assert operation.happened == ["completed"]
    assert (purgatory.delayed, purgatory.watched, purgatory.completed_total) == (0, 0, 0)


def test_a_condition_cancelled_from_its_last_try_does_not_expire(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = watch(purgatory, "a", deadline_ms=20)
    operation.in_try = lambda: purgatory.cancel_for_key("a")

    face.advance(20)

    assert operation.happened == []
    assert not operation.is_completed
    assert purgatory.delayed == 0


def test_an_operation_cancelled_while_it_is_on_its_way_from_the_timer_does_not_expire(
    face: Face, purgatory: AnyPurgatory
) -> None:
    first = watch(purgatory, "a", deadline_ms=20)
    second = watch(purgatory, "b", deadline_ms=20)
    second.is_ready = True
    first.then = lambda: purgatory.cancel_for_key("b")

    face.advance(20)

    assert first.happened == ["completed", "expired"]
    assert second.happened == []
    assert second.tries == face.tries


# -- what is kept alive


def test_a_payload_dropped_by_the_completion_is_free_while_watchers_linger(
    purgatory: AnyPurgatory,
) -> None:
    class Payload:
        """Something large."""

    class Answer(Operation):
        payload: Payload | None = None

        def on_complete(self) -> None:
            self.payload = None

    operation = Answer()
    operation.payload = Payload()
    payload = weakref.ref(operation.payload)
    purgatory.try_complete_else_watch(operation, ["a", "b"])

    operation.force_complete()

    assert payload() is None
    assert purgatory.watched == 2


def test_a_completed_operation_is_free_once_its_keys_are_checked(
    purgatory: AnyPurgatory,
) -> None:
    operation = watch(purgatory, "a", "b")
    reference = weakref.ref(operation)
    operation.force_complete()
    del operation

    purgatory.check_and_complete("a")
    purgatory.check_and_complete("b")
    gc.collect()

    assert reference() is None
    assert purgatory.watched == 0


def test_an_error_keeps_nothing_alive(face: Face, purgatory: AnyPurgatory) -> None:
    operation = Failing(face.tries + 1)
    purgatory.try_complete_else_watch(operation, ["a"])
    reference = weakref.ref(operation)

    gc.disable()
    try:
        with pytest.raises(ValueError, match="try"):
            purgatory.check_and_complete("a")
        purgatory.cancel_for_key("a")
        del operation

        assert reference() is None
    finally:
        gc.enable()


# -- shutdown


def test_a_shutdown_drops_what_waits_and_says_how_many(face: Face, purgatory: AnyPurgatory) -> None:
    operations = [watch(purgatory, "a", "b"), watch(purgatory, "b")]

    count = purgatory.shutdown()

    assert count == 2
    assert [operation.happened for operation in operations] == [[], []]
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert (purgatory.completed_total, purgatory.expired_total) == (0, 0)


def test_a_shutdown_expires_what_waits_if_told_so(face: Face, purgatory: AnyPurgatory) -> None:
    waiting = watch(purgatory, "a", "b")
    ready = watch(purgatory, "b")
    ready.is_ready = True

    count = purgatory.shutdown(expire_pending=True)

    assert count == 2
    assert waiting.happened == ["completed", "expired"]
    assert ready.happened == ["completed"]
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert (purgatory.completed_total, purgatory.expired_total) == (2, 1)


def test_what_was_dropped_can_still_be_answered(purgatory: AnyPurgatory) -> None:
    operation = watch(purgatory, "a")
    purgatory.shutdown()

    assert operation.force_complete()
    assert not operation.force_complete()
    assert operation.happened == ["completed"]
    assert purgatory.completed_total == 0


def test_after_a_shutdown_nothing_is_taken_and_nothing_found(purgatory: AnyPurgatory) -> None:
    watch(purgatory, "a")
    purgatory.shutdown()
    operation = Operation(is_ready=True)

    with pytest.raises(PurgatoryShutDown, match="purgatory test was shut down"):
        purgatory.try_complete_else_watch(operation, ["a"])

    assert operation.tries == 0
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.cancel_for_key("a") == []
    assert purgatory.shutdown() == 0
    assert operation.force_complete()


# -- what is refused


@pytest.mark.parametrize("end", ["waiting", "completed", "cancelled", "expired", "at once"])
def test_an_operation_waits_once(face: Face, purgatory: AnyPurgatory, end: str) -> None:
    operation = Operation(20, is_ready=end == "at once")
    purgatory.try_complete_else_watch(operation, ["a"])
    if end == "completed":
        operation.force_complete()
    elif end == "cancelled":
        purgatory.cancel_for_key("a")
    elif end == "expired":
        face.advance(20)
    before = (purgatory.watched, purgatory.delayed, operation.tries)

    for other in (purgatory, face.another("other")):
        with pytest.raises(ValueError, match="an operation waits once"):
            other.try_complete_else_watch(operation, ["b"])

    assert (purgatory.watched, purgatory.delayed, operation.tries) == before


def test_an_operation_completed_before_it_is_handed_in_does_not_wait(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = Operation(is_ready=True)
    operation.force_complete()

    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (operation.tries, operation.happened) == (0, ["completed"])
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)


def test_an_operation_in_a_timer_is_refused(face: Face, purgatory: AnyPurgatory) -> None:
    operation = Operation()
    other = TimingWheel(0)
    other.add(operation)

    with pytest.raises(ValueError, match="pending in a timer already"):
        purgatory.try_complete_else_watch(operation, ["a"])

    assert (purgatory.watched, purgatory.delayed, operation.tries) == (0, 0, 0)
    assert other.cancel(operation)
    assert not purgatory.try_complete_else_watch(operation, ["a"])


def test_no_keys_are_refused(purgatory: AnyPurgatory) -> None:
    operation = Operation()

    with pytest.raises(ValueError, match="no keys"):
        purgatory.try_complete_else_watch(operation, [])

    assert (purgatory.watched, purgatory.delayed, operation.tries) == (0, 0, 0)


def test_a_key_that_cannot_be_hashed_is_refused(face: Face, purgatory: AnyPurgatory) -> None:
    operation = Operation()
    keys: list[object] = ["a", ["b"]]

    with pytest.raises(
        TypeError, match=r"\['b'\] cannot be hashed; a key is a plain value"
    ) as caught:
        purgatory.try_complete_else_watch(operation, keys)

    assert isinstance(caught.value.__cause__, TypeError)
    assert purgatory.delayed == face.in_timer() == 0
    purgatory.check_and_complete("a")
    assert purgatory.watched == 0
    for function in (purgatory.check_and_complete, purgatory.cancel_for_key):
        with pytest.raises(TypeError, match="cannot be hashed"):
            function(MappingProxyType({}))


def test_a_deadline_that_the_timer_refuses_leaves_nothing_watched(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = Operation(1 << 400)

    with pytest.raises(ValueError, match="deadline"):
        purgatory.try_complete_else_watch(operation, ["a"])

    assert purgatory.delayed == face.in_timer() == 0
    purgatory.check_and_complete("a")
    assert purgatory.watched == 0


@pytest.mark.parametrize("keys", ["anna", b"anna"])
def test_a_string_is_no_list_of_keys(purgatory: AnyPurgatory, keys: str | bytes) -> None:
    with pytest.raises(TypeError, match=r"keys is a list of keys, not a string: \[b?'anna'\]"):
        purgatory.try_complete_else_watch(Operation(), keys)

    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_keys_may_be_a_tuple(purgatory: AnyPurgatory) -> None:
    operation = Operation()

    purgatory.try_complete_else_watch(operation, ("a", "b"))

    assert purgatory.watched == 2


@pytest.mark.parametrize("make", [Purgatory, ThreadedPurgatory])
def test_a_timer_of_another_kind_is_refused(make: Callable[..., object]) -> None:
    with pytest.raises(TypeError):
        make(HeapTimer(0), "test")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_tries_nothing(purgatory: AnyPurgatory, limit: int) -> None:
    operation = watch(purgatory, "a")
    operation.is_ready = True

    assert purgatory.check_and_complete("a", limit) == 0
    assert operation.happened == []


class Boasting(Operation):
    """Answers True from the try with the given number on, and completes nothing."""

    def __init__(self, first: int, deadline_ms: int = 1000) -> None:
        super().__init__(deadline_ms)
        self.first = first

    def try_complete(self) -> bool:
        self.tries += 1
        return self.tries >= self.first


@pytest.mark.parametrize(("make", "first"), TRIES)
def test_a_condition_that_says_what_is_not_so_is_told_when_handed_in(
    make: type[Face], first: int
) -> None:
    face = make()
    purgatory = face.purgatory
    operation = Boasting(first)

    with pytest.raises(RuntimeError, match=r"end it with `return self.force_complete"):
        purgatory.try_complete_else_watch(operation, ["a"])

    assert operation.tries == first
    assert purgatory.delayed == face.in_timer() == 0


def test_a_condition_that_says_what_is_not_so_is_told_by_a_check_and_expires(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = Boasting(face.tries + 1, deadline_ms=20)
    purgatory.try_complete_else_watch(operation, ["a"])

    with pytest.raises(RuntimeError, match="try_complete answered True"):
        purgatory.check_and_complete("a")
    face.advance(20)

    assert [type(error) for error in face.errors] == [RuntimeError]
    assert operation.happened == ["completed", "expired"]
    assert (purgatory.delayed, purgatory.expired_total) == (0, 1)


# -- an operation without a purgatory


def test_an_operation_alone_completes_once() -> None:
    operation = Operation()

    assert operation.force_complete()
    assert not operation.force_complete()
    assert operation.happened == ["completed"]


@pytest.mark.parametrize(
    ("is_ready", "happened"), [(True, ["completed"]), (False, ["completed", "expired"])]
)
def test_an_operation_alone_in_a_timer_expires(is_ready: bool, happened: list[str]) -> None:
    wheel = TimingWheel(0)
    operation = Operation(20, is_ready=is_ready)
    wheel.add(operation)

    for entry in wheel.advance(20):
        entry.expire()

    assert operation.happened == happened


class Unconditional(DelayedOperation):
    def on_complete(self) -> None: ...


def test_an_operation_without_a_condition_of_its_own_expires(
    face: Face, purgatory: AnyPurgatory
) -> None:
    operation = Unconditional(20)
    purgatory.try_complete_else_watch(operation, ["a"])

    face.advance(20)

    assert operation.is_completed
    assert purgatory.expired_total == 1


class Unanswered(DelayedOperation):
    def try_complete(self) -> bool:
        raise AssertionError


class Asynchronous(DelayedOperation):
    async def on_complete(self) -> None:  # type: ignore[override]
        raise AssertionError


class AsynchronousCondition(Unconditional):
    async def try_complete(self) -> bool:  # type: ignore[override]
        raise AssertionError


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (DelayedOperation, "DelayedOperation has no on_complete, so nobody .* define on_complete"),
        (Unanswered, "Unanswered has no on_complete, so nobody .* define on_complete"),
        (Asynchronous, r"Asynchronous\.on_complete is a coroutine function.* without async"),
        (AsynchronousCondition, "try_complete is a coroutine function"),
    ],
)
def test_an_operation_that_would_answer_nobody_is_refused_each_time(
    purgatory: AnyPurgatory, kind: type[DelayedOperation], sentence: str
) -> None:
    watch(purgatory, "b")
    for _ in range(2):
        operation = kind(20)
        with pytest.raises(TypeError, match=sentence):
            purgatory.try_complete_else_watch(operation, ["a"])

        assert not operation.is_pending
    assert (purgatory.delayed, purgatory.watched) == (1, 1)


def test_operations_and_purgatories_say_what_they_are(face: Face, purgatory: AnyPurgatory) -> None:
    operation = Unconditional(20)
    before = repr(operation)
    purgatory.try_complete_else_watch(operation, ["a"])
    meanwhile = (repr(operation), repr(purgatory))
    operation.force_complete()
    after = repr(operation)
    purgatory.shutdown()

    kind, name = type(purgatory).__name__, purgatory.name
    assert before == "<Unconditional due at 20 ms, not waiting>"
    assert meanwhile == (
        "<Unconditional due at 20 ms, waiting>",
        f"<{kind} {name!r}, 1 waiting>",
    )
    assert after == "<Unconditional due at 20 ms, completed>"
    assert repr(purgatory) == f"<{kind} {name!r}, shut down>"

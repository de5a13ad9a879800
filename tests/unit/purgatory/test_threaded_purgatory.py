"""Races of the threaded purgatory, each forced: what races runs in the midst of the other.

`elsewhere` runs a function in another thread and waits for it.  Called from an operation's own
code it puts that function between two chosen steps; were a lock held there, or did anybody wait
for anybody, it would never return.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.purgatory_faces import Operation, ThreadedFace, watch

from tarry.purgatory import PurgatoryShutDown, ThreadedPurgatory
from tarry.timer import SystemTimer, TimerShutDown

Answer = TypeVar("Answer")


def elsewhere(function: Callable[[], Answer]) -> Answer:
    """What the function answers or raises in another thread, which must end."""
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "a lock is held while the code of an operation runs"
    if errors:
        raise errors.pop()
    return answers[0]


class Racing(Operation):
    """Writes down in which thread what happened, and that nothing of it overlaps."""

    def __init__(self, deadline_ms: int = 1000) -> None:
        super().__init__(deadline_ms)
        self.threads: list[int] = []
        self.running = 0
        self.overlapped = False

    def try_complete(self) -> bool:
        self.enter()
        try:
            return super().try_complete()
        finally:
            self.running = 0

    def on_complete(self) -> None:
        self.enter()
        super().on_complete()

    def on_expiration(self) -> None:
        self.enter()
        super().on_expiration()

    def enter(self) -> None:
        ident = threading.get_ident()
        self.overlapped |= self.running not in (0, ident)
        self.running = ident
        self.threads.append(ident)


def racing(purgatory: ThreadedPurgatory, *keys: str, deadline_ms: int = 1000) -> Racing:
    operation = Racing(deadline_ms)
    assert not purgatory.try_complete_else_watch(operation, list(keys))
    operation.tries = 0
    operation.threads.clear()
    return operation


def once(function: Callable[[], object]) -> Callable[[], None]:
    """The function, but only at the first call."""
    calls: list[Callable[[], object]] = [function]

    def call() -> None:
        if calls:
            calls.pop()()

    return call


@pytest.fixture
def purgatory(threaded: ThreadedFace) -> ThreadedPurgatory:
    return threaded.purgatory


# -- while one thread tries


def test_a_check_during_a_try_makes_who_tries_try_once_more(purgatory: ThreadedPurgatory) -> None:
    operation = racing(purgatory, "a", "b")
    checked: list[int] = []

    def turn_ready_and_check() -> None:
        # The try has read its state already and is about to answer that it does not hold.
        operation.is_ready = True
        checked.append(elsewhere(lambda: purgatory.check_and_complete("b")))

    operation.in_try = once(turn_ready_and_check)
    completed = purgatory.check_and_complete("a")

    assert (checked, completed) == ([0], 1)
    assert operation.tries == 2
    assert operation.happened == ["completed"]
    assert not operation.overlapped


def test_checks_during_a_try_are_answered_by_one_more_try(purgatory: ThreadedPurgatory) -> None:
    operation = racing(purgatory, "a")

    def check_often() -> None:
        for _ in range(5):
            elsewhere(lambda: purgatory.check_and_complete("a"))

    operation.in_try = once(check_often)
    completed = purgatory.check_and_complete("a")

    assert completed == 0
    assert operation.tries == 2
    assert purgatory.delayed == 1


@pytest.mark.parametrize("at_try", [1, 2])
def test_a_check_while_an_operation_is_handed_in_is_not_lost(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory, at_try: int
) -> None:
    operation = Racing()

    def turn_ready_and_check() -> None:
        if operation.tries == at_try:
            operation.is_ready = True
            elsewhere(lambda: purgatory.check_and_complete("a"))

    operation.in_try = turn_ready_and_check

    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.happened == ["completed"]
    assert (purgatory.delayed, threaded.in_timer()) == (0, 0)
    assert not operation.overlapped


@pytest.mark.parametrize(
    ("is_ready", "happened"), [(False, ["completed", "expired"]), (True, ["completed"])]
)
def test_a_deadline_during_a_try_is_left_to_who_tries(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory, is_ready: bool, happened: list[str]
) -> None:
    operation = racing(purgatory, "a", deadline_ms=20)

    def let_it_be_due() -> None:
        elsewhere(lambda: threaded.advance(20))
        operation.happened.append("tried")
        operation.is_ready = is_ready

    operation.in_try = once(let_it_be_due)
    purgatory.check_and_complete("a")

    assert operation.happened == ["tried", *happened]
    assert operation.tries == 2
    assert set(operation.threads) == {threading.get_ident()}
    assert purgatory.expired_total == (not is_ready)
    assert (purgatory.delayed, purgatory.completed_total) == (0, 1)


def test_a_force_complete_during_a_try_answers_when_the_try_is_over(
    purgatory: ThreadedPurgatory,
) -> None:
    operation = racing(purgatory, "a")
    forced: list[bool] = []
    inside: list[tuple[bool, list[str]]] = []

    def force() -> None:
        forced.append(elsewhere(operation.force_complete))
        forced.append(elsewhere(operation.force_complete))
        inside.append((operation.is_completed, list(operation.happened)))

    operation.is_ready = True
    operation.in_try = once(force)
    completed = purgatory.check_and_complete("a")

    assert forced == [True, False]
    assert inside == [(True, [])]
    assert completed == 0  # not by this check
    assert operation.happened == ["completed"]
    assert set(operation.threads) == {threading.get_ident()}
    assert (purgatory.delayed, purgatory.completed_total, purgatory.watched) == (0, 1, 1)


@pytest.mark.parametrize("at_try", [1, 2])
def test_a_force_complete_while_an_operation_is_handed_in_completes_it_once(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory, at_try: int
) -> None:
    operation = Racing()
    operation.in_try = lambda: operation.tries == at_try and elsewhere(operation.force_complete)

    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.happened == ["completed"]
    assert not operation.overlapped
    assert (purgatory.delayed, threaded.in_timer()) == (0, 0)
    assert purgatory.completed_total == at_try - 1  # at the first try it does not wait yet


def test_an_operation_that_ends_on_its_way_into_the_timer_does_not_stay_there(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = Racing()
    threaded.on_clock = once(lambda: elsewhere(operation.force_complete))

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert completed
    assert operation.happened == ["completed"]
    assert (purgatory.delayed, threaded.in_timer()) == (0, 0)


def test_an_operation_cancelled_on_its_way_into_the_timer_does_not_stay_there(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = Racing()
    threaded.on_clock = once(lambda: elsewhere(lambda: purgatory.cancel_for_key("a")))

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert not completed
    assert (purgatory.delayed, purgatory.watched, threaded.in_timer()) == (0, 0, 0)
    assert operation.force_complete()


def test_an_operation_cancelled_during_a_try_is_not_completed_by_it(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", "b")
    operation.is_ready = True
    cancelled: list[object] = []
    operation.in_try = once(
        lambda: cancelled.extend(elsewhere(lambda: purgatory.cancel_for_key("b")))
    )

    completed = purgatory.check_and_complete("a")

    assert cancelled == [operation]
    assert completed == 0
    assert operation.happened == []
    assert (purgatory.delayed, threaded.in_timer(), purgatory.completed_total) == (0, 0, 0)
    assert operation.force_complete()
    assert not operation.force_complete()


def test_who_cancels_during_a_try_may_complete(purgatory: ThreadedPurgatory) -> None:
    operation = racing(purgatory, "a")
    operation.is_ready = True
    forced: list[bool] = []

    def cancel_and_answer() -> None:
        for each in purgatory.cancel_for_key("a"):
            forced.append(each.force_complete())

    operation.in_try = once(lambda: elsewhere(cancel_and_answer))
    completed = purgatory.check_and_complete("a")

    assert (forced, completed) == ([True], 0)
    assert operation.happened == ["completed"]
    assert set(operation.threads) == {threading.get_ident()}


def test_an_operation_cancelled_by_another_thread_during_a_try_is_not_completed_by_it(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a")
    operation.is_ready = True
    operation.in_try = once(lambda: elsewhere(lambda: purgatory.cancel(operation)))

    assert purgatory.check_and_complete("a") == 0

    assert operation.happened == []
    assert (purgatory.watched, purgatory.delayed, threaded.in_timer()) == (0, 0, 0)


def test_a_deadline_after_a_cancel_during_a_try_does_nothing(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", deadline_ms=20)

    def be_due_and_cancelled() -> None:
        elsewhere(lambda: threaded.advance(20))
        elsewhere(lambda: purgatory.cancel_for_key("a"))

    operation.in_try = once(be_due_and_cancelled)
    purgatory.check_and_complete("a")

    assert operation.happened == []
    assert operation.tries == 1
    assert (purgatory.delayed, purgatory.expired_total) == (0, 0)


@pytest.mark.parametrize("expire_pending", [False, True])
def test_a_shutdown_during_a_try_ends_the_operation_too(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory, expire_pending: bool
) -> None:
    tried = racing(purgatory, "a", "b")
    waiting = racing(purgatory, "b")
    counts: list[int] = []
    tried.in_try = once(
        lambda: counts.append(elsewhere(lambda: purgatory.shutdown(expire_pending)))
    )

    purgatory.check_and_complete("a")

    happened = ["completed", "expired"] if expire_pending else []
    assert counts == [2]
    assert tried.happened == waiting.happened == happened
    assert tried.threads[0] == threading.get_ident()
    assert not tried.overlapped
    assert (purgatory.watched, purgatory.delayed, threaded.in_timer()) == (0, 0, 0)
    assert purgatory.expired_total == len(happened)


def test_an_operation_handed_in_while_the_purgatory_shuts_down_is_refused(
    purgatory: ThreadedPurgatory,
) -> None:
    operation = Racing()
    operation.in_try = once(lambda: elsewhere(purgatory.shutdown))

    with pytest.raises(PurgatoryShutDown):
        purgatory.try_complete_else_watch(operation, ["a"])

    assert (purgatory.watched, purgatory.delayed) == (0, 0)
    assert operation.force_complete()


def test_an_operation_handed_in_twice_at_the_same_time_is_refused_once(
    purgatory: ThreadedPurgatory,
) -> None:
    operation = Racing()
    errors: list[str] = []

    def hand_in_again() -> None:
        try:
            elsewhere(lambda: purgatory.try_complete_else_watch(operation, ["b"]))
        except ValueError as error:
            errors.append(str(error))

    operation.in_try = once(hand_in_again)

    assert not purgatory.try_complete_else_watch(operation, ["a"])
    assert len(errors) == 1
    assert (purgatory.watched, purgatory.delayed) == (1, 1)


def test_a_try_that_checked_its_own_key_is_still_under_way(
    purgatory: ThreadedPurgatory,
) -> None:
    operation = racing(purgatory, "a")
    checked: list[int] = []

    def check_here_and_there() -> None:
        purgatory.check_and_complete("a")
        checked.append(elsewhere(lambda: purgatory.check_and_complete("a")))

    operation.in_try = once(check_here_and_there)
    purgatory.check_and_complete("a")

    assert checked == [0]
    assert set(operation.threads) == {threading.get_ident()}
    assert operation.tries == 3  # its own, one for its own check, one for the other thread's


def test_a_deadline_and_a_check_during_a_try_are_one_last_try(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", deadline_ms=20)

    def be_checked_and_due() -> None:
        elsewhere(lambda: purgatory.check_and_complete("a"))
        elsewhere(lambda: threaded.advance(20))

    operation.in_try = once(be_checked_and_due)
    purgatory.check_and_complete("a")

    assert operation.tries == 2
    assert operation.happened == ["completed", "expired"]
    assert not operation.overlapped


# -- who is left word again and again


class Later(Executor):
    """Runs what it was given when the test says so."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks.append(lambda: fn(*args, **kwargs))
        return Future()

    def run(self) -> None:
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            task()


class Besieged:
    """An operation that is checked elsewhere during each of its tries."""

    def __init__(self) -> None:
        self.executor = Later()
        self.timer = SystemTimer("test", clock=lambda: 0, reaper=False, executor=self.executor)
        self.purgatory = ThreadedPurgatory(self.timer, "test")
        self.operation = racing(self.purgatory, "a")
        self.operation.in_try = self.check_elsewhere

    def check_elsewhere(self) -> None:
        if self.operation.tries < 20:  # lest it be for ever
            elsewhere(lambda: self.purgatory.check_and_complete("a"))


def test_who_tries_is_not_held_by_those_who_check() -> None:
    scene = Besieged()

    completed = scene.purgatory.check_and_complete("a")

    assert completed == 0
    assert scene.operation.tries == 3
    assert len(scene.executor.tasks) == 1


def test_the_try_that_was_left_is_done_by_the_executor_of_the_timer() -> None:
    scene = Besieged()
    scene.purgatory.check_and_complete("a")
    scene.operation.in_try = list
    scene.operation.is_ready = True

    elsewhere(scene.executor.run)

    assert scene.operation.happened == ["completed"]
    assert scene.purgatory.delayed == 0


def test_the_executor_is_not_held_either_and_is_asked_once_at_a_time() -> None:
    scene = Besieged()
    scene.purgatory.check_and_complete("a")

    scene.purgatory.check_and_complete("a")
    waiting = len(scene.executor.tasks)
    scene.executor.run()

    assert waiting == 1
    assert scene.operation.tries == 9
    assert len(scene.executor.tasks) == 1


def test_who_checks_next_takes_the_turn_that_was_given_up() -> None:
    scene = Besieged()
    scene.purgatory.check_and_complete("a")
    scene.operation.in_try = list

    scene.purgatory.check_and_complete("a")
    tries = scene.operation.tries
    scene.executor.run()

    assert tries == 4
    assert scene.operation.tries == 4  # nothing was left
    assert scene.executor.tasks == []


def test_who_tries_goes_on_when_the_timer_was_shut_down() -> None:
    scene = Besieged()
    scene.timer.shutdown()

    scene.purgatory.check_and_complete("a")

    assert scene.operation.tries == 20
    assert scene.purgatory.delayed == 1


def test_what_ended_before_the_executor_came_to_it_is_not_tried() -> None:
    scene = Besieged()
    scene.purgatory.check_and_complete("a")
    scene.operation.force_complete()

    scene.executor.run()

    assert scene.operation.tries == 3
    assert scene.operation.happened == ["completed"]


# -- while an expiry or a completion runs


def test_whoever_comes_during_the_last_try_leaves_it_to_the_expiry(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", deadline_ms=20)
    checked: list[int] = []
    operation.in_try = once(
        lambda: checked.append(elsewhere(lambda: purgatory.check_and_complete("a")))
    )

    elsewhere(lambda: threaded.advance(20))

    assert checked == [0]
    assert operation.happened == ["completed", "expired"]
    assert not operation.overlapped
    assert purgatory.expired_total == 1


def test_a_force_complete_during_the_last_try_forestalls_the_expiry(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", deadline_ms=20)
    operation.in_try = once(lambda: elsewhere(operation.force_complete))

    threaded.advance(20)

    assert operation.happened == ["completed"]
    assert (purgatory.completed_total, purgatory.expired_total) == (1, 0)
    assert not operation.overlapped


def test_nothing_begins_during_a_completion(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", "b", deadline_ms=20)
    found: list[object] = []

    def come_too_late() -> None:
        found.append(elsewhere(operation.force_complete))
        found.append(elsewhere(lambda: purgatory.check_and_complete("a")))
        found.append(elsewhere(lambda: purgatory.cancel_for_key("b")))
        elsewhere(lambda: threaded.advance(20))
        elsewhere(operation.expire)

    operation.is_ready = True
    operation.then = come_too_late
    completed = purgatory.check_and_complete("a")

    assert completed == 1
    assert found == [False, 0, []]
    assert operation.happened == ["completed"]
    assert operation.tries == 1


def test_the_code_of_an_operation_may_use_the_purgatory_from_any_thread(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    calls: list[int] = []

    def use() -> None:
        other = watch(purgatory, "use", deadline_ms=500)
        other.is_ready = True
        assert purgatory.check_and_complete("use") == 1
        watch(purgatory, "use", deadline_ms=500)
        (cancelled,) = purgatory.cancel_for_key("use")
        cancelled.force_complete()
        threaded.timer.call_later(1000, list).expire()
        calls.append(threading.get_ident())

    def use_everywhere() -> None:
        use()
        elsewhere(use)

    operation = Operation(20)
    operation.in_try = operation.then = operation.at_last = use_everywhere
    purgatory.try_complete_else_watch(operation, ["a"])  # two tries
    purgatory.check_and_complete("a")
    threaded.advance(20)  # a try, the completion, the expiry

    at_once = Operation(is_ready=True)
    at_once.then = use_everywhere
    purgatory.try_complete_else_watch(at_once, ["a"])

    assert operation.happened == ["completed", "expired"]
    assert threaded.errors == []
    assert len(calls) == 2 * 7
    assert purgatory.delayed == 0


# -- errors


def test_an_error_does_not_lose_the_check_of_another(purgatory: ThreadedPurgatory) -> None:
    operation = racing(purgatory, "a")

    def check_and_fail() -> None:
        operation.is_ready = True
        elsewhere(lambda: purgatory.check_and_complete("a"))
        raise ValueError("first try")

    operation.in_try = once(check_and_fail)
    with pytest.raises(ValueError, match="first try"):
        purgatory.check_and_complete("a")

    assert operation.happened == ["completed"]
    assert operation.tries == 2
    assert (purgatory.delayed, purgatory.watched) == (0, 0)


def test_an_error_does_not_lose_the_deadline(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = racing(purgatory, "a", deadline_ms=20)

    def be_due_and_fail() -> None:
        if operation.tries == 1:
            elsewhere(lambda: threaded.advance(20))
        raise ValueError(f"try {operation.tries}")

    operation.in_try = be_due_and_fail
    with pytest.raises(ExceptionGroup) as caught:
        purgatory.check_and_complete("a")

    assert [str(error) for error in caught.value.exceptions] == ["try 1", "try 2"]
    assert operation.happened == ["completed", "expired"]
    assert threaded.errors == []
    assert purgatory.delayed == 0


def test_an_error_of_a_completion_reaches_who_ran_it(purgatory: ThreadedPurgatory) -> None:
    operation = racing(purgatory, "a")
    forced: list[bool] = []

    def fail() -> None:
        raise ValueError("no answer")

    operation.then = fail
    operation.in_try = once(lambda: forced.append(elsewhere(operation.force_complete)))
    with pytest.raises(ValueError, match="no answer"):
        purgatory.check_and_complete("a")

    assert forced == [True]
    assert (purgatory.delayed, purgatory.completed_total) == (0, 1)


def test_a_timer_that_was_shut_down_leaves_nothing_watched(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    threaded.timer.shutdown()

    with pytest.raises(TimerShutDown):
        purgatory.try_complete_else_watch(Operation(), ["a"])

    assert purgatory.delayed == 0
    purgatory.check_and_complete("a")
    assert purgatory.watched == 0


def test_a_key_that_cannot_be_compared_leaves_nothing_behind(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    class Key:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            raise ValueError("not comparable")

    watch(purgatory, "a")
    purgatory.try_complete_else_watch(Operation(), [1])
    operation = Operation()

    with pytest.raises(ValueError, match="not comparable"):
        purgatory.try_complete_else_watch(operation, ["a", Key()])

    assert purgatory.delayed == threaded.in_timer() == 2
    purgatory.check_and_complete("a")
    assert purgatory.watched == 2
    assert elsewhere(operation.force_complete)
    assert operation.happened == ["completed"]


# -- what is kept alive


@pytest.mark.parametrize("end", ["completed", "expired", "cancelled"])
def test_an_operation_that_has_ended_is_free_at_once(
    threaded: ThreadedFace, purgatory: ThreadedPurgatory, end: str
) -> None:
    operation = watch(purgatory, "a", "b", deadline_ms=20)
    reference = weakref.ref(operation)

    if end == "completed":
        operation.force_complete()
    elif end == "expired":
        threaded.advance(20)
    else:
        purgatory.cancel_for_key("a")
    del operation

    assert reference() is None
    assert purgatory.watched == 2 - (end == "cancelled")


def test_a_finalizer_in_the_middle_of_a_call_is_refused_and_waits_for_nobody(
    purgatory: ThreadedPurgatory,
) -> None:
    waiting = watch(purgatory, "a")
    refusals: list[str] = []

    class Finalized:
        """Garbage that only a collection finds, and that has something to say."""

        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            for function in (
                lambda: purgatory.try_complete_else_watch(Operation(), ["a"]),
                lambda: purgatory.check_and_complete("a"),
                lambda: purgatory.cancel_for_key("a"),
                purgatory.shutdown,
                waiting.force_complete,
                waiting.expire,
            ):
                try:
                    function()
                except RuntimeError as error:
                    refusals.append(str(error))

    Finalized()
    with purgatory._lock:
        gc.collect()

    assert len(refusals) == 6
    assert "a finalizer called purgatory 'test'" in refusals[0]
    assert purgatory.delayed == 1
    Finalized()
    gc.collect()
    assert len(refusals) == 6
    assert waiting.happened == ["completed"]
    assert purgatory.delayed == 0


# -- threads that race by chance


def test_an_operation_is_completed_whoever_of_many_threads_makes_it_ready() -> None:
    # After Kafka's testTryCompleteWithMultipleThreads, KAFKA-6653.
    class Last(Racing):
        """Holds at the last of its attempts."""

        attempts = 0

        def try_complete(self) -> bool:
            self.is_ready = self.attempts >= 20
            return super().try_complete()

    with SystemTimer("test") as timer:
        purgatory = ThreadedPurgatory(timer, "test")
        operations = [Last(timer.now_ms() + 3_600_000) for _ in range(100)]
        for number, operation in enumerate(operations):
            purgatory.try_complete_else_watch(operation, [number])
        counting = threading.Lock()
        together = threading.Barrier(20)

        def attempt() -> None:
            together.wait()
            for number, operation in enumerate(operations):
                with counting:
                    operation.attempts += 1
                purgatory.check_and_complete(number)

        run_in_threads(attempt, 20)

        assert [operation.happened for operation in operations] == [["completed"]] * 100
        assert not any(operation.overlapped for operation in operations)
        assert (purgatory.delayed, purgatory.watched, len(timer)) == (0, 0, 0)


@pytest.mark.parametrize("ways", [("force",), ("force", "check", "cancel", "expire")])
def test_many_threads_end_an_operation_once(ways: tuple[str, ...]) -> None:
    face = ThreadedFace()
    purgatory = face.purgatory
    for _ in range(100):
        operation = racing(purgatory, "a", deadline_ms=face.now_ms + 1)
        operation.is_ready = True
        ends: list[str] = []
        together = threading.Barrier(8)
        turns = iter([way for _ in range(8) for way in ways][:8])

        def end(way: str, operation: Racing = operation, ends: list[str] = ends) -> None:
            if way == "force":
                ends.extend(["forced"] * operation.force_complete())
            elif way == "check":
                purgatory.check_and_complete("a")
            elif way == "cancel":
                ends.extend("cancelled" for _ in purgatory.cancel_for_key("a"))
            else:
                operation.expire()

        def race(together: threading.Barrier = together, turns: object = turns) -> None:
            way = next(turns)  # type: ignore[call-overload]
            together.wait()
            end(way)

        run_in_threads(race, 8)

        cancelled = ends.count("cancelled")
        assert operation.happened.count("completed") == operation.is_completed
        assert operation.is_completed or cancelled == 1
        assert cancelled <= 1
        assert ends.count("forced") <= 1
        assert operation.happened.count("expired") <= (not cancelled)
        assert not operation.overlapped
        assert (purgatory.delayed, face.in_timer()) == (0, 0)
        face.now_ms += 1


def run_in_threads(function: Callable[[], object], count: int) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "threads wait for each other"
    if errors:
        raise errors.pop()

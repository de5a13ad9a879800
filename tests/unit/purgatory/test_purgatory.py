"""Delayed operations and their purgatory: what completes, what expires, what lingers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tarry.purgatory import DelayedOperation, Purgatory
from tarry.timer import TimingWheel


class Operation(DelayedOperation):
    """Completes once `is_ready`; writes down what happened to it."""

    def __init__(self, deadline_ms: int = 1000, *, is_ready: bool = False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = is_ready
        self.tries = 0
        self.happened: list[str] = []
        self.then: Callable[[], object] = list

    def try_complete(self) -> bool:
        self.tries += 1
        return self.is_ready and self.force_complete()

    def on_complete(self) -> None:
        self.happened.append("completed")
        self.then()

    def on_expiration(self) -> None:
        self.happened.append("expired")


@pytest.fixture
def timer() -> TimingWheel:
    return TimingWheel(0)


@pytest.fixture
def purgatory(timer: TimingWheel) -> Purgatory:
    return Purgatory(timer, "test")


def advance(timer: TimingWheel, now_ms: int) -> None:
    for entry in timer.advance(now_ms):
        entry.expire()


def watch(purgatory: Purgatory, *keys: str, deadline_ms: int = 1000) -> Operation:
    operation = Operation(deadline_ms)
    assert not purgatory.try_complete_else_watch(operation, list(keys))
    return operation


def test_an_operation_whose_condition_holds_never_waits(purgatory: Purgatory) -> None:
    operation = Operation(is_ready=True)

    completed = purgatory.try_complete_else_watch(operation, ["a", "b"])

    assert completed
    assert operation.happened == ["completed"]
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_the_condition_is_tried_again_after_the_watch(purgatory: Purgatory) -> None:
    operation = Operation()

    purgatory.try_complete_else_watch(operation, ["a"])

    assert operation.tries == 2


def test_a_condition_that_turns_true_between_the_two_tries_completes(
    purgatory: Purgatory,
) -> None:
    class Second(Operation):
        def try_complete(self) -> bool:
            self.tries += 1
            return self.tries == 2 and self.force_complete()

    operation = Second()

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert completed
    assert purgatory.delayed == 0
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.watched == 0


def test_each_key_completes_what_waits_under_it_once(purgatory: Purgatory) -> None:
    first = watch(purgatory, "a")
    second = watch(purgatory, "b")
    assert purgatory.check_and_complete("a") == 0

    first.is_ready = second.is_ready = True

    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("b") == 0
    assert first.happened == second.happened == ["completed"]


def test_a_key_that_nobody_watches_completes_nothing(purgatory: Purgatory) -> None:
    assert purgatory.check_and_complete("unknown") == 0


def test_an_operation_expires_at_its_deadline_and_not_before(
    timer: TimingWheel, purgatory: Purgatory
) -> None:
    short = watch(purgatory, "a", deadline_ms=20)
    long = watch(purgatory, "a", deadline_ms=200_000)

    advance(timer, 19)
    before = list(short.happened)
    advance(timer, 20)

    assert before == []
    assert short.happened == ["completed", "expired"]
    assert long.happened == []
    assert purgatory.expired_total == 1
    assert purgatory.delayed == 1


def test_expiry_tries_the_condition_once_more(timer: TimingWheel, purgatory: Purgatory) -> None:
    operation = watch(purgatory, "a", deadline_ms=20)
    operation.is_ready = True

    advance(timer, 20)

    assert operation.happened == ["completed"]
    assert purgatory.expired_total == 0
    assert purgatory.completed_total == 1


def test_an_operation_past_its_deadline_expires_at_once(purgatory: Purgatory) -> None:
    operation = Operation(0)

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert completed
    assert operation.happened == ["completed", "expired"]
    assert purgatory.delayed == 0


def test_only_the_first_completion_counts(timer: TimingWheel, purgatory: Purgatory) -> None:
    operation = watch(purgatory, "a", deadline_ms=20)

    assert operation.force_complete()
    assert not operation.force_complete()
    advance(timer, 50)
    operation.expire()

    assert operation.happened == ["completed"]
    assert purgatory.completed_total == 1


def test_completion_leaves_the_timer_at_once_and_other_keys_when_checked(
    timer: TimingWheel, purgatory: Purgatory
) -> None:
    watch(purgatory, "a")
    second = watch(purgatory, "a", "b")
    third = watch(purgatory, "a", "b", "c")
    assert (purgatory.delayed, purgatory.watched) == (3, 6)

    second.force_complete()
    assert purgatory.delayed == len(timer) == 2
    third.force_complete()
    assert purgatory.delayed == len(timer) == 1

    watched = []
    for key in "abc":
        purgatory.check_and_complete(key)
        watched.append(purgatory.watched)
    assert watched == [4, 2, 1]


def test_completed_watchers_are_purged_once_enough_have_gathered(timer: TimingWheel) -> None:
    purgatory = Purgatory(timer, "test", purge_interval=10)
    operations = [watch(purgatory, f"own {number}") for number in range(11)]

    for operation in operations[:10]:
        operation.force_complete()
    before = purgatory.watched
    operations[10].force_complete()

    assert before == 11
    assert purgatory.watched == 0
    assert purgatory._watchers == {}


def test_a_purge_waits_until_as_many_are_finished_as_are_pending(timer: TimingWheel) -> None:
    purgatory = Purgatory(timer, "test", purge_interval=2)
    operations = [watch(purgatory, "a") for _ in range(10)]

    for operation in operations[:5]:
        operation.force_complete()
    before = purgatory.watched
    operations[5].force_complete()

    assert before == 10
    assert purgatory.watched == 4


def test_a_key_named_twice_is_watched_once(purgatory: Purgatory) -> None:
    watch(purgatory, "a", "a")

    assert purgatory.watched == 1


def test_a_limit_counts_completions_and_leaves_the_rest_watched(purgatory: Purgatory) -> None:
    operations = [watch(purgatory, "a") for _ in range(5)]
    for operation in operations[1:]:
        operation.is_ready = True

    counts = [purgatory.check_and_complete("a", 3) for _ in range(2)]

    assert counts == [3, 1]
    assert [operation.is_completed for operation in operations] == [False, *[True] * 4]
    assert purgatory.watched == 1


def test_cancelling_a_key_returns_what_waited_and_completes_nothing(
    timer: TimingWheel, purgatory: Purgatory
) -> None:
    first = watch(purgatory, "a")
    second = watch(purgatory, "a", "b")
    watch(purgatory, "b")

    cancelled = purgatory.cancel_for_key("a")

    assert cancelled == [first, second]
    assert first.happened == second.happened == []
    assert purgatory.delayed == len(timer) == 1
    second.is_ready = True
    assert purgatory.check_and_complete("b") == 0
    assert purgatory.watched == 1


def test_a_cancelled_operation_can_still_be_answered_by_who_cancelled_it(
    purgatory: Purgatory,
) -> None:
    watch(purgatory, "a")

    (cancelled,) = purgatory.cancel_for_key("a")

    assert cancelled.force_complete()
    assert purgatory.delayed == 0


def test_cancelling_an_unknown_key_returns_nothing(purgatory: Purgatory) -> None:
    assert purgatory.cancel_for_key("unknown") == []


def test_cancelling_leaves_out_what_is_completed_already(purgatory: Purgatory) -> None:
    operation = watch(purgatory, "a", "b")
    operation.force_complete()

    assert purgatory.cancel_for_key("b") == []


def test_a_check_from_inside_a_completion_misses_nobody(purgatory: Purgatory) -> None:
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


def test_an_operation_added_from_inside_a_completion_is_kept(purgatory: Purgatory) -> None:
    first = watch(purgatory, "a")
    late: list[Operation] = []
    first.is_ready = True
    first.then = lambda: late.append(watch(purgatory, "a"))

    completed = purgatory.check_and_complete("a")

    assert completed == 1
    late[0].is_ready = True
    assert purgatory.check_and_complete("a") == 1


def test_a_condition_that_fails_loses_no_other_watcher(purgatory: Purgatory) -> None:
    class Broken(Operation):
        def try_complete(self) -> bool:
            self.tries += 1
            if self.tries > 2:
                raise ValueError("broken")
            return False

    before = watch(purgatory, "a")
    purgatory.try_complete_else_watch(Broken(), ["a"])
    after = watch(purgatory, "a")
    before.is_ready = after.is_ready = True

    with pytest.raises(ValueError, match="broken"):
        purgatory.check_and_complete("a")

    assert before.is_completed
    assert purgatory.watched == 2
    assert not after.is_completed


def test_completion_may_come_from_the_outside_while_the_key_is_walked(
    purgatory: Purgatory,
) -> None:
    operations = [watch(purgatory, "a") for _ in range(3)]
    operations[0].is_ready = True
    operations[0].then = operations[1].force_complete
    operations[1].is_ready = True

    completed = purgatory.check_and_complete("a")

    assert completed == 1
    assert operations[1].happened == ["completed"]
    assert purgatory.watched == 1


def test_waiting_twice_is_our_mistake(purgatory: Purgatory) -> None:
    operation = watch(purgatory, "a")

    with pytest.raises(AssertionError):
        purgatory.try_complete_else_watch(operation, ["b"])


def test_two_purgatories_share_a_timer_and_count_on_their_own(timer: TimingWheel) -> None:
    produce, fetch = Purgatory(timer, "produce"), Purgatory(timer, "fetch")
    watch(produce, "a", deadline_ms=10)
    watch(fetch, "a", deadline_ms=30)

    advance(timer, 10)

    assert (produce.expired_total, produce.delayed) == (1, 0)
    assert (fetch.expired_total, fetch.delayed) == (0, 1)

"""Tries of the threaded purgatory: a second one after the watch, repeats, and groups of errors."""

from __future__ import annotations

import pytest
from tests.support.purgatory_faces import Failing, Operation, ThreadedFace, watch

from tarry.purgatory import PurgatoryShutDown, ThreadedPurgatory


@pytest.fixture
def face(threaded: ThreadedFace) -> ThreadedFace:
    return threaded


@pytest.fixture
def purgatory(face: ThreadedFace) -> ThreadedPurgatory:
    return face.purgatory


def test_the_condition_is_tried_again_after_the_watch(purgatory: ThreadedPurgatory) -> None:
    operation = Operation()

    purgatory.try_complete_else_watch(operation, ["a"])

    assert operation.tries == 2


def test_a_condition_that_turns_true_between_the_two_tries_completes(
    purgatory: ThreadedPurgatory,
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


def test_a_condition_that_fails_keeps_no_other_from_completing(
    purgatory: ThreadedPurgatory,
) -> None:
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
    assert after.is_completed
    assert purgatory.watched == 1


def test_several_errors_of_one_check_come_as_a_group(purgatory: ThreadedPurgatory) -> None:
    for _ in range(2):
        purgatory.try_complete_else_watch(Failing(3), ["a"])

    with pytest.raises(ExceptionGroup) as caught:
        purgatory.check_and_complete("a")

    assert [str(error) for error in caught.value.exceptions] == ["try 3", "try 3"]
    assert purgatory.delayed == 2


def test_a_condition_may_check_its_own_key(purgatory: ThreadedPurgatory) -> None:
    operation = watch(purgatory, "a")

    def turn_ready_and_check() -> None:
        operation.in_try = list
        operation.is_ready = True
        inner.append(purgatory.check_and_complete("a"))

    inner: list[int] = []
    operation.in_try = turn_ready_and_check
    completed = purgatory.check_and_complete("a")

    assert (inner, completed) == ([0], 1)
    assert operation.tries == 4  # two when handed in, one that checks, one for that check
    assert operation.happened == ["completed"]
    assert (purgatory.delayed, purgatory.completed_total) == (0, 1)


def test_a_completion_of_the_second_try_leaves_nothing_in_the_timer(
    face: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = Operation()
    operation.in_try = lambda: setattr(operation, "is_ready", True)

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert completed
    assert (purgatory.delayed, face.in_timer(), purgatory.completed_total) == (0, 0, 1)


def test_errors_of_a_shutdown_come_after_everything_has_ended(
    face: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    def fail() -> None:
        raise ValueError("no answer")

    operations = [watch(purgatory, "a") for _ in range(3)]
    operations[0].then = operations[1].then = fail

    with pytest.raises(ExceptionGroup) as caught:
        purgatory.shutdown(expire_pending=True)

    assert len(caught.value.exceptions) == 2
    assert all(operation.is_completed for operation in operations)
    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)


@pytest.mark.parametrize("at_try", [1, 2])
def test_a_shutdown_from_inside_a_try_leaves_nothing_behind(
    face: ThreadedFace, purgatory: ThreadedPurgatory, at_try: int
) -> None:
    operation = Operation()
    operation.in_try = lambda: purgatory.shutdown() if operation.tries == at_try else None

    if at_try == 1:
        with pytest.raises(PurgatoryShutDown):
            purgatory.try_complete_else_watch(operation, ["a"])
    else:
        assert not purgatory.try_complete_else_watch(operation, ["a"])

    assert (purgatory.watched, purgatory.delayed, face.in_timer()) == (0, 0, 0)
    assert operation.happened == []


def test_a_condition_that_always_checks_its_own_key_ends(
    face: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = Operation()
    operation.in_try = lambda: purgatory.check_and_complete("a")

    completed = purgatory.try_complete_else_watch(operation, ["a"])

    assert not completed
    assert operation.tries == 1 + 3  # the first cannot be found; the second is repeated twice
    assert purgatory.delayed == face.in_timer() == 1


def test_a_condition_that_turned_true_before_it_failed_is_tried_again(
    purgatory: ThreadedPurgatory,
) -> None:
    operation = watch(purgatory, "a")

    def turn_ready_check_and_fail() -> None:
        operation.in_try = list
        operation.is_ready = True
        purgatory.check_and_complete("a")
        raise ValueError("after the check")

    operation.in_try = turn_ready_check_and_fail
    with pytest.raises(ValueError, match="after the check"):
        purgatory.check_and_complete("a")

    assert operation.happened == ["completed"]
    assert (purgatory.delayed, purgatory.watched) == (0, 0)


def test_a_condition_may_expire_its_own_operation(
    face: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = watch(purgatory, "a")
    operation.in_try = operation.expire

    purgatory.check_and_complete("a")

    assert operation.happened == ["completed", "expired"]
    assert (purgatory.delayed, purgatory.expired_total, face.in_timer()) == (0, 1, 0)


def test_a_hand_in_answers_false_for_what_its_own_second_try_cancelled(
    face: ThreadedFace, purgatory: ThreadedPurgatory
) -> None:
    operation = Operation()
    operation.in_try = lambda: purgatory.cancel_for_key("a")

    assert not purgatory.try_complete_else_watch(operation, ["a"])
    assert not operation.is_completed
    assert (purgatory.delayed, face.in_timer()) == (0, 0)


def test_a_group_of_errors_shows_them(purgatory: ThreadedPurgatory) -> None:
    def fail() -> None:
        raise ValueError("shown")

    for operation in [watch(purgatory, "a"), watch(purgatory, "a")]:
        operation.in_try = fail

    with pytest.raises(ExceptionGroup) as caught:
        purgatory.check_and_complete("a")

    assert repr(caught.value).count("ValueError('shown')") == 2

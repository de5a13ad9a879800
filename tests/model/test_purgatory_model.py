"""Both purgatories against a list of operations: any order of watch, check, expiry, cancel."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.purgatory_faces import Face, PureFace, ThreadedFace

from tarry.purgatory import DelayedOperation

KEYS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4)


class Operation(DelayedOperation):
    """Completes once `is_ready`; counts its ends."""

    def __init__(self, deadline_ms: int, keys: list[str]) -> None:
        super().__init__(deadline_ms)
        self.keys = keys
        self.is_ready = False
        self.is_cancelled = False
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        return self.is_ready and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expirations += 1


class PurgatoryAgainstList(RuleBasedStateMachine):
    """Every operation ends once, for the right reason; the counters say what a recount says."""

    make_face: type[Face]

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.face = self.make_face(purge_interval=5)
        self.purgatory = self.face.purgatory
        self.operations: list[Operation] = []

    def waiting(self) -> list[Operation]:
        return [
            operation
            for operation in self.operations
            if not operation.is_completed and not operation.is_cancelled
        ]

    @rule(keys=KEYS, wait_ms=st.integers(0, 500), is_ready=st.booleans())
    def watch(self, keys: list[str], wait_ms: int, is_ready: bool) -> None:
        operation = Operation(self.now_ms + wait_ms, keys)
        operation.is_ready = is_ready and wait_ms % 3 == 0
        self.operations.append(operation)

        completed = self.purgatory.try_complete_else_watch(operation, keys)

        assert completed == (operation.is_ready or wait_ms == 0)
        assert operation.is_completed == completed

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def make_ready(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.waiting())).is_ready = True

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def complete_from_outside(self, data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(self.waiting()))

        assert operation.force_complete()
        assert not operation.force_complete()

    @rule(key=st.sampled_from("abcd"), limit=st.one_of(st.none(), st.integers(1, 3)))
    def check(self, key: str, limit: int | None) -> None:
        ready = [each for each in self.waiting() if key in each.keys and each.is_ready]
        wanted = ready if limit is None else ready[:limit]

        completed = self.purgatory.check_and_complete(key, limit)

        assert completed == len(wanted)
        assert all(operation.is_completed for operation in wanted)
        assert not any(operation.is_completed for operation in ready[len(wanted) :])

    @rule(key=st.sampled_from("abcd"))
    def cancel(self, key: str) -> None:
        wanted = [operation for operation in self.waiting() if key in operation.keys]

        cancelled = self.purgatory.cancel_for_key(key)

        assert cancelled == wanted
        for operation in wanted:
            operation.is_cancelled = True

    @precondition(lambda self: self.operations)
    @rule(data=st.data())
    def cancel_one(self, data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(self.operations))
        is_waiting = operation in self.waiting()

        assert self.purgatory.cancel(operation) == is_waiting

        operation.is_cancelled = operation.is_cancelled or is_waiting
        for key in operation.keys:
            watchers = self.purgatory._watchers.get(key)
            assert watchers is None or operation not in watchers.items

    @rule(span_ms=st.integers(0, 300))
    def advance(self, span_ms: int) -> None:
        self.now_ms += span_ms
        due = [each for each in self.waiting() if each.deadline_ms <= self.now_ms]

        self.face.advance(self.now_ms)

        for operation in due:
            assert operation.is_completed
            assert operation.expirations == (not operation.is_ready)

    @invariant()
    def the_counters_are_what_a_recount_says(self) -> None:
        assert self.purgatory.delayed == self.face.in_timer() == len(self.waiting())
        lists = self.purgatory._watchers
        assert self.purgatory.watched == sum(len(watchers) for watchers in lists.values())
        assert all(lists.values())
        waited_for = sum(len(set(each.keys)) for each in self.waiting())
        assert self.purgatory._pending_watched == waited_for
        assert self.purgatory.expired_total == sum(each.expirations for each in self.operations)

    @invariant()
    def every_operation_ends_at_most_once(self) -> None:
        for operation in self.operations:
            assert operation.completions == operation.is_completed
            assert operation.expirations <= operation.completions

    @invariant()
    def finished_watchers_do_not_pile_up(self) -> None:
        finished = self.purgatory.watched - self.purgatory._pending_watched
        assert finished <= max(5, self.purgatory._pending_watched)


class PureAgainstList(PurgatoryAgainstList):
    make_face = PureFace


class ThreadedAgainstList(PurgatoryAgainstList):
    make_face = ThreadedFace


PureAgainstList.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
ThreadedAgainstList.TestCase.settings = PureAgainstList.TestCase.settings
TestPureAgainstList = PureAgainstList.TestCase
TestThreadedAgainstList = ThreadedAgainstList.TestCase

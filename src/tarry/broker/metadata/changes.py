"""Changes of metadata that clients ask for: decided, durable, applied, and only then answered.

A request waits in a purgatory for the end of its own change.  The store reports that end to
`Hosting` first, so that a topic is hosted when its creation is answered, in the same turn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from tarry.base import errors
from tarry.base.doors import Random
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.base.settings import Settings
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata import changes_told
from tarry.broker.metadata.auto_creations import AutoCreations
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.topic_decisions import (
    TopicChange,
    TopicDecision,
    TopicIds,
    TopicResult,
    TopicWanted,
    decide_create_topics,
)
from tarry.cluster.state.records import DeletionPending, LifeEnded, MetadataRecord, TopicRemoved
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change, ChangeOfMany
from tarry.cluster.store.store import MetadataStore
from tarry.protocol.message import Message
from tarry.purgatory.operation import PayloadOperation

# Watch key of requests that wait until the data of deleted topics is renamed.
REMOVALS: Final = "removals"

IN_TIME: Final = "%s did not take it within the request's time; it may yet be done"

# Function that makes the answer from the change's error code and a sentence; it returns None if the
# request now waits for something else.
Answer = Callable[[int, str], Message | None]

Outcome = TypeVar("Outcome")

# Function that adds the outcomes to an answer, row by row.
Rows = Callable[[LongAnswer, Iterable[Outcome]], Iterator[int]]

# Units of work, in which long answers count, of a decision about one topic or resource.
UNITS_PER_DECISION: Final = 5

TOO_MANY: Final = f"one request names at most {PARTITIONS_PER_REQUEST_MAX} topics"

Asked = TypeVar("Asked")


def _tell_end(change: Change) -> None:
    if isinstance(change, ClientChange):
        change.tell_end()


def too_many(names: Iterable[tuple[str | None, bytes | None]]) -> Iterator[TopicResult]:
    """Refuse all topics of a request that names too many."""
    for name, topic_id in names:
        yield TopicResult(name, topic_id).refuse(errors.POLICY_VIOLATION, TOO_MANY)


def _outcomes(changes: Sequence[ChangeOfMany[Outcome]]) -> list[Outcome]:
    return [outcome for change in changes for outcome in change.outcomes]


class ClientChange(Change):
    """A change that a client asked for.  The log tells how the change ended, whether the client
    waited for the end or not.
    """

    def __init__(self, context: RequestContext, change: Change, store: MetadataStore) -> None:
        super().__init__()
        self._change = change
        self._store = store
        self._asker = changes_told.asker(context)
        self._lines: list[str] = []
        self._was_decided = False
        self._is_told = False

    @property
    def wished(self) -> Change:
        return self._change.wished

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._was_decided = True
        records = self._change.decide(view)
        self._lines = changes_told.worded(view, records)
        return records

    def decide_at_last(self) -> None:
        """Decide a change that the store did not come to: this makes its outcomes, which a time-out
        then turns into errors.
        """
        if not self._was_decided:
            self.decide(self._store.view)

    @property
    def keeper(self) -> str:
        """Name of what keeps the metadata, for a sentence."""
        return self._store.keeper

    def tell_late(self) -> None:
        """Write into the log that the client was answered before the change had ended."""
        changes_told.tell(self._lines, self._asker, errors.REQUEST_TIMED_OUT, "")

    def tell_end(self) -> None:
        """Write into the log, once, how the change has ended."""
        if self._is_told:
            return
        self._is_told = True
        code = errors.KAFKA_STORAGE_ERROR if self.refusal else errors.NONE
        changes_told.tell(self._lines, self._asker, code, self._store.refused)


class ChangeRequest:
    """A request that waits for a change and, if given, for the condition `until`; `keys` wake
    it.
    """

    __slots__ = ("answer", "change", "context", "keys", "until")

    def __init__(
        self,
        context: RequestContext,
        change: Change,
        answer: Answer,
        until: Callable[[], bool] | None = None,
    ) -> None:
        self.context = context
        self.change = change
        self.answer = answer
        self.until = until
        self.keys: list[Hashable] = [change] if until is None else [change, REMOVALS]


class ChangeOperation(PayloadOperation[ChangeRequest]):
    """Wait of a request until a change has ended.

    The error code is NONE, KAFKA_STORAGE_ERROR if nothing was kept, or REQUEST_TIMED_OUT if the
    change may still be applied later.
    """

    def is_ready(self, payload: ChangeRequest) -> bool:
        change = payload.change
        if not change.is_ended:
            return False
        return bool(change.refusal) or payload.until is None or payload.until()

    def complete_with(self, payload: ChangeRequest) -> None:
        error_code, sentence = errors.NONE, ""
        change = payload.change
        if change.refusal:
            error_code, sentence = errors.KAFKA_STORAGE_ERROR, change.refusal
        elif not self.is_ready(payload):
            keeper = change.keeper if isinstance(change, ClientChange) else MetadataStore.keeper
            error_code, sentence = errors.REQUEST_TIMED_OUT, IN_TIME % keeper
        if isinstance(change, ClientChange):
            change.decide_at_last()
            if not change.is_ended and not payload.context.connection.is_closed:
                change.tell_late()
        response = payload.answer(error_code, sentence)
        if response is not None:
            payload.context.respond(response)


class MetadataChanges:
    """The changes that clients wait for; it listens to the store."""

    def __init__(
        self,
        long_answers: LongAnswers,
        waits: WaitingPart,
        store: MetadataStore,
        settings: Settings,
        random: Random,
    ) -> None:
        self.waits = waits
        self.long_answers = long_answers
        self.store = store
        self.settings = settings
        self.auto_creations = AutoCreations()
        self._random = random
        self._turn = long_answers.turn
        store.listen(self)

    def creation(self, wanted: list[TopicWanted], before: TopicChange | None = None) -> TopicChange:
        """Return a change that creates these topics, at most the store's `topics_max`.

        `before` is the change of the same request that comes before it; None for the first.
        """
        ids = TopicIds(self._random)

        def decide(view: ClusterState) -> TopicDecision:
            made = 0 if before is None else before.partitions_made
            left = PARTITIONS_PER_REQUEST_MAX - made
            release = self.store.release
            return decide_create_topics(view, wanted, self.settings, ids, left, release)

        return TopicChange(decide, before)

    def creations(self, wanted: list[TopicWanted]) -> list[TopicChange]:
        """Return the changes that create topics, as many changes as they need."""
        made: list[TopicChange] = []
        for portion in self.in_portions(
            wanted, lambda one: one.name, lambda one: one.asked_count(self.settings)
        ):
            made.append(self.creation(portion, made[-1] if made else None))
        return made

    def ask(
        self,
        context: RequestContext,
        change: Change,
        answer: Answer,
        timeout_ms: int,
        *,
        until: Callable[[], bool] | None = None,
    ) -> None:
        """Ask the store for a client's change, and answer the client when the change has ended."""
        asked = ClientChange(context, change, self.store)
        self.store.change(asked)
        if asked.is_ended:
            # A change that has ended at once has changed nothing, so there is no effect to wait
            # for.
            until = None
        self.wait(
            ChangeRequest(context, asked, answer, until), self._turn.now_ms + max(timeout_ms, 0)
        )

    def ask_for_many(
        self,
        context: RequestContext,
        wanted: Sequence[ChangeOfMany[Outcome]],
        rows: Rows[Outcome],
        timeout_ms: int,
        *,
        validate_only: bool = False,
        until: Callable[[], bool] | None = None,
    ) -> Message | None:
        """Ask for the changes one after the other, and answer with their outcomes once `until`
        holds; with `validate_only` answer what the outcomes would be.
        """
        deadline_ms = self._turn.now_ms + max(timeout_ms, 0)
        portions = _Portions(self, context, wanted, rows, deadline_ms)
        portions.until = until
        portions.is_only_decided = validate_only
        return portions.go_on()

    def left_ms(self, deadline_ms: int) -> int:
        """Return how many ms are left until a deadline."""
        return deadline_ms - self._turn.now_ms

    def in_portions(
        self,
        wanted: list[Asked],
        name_of: Callable[[Asked], Hashable],
        partitions_of: Callable[[Asked], int] | None = None,
    ) -> list[list[Asked]]:
        """Divide wishes into portions that the store can make in one change.  Wishes with the same
        name stay together.  `partitions_of` returns how many partitions a wish writes.
        """
        by_name: dict[Hashable, list[Asked]] = {}
        for one in wanted:
            by_name.setdefault(name_of(one), []).append(one)
        portions: list[list[Asked]] = []
        topics, partitions = self.store.topics_max, 0
        for group in by_name.values():
            size = 0 if partitions_of is None else max(map(partitions_of, group))
            if topics == self.store.topics_max or partitions + size > self.store.partitions_max:
                portions.append([])
                topics, partitions = 0, 0
            portions[-1] += group
            topics += 1
            partitions += size
        return portions

    def wait(self, asked: ChangeRequest, deadline_ms: int) -> None:
        """Answer when a change has ended, for which the store was asked already."""
        operation = ChangeOperation(deadline_ms, asked)
        asked.context.operation = operation
        self.waits.try_or_watch(operation, asked.keys)

    # -- reports of the store

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Wake the requests that wait for these records, or for the end of the change."""
        if any(isinstance(each, TopicRemoved | DeletionPending | LifeEnded) for each in records):
            self.waits.touch(REMOVALS)
        if change is not None:
            _tell_end(change)
            self.waits.touch(change)

    def on_refused(self, change: Change) -> None:
        """Wake the request that waits for a change which was refused."""
        _tell_end(change)
        self.waits.touch(change)


class _Portions(Generic[Outcome]):
    """Changes of one request, asked for one after the other; after a failure no more are asked for.

    Hundreds of changes may change nothing and end at once, so they are steps of a long answer.
    """

    def __init__(
        self,
        changes: MetadataChanges,
        context: RequestContext,
        wanted: Sequence[ChangeOfMany[Outcome]],
        rows: Rows[Outcome],
        deadline_ms: int,
    ) -> None:
        self._changes = changes
        self._context = context
        self._wanted = wanted
        self._rows = rows
        self._deadline_ms = deadline_ms
        self.until: Callable[[], bool] | None = None
        self.is_only_decided = False
        self._position = 0
        self._failure: tuple[int, str] | None = None
        self._is_asking = False
        self._has_ended = True

    def go_on(self) -> Message | None:
        """Ask for the next change, and for those behind it as long as they end at once."""
        # The steps continue without the client: changes that it asked for stay when it disconnects.
        answer = LongAnswer(self._context, must_end=not self.is_only_decided)
        return self._changes.long_answers.begin(answer, self._steps(answer))

    def _steps(self, answer: LongAnswer) -> Iterator[int]:
        wanted = self._wanted
        if self.is_only_decided:
            yield from self._decide(wanted)
        else:
            while self._position < len(wanted) and self._failure is None:
                change = wanted[self._position]
                self._ask(change)
                if not self._has_ended:
                    return
                yield 1 + UNITS_PER_DECISION * len(change.outcomes)
        if self._failure is not None:
            yield from self._decide(wanted[self._position + 1 :])
            for change in wanted[self._position :]:
                change.fail(*self._failure)
        yield from self._rows(answer, _outcomes(wanted))

    def _decide(self, wanted: Sequence[ChangeOfMany[Outcome]]) -> Iterator[int]:
        for change in wanted:
            change.decide(self._changes.store.view)
            yield 1 + UNITS_PER_DECISION * len(change.outcomes)

    def _ask(self, change: ChangeOfMany[Outcome]) -> None:
        self._has_ended = False
        self._is_asking = True
        self._changes.ask(
            self._context,
            change,
            self._on_end,
            self._changes.left_ms(self._deadline_ms),
            until=self.until if self._position + 1 == len(self._wanted) else None,
        )
        self._is_asking = False

    def _on_end(self, error_code: int, sentence: str) -> Message | None:
        self._has_ended = True
        # The client has disconnected, and the change may still be applied: it is no failure.
        is_left_alone = (
            error_code == errors.REQUEST_TIMED_OUT and self._context.connection.is_closed
        )
        if error_code == errors.NONE or is_left_alone:
            self._position += 1
        else:
            self._failure = (error_code, sentence)
        return None if self._is_asking else self.go_on()

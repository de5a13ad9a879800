"""Changes of metadata that clients ask for: decided, durable, applied, and only then answered.

Whoever asked waits in a purgatory for the end of its own change.  What a store tells changes first
what this broker hosts; the answers follow in the same turn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from tarry.base import errors
from tarry.base.doors import Random
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.metadata import changes_told
from tarry.broker.metadata.hosting import Hosting
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.cluster.change import Change, ChangeOfMany
from tarry.cluster.records import DeletionPending, LifeEnded, MetadataRecord, TopicRemoved
from tarry.cluster.state import ClusterState
from tarry.cluster.store import MetadataStore, StoreListener
from tarry.cluster.topic_decisions import (
    TopicChange,
    TopicDecision,
    TopicIds,
    TopicWanted,
    decide_create_topics,
)
from tarry.protocol.message import Message
from tarry.purgatory.operation import PayloadOperation

# The key of those who wait for the data of deleted topics to be away.
REMOVALS: Final = "removals"

IN_TIME: Final = "%s did not take it within the request's time; it may yet be done"

# Makes the answer out of the error code with which the change ended, and a sentence; None if the
# request waits for something else from now on.
Answer = Callable[[int, str], Message | None]

Outcome = TypeVar("Outcome")
Asked = TypeVar("Asked")


def _outcomes(changes: Sequence[ChangeOfMany[Outcome]]) -> list[Outcome]:
    return [outcome for change in changes for outcome in change.outcomes]


class ClientChange(Change):
    """A change that a client asked for; the log of the broker tells how it ended."""

    def __init__(self, context: RequestContext, change: Change, store: MetadataStore) -> None:
        super().__init__()
        self._change = change
        self._store = store
        self._asker = changes_told.asker(context)
        self._lines: list[str] = []
        self._was_decided = False

    @property
    def wished(self) -> Change:
        return self._change.wished

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._was_decided = True
        records = self._change.decide(view)
        self._lines = changes_told.worded(view, records)
        return records

    def decide_at_last(self) -> None:
        """Decide what the store has not come to, so that there are outcomes, which a time-out then
        turns to the worse.
        """
        if not self._was_decided:
            self.decide(self._store.view)

    @property
    def keeper(self) -> str:
        """Name of what keeps the metadata, for a sentence."""
        return self._store.keeper

    def tell(self, error_code: int) -> None:
        """Write into the log what became of the change."""
        changes_told.tell(self._lines, self._asker, error_code, self._store.refused)


class ChangeRequest:
    """A request that waits for a change: `until` is what must hold besides, and `keys` wake it."""

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
    """Waits until a change has ended, and answers.

    The error code is NONE, KAFKA_STORAGE_ERROR (nothing was kept), or REQUEST_TIMED_OUT: then the
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
            change.tell(error_code)
        response = payload.answer(error_code, sentence)
        if response is not None:
            payload.context.respond(response)


class MetadataChanges:
    """The changes that clients wait for, and the listener of the store."""

    def __init__(
        self,
        turn: Turn,
        waits: WaitingPart,
        store: MetadataStore,
        hosting: Hosting,
        settings: Settings,
        random: Random,
    ) -> None:
        self.waits = waits
        self.store = store
        self.settings = settings
        self._random = random
        self._turn = turn
        self._hosting = hosting
        # Who else hears of what is applied or refused.
        self.also: StoreListener | None = None
        # The leader's side of replication, in a cluster.
        self.replicas: StoreListener | None = None
        store.listener = self

    def creation(self, wanted: list[TopicWanted], before: TopicChange | None = None) -> TopicChange:
        """Return a change that creates topics, to be asked for; no more than the store's
        `topics_max`.  `before`: the change of the same request that comes before it.
        """
        ids = TopicIds(self._random)

        def decide(view: ClusterState) -> TopicDecision:
            made = 0 if before is None else before.partitions_made
            left = PARTITIONS_PER_REQUEST_MAX - made
            return decide_create_topics(view, wanted, self.settings, ids, left)

        return TopicChange(decide, before)

    def creations(self, wanted: list[TopicWanted]) -> list[TopicChange]:
        """Return the changes that create topics, however many they are."""
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
        """Have a client's change made, and answer the client when the change has ended."""
        asked = ClientChange(context, change, self.store)
        self.store.change(asked)
        if asked.is_ended:
            # Nothing was changed, so nothing follows from it.
            until = None
        self.wait(
            ChangeRequest(context, asked, answer, until), self._turn.now_ms + max(timeout_ms, 0)
        )

    def ask_for_many(
        self,
        context: RequestContext,
        wanted: Sequence[ChangeOfMany[Outcome]],
        respond: Callable[[list[Outcome]], Message],
        timeout_ms: int,
        *,
        validate_only: bool = False,
        until: Callable[[], bool] | None = None,
    ) -> Message | None:
        """Have changes made one after the other, and answer with their outcomes once `until` holds;
        or return what they would be.
        """
        if validate_only or not wanted:
            for change in wanted:
                change.decide(self.store.view)
            return respond(_outcomes(wanted))
        deadline_ms = self._turn.now_ms + max(timeout_ms, 0)
        _Portions(self, context, wanted, respond, until, deadline_ms).ask()
        return None

    def left_ms(self, deadline_ms: int) -> int:
        """Return how much time is left until a deadline."""
        return deadline_ms - self._turn.now_ms

    def in_portions(
        self,
        wanted: list[Asked],
        name_of: Callable[[Asked], Hashable],
        partitions_of: Callable[[Asked], int] | None = None,
    ) -> list[list[Asked]]:
        """Share wishes for topics out among changes that the store can make at once; those of one
        name stay together.  `partitions_of` tells how many partitions are written with one.
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
        """Answer when a change has ended that the store was asked for already."""
        operation = ChangeOperation(deadline_ms, asked)
        asked.context.operation = operation
        self.waits.watch(operation, asked.keys)

    # -- what the store tells

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Host what the records say, and wake whoever waits for it."""
        for record in records:
            self._hosting.react(record)
            if isinstance(record, TopicRemoved | DeletionPending | LifeEnded):
                self.waits.touch(REMOVALS)
        if change is not None:
            self.waits.touch(change)
        if self.replicas is not None:
            self.replicas.on_applied(version, records, change)
        if self.also is not None:
            self.also.on_applied(version, records, change)

    def on_refused(self, change: Change) -> None:
        """Wake whoever waits for a change that is not kept."""
        self._hosting.on_refused(change)
        self.waits.touch(change)
        if self.replicas is not None:
            self.replicas.on_refused(change)
        if self.also is not None:
            self.also.on_refused(change)


class _Portions(Generic[Outcome]):
    """Changes of one request, asked for one after the other; the first that fails is the last."""

    def __init__(
        self,
        changes: MetadataChanges,
        context: RequestContext,
        wanted: Sequence[ChangeOfMany[Outcome]],
        respond: Callable[[list[Outcome]], Message],
        until: Callable[[], bool] | None,
        deadline_ms: int,
    ) -> None:
        self._changes = changes
        self._context = context
        self._wanted = wanted
        self._respond = respond
        self._until = until
        self._deadline_ms = deadline_ms
        self._position = 0
        self._is_asking = False
        self._is_next_due = False

    def ask(self) -> None:
        """Ask for the next change, and for those behind it while they end at once.

        Hundreds may change nothing: a request names thousands of topics that there are not.
        """
        self._is_next_due = True
        if self._is_asking:
            return
        self._is_asking = True
        while self._is_next_due:
            self._is_next_due = False
            is_last = self._position + 1 == len(self._wanted)
            self._changes.ask(
                self._context,
                self._wanted[self._position],
                self._answer,
                self._changes.left_ms(self._deadline_ms),
                until=self._until if is_last else None,
            )
        self._is_asking = False

    def _answer(self, error_code: int, sentence: str) -> Message | None:
        wanted, position = self._wanted, self._position
        if error_code == errors.NONE and position + 1 < len(wanted):
            self._position += 1
            self.ask()
            return None
        if error_code != errors.NONE:
            for change in wanted[position + 1 :]:
                change.decide(self._changes.store.view)
            for change in wanted[position:]:
                change.fail(error_code, sentence)
        return self._respond(_outcomes(wanted))

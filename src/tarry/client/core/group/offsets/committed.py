"""CommittedOffsets: look-up of a group's committed offsets at its coordinator (OffsetFetch).

All waiting questions are sent in one request.  A coordinator that is still loading is asked again:
"not known yet" is never mistaken for "nothing committed".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tarry.base.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION, error_name
from tarry.base.ids import TopicPartition
from tarry.client.core.group import reactions
from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.membership import Membership
from tarry.client.core.group.offsets.requests import (
    NO_OFFSET,
    VERSION_OF_NAMES_MAX,
    CommittedOffset,
    ToldOffsets,
    offset_fetch_request,
    told_offsets,
)
from tarry.client.core.operation import Operation, Operations
from tarry.client.errors import broker_error
from tarry.link.errors import ClientError, TimedOut
from tarry.link.exchange import Exchange
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    decode_offset_fetch_response,
)

CommittedAnswer = CommittedOffset | ClientError
When = Callable[[TopicPartition, CommittedAnswer, int], None]


class OffsetQuestion:
    """Question for the group's committed offset in one partition; the answer -1 means no commit."""

    def __init__(self, place: TopicPartition, answer: When) -> None:
        self.place = place
        self.answer = answer


class CommittedOffsets:
    """Questions of one consumer about committed offsets; call `ask`, and `work` in each turn."""

    def __init__(
        self, coordinator: CoordinatorFinder, membership: Membership, timeout_ms: int
    ) -> None:
        self.coordinator = coordinator
        self.membership = membership
        self._timeout_ms = timeout_ms
        self._questions: dict[OffsetQuestion, None] = {}
        self._is_in_flight = False
        self._pauses = coordinator.connections.pauses()

    def ask(self, place: TopicPartition, answer: When) -> OffsetQuestion:
        """Ask for the committed offset of one partition; `answer` is called once, except after
        `cancel`."""
        question = OffsetQuestion(place, answer)
        self._questions[question] = None
        return question

    def cancel(self, question: object) -> None:
        """Cancel a question whose answer is not needed any more; do nothing for any other
        object."""
        if isinstance(question, OffsetQuestion):
            self._questions.pop(question, None)

    def work(self, now_ms: int) -> None:
        if not self._questions or self._is_in_flight:
            return
        if not self.coordinator.is_known:
            self.coordinator.want(now_ms)
            if self.coordinator.refusal is not None:
                self._settle_all(list(self._questions), self.coordinator.refusal, now_ms)
            return
        if self._pauses.holds(now_ms):
            return
        self._is_in_flight = True
        exchange = _OffsetFetch(self, list(self._questions), self._timeout_ms)
        if self.membership.is_joining:
            self.coordinator.send_aside(exchange, now_ms)
        else:
            self.coordinator.send(exchange, now_ms)

    def on_failure(self, asked: list[OffsetQuestion], error: ClientError, now_ms: int) -> None:
        self._is_in_flight = False
        if error.is_retriable:
            self._pauses.begin(now_ms)
        else:
            self._settle_all(asked, error, now_ms)

    def on_answer(self, asked: list[OffsetQuestion], told: ToldOffsets, now_ms: int) -> None:
        self._is_in_flight = False
        answers, code = told.places, told.error_code
        if code == NONE:
            # Before version 2, an error of the group is in each partition.
            codes = [one for one, _ in answers.values()]
            code = next((one for one in codes if one in reactions.GROUP), NONE)
        if code != NONE:
            self._on_refused(code, asked, now_ms)
            return
        self._pauses.failures = 0
        for question in asked:
            found = answers.get(question.place)
            if question not in self._questions or found is None:
                continue
            self._settle_one(question, *found, now_ms)
        if any(question in self._questions for question in asked):
            self._pauses.begin(now_ms)

    def _settle_one(
        self, question: OffsetQuestion, code: int, committed: CommittedOffset, now_ms: int
    ) -> None:
        if code == NONE:
            # A negative offset means no commit, as in Java's client.
            found = committed if committed.offset >= 0 else CommittedOffset(NO_OFFSET)
            self._settle(question, found, now_ms)
        elif reactions.reaction_to(code) != reactions.RETRY or code == UNKNOWN_TOPIC_OR_PARTITION:
            topic, index = question.place
            sentence = f"the committed offset of {topic} [{index}] cannot be read"
            self._settle(question, broker_error(code, sentence), now_ms)

    def _on_refused(self, code: int, asked: list[OffsetQuestion], now_ms: int) -> None:
        reaction = reactions.reaction_to(code)
        if reaction == reactions.FIND:
            self.coordinator.lose(f"OffsetFetch: {error_name(code)}", now_ms)
            self._pauses.begin(now_ms)
        elif reaction == reactions.RETRY:
            self._pauses.begin(now_ms)
        else:
            sentence = f"the offsets of group {self.coordinator.group_id} cannot be read"
            self._settle_all(asked, broker_error(code, sentence), now_ms)

    def _settle_all(
        self, asked: list[OffsetQuestion], answer: CommittedAnswer, now_ms: int
    ) -> None:
        for question in asked:
            self._settle(question, answer, now_ms)

    def _settle(self, question: OffsetQuestion, answer: CommittedAnswer, now_ms: int) -> None:
        if question in self._questions:
            del self._questions[question]
            question.answer(question.place, answer, now_ms)


class _OffsetFetch(Exchange[OffsetFetchResponse]):
    """Exchange with the waiting questions."""

    def __init__(
        self, committed: CommittedOffsets, asked: list[OffsetQuestion], timeout_ms: int
    ) -> None:
        super().__init__(api_keys.OFFSET_FETCH, decode_offset_fetch_response, timeout_ms)
        self.committed = committed
        self.asked = asked

    def version_max(self) -> int:
        return VERSION_OF_NAMES_MAX

    def build(self, version: int) -> Message:
        group_id = self.committed.coordinator.group_id
        places = [one.place for one in self.asked]
        return offset_fetch_request(group_id, places, version, require_stable=True)

    def on_response(self, response: OffsetFetchResponse, now_ms: int) -> None:
        self.committed.on_answer(self.asked, told_offsets(response), now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.committed.on_failure(self.asked, error, now_ms)


class CommittedQuery(Operation[dict[TopicPartition, CommittedOffset | None]]):
    """Query of a group's committed offsets in several partitions; None for a partition without a
    commit."""

    def __init__(
        self, operations: Operations, offsets: CommittedOffsets, places: Sequence[TopicPartition]
    ) -> None:
        super().__init__(operations)
        self._offsets = offsets
        self._answers: dict[TopicPartition, CommittedAnswer] = {}
        self._questions = {place: offsets.ask(place, self._take) for place in places}

    def _take(self, place: TopicPartition, answer: CommittedAnswer, now_ms: int) -> None:
        self._answers[place] = answer

    def look(self, now_ms: int) -> bool:
        return len(self._answers) == len(self._questions)

    def answer(self, now_ms: int) -> dict[TopicPartition, CommittedOffset | None]:
        found: dict[TopicPartition, CommittedOffset | None] = {}
        for place in self._questions:
            answer = self._answers[place]
            if isinstance(answer, ClientError):
                raise answer
            found[place] = None if answer.offset == NO_OFFSET else answer
        return found

    def late_error(self, now_ms: int) -> ClientError:
        coordinator = self._offsets.coordinator
        reason = coordinator.last_error or coordinator.trouble
        because = f": {reason}" if reason else ""
        return TimedOut(f"the coordinator did not tell the committed offsets in time{because}")

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        for question in self._questions.values():
            self._offsets.cancel(question)

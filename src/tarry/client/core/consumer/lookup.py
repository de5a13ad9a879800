"""Lookup: offsets looked up at the leaders (ListOffsets), with one request to each leader.

The caller gives partitions with timestamps (or LATEST, EARLIEST, MAX_TIMESTAMP) and gets an offset
or an error for each.  The lookup handles leaders that moved, and pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from tarry.base.errors import NONE
from tarry.base.ids import TopicPartition
from tarry.client.core import reactions
from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Metadata
from tarry.client.core.operation import Operation, Operations
from tarry.client.core.refresh import Refresh
from tarry.client.errors import broker_error
from tarry.client.settings import READ_UNCOMMITTED
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.link.tasks import wake_up
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    decode_list_offsets_response,
)

# Time for `Admin.offsets`: the end of the partition.
LATEST: Final = -1
# Time for `Admin.offsets`: the first record that still exists.
EARLIEST: Final = -2
# Time for `Admin.offsets`: the record with the highest timestamp.
MAX_TIMESTAMP: Final = -3

OFFSET_UNKNOWN: Final = -1

# Replica id of a client that is not a broker.
CONSUMER_ID: Final = -1


class FoundOffset(NamedTuple):
    """Result of a look-up: `offset` is -1 if no record is so young.  `timestamp` and `leader_epoch`
    of the record are -1 if the broker does not report them."""

    offset: int
    timestamp: int
    leader_epoch: int


Answer = FoundOffset | ClientError


Answerer = Callable[[TopicPartition, Answer, int], None]


class Question:
    """Question about one partition's offset, kept until it is answered."""

    def __init__(
        self, place: TopicPartition, timestamp: int, answer: Answerer, version: int | None
    ) -> None:
        self.place = place
        self.timestamp = timestamp
        self.answer = answer
        # Metadata version when the question was asked: a newer version without the partition
        # answers the question.  None if the question waits until the partition exists.
        self.version = version
        self.is_in_flight = False
        self.retry_at_ms = 0
        self.failures = 0


class Lookup:
    """Questions of one core; call `ask`, and `work` in each turn."""

    def __init__(
        self,
        connections: Connections,
        metadata: Metadata,
        refresh: Refresh,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> None:
        self.connections = connections
        # With READ_COMMITTED, the end of a log is its last stable offset.
        self.isolation_level = isolation_level
        self.metadata = metadata
        self.refresh = refresh
        # An ordered set; it may hold several questions about one partition.
        self._questions: dict[Question, None] = {}
        self._retry = wake_up()

    def ask(
        self, place: TopicPartition, timestamp: int, answer: Answerer, *, waits: bool = True
    ) -> Question:
        """Ask for the offset of one partition; `answer` is called once, except after `cancel`.

        Without `waits`, a missing partition is answered with UnknownTopic.
        """
        version = None if waits else self.metadata.version
        question = Question(place, timestamp, answer, version)
        self._questions[question] = None
        return question

    def problem_of(self, place: TopicPartition, now_ms: int) -> ClientError | None:
        """Return the error that delays the answer for one partition; None if no error is known."""
        leader = self.metadata.leader_of(*place)
        if leader is not None:
            return self.connections.failure_of(leader.leader_id)
        if self.refresh.last_error is not None:
            return self.refresh.last_error
        return self.metadata.error_of(place[0], now_ms, place[1])

    def cancel(self, question: object) -> None:
        """Cancel a question whose answer is not needed any more; do nothing for an answered
        question or None."""
        if isinstance(question, Question):
            self._questions.pop(question, None)

    def work(self, now_ms: int) -> None:
        """Send the questions whose leaders are known."""
        requests: dict[tuple[int, int], _ListOffsets] = {}
        for question in list(self._questions):
            if question.is_in_flight:
                continue
            if self._is_missing(question):
                topic, partition = question.place
                error = self.metadata.error_of(topic, now_ms, partition)
                self.settle(question, error, now_ms)
                continue
            if now_ms < question.retry_at_ms:
                self.connections.tasks.schedule_earlier(self._retry, question.retry_at_ms)
                continue
            leader = self.metadata.leader_of(*question.place)
            if leader is None:
                # The topic may be untracked since another question was answered.
                self.metadata.track(question.place[0])
                self.refresh.want(now_ms)
            else:
                self._add(requests, leader.leader_id, question)
        for (leader_id, _), exchange in requests.items():
            connection = self.connections.for_broker(leader_id)
            assert connection is not None
            connection.send(exchange, now_ms)

    def _is_missing(self, question: Question) -> bool:
        """Return true if metadata newer than the question lacks the partition, and the question
        does not wait."""
        metadata = self.metadata
        if question.version is None or question.version == metadata.version:
            return False
        name, partition = question.place
        if metadata.is_denied(name) or metadata.refusal(name) != NONE:
            return True
        topic = metadata.topic(name)
        return topic is not None and partition not in topic.partitions

    def untrack_missing(self, places: Iterable[TopicPartition], in_use: Iterable[str] = ()) -> None:
        """Stop tracking topics that do not exist, except those in use."""
        kept = dict.fromkeys(in_use)
        for name in dict.fromkeys(topic for topic, _ in places):
            if name not in kept and self.metadata.is_denied(name):
                self.metadata.untrack(name)

    def _add(
        self, requests: dict[tuple[int, int], _ListOffsets], leader_id: int, question: Question
    ) -> None:
        """Add a question to the leader's first request without this partition: brokers refuse a
        request that names a partition twice."""
        number = 0
        while True:
            exchange = requests.setdefault((leader_id, number), _ListOffsets(self))
            if question.place not in exchange.questions:
                exchange.questions[question.place] = question
                question.is_in_flight = True
                return
            number += 1

    def settle(self, question: Question, answer: Answer, now_ms: int) -> None:
        """Pass the answer on, except if the question was cancelled."""
        if question in self._questions:
            del self._questions[question]
            question.answer(question.place, answer, now_ms)

    def again(self, question: Question, now_ms: int) -> None:
        """Ask the question again after a pause."""
        question.is_in_flight = False
        question.failures += 1
        pause_ms = self.connections.retry_pause_ms(question.failures)
        question.retry_at_ms = now_ms + pause_ms


Offsets = TypeVar("Offsets")


class OffsetQuery(Operation[Offsets]):
    """Query of offsets of several partitions, each with its own time; a base class."""

    def __init__(
        self, operations: Operations, lookup: Lookup, wanted: dict[TopicPartition, int]
    ) -> None:
        super().__init__(operations)
        self.wanted = wanted
        self.answers: dict[TopicPartition, Answer] = {}
        self.lookup = lookup
        self._questions = [
            lookup.ask(place, time, self._take, waits=False) for place, time in wanted.items()
        ]

    def _take(self, place: TopicPartition, answer: Answer, now_ms: int) -> None:
        self.answers[place] = answer

    def look(self, now_ms: int) -> bool:
        return len(self.answers) == len(self.wanted)

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        for question in self._questions:
            self.lookup.cancel(question)


class _ListOffsets(Exchange[ListOffsetsResponse]):
    """Exchange with the questions for one leader."""

    def __init__(self, lookup: Lookup) -> None:
        timeout_ms = lookup.connections.settings.request_timeout_ms
        super().__init__(api_keys.LIST_OFFSETS, decode_list_offsets_response, timeout_ms)
        self.lookup = lookup
        self.questions: dict[TopicPartition, Question] = {}

    def build(self, version: int) -> Message:
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, partition), question in self.questions.items():
            topic = topics.setdefault(name, ListOffsetsTopic(name))
            leader = self.lookup.metadata.leader_of(name, partition)
            epoch = leader.leader_epoch if leader is not None else -1
            topic.partitions.append(ListOffsetsPartition(partition, epoch, question.timestamp))
        return ListOffsetsRequest(
            replica_id=CONSUMER_ID,
            # Brokers that support only version 1 have no transactions.
            isolation_level=self.lookup.isolation_level if version > 1 else READ_UNCOMMITTED,
            topics=[*topics.values()],
            timeout_ms=self.timeout_ms,
        )

    def on_response(self, response: ListOffsetsResponse, now_ms: int) -> None:
        for topic in response.topics:
            for partition in topic.partitions:
                question = self.questions.pop((topic.name, partition.partition_index), None)
                if question is None:
                    continue
                if partition.error_code == NONE:
                    self._found(question, partition, now_ms)
                else:
                    self._refused(question, partition.error_code, now_ms)
        for question in self.questions.values():
            self.lookup.again(question, now_ms)

    def _found(self, question: Question, answer: ListOffsetsPartitionResponse, now_ms: int) -> None:
        """Settle a question; EARLIEST and LATEST have an offset even if the log is empty."""
        is_place = question.timestamp in (LATEST, EARLIEST)
        if answer.offset < (0 if is_place else OFFSET_UNKNOWN):
            topic, index = question.place
            flaw = f"the leader of {topic} [{index}] answered the offset {answer.offset}"
            self.lookup.settle(question, ClientError(flaw), now_ms)
            return
        found = FoundOffset(answer.offset, answer.timestamp, answer.leader_epoch)
        self.lookup.settle(question, found, now_ms)

    def _refused(self, question: Question, code: int, now_ms: int) -> None:
        reaction = reactions.reaction_to(reactions.LOOKUP, code)
        if reaction == reactions.FAIL:
            name, partition = question.place
            error = broker_error(code, f"the offset of {name} [{partition}] cannot be looked up")
            self.lookup.settle(question, error, now_ms)
            return
        if reaction == reactions.REFRESH:
            self.lookup.refresh.want_after(code, now_ms)
        self.lookup.again(question, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        for question in self.questions.values():
            if error.is_retriable:
                self.lookup.again(question, now_ms)
            else:
                self.lookup.settle(question, error, now_ms)

"""OffsetDelete (key 47): deletes a group's offsets of topics that it no longer consumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import NO_TICKET, Asked
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT, once_each
from tarry.broker.request import RequestContext
from tarry.cluster.state.scheduled_topics import readable_topic
from tarry.group.offsets.decisions import decide_delete_offsets
from tarry.group.offsets.requests import CommitPartition, DeleteAnswer
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

# Number of partitions about which the group decides in one step.
PARTITIONS_PER_DECISION: Final = 500


class OffsetDeletion:
    """An OffsetDelete request: decided in portions, answered after the last portion."""

    def __init__(
        self,
        long_answers: LongAnswers,
        coordinator: GroupCoordinator,
        context: RequestContext,
        request: OffsetDeleteRequest,
    ) -> None:
        self._long_answers = long_answers
        self._coordinator = coordinator
        self.context = context
        self._request = request
        self._asked: dict[str, dict[int, OffsetDeleteRequestPartition]] = {}
        self._codes: dict[TopicPartition, int] = {}
        self._error_code = errors.NONE
        # Portions that have no answer yet.  The steps count as one portion until they end.
        self._left = 1

    def steps(self) -> Iterator[int]:
        """Let the group decide about each portion, until an error refuses the whole request."""
        self._asked = yield from once_each(
            ((topic.name, topic.partitions) for topic in self._request.topics),
            lambda each: each.partition_index,
        )
        portion: list[TopicPartition] = []
        for name, rows in self._asked.items():
            known = readable_topic(self._coordinator.cluster, name)
            count = 0 if known is None else len(known.partitions)
            for index in rows:
                if 0 <= index < count:
                    portion.append((name, index))
                if len(portion) == PARTITIONS_PER_DECISION:
                    self._decide(portion)
                    portion = []
                    yield PARTITIONS_PER_DECISION
                    if self._error_code != errors.NONE:
                        # The group refuses the whole request, so the partitions that are left must
                        # not be tried.
                        self._settle()
                        return
            yield 1 + len(rows) // ELEMENTS_PER_UNIT
        # An empty portion still shows whether the group exists and may lose offsets.
        self._decide(portion)
        self._settle()

    def _decide(self, portion: list[TopicPartition]) -> None:
        coordinator = self._coordinator
        shard, error_code = coordinator.find_named(self._request.group_id)
        if shard is None:
            self._error_code = error_code
            return
        self._left += 1
        ticket = coordinator.ticket(AskedPortion(self.context, self, portion))
        partitions = [CommitPartition(name, index, 0) for name, index in portion]
        group = shard.group(self._request.group_id)
        decision = decide_delete_offsets(group, ticket, partitions, coordinator.moment())
        shard.carry_out(group, decision)

    def take(self, portion: list[TopicPartition], answer: DeleteAnswer) -> None:
        """Take the answer to a portion."""
        if answer.error_code != errors.NONE:
            self._error_code = answer.error_code
        else:
            self._codes.update(zip(portion, answer.partition_error_codes, strict=True))
        self._settle()

    def _settle(self) -> None:
        self._left -= 1
        if self._left == 0:
            answer = LongAnswer(self.context)
            self._long_answers.begin(answer, self._rows(answer))

    def _rows(self, answer: LongAnswer) -> Iterator[int]:
        answer.open(OffsetDeleteResponse(error_code=self._error_code))
        if self._error_code != errors.NONE:
            return
        for name, rows in self._asked.items():
            answer.open(OffsetDeleteResponseTopic(name=name))
            for index in rows:
                code = self._codes.get((name, index), errors.UNKNOWN_TOPIC_OR_PARTITION)
                answer.add(OffsetDeleteResponsePartition(index, code))
                yield 1
            answer.close()
            yield 1


class AskedPortion(Asked[DeleteAnswer]):
    """A portion of the request, which waits until its tombstones are in the log."""

    def __init__(
        self, context: RequestContext, deletion: OffsetDeletion, portion: list[TopicPartition]
    ) -> None:
        super().__init__(context)
        self._deletion = deletion
        self._portion = portion

    def answer(self, answer: DeleteAnswer) -> None:
        self._deletion.take(self._portion, answer)

    def refuse(self, error_code: int) -> None:
        self._deletion.take(self._portion, DeleteAnswer(NO_TICKET, error_code))


def handle(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: OffsetDeleteRequest,
) -> Message | None:
    """Delete the offsets in portions; partitions that do not exist are refused one by one."""
    deletion = OffsetDeletion(long_answers, coordinator, context, request)
    return long_answers.begin(LongAnswer(context, must_end=True), deletion.steps())

"""Steps of a large OffsetCommit: checked in steps, appended as one batch, and answered in steps.

The partitions are checked and their records encoded before the group decides about the commit,
which is one batch and kept whole or not at all.  If the client leaves before that, nothing is
committed; Apache Kafka would commit all of it.  A client that has left without an answer cannot
know either outcome, and asks for the committed offsets.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.apis.offset_commit import (
    AskedCommit,
    AskedTopic,
    checked,
    code_of_unknown,
    commit_of,
    known_topic,
)
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.runtime import EncodedRecords
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT, once_each
from tarry.broker.request import RequestContext
from tarry.group.offsets.decisions import committed, decide_prepared_commit, text_error
from tarry.group.records import GroupRecord
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

# Number of partitions that one step checks, and of rows that one step adds to an answer.
PARTITIONS_PER_STEP: Final = 20

# Units of work for making and encoding one record.
UNITS_PER_RECORD: Final = 1


def begin(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: OffsetCommitRequest,
) -> Message | None:
    """Begin the steps of a commit of many partitions."""
    commit = CommitInSteps(long_answers, coordinator, context, request)
    return long_answers.begin(LongAnswer(context), commit.steps())


class CommitInSteps(AskedCommit):
    """Commit of many partitions, with their requested offsets and an error code for each."""

    def __init__(
        self,
        long_answers: LongAnswers,
        coordinator: GroupCoordinator,
        context: RequestContext,
        request: OffsetCommitRequest,
    ) -> None:
        super().__init__(context, request)
        self._long_answers = long_answers
        self._coordinator = coordinator
        self._asked: dict[AskedTopic, dict[int, OffsetCommitRequestPartition]] = {}
        self._codes: list[int] = []
        self._topic_ids: dict[AskedTopic, bytes] = {}
        self._records: list[GroupRecord] = []
        self._texts_size = 0

    # -- before the commit

    def steps(self) -> Iterator[int]:
        """Check and encode the commit in steps, then let the group decide about it."""
        request, coordinator = self.request, self._coordinator
        self._asked = yield from once_each(
            (((topic.name, topic.topic_id), topic.partitions) for topic in request.topics),
            lambda each: each.partition_index,
            is_last_meant=True,
        )
        encoded: EncodedRecords | None = None
        # A topic that is deleted between two steps takes its offsets with it.  A commit that was
        # checked before that would bring them back, so it is checked again.
        while encoded is None or not self._is_as_checked():
            shard, error_code = coordinator.find(request.group_id)
            if shard is None:
                self.refuse(error_code)
                return
            encoded = yield from self._prepare(shard)
        shard, error_code = coordinator.find(request.group_id)
        if shard is None:
            self.refuse(error_code)
            return
        asked = commit_of(self.context, request, coordinator.ticket(self), ())
        group = shard.group(request.group_id)
        decision = decide_prepared_commit(
            group, asked, self._codes, self._records, self._texts_size, coordinator.moment()
        )
        shard.carry_out_encoded(group, decision, encoded)

    def _prepare(self, shard: GroupShard) -> Generator[int, None, EncodedRecords]:
        """Check each partition, and encode a record for each that exists."""
        coordinator = self._coordinator
        moment = coordinator.moment()
        asked = commit_of(self.context, self.request, 0, ())
        encoded = shard.runtime.begin_encoding()
        self._codes, self._records, self._topic_ids = [], [], {}
        self._texts_size = 0
        unknown_code = code_of_unknown(self.context.api_version)
        is_full = False
        for topic, rows in self._asked.items():
            known = known_topic(coordinator.cluster, *topic)
            if known is not None:
                self._topic_ids[topic] = known.topic_id
            for number, each in enumerate(rows.values(), start=1):
                one = checked(known, unknown_code, each)
                code = one.error_code or text_error(one.metadata, moment)
                self._codes.append(code)
                if code == errors.NONE and not is_full:
                    record = committed(asked, self.request.group_id, one, moment.now_wall_ms)
                    self._records.append(record)
                    self._texts_size += len(record.metadata)
                    is_full = not encoded.add(record)
                    yield UNITS_PER_RECORD
                elif number % PARTITIONS_PER_STEP == 0:
                    yield 1 + PARTITIONS_PER_STEP // ELEMENTS_PER_UNIT
            yield 1
        return encoded

    def _is_as_checked(self) -> bool:
        for topic in self._asked:
            known = known_topic(self._coordinator.cluster, *topic)
            if (None if known is None else known.topic_id) != self._topic_ids.get(topic):
                return False
        return True

    # -- the answer

    def respond(self, codes: Iterator[int]) -> None:
        answer = LongAnswer(self.context)
        self._long_answers.begin(answer, self._rows(answer, codes))

    def _rows(self, answer: LongAnswer, codes: Iterator[int]) -> Iterator[int]:
        answer.open(OffsetCommitResponse())
        for (name, topic_id), rows in self._asked.items():
            answer.open(OffsetCommitResponseTopic(name, topic_id))
            for number, index in enumerate(rows, start=1):
                answer.add(OffsetCommitResponsePartition(index, next(codes)))
                if number % PARTITIONS_PER_STEP == 0:
                    yield PARTITIONS_PER_STEP // 5
            answer.close()
            yield 1

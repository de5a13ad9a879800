"""Produce (key 0): append batches and answer when they count.  Hot.

Each partition is checked and appended by itself; a request of many partitions appends some in each
turn (`produce_steps`).  The answer is given after the turn's write at the earliest, so that a
failed write is never acknowledged.  With acks=-1, or acks=1 under `flush.policy=commit`, it is
given when the records can no longer be lost.  With acks=0 there is no answer, but a next request on
the connection that is no produce waits as if there were one, so that it sees the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from tarry.base import errors
from tarry.base.limits import SCHEDULE_PLACES_MAX
from tarry.base.turn import Turn
from tarry.broker.delayed.produce import DelayedProduce, Produced, Produces, ProduceStatus
from tarry.broker.delayed.recompressions import RecompressedProduce, Recompressions
from tarry.broker.delayed.throttling import Throttling
from tarry.broker.flushes import Flushes
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.cluster.state.scheduled_topics import only_shows
from tarry.log.compaction.effort import Effort
from tarry.partition.leader import AppendResult, append_as_leader, may_open
from tarry.partition.recompression import Recompression
from tarry.partition.replicated_log import ReplicatedLog
from tarry.partition.topic import HostedTopic, ReadableTopic, ScheduledTopic
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tarry.wire.reader import Window

# KIP-516: from this version on a produce names topics by id.
VERSION_OF_TOPIC_IDS: Final = 13

# Time-out of a produce with acks=0, whose client waits for no answer.
UNACKNOWLEDGED_MS_MAX: Final = 30_000

# A request of more elements is appended in shares: a partition takes 20 µs with its write, and 150
# µs if files have to be opened.
LONG_PRODUCE_ELEMENTS: Final = 200

NAMED_TWICE: Final = "a produce names each partition once"


class ProduceHandler:
    """Handler of produces, with the parts of the broker that it needs.

    `take_steps` handles a produce to many partitions, or one whose batches are ready and too much
    work to append at once.
    """

    def __init__(
        self,
        topics: Topics,
        turn: Turn,
        flushes: Flushes,
        produces: Produces,
        recompressions: Recompressions,
        *,
        throttling: Throttling,
        take_steps: Callable[
            [ProduceHandler, RequestContext, ProduceRequest, RecompressedProduce | None],
            Message | None,
        ],
    ) -> None:
        self.turn = turn
        self.produces = produces
        self.recompressions = recompressions
        self._topics = topics
        self._flushes = flushes
        self._take_steps = take_steps
        self._throttling = throttling
        # Number of the produce being handled; it marks partitions, to find one that is named twice.
        self._number: i64 = 0

    def handle(self, context: RequestContext, request: ProduceRequest) -> Message | None:
        """Append each batch, or refuse; the answer follows after the write at the earliest."""
        if context.elements > LONG_PRODUCE_ELEMENTS:
            return self._take_steps(self, context, request, None)
        if self._needs_steps(context, request):
            produce = ProduceInSteps(self, context, request)
            self._collect(produce)
            if not self.recompressions.try_finish_or_wait(produce):
                return None
            return produce.append()
        return self.append_all(context, request, None)

    def _needs_steps(self, context: RequestContext, request: ProduceRequest) -> bool:
        for asked_topic in request.topic_data:
            hosted = self.hosted(context, asked_topic)
            if hosted is None or hosted.is_internal:
                continue
            for asked in asked_topic.partition_data:
                if hosted.goes_in_steps(asked.index) or self.may_open(hosted, asked):
                    return True
        return False

    def may_open(self, hosted: HostedTopic, asked: PartitionProduceData) -> bool:
        """Return whether the batch for a partition has to be opened before it is appended."""
        partition = hosted.partition(asked.index)
        records = asked.records
        return (
            partition is not None
            and isinstance(records, Window)
            and may_open(partition.config, records, self.turn.now_wall_ms)
        )

    def append_in_shares(self, produce: ProduceInSteps) -> Message | None:
        """Append prepared batches, some in each turn."""
        return self._take_steps(self, produce.context, produce.request, produce)

    def append_all(
        self,
        context: RequestContext,
        request: ProduceRequest,
        made: dict[tuple[int, int], Recompression] | None,
    ) -> Message | None:
        """Append each batch; `made` has the batches that were recompressed, which replace the
        sent ones.
        """
        response = ProduceResponse()
        statuses: list[ProduceStatus] = []
        self.begin()
        must_wait = is_any_refused = False
        for topic_index, asked_topic in enumerate(request.topic_data):
            topic_answer = TopicProduceResponse(
                name=asked_topic.name, topic_id=asked_topic.topic_id
            )
            response.responses.append(topic_answer)
            topic = self.topic(context, asked_topic)
            for index, asked in enumerate(asked_topic.partition_data):
                answer = PartitionProduceResponse(index=asked.index)
                topic_answer.partition_responses.append(answer)
                ready = None if made is None else made.get((topic_index, index))
                status = self.append_one(context, request, topic, asked, answer, ready)
                statuses.append(status)
                response.throttle_time_ms = max(response.throttle_time_ms, status.throttle_ms)
                must_wait = must_wait or status.is_pending
                is_any_refused = is_any_refused or answer.error_code != errors.NONE
        if request.acks == 0:
            if _is_refused_unacknowledged(context, statuses):
                return None
            if not must_wait:
                context.respond_nothing()
                return None
        if not must_wait:
            if is_any_refused:
                self.produces.hints.add_to_produce(context, response)
            return response
        produced = Produced(context, request.acks, statuses, response, self.produces.hints)
        self.wait_for(produced, self.deadline_ms(request))
        return None

    def deadline_ms(self, request: ProduceRequest) -> int:
        """Return until when a produce that arrives in this turn may wait, in ms."""
        timeout_ms = UNACKNOWLEDGED_MS_MAX if request.acks == 0 else max(request.timeout_ms, 0)
        return self.turn.now_ms + timeout_ms

    def wait_for(self, produced: Produced, deadline_ms: int) -> None:
        """Answer a produce once its records count, or when it times out."""
        self.produces.settle_after_write(DelayedProduce(deadline_ms, produced))

    def begin(self) -> None:
        """Begin a produce, or a share of one: a partition that it names twice is refused."""
        self._number += 1

    def hosted(self, context: RequestContext, asked_topic: TopicProduceData) -> HostedTopic | None:
        """Return the topic that a produce names by name or id, as its version has it; or None."""
        if context.api_version >= VERSION_OF_TOPIC_IDS:
            return self._topics.with_id(asked_topic.topic_id)
        return self._topics.get(asked_topic.name)

    def topic(self, context: RequestContext, asked_topic: TopicProduceData) -> ReadableTopic | None:
        """Return the topic that a produce names, which may be virtual and must not be written
        then.
        """
        hosted = self.hosted(context, asked_topic)
        if hosted is not None:
            return hosted
        if context.api_version >= VERSION_OF_TOPIC_IDS:
            return self._topics.readable_with_id(asked_topic.topic_id)
        return self._topics.readable(asked_topic.name)

    def _collect(self, produce: RecompressedProduce) -> None:
        """Add the batches of a produce that have to be recompressed or opened."""
        context = produce.context
        for topic_index, asked_topic in enumerate(produce.request.topic_data):
            hosted = self.hosted(context, asked_topic)
            if hosted is None or hosted.is_internal:
                continue
            for index, asked in enumerate(asked_topic.partition_data):
                partition = hosted.partition(asked.index)
                records = asked.records
                if partition is None or not isinstance(records, Window):
                    continue
                if hosted.goes_in_steps(asked.index) or self.may_open(hosted, asked):
                    produce.add(topic_index, index, partition, records)

    def append_one(
        self,
        context: RequestContext,
        request: ProduceRequest,
        topic: ReadableTopic | None,
        asked: PartitionProduceData,
        answer: PartitionProduceResponse,
        ready: Recompression | None,
    ) -> ProduceStatus:
        """Check the batch for one partition and append it, or say in `answer` why not."""
        answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
        if request.acks < -1 or request.acks > 1:
            answer.error_code = errors.INVALID_REQUIRED_ACKS
            return ProduceStatus(None, 0, answer)
        partition = topic.partition(asked.index) if topic is not None else None
        if partition is None:
            answer.error_code = _missing_code(topic, asked.index, context.api_version)
            return ProduceStatus(None, 0, answer)
        if partition.leadership.rests():
            answer.error_code = errors.NOT_LEADER_OR_FOLLOWER
            answer.error_message = "this broker has lost its lease and may be dead to the others"
            return ProduceStatus(None, 0, answer)
        if topic is not None and topic.is_internal:
            answer.error_code = errors.INVALID_TOPIC_EXCEPTION
            answer.error_message = _why_not_written(topic)
            return ProduceStatus(None, 0, answer)
        if partition.produce_number == self._number:
            answer.error_code = errors.INVALID_REQUEST
            answer.error_message = NAMED_TWICE
            return ProduceStatus(None, 0, answer)
        partition.produce_number = self._number
        records = asked.records
        if not isinstance(records, Window):
            answer.error_code = errors.INVALID_RECORD
            answer.error_message = "a produce needs one record batch for each partition"
            return ProduceStatus(None, 0, answer)
        acks, version, writer = request.acks, context.api_version, context.connection.id
        if ready is None:
            result = append_as_leader(partition, records, acks, version, self.turn, writer)
        elif ready.partition is partition:
            result = ready.append(acks, self.turn, writer)
        else:
            # The topic was deleted meanwhile, and created again.
            answer.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
            return ProduceStatus(None, 0, answer)
        if result.has_opened:
            self.turn.opened_batches += 1
        if result.error_code != errors.NONE:
            _refuse(context, partition, answer, result)
            return ProduceStatus(None, 0, answer)
        if result.throttle_ms > 0:
            self._throttling.pause(context.connection, result.throttle_ms)
        log = result.log
        if result.is_appended and log is not None:
            self._flushes.touch(log)
        answer.base_offset, answer.s_offset = result.base_offset, result.s_offset
        answer.log_append_time_ms = result.log_append_time_ms
        answer.log_start_offset = partition.log.log_start_offset
        return ProduceStatus(log, result.required_offset, answer, result.throttle_ms)


def _missing_code(topic: ReadableTopic | None, index: int, api_version: int) -> int:
    """Return the error for a partition that is not here; newer requests name topics by id."""
    if topic is None and api_version >= VERSION_OF_TOPIC_IDS:
        return errors.UNKNOWN_TOPIC_ID
    return missing_code(topic, index)


def _why_not_written(topic: ReadableTopic) -> str:
    """Return why nobody may write an internal topic."""
    if isinstance(topic, ScheduledTopic):
        return only_shows(topic.name)
    return f"{topic.name} is written by the broker alone"


class ProduceInSteps(RecompressedProduce):
    """A produce whose batches are prepared before any of them is appended.

    All batches are appended in one turn, unless their records have more due times and ids than one
    batch may have: parking the records of 200 such batches would take seconds.
    """

    def __init__(
        self, handler: ProduceHandler, context: RequestContext, request: ProduceRequest
    ) -> None:
        super().__init__(context, request)
        self._handler = handler

    def try_finish(self, effort: Effort) -> bool:
        if not super().try_finish(effort):
            return False
        self.is_in_shares = self.place_count > SCHEDULE_PLACES_MAX
        return True

    def append(self) -> Message | None:
        if self.is_in_shares:
            return self._handler.append_in_shares(self)
        return self._handler.append_all(self.context, self.request, self.made)


def _refuse(
    context: RequestContext,
    partition: ReplicatedLog,
    answer: PartitionProduceResponse,
    result: AppendResult,
) -> None:
    if result.error_code == errors.CORRUPT_MESSAGE:
        # Changed bytes show a fault of a network or a memory: worth a line.
        context.report(f"a batch for {partition.name} came damaged: {result.message}")
    answer.error_code = result.error_code
    answer.error_message = result.message
    if result.record_errors is not None:
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=sentence)
            for index, sentence in result.record_errors
        ]


def _is_refused_unacknowledged(context: RequestContext, statuses: list[ProduceStatus]) -> bool:
    for status in statuses:
        if status.answer.error_code != errors.NONE:
            # With acks=0 a closed connection is the only way to say that records were refused,
            # so that the client looks at the metadata again.  Kafka does the same.
            context.close_connection(
                f"a produce with acks=0 was refused: {errors.error_name(status.answer.error_code)}"
            )
            return True
    return False

"""Produce to thousands of partitions: appended in shares, a few in a turn, and answered in steps.

A share is checked, appended and written in one turn, and waits by itself.  So each partition has
what a request of one turn would give it: its batch is appended or not, a duplicate is found, a
failed write is never acknowledged, and the partitions behind it are tried all the same.  The
connection is held until the last share is appended, so no later request of it reaches a partition
first.  While many shares wait, the next ones wait too, until the request's time is over.  The
answer comes when every partition counts or has failed.

If the client leaves before the last append, the shares that are left are given up: the client will
send the request again, and late batches could come behind that.  With acks=0 no client repeats a
request, so all of it is appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.apis.produce import NAMED_TWICE, ProduceHandler
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.delayed.produce import ProducedShare, ProduceInShares, ProduceStatus
from tarry.broker.delayed.recompressions import RecompressedProduce
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.request import RequestContext
from tarry.partition.recompression import Recompression
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tarry.wire.reader import Window

# Number of partitions of one share; a share that has so many bytes takes no further partition.
SHARE_PARTITIONS: Final = 20
SHARE_BYTES: Final = 256 * 1024

# Units of work of an append and its write, with the opening of a log's files; and the number of
# refusals that take one unit.
UNITS_PER_APPEND: Final = 8
REFUSALS_PER_UNIT: Final = 4

# Number of bytes that are checked, copied and written in the time of one unit of work.
BYTES_PER_UNIT: Final = 4 * 1024

# Number of bytes that are checked, copied and written in the time in which one record with a due
# time or an id of its own is parked.
BYTES_PER_PLACE: Final = 1024

# Number of rows that one step adds to the answer.
ROWS_PER_STEP: Final = 20


def begin(
    long_answers: LongAnswers,
    handler: ProduceHandler,
    context: RequestContext,
    request: ProduceRequest,
    ready: RecompressedProduce | None = None,
) -> Message | None:
    """Begin the steps of a produce to many partitions, or of one whose batches are in `ready`."""
    produce = LargeProduce(long_answers, handler, context, request)
    return produce.begin(produce.prepare() if ready is None else produce.append(ready))


class BatchPlace:
    """Place of one batch in a request, its prepared batch if there is one, and the topic's row
    in the answer.
    """

    __slots__ = ("asked", "asked_topic", "ready", "topic_row")

    def __init__(
        self,
        asked_topic: TopicProduceData,
        topic_row: TopicProduceResponse,
        asked: PartitionProduceData,
        ready: Recompression | None,
    ) -> None:
        self.asked_topic = asked_topic
        self.topic_row = topic_row
        self.asked = asked
        self.ready = ready

    @property
    def size(self) -> int:
        """Bytes of the batch to be appended, and the bytes that its due times and ids count for."""
        ready = self.ready
        if ready is not None:
            return int(ready.check.window.size) + BYTES_PER_PLACE * ready.place_count
        records = self.asked.records
        return records.size if isinstance(records, Window) else 0


class LargeProduce(ProduceInShares):
    """A produce to many partitions."""

    def __init__(
        self,
        long_answers: LongAnswers,
        handler: ProduceHandler,
        context: RequestContext,
        request: ProduceRequest,
    ) -> None:
        super().__init__(context, request)
        self._long_answers = long_answers
        self._handler = handler
        self._named: dict[ReplicatedLog, None] = {}
        self._appends: Iterator[int] = iter(())
        self._deadline_ms = handler.deadline_ms(request)
        self._refused_code: int = errors.NONE
        # True if the request has timed out while it waited for room.
        self._is_late = False

    def begin(self, steps: Iterator[int]) -> Message | None:
        """Take the steps before the answer; with acks=0 all of them, even if the client leaves."""
        answer = LongAnswer(self.context, must_end=self.request.acks == 0)
        return self._long_answers.begin(answer, steps)

    # -- before the appends

    def prepare(self) -> Iterator[int]:
        """Find the batches to be opened or recompressed; if there are none, append all."""
        handler, context = self._handler, self.context
        anew = _MadeAnew(self)
        is_any = False
        for topic_index, asked_topic in enumerate(self.request.topic_data):
            for index, asked in enumerate(asked_topic.partition_data):
                if index % ELEMENTS_PER_UNIT == 0:
                    hosted = handler.hosted(context, asked_topic)
                    yield 1
                if hosted is None or hosted.is_internal:
                    continue
                partition = hosted.partition(asked.index)
                if partition is None or not isinstance(asked.records, Window):
                    continue
                if hosted.goes_in_steps(asked.index) or handler.may_open(hosted, asked):
                    anew.add(topic_index, index, partition, asked.records)
                    is_any = True
        if not is_any:
            yield from self.append(None)
        elif handler.recompressions.try_finish_or_wait(anew):
            yield from self.append(anew)

    # -- the appends

    def append(self, anew: RecompressedProduce | None) -> Iterator[int]:
        """Append all batches, a share in each step; those in `anew` replace the ones that were
        sent.
        """
        if anew is not None:
            anew.begin_shares(self)
        yield from self._go_on(self._append_shares(anew))

    def time_out(self) -> Iterator[int]:
        """Answer each batch with REQUEST_TIMED_OUT, and append none."""
        self._is_late = True
        yield from self.append(None)

    def _go_on(self, appends: Iterator[int]) -> Iterator[int]:
        """Append share after share, and pause while many shares wait; shares that have timed out do
        not hold up others.
        """
        context = self.context
        is_paused = False
        try:
            for units in appends:
                yield units
                if context.now_ms < self._deadline_ms and self.must_pause():
                    is_paused = True
                    self._appends = appends
                    context.connection.hold()
                    return
        finally:
            # The steps also end here if they are given up because the client has left.
            if not is_paused:
                self.forget_batches()
        self.end_appends()

    def forget_batches(self) -> None:
        """Drop the references to the frame and to the steps, which refer to this produce.

        Shares that wait need neither, and a cycle with a frame of 100 MB would stay in memory for
        long.
        """
        self._appends = iter(())
        self._named = {}
        self.request.topic_data = []

    def go_on(self) -> None:
        # Steps under way refer to this produce, so it must not refer to them: that would be a
        # cycle.
        appends, self._appends = self._appends, iter(())
        self.begin(self._go_on(appends))
        self._long_answers.let_go_on(self.context.connection)

    def _append_shares(self, anew: RecompressedProduce | None) -> Iterator[int]:
        share: list[BatchPlace] = []
        size = 0
        try:
            for place in self._places(anew):
                share.append(place)
                size += place.size
                if len(share) == SHARE_PARTITIONS or size >= SHARE_BYTES:
                    yield self._append_share(share) + size // BYTES_PER_UNIT
                    share, size = [], 0
            if share:
                yield self._append_share(share) + size // BYTES_PER_UNIT
        finally:
            # The steps also end here if they are given up because the client has left.
            if anew is not None:
                anew.forget()

    def _places(self, anew: RecompressedProduce | None) -> Iterator[BatchPlace]:
        for topic_index, asked_topic in enumerate(self.request.topic_data):
            row = TopicProduceResponse(name=asked_topic.name, topic_id=asked_topic.topic_id)
            self.response.responses.append(row)
            for index, asked in enumerate(asked_topic.partition_data):
                ready = None if anew is None else anew.take((topic_index, index))
                yield BatchPlace(asked_topic, row, asked, ready)

    def _append_share(self, share: list[BatchPlace]) -> int:
        """Append the batches of a share, which are written in this turn; return the units of
        work.
        """
        statuses: list[ProduceStatus] = []
        for place in share:
            status = self._append_one(place)
            self.response.throttle_time_ms = max(self.response.throttle_time_ms, status.throttle_ms)
            if status.is_pending:
                statuses.append(status)
            elif self._refused_code == errors.NONE:
                self._refused_code = status.answer.error_code
        if statuses and not self.context.connection.is_closed:
            handler = self._handler
            waiting = ProducedShare(self, statuses, handler.produces.hints)
            # If the share was appended after the request's deadline, it expires in the next turn.
            handler.wait_for(waiting, self._deadline_ms)
        return 1 + UNITS_PER_APPEND * len(statuses) + len(share) // REFUSALS_PER_UNIT

    def _append_one(self, place: BatchPlace) -> ProduceStatus:
        handler, context, asked = self._handler, self.context, place.asked
        answer = PartitionProduceResponse(index=asked.index)
        place.topic_row.partition_responses.append(answer)
        if self._is_late:
            answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
            answer.error_code = errors.REQUEST_TIMED_OUT
            return ProduceStatus(None, 0, answer)
        # Between two shares a topic may have been deleted, or deleted and created again.
        topic = handler.topic(context, place.asked_topic)
        partition = None if topic is None else topic.partition(asked.index)
        if partition is not None and partition in self._named:
            answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
            answer.error_code = errors.INVALID_REQUEST
            answer.error_message = NAMED_TWICE
            return ProduceStatus(None, 0, answer)
        if partition is not None:
            self._named[partition] = None
        handler.begin()
        return handler.append_one(context, self.request, topic, asked, answer, place.ready)

    # -- the answer

    def respond(self) -> None:
        if self.request.acks == 0:
            self._end_unacknowledged()
            return
        answer = LongAnswer(self.context)
        self._long_answers.begin(answer, self._rows(answer))

    def _end_unacknowledged(self) -> None:
        context, code = self.context, self._refused_code
        if code != errors.NONE:
            context.close_connection(
                f"a produce with acks=0 was refused: {errors.error_name(code)}"
            )
        elif any(
            row.error_code == errors.KAFKA_STORAGE_ERROR
            for topic in self.response.responses
            for row in topic.partition_responses
        ):
            context.close_connection("a produce with acks=0 was lost: KAFKA_STORAGE_ERROR")
        else:
            context.respond_nothing()

    def _rows(self, answer: LongAnswer) -> Iterator[int]:
        hints = self._handler.produces.hints
        endpoints: dict[int, NodeEndpoint] = {}
        answer.open(ProduceResponse())
        for topic in self.response.responses:
            answer.open(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id))
            rows = topic.partition_responses
            for start in range(0, len(rows), ROWS_PER_STEP):
                share = rows[start : start + ROWS_PER_STEP]
                part = ProduceResponse([TopicProduceResponse(topic.name, topic.topic_id, share)])
                hints.add_to_produce(self.context, part)
                for each in part.node_endpoints:
                    endpoints[each.node_id] = each
                for row in share:
                    answer.add(row)
                yield ROWS_PER_STEP // 5
            answer.close()
            yield 1
        answer.end_with(
            ProduceResponse(
                throttle_time_ms=self.response.throttle_time_ms,
                node_endpoints=list(endpoints.values()),
            )
        )


class _MadeAnew(RecompressedProduce):
    """The batches of a large produce that have to be recompressed or opened before its appends."""

    def __init__(self, produce: LargeProduce) -> None:
        super().__init__(produce.context, produce.request, is_in_shares=True)
        self._produce = produce

    def append(self) -> Message | None:
        return self._produce.begin(self._produce.append(self))

    def time_out(self) -> Message | None:
        return self._produce.begin(self._produce.time_out())

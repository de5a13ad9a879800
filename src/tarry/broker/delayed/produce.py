"""DelayedProduce: waits until each partition's records may be acknowledged.

Every partition starts at REQUEST_TIMED_OUT and is settled by its high watermark (acks=-1), by
the leader's flushed end (acks=1 and 0), or by an error; expiry answers what is settled as settled,
and the records stay.  With acks=0 the end of the wait is the answer: what the connection asks next
sees the records.  Hot: under `flush.policy=commit` every produce waits here.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy_extensions import i64

from tarry.base import errors
from tarry.broker.part import WaitingPart
from tarry.broker.request import RequestContext
from tarry.partition.state import Partition, PartitionKey
from tarry.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from tarry.purgatory.operation import PayloadOperation
from tarry.timer.wheel import TimingWheel


class ProduceStatus:
    """Status of one partition of the request: below which offset it must count, and its answer."""

    def __init__(
        self, partition: Partition | None, required_offset: int, answer: PartitionProduceResponse
    ) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.answer = answer
        self.is_pending = partition is not None
        # At the append: where another one has led since, the records may be others.
        self.led_since = 0 if partition is None else partition.led_since


class Produced:
    """Produce request whose records wait: to whom, on which terms, and with which answer."""

    def __init__(
        self,
        context: RequestContext,
        acks: int,
        statuses: list[ProduceStatus],
        response: ProduceResponse,
    ) -> None:
        self.context = context
        self.acks = acks
        self.statuses = statuses
        self.response = response
        self.add_hints: Callable[[RequestContext, ProduceResponse], None] | None = None

    def settle(self) -> bool:
        """Settle what can be settled; True if no partition is left."""
        pending: i64 = 0
        for status in self.statuses:
            if not status.is_pending:
                continue
            partition = status.partition
            assert partition is not None
            if partition.gone_code != errors.NONE:
                _fail(status, partition.gone_code)
            elif partition.led_since != status.led_since:
                _fail(status, errors.NOT_LEADER_OR_FOLLOWER)
            elif partition.acked_end(self.acks) >= status.required_offset:
                self._settle(status, partition)
            elif partition.rests():
                # Another one may lead by now, and what is missing here would never come.
                _fail(status, errors.NOT_LEADER_OR_FOLLOWER)
            else:
                pending += 1
        return pending == 0

    def _settle(self, status: ProduceStatus, partition: Partition) -> None:
        status.is_pending = False
        if self.acks == -1 and partition.is_under_min_isr():
            # The records are in the log but on fewer replicas than the topic asks for.
            status.answer.error_code = errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            return
        status.answer.error_code = errors.NONE

    def answer(self) -> None:
        """Answer, with REQUEST_TIMED_OUT for what is not settled."""
        is_lost = False
        is_moved = False
        for status in self.statuses:
            if status.is_pending:
                _fail(status, errors.REQUEST_TIMED_OUT)
            elif status.answer.error_code == errors.KAFKA_STORAGE_ERROR:
                is_lost = True
            elif status.answer.error_code == errors.NOT_LEADER_OR_FOLLOWER:
                is_moved = True
        context = self.context
        if is_moved and self.add_hints is not None:
            self.add_hints(context, self.response)
        if self.acks != 0:
            context.respond(self.response)
        elif is_lost:
            context.close_connection("a produce with acks=0 was lost: KAFKA_STORAGE_ERROR")
        else:
            context.respond_nothing()


class DelayedProduce(PayloadOperation[Produced]):
    """The answer to one produce request, given when its last partition is settled."""

    def __init__(
        self,
        context: RequestContext,
        acks: int,
        statuses: list[ProduceStatus],
        response: ProduceResponse,
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms, Produced(context, acks, statuses, response))

    def context_waits(self) -> None:
        """Note that the request waits for this operation from now on."""
        produced = self.payload
        assert produced is not None
        produced.context.operation = self

    def fail_what_was_not_written(self) -> None:
        """After the turn's write: what was dropped with its tail is a storage error."""
        produced = self.payload
        assert produced is not None
        for status in produced.statuses:
            partition = status.partition
            if (
                partition is not None
                and status.is_pending
                and status.required_offset > partition.log.written_end_offset
            ):
                _fail(status, errors.KAFKA_STORAGE_ERROR)

    def keys(self) -> list[PartitionKey]:
        """Return the partitions that the operation still waits for."""
        produced = self.payload
        assert produced is not None
        keys: list[PartitionKey] = []
        for status in produced.statuses:
            partition = status.partition
            if partition is not None and status.is_pending:
                keys.append(partition.key)
        return keys

    def is_ready(self, payload: Produced) -> bool:
        return payload.settle()

    def complete_with(self, payload: Produced) -> None:
        payload.answer()


class Produces(WaitingPart):
    """Produces that are appended to tails, and those that wait until their records count."""

    def __init__(self, timer: TimingWheel) -> None:
        super().__init__(timer, "Produce")
        # In a cluster: names the leaders of what is not led here.
        self.add_hints: Callable[[RequestContext, ProduceResponse], None] | None = None
        self._unsettled: list[DelayedProduce] = []

    def settle_after_write(self, operation: DelayedProduce) -> None:
        """Take a produce that was appended to tails; it goes on when they are written."""
        produced = operation.payload
        if self.add_hints is not None and produced is not None:
            produced.add_hints = self.add_hints
        self._unsettled.append(operation)

    def settle(self) -> None:
        unsettled = self._unsettled
        if not unsettled:
            return
        self._unsettled = []
        for operation in unsettled:
            operation.fail_what_was_not_written()
            if not operation.try_complete():
                operation.context_waits()
                self.watch(operation, operation.keys())

    def on_moved(self, partition: Partition) -> None:
        self.touch(partition.key)

    def has_work_left(self) -> bool:
        return len(self._unsettled) > 0 or len(self.touched) > 0


def _fail(status: ProduceStatus, error_code: int) -> None:
    status.is_pending = False
    status.answer.error_code = error_code
    status.answer.base_offset = -1

"""Runtime of a shard: it keeps a state in a partition of an internal topic.

A state is what a coordinator keeps in one partition, such as groups or transactions.  The runtime
appends the state's records as the leader, holds them until the high watermark has passed them, and
applies them in the log's order.  It reports failed appends to the state, the newest first.  It
knows the state only by the contract of `ShardState`.

Two shards share nothing, so that none blocks the other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.base.turn import Turn
from tarry.broker.coordinator.recorded import DelayedRecorded, PendingAppend
from tarry.broker.coordinator.tickets import NO_TICKET, Tickets
from tarry.broker.flushes import Flushes
from tarry.partition.leader import append_own
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.purgatory import Purgatory
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder
from tarry.records.record import Record

# Bound on the bytes of a record besides key and value: lengths, offset, time and attributes.
RECORD_OVERHEAD_MAX: Final = 40

R = TypeVar("R")
A = TypeVar("A")


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardContext:
    """Surroundings that the shards of one coordinator share.

    `recorded` is the purgatory of requests that wait for the high watermark, at most
    `recorded_timeout_ms` long.  `content` is the word for the shards' content in log lines.
    """

    def __init__(
        self,
        content: str,
        turn: Turn,
        flushes: Flushes,
        recorded: Purgatory,
        recorded_timeout_ms: int,
        logger: logging.Logger,
    ) -> None:
        self.content = content
        self.turn = turn
        self.flushes = flushes
        self.recorded = recorded
        self.recorded_timeout_ms = recorded_timeout_ms
        self.logger = logger
        self.tickets = Tickets()
        # Shards that have appended something since the last write.
        self.unsettled: dict[ShardRuntime, None] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardLoad:
    """Loading of one state: `add` is called for every record of the log, then `step` until it is
    true.

    Both may raise `CorruptData`; then the shard stays unavailable.
    """

    def add(self, key: bytes, value: bytes | None, offset: int) -> None:
        """Take one record, in the log's order."""
        raise NotImplementedError

    def add_control(self, header: BatchHeader, record: Record) -> None:
        """Take the record of a control batch; a state without transactions ignores it."""

    def step(self) -> bool:
        """Do a part of the work that follows the last record; return true when the state is
        complete.
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardState(Generic[R, A]):
    """State that one partition keeps: the contract between a state and its runtime.

    Once the state is loaded, the runtime calls `encode`, `apply`, `on_recorded` and
    `on_append_failed`.  R is the type of its records.  A is the type that describes an append: what
    its records mean, and which request they answer.
    """

    def __init__(self, partition: ReplicatedLog, context: ShardContext) -> None:
        self.runtime = ShardRuntime(self, partition, context)

    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """Return key and value of a record."""
        raise NotImplementedError

    def apply(self, record: R, offset: int) -> None:
        """Change the durable part of the state by a record that is below the high watermark."""
        raise NotImplementedError

    def on_recorded(self, append: A) -> None:
        """React to an append whose records are all durable and applied."""
        raise NotImplementedError

    def on_append_failed(self, append: A, error_code: int) -> None:
        """Undo an append that the log has not kept.  If several have failed, the newest comes
        first.
        """
        raise NotImplementedError

    def begin_load(self) -> ShardLoad:
        """Return an object that takes the records of the log."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the number of items in the state, for a log line."""
        raise NotImplementedError

    def on_stall(self) -> None:
        """React to the end of a time in which this broker could not receive heartbeats: the process
        was stopped, or another broker might have led the partition.
        """

    def on_stop(self) -> None:
        """Answer the requests that would still wait when the broker has stopped."""

    def on_rest(self) -> None:
        """Answer the requests that wait, and keep the state: another broker may lead the
        partition.
        """

    def on_unload(self) -> None:
        """Answer the requests that wait, and drop the state: another broker leads, or the topic
        is deleted.
        """


class EncodedRecords:
    """Encoder of a state's records into one batch, or into several if they may be split."""

    def __init__(
        self, state: ShardState[Any, Any], now_wall_ms: int, size_max: int, can_be_split: bool
    ) -> None:
        self._state = state
        self._now_wall_ms = now_wall_ms
        self._size_max = size_max
        self._can_be_split = can_be_split
        self._builder = BatchBuilder()
        self._builders = [self._builder]

    def add(self, record: object) -> bool:
        """Encode a record; return false if the batch is too large.

        The log refuses such a batch as a whole, so the records that follow need not be encoded.
        """
        key, value = self._state.encode(record)
        builder = self._builder
        size = len(key) + (0 if value is None else len(value)) + RECORD_OVERHEAD_MAX
        if self._can_be_split and builder.count > 0 and builder.size + size > self._size_max:
            builder = self._builder = BatchBuilder()
            self._builders.append(builder)
        builder.append(self._now_wall_ms, key, value)
        return builder.size <= self._size_max

    def build(self) -> list[bytes]:
        """Return the batches."""
        return [each.build() for each in self._builders if each.count > 0]


class ShardRuntime:
    """Runtime of one shard.  Every request is answered `error_code` until that is NONE."""

    def __init__(
        self, state: ShardState[Any, Any], partition: ReplicatedLog, context: ShardContext
    ) -> None:
        self.state = state
        self.partition = partition
        self.context = context
        self.error_code: int = errors.COORDINATOR_LOAD_IN_PROGRESS
        # True while a chore reads the log.  A shard that is loading and is not being read waits for
        # the high watermark, perhaps for as long as other brokers are away.
        self.is_being_read = False
        # True once waiting requests were answered because another broker may lead the partition.
        self._is_resting = False
        self._pending: deque[PendingAppend] = deque()

    def code(self) -> int:
        """Return the error with which a request is answered now; NONE if the state can decide
        about it.
        """
        error_code = self.error_code
        if error_code == errors.NONE and self.rests():
            # Another broker may lead already, and the state here may be out of date.
            return errors.NOT_COORDINATOR
        return error_code

    def rests(self) -> bool:
        """Return whether this broker leads the partition, but another may lead it by now."""
        return self.partition.leadership.rests()

    # -- appends

    def append(
        self,
        append: object,
        records: Sequence[object],
        ticket: int = NO_TICKET,
        can_be_split: bool = False,
    ) -> int:
        """Append records of the state to the log's tail; return an error code, NONE if they were
        taken.

        The records are one batch, which a crash keeps or loses as a whole, unless they
        `can_be_split`.  The request with this ticket waits for them.  If the append is refused, the
        caller undoes it after it has carried out the rest of its decision.
        """
        encoded = self.begin_encoding(can_be_split)
        for record in records:
            if not encoded.add(record):
                break
        return self.append_batches(append, records, encoded.build(), ticket)

    def append_batches(
        self,
        append: object,
        records: Sequence[object],
        batches: list[bytes],
        ticket: int = NO_TICKET,
    ) -> int:
        """Append batches that are built already; otherwise like `append`.

        If `records` is empty, as for a control batch, the state learns of them by `on_recorded`
        alone.
        """
        partition = self.partition
        context = self.context
        if partition.leadership.followers is not None:
            if self.rests():
                # A decision made by a time-out here may differ from that of another coordinator.
                return errors.NOT_LEADER_OR_FOLLOWER
            if partition.leadership.is_under_min_isr():
                # Records on too few replicas would not be committed before their request times
                # out.  A produce with acks=all is refused for the same reason.
                return errors.NOT_ENOUGH_REPLICAS
        result = append_own(partition, batches, context.turn)
        if result.is_appended:
            context.flushes.touch(partition)
        if result.error_code != errors.NONE:
            return result.error_code
        pending = PendingAppend(append, records, result.base_offset, result.required_offset)
        self._pending.append(pending)
        context.unsettled[self] = None
        if ticket != NO_TICKET:
            deadline_ms = context.turn.now_ms + context.recorded_timeout_ms
            operation = DelayedRecorded(context.tickets, pending, ticket, deadline_ms)
            context.recorded.watch(operation, [partition.watch_key])
        return errors.NONE

    def begin_encoding(self, can_be_split: bool = False) -> EncodedRecords:
        """Return an encoder of records for `append_batches`, which may be used over several
        turns.
        """
        size_max = self.partition.config.max_message_bytes
        return EncodedRecords(self.state, self.context.turn.now_wall_ms, size_max, can_be_split)

    def settle(self) -> None:
        """Report appends as failed whose records were lost with the tail.  Called after the
        turn's write.
        """
        pending = self._pending
        written = self.partition.log.written_end_offset
        failed: list[PendingAppend] = []
        while pending and pending[-1].required_offset > written:
            failed.append(pending.pop())
        # The newest comes first, since a state that changed twice is restored in reverse order.
        for each in failed:
            each.is_settled = True
            self.state.on_append_failed(each.append, errors.KAFKA_STORAGE_ERROR)
        if failed:
            self._check_recorded()

    def advance(self) -> None:
        """Apply the records that the high watermark has passed, in the log's order."""
        pending = self._pending
        high_watermark = self.partition.high_watermark
        state = self.state
        has_advanced = False
        while pending and pending[0].required_offset <= high_watermark:
            each = pending.popleft()
            each.is_settled = True
            has_advanced = True
            offset = each.base_offset
            for record in each.records:
                state.apply(record, offset)
                offset += 1
            state.on_recorded(each.append)
        if has_advanced:
            self._check_recorded()
        if self.rests():
            self.begin_rest()
        else:
            self.end_rest()

    def _check_recorded(self) -> None:
        self.context.recorded.check_and_complete(self.partition.watch_key)

    def begin_rest(self) -> None:
        """Answer the requests that wait; a further call answers those that have come since."""
        self._is_resting = True
        self.state.on_rest()

    def end_rest(self) -> bool:
        """End a rest and restart sessions; return true if there was a rest."""
        if not self._is_resting:
            return False
        self._is_resting = False
        self.state.on_stall()
        return True

    # -- the partition comes and goes

    def is_loading(self) -> bool:
        """Return whether the log's content is not known as a whole yet."""
        return self.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS

    def can_be_loaded(self) -> bool:
        """Return whether all of the log counts, and no earlier append still waits for replicas."""
        log = self.partition.log
        return log.flaw_offset >= 0 or self.partition.high_watermark >= log.log_end_offset

    def unload(self) -> None:
        """Drop the state and answer the requests that wait: this broker no longer leads the
        partition.
        """
        self.error_code = errors.NOT_COORDINATOR
        for each in self._pending:
            each.is_settled = True
        self._pending.clear()
        self.state.on_unload()
        self._check_recorded()

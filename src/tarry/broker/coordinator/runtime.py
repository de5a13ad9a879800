"""Runtime of a shard: how a partition of an internal topic carries a state.

A state is what a coordinator keeps in one partition: groups, transactions.  The runtime appends
its records as the leader, holds them until the high watermark has passed them, applies them in the
log's order, and tells the state what has failed, newest first.  It knows the state by the
contract of `ShardState` alone.

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

# What a record takes beside its key and value: lengths, place, time, attributes; in bytes.
RECORD_OVERHEAD_MAX: Final = 40

R = TypeVar("R")
A = TypeVar("A")


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardContext:
    """Surroundings that the shards of one coordinator share.

    `recorded` is the purgatory of requests that wait for the high watermark, for
    `recorded_timeout_ms` at most; `content` says in a word what the shards keep, for log lines.
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
        # Shards to whose tails something was appended since the last write.
        self.unsettled: dict[ShardRuntime, None] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardLoad:
    """Loading of one state: `add` for every record of the log, then `step` until it is True.

    Both may raise `CorruptData`: nothing of the shard is served then.
    """

    def add(self, key: bytes, value: bytes | None, offset: int) -> None:
        """Take one record, in the log's order."""
        raise NotImplementedError

    def add_control(self, header: BatchHeader, record: Record) -> None:
        """Take the record of a control batch; a state without transactions has no use for it."""

    def step(self) -> bool:
        """Do a part of what is left once all is read; True when the state is whole."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ShardState(Generic[R, A]):
    """State that one partition keeps: the contract between a state and its runtime.

    In life the runtime asks a state four things: `encode`, `apply`, `on_recorded` and
    `on_append_failed`.  R is the kind of its records.  A is its own word for an append: what the
    records mean, and for whom.
    """

    def __init__(self, partition: ReplicatedLog, context: ShardContext) -> None:
        self.runtime = ShardRuntime(self, partition, context)

    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """Return key and value of a record."""
        raise NotImplementedError

    def apply(self, record: R, offset: int) -> None:
        """Change the durable part of the state: the record is below the high watermark."""
        raise NotImplementedError

    def on_recorded(self, append: A) -> None:
        """React to an append of which all records are durable and applied."""
        raise NotImplementedError

    def on_append_failed(self, append: A, error_code: int) -> None:
        """Take an append back that the log has not kept.  Of several the newest comes first."""
        raise NotImplementedError

    def begin_load(self) -> ShardLoad:
        """Return what takes the records of the log."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the number of things that the state keeps, for a log line."""
        raise NotImplementedError

    def on_stall(self) -> None:
        """React to the end of a time in which nobody could be heard: the process was stopped, or
        another broker might have led the partition.
        """

    def on_stop(self) -> None:
        """Answer requests that would outlast the broker, which is stopping."""

    def on_rest(self) -> None:
        """Send away what waits and keep everything: another broker may lead the partition."""

    def on_unload(self) -> None:
        """Answer what waits and drop everything: the partition is led elsewhere, or gone."""


class EncodedRecords:
    """Encoder of a state's records into one batch, or into several where they can be split."""

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
        """Encode a record; False if the batch is too large.

        The log refuses such a batch as a whole, so the records behind need not be encoded.
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
    """Runtime of one shard.  `error_code` is what every request is answered until it is NONE."""

    def __init__(
        self, state: ShardState[Any, Any], partition: ReplicatedLog, context: ShardContext
    ) -> None:
        self.state = state
        self.partition = partition
        self.context = context
        self.error_code: int = errors.COORDINATOR_LOAD_IN_PROGRESS
        # A chore reads its log and brings that on with each turn.  A shard that is not known yet
        # and not read either waits for the high watermark, perhaps for as long as brokers are away.
        self.is_being_read = False
        # All that waits was sent away, since another broker may lead the partition.
        self._is_resting = False
        self._pending: deque[PendingAppend] = deque()

    def code(self) -> int:
        """Return what a request is answered now; NONE if the state can decide about it."""
        error_code = self.error_code
        if error_code == errors.NONE and self.rests():
            # Another may lead already: what is known here may be old.
            return errors.NOT_COORDINATOR
        return error_code

    def rests(self) -> bool:
        """Return whether the partition is led here, and another broker may lead it by now."""
        return self.partition.leadership.rests()

    # -- appends

    def append(
        self,
        append: object,
        records: Sequence[object],
        ticket: int = NO_TICKET,
        can_be_split: bool = False,
    ) -> int:
        """Append records of the state to the log's tail; an error code if it does not take them.

        They are one batch, which a crash keeps or loses as a whole, unless they `can_be_split`.
        The request with this ticket waits for them.  A refused append is the caller's to take
        back, when it has carried out the rest of its decision.
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
        """Append batches that are built already; like `append`.

        Without `records` only `on_recorded` tells the state of them, as of a control batch.
        """
        partition = self.partition
        context = self.context
        if partition.leadership.followers is not None:
            if self.rests():
                # What a time-out decides here, another coordinator may have decided otherwise.
                return errors.NOT_LEADER_OR_FOLLOWER
            if partition.leadership.is_under_min_isr():
                # As for acks=all: what too few replicas have would be answered to nobody.
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
        """Return an encoder of records for `append_batches`; it may be used over several turns."""
        size_max = self.partition.config.max_message_bytes
        return EncodedRecords(self.state, self.context.turn.now_wall_ms, size_max, can_be_split)

    def settle(self) -> None:
        """After the turn's write: fail what was dropped with its tail."""
        pending = self._pending
        written = self.partition.log.written_end_offset
        failed: list[PendingAppend] = []
        while pending and pending[-1].required_offset > written:
            failed.append(pending.pop())
        # The newest first: a state that went back twice goes back in that order.
        for each in failed:
            each.is_settled = True
            self.state.on_append_failed(each.append, errors.KAFKA_STORAGE_ERROR)
        if failed:
            self._check_recorded()

    def advance(self) -> None:
        """Apply what the high watermark has passed, in the log's order."""
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
        """Send away what waits; asked again: what has come since, too."""
        self._is_resting = True
        self.state.on_rest()

    def end_rest(self) -> bool:
        """Let all go on that was sent away before; true if anything was since this was asked."""
        if not self._is_resting:
            return False
        self._is_resting = False
        self.state.on_stall()
        return True

    # -- the partition comes and goes

    def is_loading(self) -> bool:
        """Return whether not everything that the log keeps is known yet."""
        return self.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS

    def can_be_loaded(self) -> bool:
        """Return whether all that the log holds counts: an earlier append may be under way."""
        log = self.partition.log
        return log.flaw_offset >= 0 or self.partition.high_watermark >= log.log_end_offset

    def unload(self) -> None:
        """Drop the state: the partition is not ours any more, and what waits is told."""
        self.error_code = errors.NOT_COORDINATOR
        for each in self._pending:
            each.is_settled = True
        self._pending.clear()
        self.state.on_unload()
        self._check_recorded()

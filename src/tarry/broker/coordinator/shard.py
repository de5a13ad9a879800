"""One partition of `__consumer_offsets` and the groups in it: decisions are carried out here.

The order of `group/decision.py` is kept: the new round, the records into the log's tail, the
heartbeats, the answers, and last the join and sync operations, which may expire at once.  Records
are applied when they are below the high watermark, in the log's order.

Two shards share nothing, so that none blocks the other.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.broker.coordinator.pending import PendingAppend
from tarry.broker.delayed.commit import DelayedCommit
from tarry.broker.delayed.heartbeat import DelayedHeartbeat
from tarry.broker.delayed.join import DelayedJoin
from tarry.broker.delayed.sync import DelayedSync
from tarry.group.appends import Append, OffsetsAppend, TombstonesAppend
from tarry.group.decision import Decision, HeartbeatWait
from tarry.group.outcomes import (
    decide_append_failed,
    decide_fresh_sessions,
    decide_join_expired,
    decide_recorded,
    decide_session_expired,
    decide_sync_expired,
    decide_unload,
)
from tarry.group.records import encode_record
from tarry.group.state import Groups, GroupState
from tarry.records.builder import BatchBuilder

if TYPE_CHECKING:
    from tarry.broker.coordinator.coordinator import Coordinator
    from tarry.partition.state import Partition


# What a record takes beside its key and value: lengths, place, time, attributes.
RECORD_OVERHEAD_MAX: Final = 40


class GroupOperations:
    """What of one group waits."""

    __slots__ = ("heartbeats", "join", "sync")

    def __init__(self) -> None:
        self.join: DelayedJoin | None = None
        self.sync: DelayedSync | None = None
        self.heartbeats: dict[str, DelayedHeartbeat] = {}

    def is_empty(self) -> bool:
        return self.join is None and self.sync is None and not self.heartbeats


class Shard:
    """See the module's text.  `error_code` is what every request is answered until it is NONE."""

    def __init__(self, coordinator: Coordinator, partition: Partition) -> None:
        self.coordinator = coordinator
        self.partition = partition
        self.groups = Groups()
        self.error_code: int = errors.COORDINATOR_LOAD_IN_PROGRESS
        self.operations: dict[str, GroupOperations] = {}
        self.pending: deque[PendingAppend] = deque()

    def group(self, group_id: str) -> GroupState:
        """The group, or one that does not exist yet."""
        return self.groups.group(group_id)

    # -- a decision is carried out

    def carry_out(self, group: GroupState, decision: Decision) -> None:
        """Put a decision into effect; see the module's text for the order."""
        self.groups.take(group, decision)
        append = decision.append
        error_code = errors.NONE if append is None else self._append(group.group_id, append)
        for wait in decision.heartbeats:
            self._follow_heartbeat(group.group_id, wait)
        coordinator = self.coordinator
        for answer in decision.answers:
            coordinator.answer(answer)
        if decision.notes:
            coordinator.history.note(group.group_id, decision.notes)
        if decision.round is not None:
            self._follow_round(group)
        if append is not None and error_code != errors.NONE:
            self._fail(group.group_id, append, error_code)

    def _append(self, group_id: str, append: Append) -> int:
        """The records into the log's tail; an error code if it does not take them."""
        coordinator = self.coordinator
        broker = coordinator.broker
        partition = self.partition
        batches = self._batches(append)
        if any(each.size > partition.config.max_message_bytes for each in batches):
            return errors.MESSAGE_TOO_LARGE
        if partition.log.flaw_offset >= 0:
            return errors.KAFKA_STORAGE_ERROR
        try:
            for each in batches:
                partition.log.append_bytes(each.build(), partition.leader_epoch, broker.now_wall_ms)
        except StorageError:
            return errors.KAFKA_STORAGE_ERROR
        broker.flushes.touch(partition)
        pending = PendingAppend(group_id, append, partition.log.log_end_offset)
        self.pending.append(pending)
        coordinator.settle_after_write(self)
        if isinstance(append, OffsetsAppend | TombstonesAppend) and append.answer is not None:
            operation = DelayedCommit(
                coordinator,
                pending,
                append.answer.ticket,
                broker.now_ms + broker.settings.offsets_commit_timeout_ms,
            )
            coordinator.commit_purgatory.try_complete_else_watch(operation, [partition.key])
        return errors.NONE

    def _batches(self, append: Append) -> list[BatchBuilder]:
        """The records as one batch.

        Of tombstones there may be more than a batch holds, and those that a crash leaves out are
        written again: when they are asked for once more, at the next start, or by age.
        """
        now_wall_ms = self.coordinator.broker.now_wall_ms
        size_max = self.partition.config.max_message_bytes
        can_be_split = isinstance(append, TombstonesAppend)
        builder = BatchBuilder()
        batches = [builder]
        for record in append.records:
            key, value = encode_record(record)
            if can_be_split and builder.size + len(key) + RECORD_OVERHEAD_MAX > size_max:
                builder = BatchBuilder()
                batches.append(builder)
            builder.append(now_wall_ms, key, value)
            if builder.size > size_max:
                # Refused as it is: the rest need not be encoded for that.
                break
        return [each for each in batches if each.count > 0]

    def _fail(self, group_id: str, append: Append, error_code: int) -> None:
        group = self.groups.group(group_id)
        moment = self.coordinator.moment()
        self.carry_out(group, decide_append_failed(group, append, error_code, moment))

    def settle(self) -> None:
        """After the turn's write: what was dropped with its tail has failed."""
        pending = self.pending
        written = self.partition.log.written_end_offset
        failed: list[PendingAppend] = []
        while pending and pending[-1].required_offset > written:
            failed.append(pending.pop())
        # The newest first: a state that went back twice goes back in that order.
        for each in failed:
            each.is_settled = True
            self._fail(each.group_id, each.append, errors.KAFKA_STORAGE_ERROR)
        if failed:
            self._check_commits()

    def advance(self) -> None:
        """The high watermark moved: what is below it counts and is answered."""
        pending = self.pending
        high_watermark = self.partition.high_watermark
        groups = self.groups
        has_advanced = False
        while pending and pending[0].required_offset <= high_watermark:
            each = pending.popleft()
            each.is_settled = True
            has_advanced = True
            for record in each.append.records:
                groups.apply(record)
            group = groups.group(each.group_id)
            self.carry_out(group, decide_recorded(group, each.append, self.coordinator.moment()))
        if has_advanced:
            self._check_commits()

    def _check_commits(self) -> None:
        self.coordinator.commit_purgatory.check_and_complete(self.partition.key)

    # -- operations that wait

    def _operations_of(self, group_id: str) -> GroupOperations:
        operations = self.operations.get(group_id)
        if operations is None:
            operations = self.operations[group_id] = GroupOperations()
        return operations

    def _follow_heartbeat(self, group_id: str, wait: HeartbeatWait) -> None:
        coordinator = self.coordinator
        operations = self._operations_of(group_id)
        operation = operations.heartbeats.get(wait.member_id)
        deadline_ms = wait.deadline_ms
        if wait.ends or deadline_ms is None:
            if operation is not None:
                del operations.heartbeats[wait.member_id]
                coordinator.heartbeat_purgatory.check_and_complete((group_id, wait.member_id))
            self._forget_idle(group_id, operations)
            return
        if operation is not None:
            # It may be due at once, if the session time-out is nothing: the next turn sees to it.
            due_ms = max(deadline_ms, coordinator.broker.now_ms + 1)
            coordinator.broker.timer.reschedule(operation, due_ms)
            return
        operation = DelayedHeartbeat(self, group_id, wait.member_id, deadline_ms)
        operations.heartbeats[wait.member_id] = operation
        coordinator.heartbeat_purgatory.try_complete_else_watch(
            operation, [(group_id, wait.member_id)]
        )

    def _follow_round(self, group: GroupState) -> None:
        group_id = group.group_id
        operations = self._operations_of(group_id)
        coordinator = self.coordinator
        now = group.round
        sync = operations.sync
        if sync is not None and (
            now.sync_deadline_ms != sync.deadline_ms or now.generation_id != sync.generation_id
        ):
            operations.sync = None
            coordinator.sync_purgatory.check_and_complete((group_id, sync.generation_id))
        if now.sync_deadline_ms is not None and operations.sync is None:
            sync = DelayedSync(self, group_id, now.generation_id, now.sync_deadline_ms)
            operations.sync = sync
            key = (group_id, now.generation_id)
            coordinator.sync_purgatory.try_complete_else_watch(sync, [key])
        join = operations.join
        if join is not None and now.join_deadline_ms != join.deadline_ms:
            operations.join = None
            coordinator.join_purgatory.check_and_complete(group_id)
        if now.join_deadline_ms is not None and operations.join is None:
            join = DelayedJoin(self, group_id, now.join_deadline_ms)
            operations.join = join
            coordinator.join_purgatory.try_complete_else_watch(join, [group_id])
        self._forget_idle(group_id, operations)

    def _forget_idle(self, group_id: str, operations: GroupOperations) -> None:
        if operations.is_empty() and self.operations.get(group_id) is operations:
            del self.operations[group_id]

    def waits_for_join(self, operation: DelayedJoin) -> bool:
        """Whether the group's join phase is still this one."""
        operations = self.operations.get(operation.group_id)
        return operations is not None and operations.join is operation

    def waits_for_sync(self, operation: DelayedSync) -> bool:
        """Whether the group's sync phase is still this one."""
        operations = self.operations.get(operation.group_id)
        return operations is not None and operations.sync is operation

    def waits_for_heartbeat(self, operation: DelayedHeartbeat) -> bool:
        """Whether this is still the session of its member."""
        operations = self.operations.get(operation.group_id)
        if operations is None:
            return False
        return operations.heartbeats.get(operation.member_id) is operation

    # -- deadlines that passed

    def expire_join(self, operation: DelayedJoin) -> None:
        """The join phase ends with those who came, or goes on."""
        self.operations[operation.group_id].join = None
        group = self.groups.group(operation.group_id)
        self.carry_out(group, decide_join_expired(group, self.coordinator.moment()))
        # What has expired is not to linger under its key until a purge: the group may be gone.
        self.coordinator.join_purgatory.check_and_complete(operation.group_id)

    def expire_sync(self, operation: DelayedSync) -> None:
        """Who has not synced is removed."""
        self.operations[operation.group_id].sync = None
        group = self.groups.group(operation.group_id)
        moment = self.coordinator.moment()
        self.carry_out(group, decide_sync_expired(group, operation.generation_id, moment))
        key = (operation.group_id, operation.generation_id)
        self.coordinator.sync_purgatory.check_and_complete(key)

    def expire_session(self, operation: DelayedHeartbeat) -> None:
        """The member was not heard in time."""
        operations = self.operations[operation.group_id]
        del operations.heartbeats[operation.member_id]
        group = self.groups.group(operation.group_id)
        moment = self.coordinator.moment()
        self.carry_out(group, decide_session_expired(group, operation.member_id, moment))
        moved = group.heartbeats.get(operation.member_id)
        if moved is not None and moved.deadline_ms is not None:
            # What expired before it in this turn has begun the session anew.
            wait = HeartbeatWait(operation.member_id, moved.deadline_ms)
            self._follow_heartbeat(operation.group_id, wait)
        self._forget_idle(operation.group_id, operations)
        key = (operation.group_id, operation.member_id)
        self.coordinator.heartbeat_purgatory.check_and_complete(key)

    # -- the broker was away, or gives the partition up

    def begin_fresh_sessions(self) -> None:
        """The broker stood still: nobody could be heard, so every session begins anew."""
        for group_id in list(self.operations):
            group = self.groups.group(group_id)
            self.carry_out(group, decide_fresh_sessions(group, self.coordinator.moment()))

    def unload(self) -> None:
        """The partition is not ours any more: who waits is told, and the state is dropped."""
        self.error_code = errors.NOT_COORDINATOR
        for each in self.pending:
            each.is_settled = True
        self.pending.clear()
        for group in list(self.groups.by_id.values()):
            self.carry_out(group, decide_unload(group, self.coordinator.moment()))
        self._check_commits()
        self.groups = Groups()

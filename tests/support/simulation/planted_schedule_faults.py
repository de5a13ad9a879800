"""Faults planted into scheduled records: slips of the kind that the design's rules forbid.

As in `planted_faults.py`.  `tests/model/test_schedule_model.py` plants faults into the protocol
itself.  Faults that matter where a rebuild believes a checkpoint, or after an unclean election, are
planted by `tests/model/test_schedule_rebuild.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base.errors import NONE
from tarry.base.partition_row import PartitionRow
from tarry.base.schedule_outcomes import ALREADY_RELEASED, CANCELLED, UNKNOWN
from tarry.broker.metadata.hosting import Hosting
from tarry.broker.scheduling import partition_schedule
from tarry.broker.scheduling.changing import ChangeStatus
from tarry.broker.scheduling.loading import ScheduleLoad
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.broker.scheduling.scheduling import Scheduling
from tarry.cluster.state.state import TopicState
from tarry.partition.followers import Followers
from tarry.partition.leader import AppendResult
from tarry.partition.leadership import Leadership
from tarry.partition.paired_check import PairedCheck
from tarry.partition.producers import ProducerCheck, ProducerStates
from tarry.partition.replicated_log import COMPANION, RECORDS, ReplicatedLog
from tarry.partition.topic import HostedTopic
from tarry.records.numbering import numbered
from tarry.schedule import entry_order
from tarry.schedule.cancels import OpenCancel, ScheduleIds
from tarry.schedule.due_order import DueOrder
from tarry.schedule.entries import due_ms_of, s_offset_of
from tarry.schedule.entry_order import CHUNK_ENTRIES_MAX, EntryOrder
from tarry.schedule.keeping import CompanionRule
from tarry.schedule.notes import ANY_OFFSET, ScheduledNote
from tarry.schedule.pending import NEVER, Body, PendingBodies
from tarry.schedule.rebuild import Rebuild
from tarry.schedule.snapshot import SnapshotHeader, SnapshotWriter
from tarry.schedule.state import ScheduleState
from tarry.schedule.taken_snapshot import TakenSnapshot

# Entries of a block, where a fault lies at its edge.
_FEW: Final = 4


def release_above_the_high_watermark() -> None:
    """A body is pending as soon as it is appended."""
    honest = ScheduleState.rollback_parked

    def park(self: ScheduleState, body: Body, now_wall_ms: int) -> None:
        self.pending.add(body)

    def rollback_parked(self: ScheduleState, s_end_offset: int) -> bool:
        for body in self.pending.between(s_end_offset, ANY_OFFSET):
            self.pending.forget(body.s_offset)
        return honest(self, s_end_offset)

    ScheduleState.park = park
    ScheduleState.rollback_parked = rollback_parked


def forget_whose_body_was_released() -> None:
    partition_schedule.released_batch = lambda body, s_offset: numbered(body, -1, -1, -1)


def release_a_little_early() -> None:
    honest = PendingBodies.take_due
    PendingBodies.take_due = lambda self, now_wall_ms: honest(self, now_wall_ms + 40)
    enqueue = PendingBodies.next_due_ms
    PendingBodies.next_due_ms = lambda self: enqueue(self) - 40


def release_when_the_alarm_rings() -> None:
    """The deadline is believed, though the calendar was set back since."""
    honest = Scheduling.step

    def step(self: Scheduling) -> None:
        turn = self._turn
        before = turn.now_wall_ms
        # By attended time, as set when the broker started.
        apart_ms = self.__dict__.setdefault("apart_ms", before - turn.now_ms)
        turn.now_wall_ms = max(before, turn.now_ms + apart_ms)
        honest(self)
        turn.now_wall_ms = before

    Scheduling.step = step


def release_in_order_of_arrival() -> None:
    honest = EntryOrder.first

    def first(self: EntryOrder) -> bytes:
        if not self._chunks or not isinstance(self, DueOrder):
            return honest(self)
        return min(
            self.from_key(b"", CHUNK_ENTRIES_MAX),
            key=lambda entry: (due_ms_of(entry) // 500, s_offset_of(entry)),
        )

    EntryOrder.first = first


def look_up_retries_in_the_log_of_the_partition_alone() -> None:
    honest = PairedCheck.run

    def run(self: PairedCheck, first: ProducerStates, second: ProducerStates) -> ProducerCheck:
        check = honest(self, first, second)
        if check.is_duplicate and self.is_in_second:
            self.is_in_second = False
            return ProducerCheck(NONE, None)
        return check

    PairedCheck.run = run


def fill_no_gaps() -> None:
    honest = PairedCheck._fits
    PairedCheck._fits = lambda self: self._later == 0 and honest(self)


def keep_what_the_companion_log_has_dropped() -> None:
    ScheduleState.rollback_parked = lambda self, s_end_offset: None


def count_a_release_that_was_not_written() -> None:
    ScheduleState.rollback_released = lambda self, p_end_offset: None


# -- Faults of a cluster.


def load_before_the_copied_tail_is_written() -> None:
    """A new leader leaves out of its schedule what it had just copied."""
    PartitionSchedule.can_load = lambda self: True


def read_releases_up_to_the_high_watermark() -> None:
    """A new leader does not see the releases that it copied and that do not count yet."""
    honest = ScheduleLoad.__init__

    def begin(self: ScheduleLoad, partition: ReplicatedLog, companion: ReplicatedLog) -> None:
        honest(self, partition, companion)
        add_release = self._rebuild.add_release
        high_watermark = partition.high_watermark

        def add_committed(s_offset: int, epoch: int, offset: int, count: int) -> None:
            if offset < high_watermark:
                add_release(s_offset, epoch, offset, count)

        self._rebuild.add_release = add_committed

    ScheduleLoad.__init__ = begin


def count_a_follower_by_its_records_alone() -> None:
    """In sync means both logs; here the companion log is not looked at."""
    _judge_followers_by(RECORDS)


def count_a_follower_by_its_companion_log_alone() -> None:
    """The wish to change who is in sync is that of the companion log."""
    _judge_followers_by(COMPANION)


def _judge_followers_by(which: int) -> None:
    def of_one_log(honest: Callable[..., bool]) -> Callable[..., bool]:
        def judge(self: Leadership, *rest: object) -> bool:
            logs = self.logs
            self.logs = logs[which : which + 1] or logs
            try:
                return honest(self, *rest)
            finally:
                self.logs = logs

        return judge

    Leadership.may_join = of_one_log(Leadership.may_join)
    Leadership.is_caught_up = of_one_log(Leadership.is_caught_up)


def count_what_the_leader_alone_has_parked() -> None:
    """The high watermark of the companion log is the leader's own end."""
    honest = Followers.high_watermark

    def high_watermark(self: Followers, which: int, own_end: int, *rest: int) -> int:
        return own_end if which == COMPANION else honest(self, which, own_end, *rest)

    Followers.high_watermark = high_watermark


def host_the_companion_log_a_turn_late() -> None:
    """A partition is led, or copied, for a turn before it has its companion log."""
    add_companion = Hosting._add_companion
    step = Hosting.step
    # By hosting: the topics of which it hosts a partition in this turn, and those that had theirs.
    late: dict[int, dict[HostedTopic, None]] = {}
    known: dict[tuple[HostedTopic, int], None] = {}

    def add(
        self: Hosting, topic: TopicState, hosted: HostedTopic, index: int
    ) -> ReplicatedLog | None:
        if (hosted, index) in known:
            return add_companion(self, topic, hosted, index)
        known[hosted, index] = None
        late.setdefault(id(self), {})[hosted] = None
        return None

    def step_late(self: Hosting) -> None:
        for hosted in late.pop(id(self), {}):
            self._unmade.setdefault(hosted, 0)
        step(self)

    Hosting._add_companion = add
    Hosting.step = step_late


def keep_the_schedule_over_a_change_of_leaders() -> None:
    """A broker that leads again goes on with what it knew in an earlier epoch."""
    honest = Scheduling.on_role
    kept: dict[tuple[int, Leadership], PartitionSchedule] = {}

    def on_role(
        self: Scheduling, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        known = self._schedules.get(leadership)
        state = None if known is None else known.state
        honest(self, leadership, before, was_leader)
        name = (id(self), leadership)
        if known is not None and state is not None and known.is_ended:
            known.is_ended, known.state = False, state
            kept[name] = known
        fresh = self._schedules.get(leadership)
        if fresh is not None and fresh is not known and name in kept:
            fresh.state = kept[name].state

    Scheduling.on_role = on_role


def answer_a_cancel_before_its_note_counts() -> None:
    """The note is lost with its leader, and what was `cancelled` comes."""
    honest = ChangeStatus.rest_on

    def rest_on(self: ChangeStatus, log: ReplicatedLog, required_offset: int) -> None:
        if self.result.outcome != CANCELLED:
            honest(self, log, required_offset)

    ChangeStatus.rest_on = rest_on


def answer_already_released_before_the_record_counts() -> None:
    """The record is lost with its leader: it comes at another offset, or it is cancelled."""
    honest = ChangeStatus.rest_on

    def rest_on(self: ChangeStatus, log: ReplicatedLog, required_offset: int) -> None:
        if self.result.outcome != ALREADY_RELEASED:
            honest(self, log, required_offset)

    ChangeStatus.rest_on = rest_on


def release_before_all_counts_that_was_acknowledged() -> None:
    """A new leader releases what it knows to count, and what is due before that comes later."""

    def next_due_ms(self: PartitionSchedule) -> int:
        return NEVER if self.state is None else self.state.next_due_ms()

    PartitionSchedule.next_due_ms = next_due_ms


def take_a_batch_of_a_client_for_a_release() -> None:
    """A producer that names a body has it taken for released."""
    partition_schedule.release_fault = lambda header: ""


def answer_unknown_without_a_note() -> None:
    """Another one's cancel is lost, or who answers leads no more and knows not what was parked."""
    honest = ChangeStatus.rest_on

    def rest_on(self: ChangeStatus, log: ReplicatedLog, required_offset: int) -> None:
        if self.result.outcome != UNKNOWN:
            honest(self, log, required_offset)

    ChangeStatus.rest_on = rest_on


def cancel_what_is_being_released() -> None:
    """A release that does not count yet is taken for none: it is cancelled, and comes."""
    waiting = ScheduleState.waiting
    cancel = ScheduleState.cancel

    def waiting_or_released(self: ScheduleState, s_offset: int) -> Body | None:
        release = self.release_of(s_offset)
        return waiting(self, s_offset) if release is None else release.body

    def cancel_what_waits(
        self: ScheduleState, s_offset: int, note_offset: int, read_from: int
    ) -> None:
        if self.release_of(s_offset) is None:
            cancel(self, s_offset, note_offset, read_from)

    ScheduleState.waiting = waiting_or_released
    ScheduleState.cancel = cancel_what_waits


def forget_whom_a_record_has_replaced() -> None:
    """The next leader reads the record and not whose place it has taken."""
    honest = Rebuild._add_noted

    def add_noted(self: Rebuild, note: ScheduledNote, *rest: int) -> None:
        honest(self, ScheduledNote(note.due_ms, note.places), *rest)

    Rebuild._add_noted = add_noted


def move_a_copy() -> None:
    """What was moved comes at both times."""
    honest = PartitionSchedule.park_again

    def park_again(self: PartitionSchedule, note: ScheduledNote, batch: bytes) -> AppendResult:
        return honest(self, ScheduledNote(note.due_ms, note.places), batch)

    PartitionSchedule.park_again = park_again


def forget_what_a_lost_note_had_cancelled() -> None:
    """The disk refuses the note, and what it was to cancel comes no more."""
    honest = ScheduleIds.rollback

    def rollback(self: ScheduleIds, s_end_offset: int) -> list[OpenCancel]:
        honest(self, s_end_offset)
        return []

    ScheduleIds.rollback = rollback


# -- Faults of compaction.


def compact_away_what_waits() -> None:
    """Of the bodies that wait, some go.

    `tests/model/test_companion_compaction.py` has the other faults of this kind.
    """
    honest = CompanionRule._waits_until

    def waits(self: CompanionRule, s_offset: int, due_ms: int, *, recurs: bool) -> bool:
        return s_offset % 3 != 0 and honest(self, s_offset, due_ms, recurs=recurs)

    CompanionRule._waits_until = waits


# -- Faults of packed blocks; small ones favour them.


def lose_the_last_entry_of_a_block_that_is_split() -> None:
    entry_order.CHUNK_ENTRIES_MAX = _FEW
    honest = EntryOrder._split

    def split(self: EntryOrder, index: int) -> None:
        del self._chunks[index].data[-self._width :]
        honest(self, index)

    EntryOrder._split = split


def look_for_nothing_behind_the_edge_of_a_block() -> None:
    entry_order.CHUNK_ENTRIES_MAX = _FEW
    EntryOrder._chunk_with = EntryOrder._chunk_of


# -- Faults of snapshots.


def write_a_snapshot_without_its_last_entry() -> None:
    honest = SnapshotWriter.__init__

    def begin(self: SnapshotWriter, state: ScheduleState, header: SnapshotHeader) -> None:
        honest(self, state, header)
        self._before -= 1

    SnapshotWriter.__init__ = begin


def leave_out_what_leaves_while_a_snapshot_is_written() -> None:
    """A release or a cancel is lost with its write, and what it had taken waits no more."""
    ScheduleState.leaving_bodies = lambda self: []


def forget_what_was_cancelled_since_the_snapshot() -> None:
    """What the snapshot says is believed against the notes behind it."""
    TakenSnapshot._take_cancelled = lambda self, count_max: False


def write_a_snapshot_that_ends_a_batch_too_late() -> None:
    """The offset from which a start reads on lies behind a batch that the snapshot has not."""
    honest = ScheduleState.snapshot_offset

    def snapshot_offset(self: ScheduleState, s_high_watermark: int) -> int:
        parked = self._parked
        return parked[0].s_offset + 1 if parked else honest(self, s_high_watermark)

    ScheduleState.snapshot_offset = snapshot_offset


SCHEDULE: Final[dict[Callable[[], None], int]] = {
    release_above_the_high_watermark: 13,
    forget_whose_body_was_released: 4,
    release_a_little_early: 3,
    release_when_the_alarm_rings: 4,
    release_in_order_of_arrival: 3,
    look_up_retries_in_the_log_of_the_partition_alone: 11,
    fill_no_gaps: 99,
    keep_what_the_companion_log_has_dropped: 37,
    count_a_release_that_was_not_written: 37,
    forget_what_a_lost_note_had_cancelled: 48,
    forget_whom_a_record_has_replaced: 9,
    move_a_copy: 6,
    cancel_what_is_being_released: 14,
    compact_away_what_waits: 18,
    forget_what_was_cancelled_since_the_snapshot: 14,
}

CLUSTER_SCHEDULE: Final[dict[Callable[[], None], int]] = {
    load_before_the_copied_tail_is_written: 29,
    read_releases_up_to_the_high_watermark: 3,
    count_a_follower_by_its_records_alone: 15,
    keep_the_schedule_over_a_change_of_leaders: 27,
    release_above_the_high_watermark: 2,
    forget_whose_body_was_released: 2,
    look_up_retries_in_the_log_of_the_partition_alone: 2,
    cancel_what_is_being_released: 19,
    forget_whom_a_record_has_replaced: 19,
    compact_away_what_waits: 2,
    write_a_snapshot_that_ends_a_batch_too_late: 2,
    leave_out_what_leaves_while_a_snapshot_is_written: 16,
}

# Leaders that are cut off and die, while many clients change what waits.
CLUSTER_SCHEDULE_CHANGES: Final[dict[Callable[[], None], int]] = {
    answer_already_released_before_the_record_counts: 5,
    answer_a_cancel_before_its_note_counts: 4,
    answer_unknown_without_a_note: 6,
    release_before_all_counts_that_was_acknowledged: 21,
    take_a_batch_of_a_client_for_a_release: 1,
    count_a_follower_by_its_companion_log_alone: 7,
    count_what_the_leader_alone_has_parked: 1,
    host_the_companion_log_a_turn_late: 1,
    write_a_snapshot_without_its_last_entry: 10,
    lose_the_last_entry_of_a_block_that_is_split: 1,
    look_for_nothing_behind_the_edge_of_a_block: 1,
}

"""Leadership of a partition as one broker has it: the role, who follows, and who may act.

It stands over one log or several, which are led, copied and in sync together: a replica is caught
up if it is so in each of them, and has lost records if it has lost some of any.  How far records
count is a matter of each log (`replicated_log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.base.partition_row import NOWHERE, PartitionRow
from tarry.partition.followers import Follower, Followers
from tarry.records.batch import BatchCheck, BatchHeader

if TYPE_CHECKING:
    from tarry.partition.replicated_log import ReplicatedLog


@mypyc_attr(allow_interpreted_subclasses=True)
class LeaderDoor:
    """Door of the partitions that a broker leads: the lease, and who hears of what is written.

    `is_lease_over`: by its own clock this broker may have been declared dead.  The lease is that
    of the life `broker_epoch`; what was led in the life before is not claimed anew yet.
    """

    def __init__(self) -> None:
        # open: the leader's side looks at the clock once a turn
        self.is_lease_over = False
        # open: the leader's side knows the life; -1: there are no lives
        self.broker_epoch: int = -1
        # open: the real monotonic clock, once a turn
        self.real_ms = 0

    def on_written(self, log: ReplicatedLog) -> None:
        """Hear that there is more to be copied."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchWishes:
    """Door to what the headers of a batch's records say about when they are due."""

    def step(self, count_max: int) -> bool:
        """Read the headers of so many records at most; True when all are read."""
        raise NotImplementedError

    @property
    def held_bytes(self) -> int:
        """Bytes of records that are held until the append."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ParkingDoor:
    """Door of a partition with scheduled records: what waits, and in the companion log.

    A batch that waits is parked there, behind a note of when it is due.
    """

    def wishes_in(self, header: BatchHeader, content: bytes) -> BatchWishes:
        """Begin to read the headers of a batch's records, which are `content`."""
        raise NotImplementedError

    def note_for(self, check: BatchCheck, wishes: BatchWishes | None, now_wall_ms: int) -> bytes:
        """Return the note of a batch that is to wait, b"" for one that is not; or refuse the batch
        in its check.

        `wishes` are there if headers were read.  Where the records are due at times of their own,
        the check has the batch that is to be parked from then on.
        """
        raise NotImplementedError

    def on_parked(self, header: BatchHeader, s_offset: int) -> None:
        """Take over the batch of the last note, which is now at this offset in the companion log's
        tail.
        """
        raise NotImplementedError

    def covered_offset(self) -> int:
        """Return up to which offset of the partition it is noted, for good, what was released.

        What lies behind it must stay: a start finds there which batches do not wait any more.
        """
        raise NotImplementedError


# Of a broker that has no lease and so none that ends.
NO_DOOR: Final = LeaderDoor()


class Leadership:
    """Leadership of a partition that has a replica on this broker, led here (`is_leader`) or not.

    `gone_code` is what whoever waits here is told once the partition is not led here any more.
    """

    def __init__(self, topic: str, topic_id: bytes, index: int, own_id: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.own_id = own_id
        # Logs in the order of their numbers; the first one has the records.
        self.logs: list[ReplicatedLog] = []
        # The partition's row as this broker knows it; what requests ask for stands below too.
        self.row: PartitionRow = NOWHERE
        # The row names this broker, in the life that it is in.
        self.is_leader = False
        self.is_closed = False
        self.gone_code: int = errors.NOT_LEADER_OR_FOLLOWER
        self.leader_id = -1
        self.leader_epoch = 0
        # The life of the leader in which it leads.
        self.leader_broker_epoch = -1
        # The epoch since which the same leader leads in the same life, with nobody in between.
        self.led_since = 0
        self.replicas: list[int] = []
        self.isr: list[int] = []
        # What this leader knows of those that follow; None while there is nobody else, or while
        # this broker does not lead.
        self.followers: Followers | None = None
        self.door: LeaderDoor = NO_DOOR
        # None: no record of the partition has ever waited.
        # open: scheduling knows what waits
        self.parking: ParkingDoor | None = None

    def add(self, log: ReplicatedLog) -> None:
        """Add a log, which takes the present role."""
        assert log.which == len(self.logs)
        self.logs.append(log)
        if self.followers is not None:
            self.followers.add_log()

    @property
    def records(self) -> ReplicatedLog:
        """The log of the partition's records."""
        return self.logs[0]

    # -- the role

    def take_row(self, row: PartitionRow, is_leader: bool) -> None:
        """Take the partition's row.

        `is_leader`: the row names this broker, and this broker is still in the life that the row
        names.  A broker that has restarted since leads nothing.
        """
        is_new = row.leader_epoch != self.leader_epoch or is_leader != self.is_leader
        if not (is_leader and self._goes_on(row)):
            self.led_since = row.leader_epoch
        self.row = row
        self.leader_id = row.leader_id
        self.leader_epoch = row.leader_epoch
        self.leader_broker_epoch = row.broker_epoch
        self.replicas = row.replicas
        self.isr = row.isr
        self.is_leader = is_leader
        if not is_leader or len(row.replicas) == 1:
            self.followers = None
            self._start_epoch(is_new=False)
        elif is_new or self.followers is None:
            # What followers told another leader, or this one in an earlier epoch, is not true now.
            self._start_epoch(is_new=is_new)
            self.followers = Followers(self.own_id, len(self.logs))
        if self.followers is not None:
            self.followers.count_at_least(row.isr)
        if not self.is_closed:
            self.gone_code = errors.NONE if is_leader else errors.NOT_LEADER_OR_FOLLOWER

    def _start_epoch(self, *, is_new: bool) -> None:
        for log in self.logs:
            # Who led alone until now knows its high watermark exactly.
            log.epoch_start = log.log.log_end_offset if is_new else 0

    def _goes_on(self, row: PartitionRow) -> bool:
        """Return whether nobody else can have led between the row before and this one.

        In another life too: each leader has an epoch of its own, and this process has lost nothing.
        """
        return (
            self.is_leader
            and row.unclean_epoch == self.row.unclean_epoch
            and row.leader_epoch - self.leader_epoch <= 1
        )

    def close(self) -> None:
        """Close the replica: its topic was deleted, or its row does not name this broker."""
        self.is_closed = True
        self.is_leader = False
        self.followers = None
        self.gone_code = errors.UNKNOWN_TOPIC_OR_PARTITION
        for log in self.logs:
            log.is_closed = True

    # -- who may act

    def may_act(self) -> bool:
        """Return whether this leader may append, serve consumers and coordinate groups now.

        It may while its lease lasts by its own clock, or its followers have just turned to it, or
        it is in sync alone.  Else another one may lead already: also one whose addition was asked
        for, as long as nobody knows what became of that.
        """
        if not self.is_leader:
            return False
        followers = self.followers
        if followers is None or self._has_lease():
            return True
        isr = [*self.isr, *followers.proposed] if followers.proposed else self.isr
        return len(isr) == 1 or followers.have_turned_to_us(isr, self.door.real_ms)

    def rests(self) -> bool:
        """Return whether another broker may lead it by now, so that this one answers nothing."""
        return not self._has_lease() and self.is_leader and not self.may_act()

    def is_claimed(self) -> bool:
        """Return whether the row names the life that this broker has now, if there are lives."""
        epoch = self.door.broker_epoch
        return epoch < 0 or epoch == self.leader_broker_epoch

    def _has_lease(self) -> bool:
        return not self.door.is_lease_over and self.is_claimed()

    def epoch_error(self, current_leader_epoch: int) -> int:
        """Return the error for a client that knows this leader epoch (KIP-320), or NONE.

        Below 0 the client knows none.
        """
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        return errors.UNKNOWN_LEADER_EPOCH

    # -- who is in sync

    def floor(self) -> int:
        """Return how many replicas must be in sync for records to count.

        A partition with fewer replicas than min.insync.replicas needs all that it has, as in
        Kafka; else nothing could ever be produced to it.
        """
        return min(self.logs[0].config.min_insync_replicas, len(self.replicas))

    def is_under_min_isr(self) -> bool:
        """Return true if a produce with acks=all must be refused.

        Where others follow, those in sync count that live and are caught up.
        """
        followers = self.followers
        in_sync = len(self.isr) if followers is None else followers.in_sync
        return in_sync < self.floor()

    def is_caught_up(self, follower: Follower, now_ms: int, lag_ms_max: int) -> bool:
        """Return whether a follower does not lag in any log."""
        for log in self.logs:
            copy = follower.copies[log.which]
            if not copy.is_caught_up(log.log.written_end_offset, now_ms, lag_ms_max):
                return False
        return True

    def may_join(self, follower: Follower) -> bool:
        """Return whether a follower may be in sync (J), in every log."""
        for log in self.logs:
            copy = follower.copies[log.which]
            if not copy.may_join(log.high_watermark, log.epoch_start, log.log.log_start_offset):
                return False
        return True

    def has_flaw(self) -> bool:
        """Return whether any log here is damaged."""
        return any(log.log.flaw_offset >= 0 for log in self.logs)

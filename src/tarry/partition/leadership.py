"""Leadership of a partition at one broker: the broker's role, the followers, who may act.

A leadership has one log or several, which are led, copied and in sync together.  A replica is
caught up if it is so in each log, and has lost records if it has lost some of any log.  Each log
has its own high watermark (`replicated_log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.base.partition_row import NOWHERE, PartitionRow
from tarry.log.segments import LogPosition
from tarry.partition.followers import Follower, Followers
from tarry.records.batch import BatchCheck, BatchHeader
from tarry.wire.writer import ChunkList

if TYPE_CHECKING:
    from tarry.partition.replicated_log import ReplicatedLog


@mypyc_attr(allow_interpreted_subclasses=True)
class LeaderDoor:
    """Door of the partitions that a broker leads: its lease, and a call after each write.

    If `is_lease_over`, then by this broker's clock etcd may have ended the lease, and other
    brokers may count this one as dead.  The lease belongs to the life `broker_epoch`.  It does
    not cover a partition whose row names an earlier life of this broker.
    """

    def __init__(self) -> None:
        # open: the leader's side sets it once a turn, from the clock
        self.is_lease_over = False
        # open: the leader's side sets it once a turn; -1 where brokers have no lives
        self.broker_epoch: int = -1
        # open: the leader's side sets it once a turn, from the monotonic clock
        self.real_ms = 0

    def on_written(self, log: ReplicatedLog) -> None:
        """Note that this log has more bytes for its followers to copy."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchWishes:
    """Door to the due times and ids that the headers of a batch's records ask for."""

    def step(self, count_max: int) -> bool:
        """Read the headers of at most `count_max` records; return True when all are read."""
        raise NotImplementedError

    @property
    def held_bytes(self) -> int:
        """Bytes of records that are held in memory until the append."""
        raise NotImplementedError

    @property
    def place_count(self) -> int:
        """Number of due times and ids that were found; each has its cost at the append."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ParkingDoor:
    """Door of a partition with scheduled records, which wait in the companion log.

    A batch that is not due is parked in the companion log, behind a note with its due time.
    """

    def reads_headers(self) -> bool:
        """Return True if the headers of produced records must be read, because they may hold a due
        time, or the id of a record that waits.
        """
        raise NotImplementedError

    def wishes_in(self, header: BatchHeader, content: bytes) -> BatchWishes:
        """Begin to read the headers of a batch's records; `content`: the records, uncompressed."""
        raise NotImplementedError

    def note_for(self, check: BatchCheck, wishes: BatchWishes | None, now_wall_ms: int) -> bytes:
        """Return the note of a batch that has to wait, b"" for one that is due; or set the error of
        `check`.

        `wishes`: what the headers ask for, None if they were not read.  If the records have due
        times of their own, `check` gets the batch in the form to be parked.
        """
        raise NotImplementedError

    def throttle_ms(self) -> int:
        """Return how long the client is to pause that has parked the last batch."""
        raise NotImplementedError

    def on_parked(self, header: BatchHeader, s_offset: int) -> None:
        """Take over the batch of the last note, which is now at `s_offset` of the companion log, in
        its tail.
        """
        raise NotImplementedError

    def on_refused(self, header: BatchHeader) -> None:
        """Take note that a batch was refused for what its records say."""
        raise NotImplementedError

    def covered_offset(self) -> int:
        """Return the offset below which all releases are noted durably in the companion log.

        Records from that offset on must stay in the partition: a start finds among them which
        parked batches were released already.
        """
        raise NotImplementedError

    def reading_code(self) -> int:
        """Return the error code if it is unknown at present which records wait, or NONE."""
        raise NotImplementedError

    def read_waiting(
        self, offset: int, end: LogPosition, size_max: int, *, at_least_one: bool
    ) -> ChunkList | None:
        """Return batches that wait, from the one that contains `offset` up to `end` of the
        companion log; None if there is no memory for them at present.

        Where no batch waits, the answer has a batch that leads a consumer over the gap.
        """
        raise NotImplementedError


# Door of a broker that has no lease: its lease is never over.
NO_DOOR: Final = LeaderDoor()


class Leadership:
    """Role of this broker for one partition that it has a replica of: leader or not.

    `gone_code` is NONE while this broker leads.  Otherwise it is the error code for requests that
    wait for the partition.
    """

    def __init__(self, topic: str, topic_id: bytes, index: int, own_id: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.own_id = own_id
        # Logs in the order of their numbers; the first has the partition's records.  Empty after
        # `let_go`.
        self.logs: list[ReplicatedLog] = []
        # The partition's row as this broker knows it.  Attributes below repeat the fields that
        # requests need often.
        self.row: PartitionRow = NOWHERE
        # True if the row names this broker, in its present life.
        self.is_leader = False
        self.is_closed = False
        self.gone_code: int = errors.NOT_LEADER_OR_FOLLOWER
        self.leader_id = -1
        self.leader_epoch = 0
        # Broker epoch of the life in which the leader leads.
        self.leader_broker_epoch = -1
        # First leader epoch of this process's present leadership, with no other leader since.
        self.led_since = 0
        self.replicas: list[int] = []
        self.isr: list[int] = []
        # Followers as this leader knows them; None if there are none, or if this broker does not
        # lead.
        self.followers: Followers | None = None
        self.door: LeaderDoor = NO_DOOR
        # Scheduling of this partition; None if no record of it has ever waited.
        # open: scheduling sets it
        self.parking: ParkingDoor | None = None

    def add(self, log: ReplicatedLog) -> None:
        """Add a log to those of the partition; it has the same leader and followers."""
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
            # Ends that followers have reported in an earlier epoch, or to another leader, may be
            # wrong.
            self._start_epoch(is_new=is_new)
            self.followers = Followers(self.own_id, len(self.logs))
        if self.followers is not None:
            self.followers.count_at_least(row.isr)
        if not self.is_closed:
            self.gone_code = errors.NONE if is_leader else errors.NOT_LEADER_OR_FOLLOWER

    def is_ahead_of(self, row: PartitionRow) -> bool:
        """Return True if records on this broker have a later leader epoch than the row.

        A row gets each epoch before a record has it, so such a row is older than the records: it
        was put by hand, or etcd was restored from a copy, or others have continued from there.
        """
        return self.records.log.leader_epochs.latest_epoch > row.leader_epoch

    def _start_epoch(self, *, is_new: bool) -> None:
        for log in self.logs:
            # A leader without followers knows its high watermark exactly and needs no epoch start.
            log.epoch_start = log.log.log_end_offset if is_new else 0

    def _goes_on(self, row: PartitionRow) -> bool:
        """Return True if no other broker can have led between the known row and this one.

        The broker's life may have changed in between: each new leader gets the next leader epoch,
        so a gap in the epochs would show another leader, and this process has lost nothing.
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

    def let_go(self) -> None:
        """Forget the logs, which are closed; all objects that knew them have been informed.

        A log refers to its leadership.  If the leadership still referred to the log, only the
        garbage collector could free both, and a running broker has excluded its logs from it.
        """
        assert self.is_closed
        self.logs = []
        self.parking = None

    # -- who may act

    def may_act(self) -> bool:
        """Return True if this leader may append, serve consumers and coordinate groups now.

        It may in three cases: its lease lasts by its own clock; or all other replicas in sync have
        fetched from it just now; or it is the only replica in sync.  Otherwise another replica may
        lead already.  A replica whose addition to the in-sync set was proposed may lead too, while
        the outcome of the proposal is unknown.
        """
        if not self.is_leader:
            return False
        followers = self.followers
        if followers is None or self._has_lease():
            return True
        isr = [*self.isr, *followers.proposed] if followers.proposed else self.isr
        return len(isr) == 1 or followers.have_turned_to_us(isr, self.door.real_ms)

    def rests(self) -> bool:
        """Return True if this leader must not act, because another broker may lead by now."""
        return not self._has_lease() and self.is_leader and not self.may_act()

    def is_claimed(self) -> bool:
        """Return True if the row names this broker's present life, or brokers have no lives."""
        epoch = self.door.broker_epoch
        return epoch < 0 or epoch == self.leader_broker_epoch

    def _has_lease(self) -> bool:
        return not self.door.is_lease_over and self.is_claimed()

    def epoch_error(self, current_leader_epoch: int) -> int:
        """Return the error code for a client that names this leader epoch (KIP-320), or NONE.

        A negative epoch means that the client knows none.
        """
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        return errors.UNKNOWN_LEADER_EPOCH

    # -- who is in sync

    def floor(self) -> int:
        """Return how many replicas must be in sync for records to count.

        A partition with fewer replicas than min.insync.replicas needs all of them in sync, as in
        Kafka.  Otherwise nothing could ever be produced to it.
        """
        if not self.logs:
            # The partition is gone, and the caller has not noticed that yet.
            return len(self.replicas)
        return min(self.logs[0].config.min_insync_replicas, len(self.replicas))

    def is_under_min_isr(self) -> bool:
        """Return true if a produce with acks=all must be refused.

        If the partition has followers, a replica in sync counts only if it lives and is caught up.
        """
        followers = self.followers
        in_sync = len(self.isr) if followers is None else followers.in_sync
        return in_sync < self.floor()

    def is_caught_up(self, follower: Follower, now_ms: int, lag_ms_max: int) -> bool:
        """Return True if a follower is caught up in each log."""
        for log in self.logs:
            copy = follower.copies[log.which]
            if not copy.is_caught_up(log.log.written_end_offset, now_ms, lag_ms_max):
                return False
        return True

    def may_join(self, follower: Follower) -> bool:
        """Return True if a follower may be in sync: rule J of `followers`, in each log."""
        for log in self.logs:
            copy = follower.copies[log.which]
            if not copy.may_join(log.high_watermark, log.epoch_start, log.log.log_start_offset):
                return False
        return True

    def may_differ(self, replica_id: int) -> bool:
        """Return True if one of several logs of a follower may differ from the leader's.

        A follower reports the end of a log only after it has cut the log to what the leader has.
        """
        if len(self.logs) == 1 or self.followers is None:
            return False
        follower = self.followers.by_id.get(replica_id)
        return follower is not None and not follower.has_told_all()

    def has_flaw(self) -> bool:
        """Return True if any log of the partition is damaged on this broker."""
        return any(log.log.flaw_offset >= 0 for log in self.logs)

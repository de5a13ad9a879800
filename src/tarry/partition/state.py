"""A partition as its leader sees it: log, in-sync replicas, high watermark.

The high watermark is the least end of the replicas that count (`followers`).  The leader's own
contribution is its flushed end under `flush.policy=commit` and its written end under `os`
(ARCHITECTURE.md, "Durability").  Invariants: log_start_offset <= high_watermark <=
written_end_offset, and the high watermark never goes back while the partition is led here.
"""

from __future__ import annotations

import contextlib
from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.log import retention
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.owner import LogOwner
from tarry.log.segments import LogPosition
from tarry.log.state import LogListener
from tarry.partition.followers import Followers
from tarry.partition.producers import ProducerStates
from tarry.partition.role import Role
from tarry.records.batch import BatchHeader

# A partition is known by its topic's id as well, so that what waits for a deleted topic does
# not wake for its successor of the same name.
PartitionKey = tuple[str, int, bytes]


class ReaderKind:
    """Kind of reader: how far a partition may be read, and what an answer must hold for it.

    A consumer reads to the high watermark, a committed consumer to the last stable offset.
    Replicas read to the written end, and are served elsewhere.
    """

    __slots__ = ("is_committed",)

    def __init__(self, *, is_committed: bool) -> None:
        self.is_committed = is_committed


CONSUMER: Final = ReaderKind(is_committed=False)
COMMITTED_CONSUMER: Final = ReaderKind(is_committed=True)


@mypyc_attr(allow_interpreted_subclasses=True)
class LeaderDoor:
    """Door of the partitions that a broker leads: the lease, and who hears of what is written.

    `is_lease_over`: by its own clock this broker may have been declared dead.
    """

    def __init__(self) -> None:
        self.is_lease_over = False
        # The real monotonic clock of the turn.
        self.real_ms = 0

    def on_written(self, partition: Partition) -> None:
        """Hear that there is more to be copied."""


# Of a broker that has no lease and so none that ends.
NO_DOOR: Final = LeaderDoor()


class ProducerListener(LogListener):
    """Lets the producer states follow the log's recovery."""

    def __init__(self, producers: ProducerStates) -> None:
        super().__init__()
        self.producers = producers

    def reset(self) -> None:
        self.producers.reset()

    def load_snapshot(self, data: bytes) -> bool:
        return self.producers.load_snapshot(data)

    def take_snapshot(self) -> bytes | None:
        return self.producers.encode_snapshot() if len(self.producers) else None

    def truncate(self, end_offset: int) -> bool:
        return self.producers.truncate(end_offset)

    def on_recovered_batch(self, header: BatchHeader) -> None:
        self.producers.recover(header)


class Partition(LogOwner):
    """Replica that this broker has of a partition, led here (`is_leader`) or not.

    `gone_code` is what whoever waits here is told once the partition is not led here any more.
    """

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        producers: ProducerStates,
        own_id: int,
    ) -> None:
        super().__init__(f"{topic}-{index}", log)
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.key: PartitionKey = (topic, index, topic_id)
        self.producers = producers
        self.config: LogConfig = log.config
        self.own_id = own_id
        self.is_leader = False
        self.gone_code: int = errors.NOT_LEADER_OR_FOLLOWER
        self.leader_id = -1
        self.leader_epoch = 0
        # The life of the leader in which it leads.
        self.leader_broker_epoch = -1
        # The epoch since which the same leader leads in the same life, with nobody in between.
        self.led_since = 0
        self.partition_epoch = 0
        # The last leader epoch that began with an unclean election.
        self.unclean_epoch = -1
        # The last produce request that named this partition, so that none names it twice.
        self.produce_number: i64 = -1
        self.replicas: list[int] = []
        self.isr: list[int] = []
        # What this leader knows of those that follow; None while there is nobody else, or while
        # this broker does not lead.
        self.followers: Followers | None = None
        self.door: LeaderDoor = NO_DOOR
        # Where the log ended when this broker began to lead in this epoch.  What was committed
        # before ends there at most.
        self.epoch_start = 0
        self.high_watermark: int = log.log_start_offset
        self.high_watermark_position: LogPosition = log.end_position()

    def reconfigure(self, config: LogConfig) -> None:
        """Take the topic's settings after they have changed."""
        self.config.take_over(config)

    def take_role(self, role: Role) -> None:
        """Take over what the metadata says about this partition."""
        is_new = role.leader_epoch != self.leader_epoch or role.is_leader != self.is_leader
        if not self._goes_on(role):
            self.led_since = role.leader_epoch
        self.leader_id = role.leader_id
        self.leader_epoch = role.leader_epoch
        self.leader_broker_epoch = role.leader_broker_epoch
        self.partition_epoch = role.partition_epoch
        self.unclean_epoch = role.unclean_epoch
        self.replicas = role.replicas
        self.isr = role.isr
        self.is_leader = role.is_leader
        if not role.is_leader or len(role.replicas) == 1:
            self.followers = None
            self.epoch_start = 0
        elif is_new or self.followers is None:
            # What followers told another leader, or this one in an earlier epoch, is not true now.
            # Who led alone until now knows its high watermark exactly.
            self.epoch_start = self.log.log_end_offset if is_new else 0
            self.followers = Followers(self.own_id, self.epoch_start)
        if self.followers is not None:
            self.followers.count_at_least(role.isr)
        if not self.is_closed:
            self.gone_code = errors.NONE if role.is_leader else errors.NOT_LEADER_OR_FOLLOWER

    def _goes_on(self, role: Role) -> bool:
        """Return whether nobody else can have led between the role before and this one."""
        return (
            self.is_leader
            and role.is_leader
            and role.leader_broker_epoch == self.leader_broker_epoch
            and role.leader_epoch - self.leader_epoch <= 1
        )

    def begin_epoch(self) -> None:
        """Let the leader epoch begin at the log's end, though it has no batch yet.

        So a follower that asks where an earlier epoch ended hears it at once.
        """
        log = self.log
        if self.followers is None or log.leader_epochs.latest_epoch >= self.leader_epoch:
            return
        self.epoch_start = log.log_end_offset
        self.followers.epoch_start = self.epoch_start
        if not log.has_tail:
            log.assign_epoch(self.leader_epoch)

    def close(self) -> None:
        """Give the replica up: its topic was deleted."""
        self.is_closed = True
        self.is_leader = False
        self.followers = None
        self.gone_code = errors.UNKNOWN_TOPIC_OR_PARTITION

    def begin_after_recovery(self) -> None:
        """Begin with the high watermark that recovery leaves.

        Recovery has made everything that it kept durable, so all of it counts; but where others
        have the partition too, only they can say how much of it does.  What was known before is
        still true.
        """
        log = self.log
        if len(self.replicas) > 1:
            hint = min(log.high_watermark_hint, log.written_end_offset)
            self.high_watermark = max(hint, log.log_start_offset)
            with contextlib.suppress(StorageError, CorruptData):
                # A log with a flaw before it is not read up to there.
                self.high_watermark_position = log.position_of(self.high_watermark)
            self.maybe_advance_high_watermark()
        else:
            self.high_watermark = log.written_end_offset
            self.high_watermark_position = log.end_position()

    def leader_contribution(self) -> int:
        """Return the leader's own share of the high watermark."""
        if self.is_flushed_at_once:
            return self.log.flushed_offset
        return self.log.written_end_offset

    def acked_end(self, acks: int) -> int:
        """Records below this offset may be acknowledged to a producer with these acks."""
        return self.high_watermark if acks == -1 else self.leader_contribution()

    def is_under_min_isr(self) -> bool:
        """Return true if a produce with acks=all must be refused.

        Where others follow, those in sync count that live and are caught up.
        """
        followers = self.followers
        in_sync = len(self.isr) if followers is None else followers.in_sync
        return in_sync < self.floor()

    def floor(self) -> int:
        """Return how many replicas must be in sync for records to count.

        A partition with fewer replicas than min.insync.replicas needs all that it has, as in
        Kafka; else nothing could ever be produced to it.
        """
        return min(self.config.min_insync_replicas, len(self.replicas))

    def may_act(self) -> bool:
        """Return whether this leader may append, serve consumers and coordinate groups now.

        It may while its lease lasts by its own clock, or its followers have just turned to it, or
        it is in sync alone.  Else another one may lead already: also one whose addition was asked
        for, as long as nobody knows what became of that.
        """
        if not self.is_leader:
            return False
        followers = self.followers
        if followers is None or not self.door.is_lease_over:
            return True
        isr = [*self.isr, *followers.proposed] if followers.proposed else self.isr
        return len(isr) == 1 or followers.have_turned_to_us(isr, self.door.real_ms)

    def rests(self) -> bool:
        """Return whether another broker may lead it by now, so that this one answers nothing."""
        return self.door.is_lease_over and not self.may_act()

    def is_behind_epoch(self) -> bool:
        """Return whether the high watermark may still lag behind what an earlier leader told."""
        return self.high_watermark < self.epoch_start

    def low_watermark(self) -> int:
        """Return below which offset nobody who may lead has records any more."""
        start = self.log.log_start_offset
        followers = self.followers
        return start if followers is None else followers.least_log_start(start)

    def epoch_error(self, current_leader_epoch: int) -> int:
        """Return the error for a client that knows this leader epoch (KIP-320), or NONE.

        Below 0 the client knows none.
        """
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        return errors.UNKNOWN_LEADER_EPOCH

    def readable_end(self, reader: ReaderKind) -> LogPosition:
        """Return where the records end that this kind of reader may see."""
        if reader.is_committed:
            return self.last_stable_end()
        return self.high_watermark_position

    def last_stable_end(self) -> LogPosition:
        """Return the position of the last stable offset.

        The high watermark, as long as no transaction can be open.
        """
        return self.high_watermark_position

    def maybe_advance_high_watermark(self) -> bool:
        """Take the least end of those that count; True if it moved."""
        if not self.is_leader:
            return False
        end = self.leader_contribution()
        followers = self.followers
        if followers is not None:
            end = followers.high_watermark(end, len(self.isr), self.floor())
        return self.raise_high_watermark(end)

    def raise_high_watermark(self, end: int) -> bool:
        """Let the high watermark be `end`, at or below the written end; True if it moved.

        Where its place in the log cannot be read now, it rests: the next one to ask tries again.
        """
        if end <= self.high_watermark:
            return False
        try:
            position = self.log.position_of(end)
        except (StorageError, CorruptData):
            return False
        self.high_watermark = end
        self.high_watermark_position = position
        if self.followers is not None:
            self.log.hint_high_watermark(end)
        return True

    def on_write_failed(self) -> None:
        self.producers.rollback(self.log.written_end_offset)
        if self.followers is not None:
            # What was there when this broker began to lead may have gone with the tail: readers
            # would wait for it.
            self.begin_epoch()

    def on_written(self) -> bool:
        self.producers.settle()
        if self.followers is not None:
            # A tail that was there when this broker began to lead went into the epoch before.
            if self.log.leader_epochs.latest_epoch < self.leader_epoch:
                self.begin_epoch()
            self.door.on_written(self)
        return not self.is_flushed_at_once and self._has_own_end_moved()

    def on_flushed(self, offset: int) -> bool:
        return self._has_own_end_moved()

    def _has_own_end_moved(self) -> bool:
        # Where others follow, producers with acks=1 wait for less than the high watermark.
        return self.maybe_advance_high_watermark() or self.followers is not None

    def delete_old_segments(self, now_wall_ms: int) -> int:
        """Apply retention below the high watermark; how many segments are given up."""
        return retention.delete_old_segments(self.log, now_wall_ms, self.high_watermark)

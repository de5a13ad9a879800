"""A log under a leadership: how far its records count, its producers, and what may be read.

The high watermark is the least end among the replicas that count (`followers`).  The leader's own
contribution is its flushed end under `flush.policy=commit` and its written end under `os`
(ARCHITECTURE.md, "Durability").  Invariants: log_start_offset <= high_watermark <=
written_end_offset, and the high watermark never decreases while the partition is led here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData, StorageError
from tarry.log import retention
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.owner import LogOwner
from tarry.log.segments import LogPosition
from tarry.log.state import LogListener
from tarry.partition.followers import LogCopy
from tarry.partition.leadership import Leadership
from tarry.partition.producers import ProducerStates
from tarry.partition.reader import LogReader
from tarry.records.batch import BatchHeader

# Numbers of a partition's logs under its leadership.
RECORDS: Final = 0
COMPANION: Final = 1

# Key of a log: topic id, partition index, number of the log.
LogKey = tuple[bytes, int, int]
# Watch key of a log.  The topic's name comes first, since waits are reported by topic.  The id
# keeps an operation that waits for a deleted topic from completing for a new topic of that name.
WatchKey = tuple[str, int, bytes, int]

# `segment_base_offset` of a high watermark whose position is unknown.
NOWHERE: Final = -1


def wire_index(key: LogKey) -> int:
    """Return the index by which brokers name a log to each other.

    For the records it is the partition's index, as clients know it.  For a companion log it is
    negative, and only brokers use it.
    """
    _, index, which = key
    return index if which == RECORDS else -1 - index


def key_of(topic_id: bytes, index: int) -> LogKey:
    """Return the key of the log that brokers name by this index."""
    return (topic_id, index, RECORDS) if index >= 0 else (topic_id, -1 - index, COMPANION)


class ProducerListener(LogListener):
    """Listener by which the producer states follow the log's recovery."""

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


class ReplicatedLog(LogOwner):
    """Log of a partition on this broker, one of those under its leadership."""

    def __init__(self, leadership: Leadership, log: Log, producers: ProducerStates) -> None:
        super().__init__(log.directory, log)
        self.leadership = leadership
        self.which: int = len(leadership.logs)
        self.key: LogKey = (leadership.topic_id, leadership.index, self.which)
        self.watch_key: WatchKey = (
            leadership.topic,
            leadership.index,
            leadership.topic_id,
            self.which,
        )
        self.producers = producers
        self.config: LogConfig = log.config
        # Number of the last produce request that named this log, so that none names it twice.
        # open: a produce that names a partition twice is refused by it
        self.produce_number: i64 = -1
        # Log end at which this broker began to lead in this epoch.  Records committed before end
        # there at most.
        self.epoch_start = 0
        # The high watermark, as an offset with its position in the log.
        self.high_watermark_position: LogPosition = log.end_position()
        leadership.add(self)

    @property
    def high_watermark(self) -> int:
        """Offset up to which records count as committed."""
        return self.high_watermark_position.offset

    def reconfigure(self, config: LogConfig) -> None:
        """Take over the topic's settings after a change."""
        self.config.take_over(config)

    def copy(self, broker_id: int) -> LogCopy | None:
        """Return a follower's copy of this log; None if this broker has no such follower."""
        followers = self.leadership.followers
        return None if followers is None else followers.copy(broker_id, self.which)

    def begin_epoch(self) -> None:
        """Let the leader epoch begin at the log's end, before it has its first batch.

        A follower that asks where an earlier epoch ended then gets the answer at once.
        """
        log = self.log
        leadership = self.leadership
        if leadership.followers is None:
            return
        if log.leader_epochs.latest_epoch >= leadership.leader_epoch:
            return
        self.epoch_start = log.log_end_offset
        if not log.has_tail:
            log.assign_epoch(leadership.leader_epoch)

    def begin_after_recovery(self) -> None:
        """Set the high watermark after recovery.

        Recovery has made all records durable, so all of them count if there is no other replica.
        If there are others, only they can tell how many count; the high watermark that was known
        before the stop still holds.
        """
        log = self.log
        if len(self.leadership.replicas) > 1:
            # Recovery has clamped the hint to the log's end already.  This clamp keeps the high
            # watermark at or below the written end by itself: no reader checks it.
            hint = min(log.high_watermark_hint, log.written_end_offset)
            self._place(max(hint, log.log_start_offset))
            self.maybe_advance_high_watermark()
        else:
            self.high_watermark_position = log.end_position()

    # -- what counts

    def leader_contribution(self) -> int:
        """Return the leader's own share of the high watermark."""
        if self.is_flushed_at_once:
            return self.log.flushed_offset
        return self.log.written_end_offset

    def acked_end(self, acks: int) -> int:
        """Return the offset below which a producer with these acks may be answered."""
        return self.high_watermark if acks == -1 else self.leader_contribution()

    def is_behind_epoch(self) -> bool:
        """Return True if the high watermark may be below one that an earlier leader reported."""
        return self.high_watermark < self.epoch_start

    def low_watermark(self) -> int:
        """Return the offset below which no replica that may lead next has records."""
        start = self.log.log_start_offset
        followers = self.leadership.followers
        return start if followers is None else followers.least_log_start(self.which, start)

    def readable_end(self, reader: LogReader) -> LogPosition:
        """Return the position up to which this kind of reader may see records."""
        if reader.is_committed:
            return self.last_stable_end()
        if reader.is_replica:
            return self.log.end_position()
        end = self.high_watermark_position
        return end if end.segment_base_offset != NOWHERE else self._placed_end()

    def last_stable_end(self) -> LogPosition:
        """Return the position of the last stable offset.

        It is the high watermark, because there are no transactions yet.
        """
        end = self.high_watermark_position
        return end if end.segment_base_offset != NOWHERE else self._placed_end()

    def maybe_advance_high_watermark(self) -> bool:
        """Raise the high watermark to the least end that counts; return True if it moved."""
        leadership = self.leadership
        if not leadership.is_leader:
            return False
        end = self.leader_contribution()
        followers = leadership.followers
        if followers is not None:
            in_sync = len(leadership.isr)
            end = followers.high_watermark(self.which, end, in_sync, leadership.floor())
        return self.raise_high_watermark(end)

    def raise_high_watermark(self, end: int) -> bool:
        """Raise the high watermark to `end`, at or below the written end; return True if it moved.

        If the position of `end` cannot be read at present, the high watermark stays; a later call
        tries again.
        """
        if end <= self.high_watermark:
            return False
        try:
            position = self.log.position_of(end)
        except (StorageError, CorruptData):
            return False
        self.high_watermark_position = position
        if self.leadership.followers is not None:
            self.log.hint_high_watermark(end)
        return True

    def follow_high_watermark(self, offset: int) -> None:
        """Take over the leader's high watermark: records below it are committed, and stay so after
        a restart.

        Its position is looked up when this broker leads, or when compaction needs it.
        """
        self.high_watermark_position = LogPosition(offset, NOWHERE, 0)
        self.log.hint_high_watermark(offset)
        if self.config.has_compaction:
            self.place_high_watermark()

    def place_high_watermark(self) -> None:
        """Look up the position of the high watermark, limited to the offsets of this log.

        A log that was emptied may not reach the high watermark, or may begin behind it, until its
        leader has answered.
        """
        log = self.log
        within = max(self.high_watermark, log.log_start_offset)
        self._place(min(within, log.written_end_offset))

    def _place(self, offset: int) -> None:
        try:
            self.high_watermark_position = self.log.position_of(offset)
        except (StorageError, CorruptData):
            self.high_watermark_position = LogPosition(offset, NOWHERE, 0)

    def _placed_end(self) -> LogPosition:
        """Return the high watermark with its position; the log start if that cannot be read."""
        self.place_high_watermark()
        end = self.high_watermark_position
        if end.segment_base_offset != NOWHERE:
            return end
        return LogPosition(self.log.log_start_offset, NOWHERE, 0)

    # -- the log's life

    @property
    def undone_write(self) -> str:
        """Sentence why nothing may be acknowledged whose double this log may still have; "" if
        there is no reason: a crash brings back nothing of a write that has failed.
        """
        if not self.log.has_undurable_cut:
            return ""
        return (
            f"a write to {self.name} has failed, and the disk has not confirmed yet that nothing "
            "of it is left"
        )

    def on_write_failed(self) -> None:
        self.producers.rollback(self.log.written_end_offset)
        # The lost tail may have had records from before this broker began to lead.  Readers would
        # wait for the old epoch start, so set it again.
        self.begin_epoch()

    def on_written(self) -> bool:
        self.producers.settle()
        leadership = self.leadership
        if leadership.followers is not None:
            # A tail from before this broker began to lead has gone into the epoch before.
            if self.log.leader_epochs.latest_epoch < leadership.leader_epoch:
                self.begin_epoch()
            leadership.door.on_written(self)
        return not self.is_flushed_at_once and self._has_own_end_moved()

    def on_flushed(self, offset: int) -> bool:
        return self._has_own_end_moved()

    def _has_own_end_moved(self) -> bool:
        # If the partition has followers, producers with acks=1 wait for less than the high
        # watermark.
        return self.maybe_advance_high_watermark() or self.leadership.followers is not None

    def delete_old_segments(self, now_wall_ms: int) -> int:
        """Apply retention below `removable_end`; return how many segments are given up."""
        return retention.delete_old_segments(
            self.log,
            now_wall_ms,
            self.removable_end(),
            has_releases=len(self.leadership.logs) > 1,
        )

    def removable_end(self) -> int:
        """Return the offset below which records may be deleted or compacted.

        It is the high watermark.  On the leader it is lower while only the partition's records show
        which scheduled records were released.  A follower takes over its leader's log start.
        """
        leadership = self.leadership
        if len(leadership.logs) == 1 or not leadership.is_leader:
            return self.high_watermark
        parking = leadership.parking
        if self.which != RECORDS or parking is None:
            return self.log.log_start_offset
        return min(self.high_watermark, parking.covered_offset())

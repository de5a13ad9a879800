"""A partition as its leader sees it: log, in-sync replicas, high watermark.

The high watermark is the smallest contribution of the in-sync replicas.  The leader's own
contribution is its flushed end under `flush.policy=commit` and its written end under `os`
(ARCHITECTURE.md, "Durability").  Invariants: log_start_offset <= high_watermark <=
written_end_offset, and the high watermark never goes back while the partition is led here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base import errors
from tarry.log import retention
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.owner import LogOwner
from tarry.log.segments import LogPosition
from tarry.log.state import LogListener
from tarry.partition.producers import ProducerStates
from tarry.records.batch import BatchHeader

# A partition is known by its topic's id as well, so that what waits for a deleted topic does
# not wake for its successor of the same name.
PartitionKey = tuple[str, int, bytes]


class ReaderKind:
    """Kind of reader: how far a partition may be read, and what an answer must hold for it.

    A consumer reads to the high watermark, a committed consumer to the last stable offset.  A
    replica joins as one more kind, made where its fetch is recognised, with the written end in
    `Partition.readable_end`.
    """

    __slots__ = ("is_committed",)

    def __init__(self, *, is_committed: bool) -> None:
        self.is_committed = is_committed


CONSUMER: Final = ReaderKind(is_committed=False)
COMMITTED_CONSUMER: Final = ReaderKind(is_committed=True)


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
    """The leader's replica of one partition."""

    def __init__(
        self, topic: str, topic_id: bytes, index: int, log: Log, producers: ProducerStates
    ) -> None:
        super().__init__(f"{topic}-{index}", log)
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.key: PartitionKey = (topic, index, topic_id)
        self.producers = producers
        self.config: LogConfig = log.config
        self.leader_id = -1
        self.leader_epoch = 0
        # The last produce request that named this partition, so that none names it twice.
        self.produce_number: i64 = -1
        self.replicas: list[int] = []
        self.isr: list[int] = []
        # By broker id, below which offset an in-sync replica keeps everything, come what may.
        self.contributions: dict[int, int] = {}
        self.high_watermark: int = log.log_start_offset
        self.high_watermark_position: LogPosition = log.end_position()
        self.begin_after_recovery()

    def reconfigure(self, config: LogConfig) -> None:
        """Take the topic's settings after they have changed."""
        self.config.take_over(config)

    def lead(self, leader_id: int, leader_epoch: int, replicas: list[int], isr: list[int]) -> None:
        """Take over what the metadata says about this partition."""
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        self.isr = isr
        # What followers told another leader, or this one in an earlier epoch, is not true now.
        self.contributions = {}

    def begin_after_recovery(self) -> None:
        """Recovery has made everything that it kept durable, so all of it counts."""
        self.high_watermark = self.log.written_end_offset
        self.high_watermark_position = self.log.end_position()

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

        A partition with fewer replicas than min.insync.replicas needs all that it has, as in
        Kafka; else nothing could ever be produced to it.
        """
        return len(self.isr) < min(self.config.min_insync_replicas, len(self.replicas))

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
        """Take the minimum over the in-sync replicas' contributions; True if it moved."""
        contributions = self.contributions
        # The leader's own; a follower's comes with its fetch.
        end = self.leader_contribution()
        contributions[self.leader_id] = end
        for broker_id in self.isr:
            end = min(end, contributions.get(broker_id, self.high_watermark))
        if end <= self.high_watermark:
            return False
        self.high_watermark = end
        self.high_watermark_position = self.log.position_of(end)
        return True

    def on_write_failed(self) -> None:
        self.producers.rollback(self.log.written_end_offset)

    def on_written(self) -> bool:
        self.producers.settle()
        return not self.is_flushed_at_once and self.maybe_advance_high_watermark()

    def on_flushed(self, offset: int) -> bool:
        return self.maybe_advance_high_watermark()

    def delete_old_segments(self, now_wall_ms: int) -> int:
        """Apply retention below the high watermark; how many segments are given up."""
        return retention.delete_old_segments(self.log, now_wall_ms, self.high_watermark)

"""Reading for a replica: its seat in a session is refused, diverges, or gets what is written."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.replication.fetch_sessions import NOT_SENT, Seat
from tarry.log.log import Log
from tarry.partition.state import Partition
from tarry.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    LeaderIdAndEpoch,
    PartitionData,
)
from tarry.wire.reader import Window, window_of
from tarry.wire.writer import ChunkList

EMPTY: Final[Window] = window_of(b"")


def epoch_refusal(partition: Partition | None, asked: FetchPartition, missing_code: int) -> int:
    """Return the error of who asks for a partition that is not led here, or in another epoch."""
    if partition is None:
        return missing_code
    if partition.gone_code != errors.NONE:
        return partition.gone_code
    if asked.current_leader_epoch < 0:
        # A replica that knows no leader epoch may follow another leader.
        return errors.UNKNOWN_LEADER_EPOCH
    return partition.epoch_error(asked.current_leader_epoch)


def divergence(log: Log, asked: FetchPartition) -> EpochEndOffset | None:
    """Return where the leader's log parts from the follower's, by epochs; None if it does not.

    The leader's largest epoch not above the follower's last one, and where it ended here: the
    follower has something else if that epoch is smaller, or ended before the follower's end.
    """
    last_epoch = asked.last_fetched_epoch
    if last_epoch < 0:
        return None
    latest = int(log.leader_epochs.latest_epoch)
    if last_epoch > latest:
        return EpochEndOffset(epoch=max(latest, 0), end_offset=log.log_end_offset)
    epoch, end_offset = log.end_offset_for_epoch(last_epoch)
    if epoch < last_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def offset_refusal(log: Log, asked: FetchPartition) -> int:
    """Return the error of an offset at which nothing can be read."""
    if not log.log_start_offset <= asked.fetch_offset <= log.written_end_offset:
        return errors.OFFSET_OUT_OF_RANGE
    if log.has_flaw_before(asked.fetch_offset):
        return errors.KAFKA_STORAGE_ERROR
    return errors.NONE


def refused(seat: Seat, error_code: int) -> PartitionData:
    """Return the answer to a seat that is refused, with the leader that it should know."""
    answer = _empty(seat)
    answer.error_code = error_code
    partition = seat.partition
    is_epoch_error = error_code in (errors.FENCED_LEADER_EPOCH, errors.NOT_LEADER_OR_FOLLOWER)
    if partition is not None and is_epoch_error:
        answer.current_leader = LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )
    return answer


def diverging(seat: Seat, partition: Partition, found: EpochEndOffset) -> PartitionData:
    """Return the answer to a follower that has what the leader has not."""
    answer = _ends(seat, partition)
    answer.diverging_epoch = found
    # It cuts its log first, and takes the ends from the next answer.
    seat.sent_high_watermark = NOT_SENT
    seat.sent_log_start = NOT_SENT
    return answer


def ends(seat: Seat, partition: Partition) -> PartitionData:
    """Return an answer without records: the leader's ends have moved."""
    return _ends(seat, partition)


def records(
    seat: Seat, partition: Partition, size_max: int, *, at_least_one: bool
) -> PartitionData | None:
    """Return what is written from the seat's offset on; None if nothing of it fits."""
    log = partition.log
    asked = seat.asked
    size_max = max(min(size_max, asked.partition_max_bytes), 0)
    if size_max == 0 and not at_least_one:
        return None
    try:
        region = log.read(asked.fetch_offset, log.end_position(), size_max, at_least_one, None)
    except (StorageError, CorruptData):
        return refused(seat, errors.KAFKA_STORAGE_ERROR)
    if region is None:
        return None
    answer = _ends(seat, partition)
    answer.records = ChunkList([region], region.size)
    return answer


def _ends(seat: Seat, partition: Partition) -> PartitionData:
    answer = _empty(seat)
    answer.high_watermark = partition.high_watermark
    answer.last_stable_offset = partition.last_stable_end().offset
    answer.log_start_offset = partition.log.log_start_offset
    seat.sent_high_watermark = answer.high_watermark
    seat.sent_log_start = answer.log_start_offset
    return answer


def _empty(seat: Seat) -> PartitionData:
    answer = PartitionData(partition_index=seat.asked.partition)
    answer.high_watermark = -1
    answer.last_stable_offset = -1
    answer.log_start_offset = -1
    answer.preferred_read_replica = -1
    answer.aborted_transactions = None
    answer.records = EMPTY
    return answer

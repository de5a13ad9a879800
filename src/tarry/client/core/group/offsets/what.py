"""Arguments of a commit: a record, records of a partition, or offsets by partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tarry.base.ids import TopicPartition
from tarry.client.core.arguments import check_offset, place_of
from tarry.client.core.consumer.decoding import DecodedRecord
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.consumer.record_group import ConsumerRecord, RecordGroup
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.records.record import Record

Offsets = Mapping[TopicPartition, int | CommittedOffset]
# Argument of `commit`: a record or a RecordGroup (the offset behind it), the next offset to read by
# partition, or None (behind all records handed out).  Type Any: keys and values do not matter.
CommitWhat = ConsumerRecord[Any, Any] | RecordGroup[Any, Any] | Offsets | None


class OffsetsBehindRows(dict[TopicPartition, int]):
    """Offsets behind rows that a consumer has read, by partition."""


# The classes of ConsumerRecord.
RECORDS: Final = (Record, DecodedRecord)

# Limit of metadata in a request; the broker's limit is offset.metadata.max.bytes (4096 by default).
METADATA_BYTES_MAX: Final = 32_767


def offsets_behind(
    what: ConsumerRecord[Any, Any] | RecordGroup[Any, Any] | Offsets,
) -> dict[TopicPartition, CommittedOffset]:
    """Return the offsets to commit; raise TypeError or ValueError for other arguments."""
    if isinstance(what, RECORDS):
        if not what.topic:
            raise ValueError(f"commit: {what!r:.60} was made without a topic and a partition")
        return {(what.topic, what.partition): CommittedOffset(what.offset + 1)}
    if isinstance(what, RecordGroup):
        # The user may have removed finished records from the group's list, so it is not used.
        if what.next_offset < 0:
            return {}
        return {(what.topic, what.partition): CommittedOffset(what.next_offset)}
    if not isinstance(what, Mapping):
        raise TypeError(
            'commit takes a record, records of a poll, or offsets such as {("orders", 0): 42}, '
            f"not {what!r:.60}"
        )
    return committed_offsets_of("commit", what)


def committed_offsets_of(what: str, offsets: object) -> dict[TopicPartition, CommittedOffset]:
    """Return offsets to commit by partition; raise TypeError or ValueError for other arguments."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f'{what} takes offsets such as {{("orders", 0): 42}}, not {offsets!r:.60}')
    return {place_of(what, place): _offset_of(what, given) for place, given in offsets.items()}


def offset_behind(position: PartitionPosition, offset: int) -> CommittedOffset:
    """Return an offset of a partition with the leader epoch of the record before it."""
    return CommittedOffset(offset, position.epoch_before(offset))


def handed_out_offsets(
    positions: Mapping[TopicPartition, PartitionPosition],
) -> dict[TopicPartition, CommittedOffset]:
    """Return the offsets behind all records that were handed out."""
    return {
        place: offset_behind(position, position.position)
        for place, position in positions.items()
        if position.position >= 0 and not position.is_void
    }


def finish_before(
    offsets: Mapping[TopicPartition, CommittedOffset],
    positions: Mapping[TopicPartition, PartitionPosition],
) -> None:
    """Mark the committed offsets as finished, so that the next automatic commit does not go
    back."""
    for place, committed in offsets.items():
        position = positions.get(place)
        if position is not None and position.finished < committed.offset <= position.position:
            position.finish(committed.offset)


def with_epochs(
    what: object,
    offsets: dict[TopicPartition, CommittedOffset],
    positions: Mapping[TopicPartition, PartitionPosition],
) -> dict[TopicPartition, CommittedOffset]:
    """Return offsets with the leader epochs of the records before them, if they come from records
    that this consumer has read: with the epoch, a later reader finds out whether a new leader has
    lost them."""
    if not isinstance(what, (*RECORDS, RecordGroup, OffsetsBehindRows)):
        return offsets
    return {
        place: offset_behind(positions[place], given.offset) if place in positions else given
        for place, given in offsets.items()
    }


def _offset_of(what: str, given: object) -> CommittedOffset:
    if not isinstance(given, CommittedOffset):
        check_offset(what, given)
        assert isinstance(given, int)
        return CommittedOffset(given)
    check_offset(what, given.offset)
    if type(given.leader_epoch) is not int or not -1 <= given.leader_epoch < 2**31:
        raise ValueError(
            f"{what}: {given.leader_epoch!r:.60} is no leader epoch; leave it out if it is not "
            "known"
        )
    if not isinstance(given.metadata, str):
        raise TypeError(f"{what} takes metadata as str, not {given.metadata!r:.60}")
    if len(given.metadata.encode()) > METADATA_BYTES_MAX:
        raise ValueError(f"{what}: metadata is longer than {METADATA_BYTES_MAX} bytes")
    return given

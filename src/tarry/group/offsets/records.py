"""Records of committed offsets.

All versions that Kafka 4.1 reads are decoded.  Version 4 is encoded, as Kafka 4.1 does; or version
1 for an offset with an expiry time of its own, which later versions do not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tarry.group.records import (
    FLEXIBLE_VERSION,
    NO_TIMESTAMP,
    Decoder,
    GroupRecord,
    version_of,
)
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer

if TYPE_CHECKING:
    from tarry.group.state import GroupState

LEGACY_OFFSET_KEY: Final = 0
OFFSET_KEY: Final = 1

OFFSET_VERSION: Final = 4
OFFSET_VERSION_MAX: Final = 4
# The only version that holds the time at which an offset expires.
OFFSET_VERSION_EXPIRING: Final = 1

NO_LEADER_EPOCH: Final = -1
NO_TOPIC_ID: Final = bytes(16)


class OffsetCommitted(GroupRecord, frozen=True, kw_only=True):
    """Committed offset of one partition.  Times are calendar ms, or `NO_TIMESTAMP`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: bytes = NO_TOPIC_ID

    def encode(self) -> tuple[bytes, bytes | None]:
        return _encode_key(self.group_id, self.topic, self.partition), _encode_offset(self)

    def apply_to(self, group: GroupState) -> None:
        group.put_offset(self)


class OffsetTombstone(GroupRecord, frozen=True, kw_only=True):
    """Tombstone: the partition has no committed offset any more."""

    is_tombstone: ClassVar[bool] = True

    topic: str
    partition: int

    def encode(self) -> tuple[bytes, bytes | None]:
        return _encode_key(self.group_id, self.topic, self.partition), None

    def apply_to(self, group: GroupState) -> None:
        group.drop_offset(self.topic, self.partition)


def _decode(reader: Reader, value: bytes | None) -> GroupRecord:
    group_id, topic, partition = reader.string(), reader.string(), reader.i32()
    reader.expect_end()
    if value is None:
        return OffsetTombstone(group_id, topic=topic, partition=partition)
    return _decode_offset(group_id, topic, partition, value)


# Both key numbers mean the same; Kafka replaced the older one.
OFFSET_DECODERS: Final[dict[int, Decoder]] = {LEGACY_OFFSET_KEY: _decode, OFFSET_KEY: _decode}


def _encode_key(group_id: str, topic: str, partition: int) -> bytes:
    writer = Writer()
    writer.i16(OFFSET_KEY)
    writer.string(group_id)
    writer.string(topic)
    writer.i32(partition)
    return writer.finish()


def _encode_offset(record: OffsetCommitted) -> bytes:
    writer = Writer()
    if record.expire_timestamp_ms != NO_TIMESTAMP:
        writer.i16(OFFSET_VERSION_EXPIRING)
        writer.i64(record.offset)
        writer.string(record.metadata)
        writer.i64(record.commit_timestamp_ms)
        writer.i64(record.expire_timestamp_ms)
        return writer.finish()
    writer.i16(OFFSET_VERSION)
    writer.i64(record.offset)
    writer.i32(record.leader_epoch)
    writer.compact_string(record.metadata)
    writer.i64(record.commit_timestamp_ms)
    if record.topic_id == NO_TOPIC_ID:
        writer.unsigned_varint(0)
    else:
        writer.unsigned_varint(1)
        writer.unsigned_varint(0)
        writer.unsigned_varint(16)
        writer.uuid(record.topic_id)
    return writer.finish()


def _decode_offset(group_id: str, topic: str, partition: int, value: bytes) -> OffsetCommitted:
    reader = Reader(value)
    version = version_of(reader, OFFSET_VERSION_MAX, "an offset")
    flexible = version >= FLEXIBLE_VERSION
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else NO_LEADER_EPOCH
    metadata = reader.compact_string() if flexible else reader.string()
    commit_timestamp_ms = reader.i64()
    expire_timestamp_ms = reader.i64() if version == OFFSET_VERSION_EXPIRING else NO_TIMESTAMP
    topic_id = _decode_topic_id(reader) if flexible else NO_TOPIC_ID
    reader.expect_end()
    return OffsetCommitted(
        group_id,
        topic=topic,
        partition=partition,
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_timestamp_ms,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=topic_id,
    )


def _decode_topic_id(reader: Reader) -> bytes:
    """Decode the tagged fields: the topic's id; skip fields of newer releases."""
    topic_id = NO_TOPIC_ID
    tag = -1
    for _ in range(reader.tagged_field_count()):
        tag = reader.tag_after(tag)
        end = reader.tagged_field_end()
        if tag == 0:
            topic_id = reader.uuid()
            reader.expect_position(end)
        reader.position = end
    return topic_id

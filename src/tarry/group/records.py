"""Records of groups, as they lie in `__consumer_offsets`: Kafka's own formats.

A key begins with a number that says its kind, a value with the version of its fields.  Every
version that Kafka 4.1 reads is read; written is the one that Kafka 4.1 writes: group metadata 3,
offsets 4, or 1 for an offset with a time to expire of its own, which later versions left out.
A record without a value is a tombstone.

A kind that is not known here belongs to something that Tarry does not have (newer group
protocols); it is passed over, as Kafka does.  A version that is not known, or bytes that are not
what they claim, raise `CorruptData`: to guess could lose offsets.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.base.errors import CorruptData
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import STRING_BYTES_MAX, Writer

LEGACY_OFFSET_KEY: Final = 0
OFFSET_KEY: Final = 1
GROUP_KEY: Final = 2

GROUP_VERSION: Final = 3
GROUP_VERSION_MAX: Final = 4
OFFSET_VERSION: Final = 4
OFFSET_VERSION_MAX: Final = 4
# The one version that holds the time at which an offset expires.
OFFSET_VERSION_EXPIRING: Final = 1
# From here on strings and arrays are compact and tagged fields may follow.
FLEXIBLE_VERSION: Final = 4

# Instead of a time: not known.
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_TOPIC_ID: Final = bytes(16)

# The smallest member of any version without, and with, compact fields.
_MEMBER_BYTES_MIN: Final = 18
_MEMBER_BYTES_MIN_FLEXIBLE: Final = 15


class GroupRecord(msgspec.Struct, frozen=True):
    """Base of all kinds."""

    group_id: str


class MemberRow(msgspec.Struct, frozen=True):
    """Row of a member in `GroupMetadata`; subscription and assignment are opaque to the broker."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(GroupRecord, frozen=True, kw_only=True):
    """A generation of a group: all of its durable state but the offsets.

    `state_timestamp_ms` is the calendar time of the last change of its state, or `NO_TIMESTAMP`.
    """

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: list[MemberRow]


class GroupTombstone(GroupRecord, frozen=True):
    """The group's metadata is gone."""


class OffsetCommitted(GroupRecord, frozen=True, kw_only=True):
    """The offset of one partition.  Times are of the calendar, or `NO_TIMESTAMP`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: bytes = NO_TOPIC_ID


class OffsetTombstone(GroupRecord, frozen=True, kw_only=True):
    """The offset of one partition is gone."""

    topic: str
    partition: int


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record; no value for a tombstone."""
    match record:
        case GroupMetadata():
            return _encode_group_key(record.group_id), _encode_group(record)
        case GroupTombstone():
            return _encode_group_key(record.group_id), None
        case OffsetCommitted():
            return _encode_offset_key(record), _encode_offset(record)
        case OffsetTombstone():
            return _encode_offset_key(record), None
        case _:
            raise AssertionError(f"{type(record).__name__} is not written")


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """Decode a record; None for a kind that is not ours; `CorruptData` if it cannot be read."""
    try:
        reader = Reader(key)
        kind = reader.i16()
        if kind == GROUP_KEY:
            group_id = reader.string()
            reader.expect_end()
            return GroupTombstone(group_id) if value is None else _decode_group(group_id, value)
        if kind not in (LEGACY_OFFSET_KEY, OFFSET_KEY):
            return None
        group_id, topic, partition = reader.string(), reader.string(), reader.i32()
        reader.expect_end()
        if value is None:
            return OffsetTombstone(group_id, topic=topic, partition=partition)
        return _decode_offset(group_id, topic, partition, value)
    except MalformedData as flaw:
        raise CorruptData(f"a record of a group cannot be read: {flaw}") from flaw


def can_be_written(*texts: str | None) -> bool:
    """Return true if these texts fit the records' strings, whose length has 15 bits."""
    return all(text is None or len(text.encode()) <= STRING_BYTES_MAX for text in texts)


# -- keys


def _encode_group_key(group_id: str) -> bytes:
    writer = Writer()
    writer.i16(GROUP_KEY)
    writer.string(group_id)
    return writer.finish()


def _encode_offset_key(record: OffsetCommitted | OffsetTombstone) -> bytes:
    writer = Writer()
    writer.i16(OFFSET_KEY)
    writer.string(record.group_id)
    writer.string(record.topic)
    writer.i32(record.partition)
    return writer.finish()


# -- offsets


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
    version = _version(reader, OFFSET_VERSION_MAX, "an offset")
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
    """Decode the tagged fields: the topic's id, and what newer releases may have added."""
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


# -- groups


def _encode_group(record: GroupMetadata) -> bytes:
    writer = Writer()
    writer.i16(GROUP_VERSION)
    writer.string(record.protocol_type)
    writer.i32(record.generation_id)
    writer.nullable_string(record.protocol_name)
    writer.nullable_string(record.leader_id)
    writer.i64(record.state_timestamp_ms)
    writer.i32(len(record.members))
    for member in record.members:
        writer.string(member.member_id)
        writer.nullable_string(member.instance_id)
        writer.string(member.client_id)
        writer.string(member.client_host)
        writer.i32(member.rebalance_timeout_ms)
        writer.i32(member.session_timeout_ms)
        writer.bytes_(member.subscription)
        writer.bytes_(member.assignment)
    return writer.finish()


def _decode_group(group_id: str, value: bytes) -> GroupMetadata:
    reader = Reader(value)
    version = _version(reader, GROUP_VERSION_MAX, "a group")
    flexible = version >= FLEXIBLE_VERSION
    protocol_type = reader.compact_string() if flexible else reader.string()
    generation_id = reader.i32()
    protocol_name = _nullable_string(reader, flexible)
    leader_id = _nullable_string(reader, flexible)
    state_timestamp_ms = reader.i64() if version >= 2 else NO_TIMESTAMP
    if flexible:
        count = reader.compact_array_length(_MEMBER_BYTES_MIN_FLEXIBLE)
    else:
        count = reader.array_length(_MEMBER_BYTES_MIN)
    if count < 0:
        raise MalformedData("null where members must be")
    members = [_decode_member(reader, version) for _ in range(count)]
    if flexible:
        reader.skip_tagged_fields()
    reader.expect_end()
    return GroupMetadata(
        group_id,
        protocol_type=protocol_type,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader_id=leader_id,
        state_timestamp_ms=state_timestamp_ms,
        members=members,
    )


def _decode_member(reader: Reader, version: int) -> MemberRow:
    flexible = version >= FLEXIBLE_VERSION
    member_id = reader.compact_string() if flexible else reader.string()
    instance_id = _nullable_string(reader, flexible) if version >= 3 else None
    client_id = reader.compact_string() if flexible else reader.string()
    client_host = reader.compact_string() if flexible else reader.string()
    rebalance_timeout_ms = reader.i32() if version >= 1 else -1
    session_timeout_ms = reader.i32()
    subscription = reader.compact_bytes() if flexible else reader.bytes_()
    assignment = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    if rebalance_timeout_ms == -1:
        # Before version 1 there was one time-out for both.
        rebalance_timeout_ms = session_timeout_ms
    return MemberRow(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


def _nullable_string(reader: Reader, flexible: bool) -> str | None:
    return reader.compact_nullable_string() if flexible else reader.nullable_string()


def _version(reader: Reader, version_max: int, what: str) -> int:
    version = reader.i16()
    if not 0 <= version <= version_max:
        raise MalformedData(
            f"{what} of version {version}, this Tarry reads 0 to {version_max}; if a newer "
            "release wrote it, start that one"
        )
    return version

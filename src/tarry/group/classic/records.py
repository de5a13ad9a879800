"""Records of a classic group: its newest generation, with the members and their assignments.

All versions that Kafka 4.1 reads are decoded.  Version 3 is encoded, as Kafka 4.1 does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from tarry.group.records import (
    FLEXIBLE_VERSION,
    NO_TIMESTAMP,
    Decoder,
    GroupRecord,
    nullable_string,
    version_of,
)
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer

if TYPE_CHECKING:
    from tarry.group.classic.state import ClassicGroup

# Name of this kind of group in ListGroups.
CLASSIC_NAME: Final = "classic"

GROUP_KEY: Final = 2

GROUP_VERSION: Final = 3
GROUP_VERSION_MAX: Final = 4

# Size of the smallest member: without compact fields in any version, and with them.
_MEMBER_BYTES_MIN: Final = 18
_MEMBER_BYTES_MIN_FLEXIBLE: Final = 15


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
    """A generation of a group: all of its durable state except the offsets.

    `state_timestamp_ms` is the calendar time of the last change of its state, or `NO_TIMESTAMP`.
    """

    kind: ClassVar[str] = CLASSIC_NAME

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: list[MemberRow]

    def encode(self) -> tuple[bytes, bytes | None]:
        return _encode_key(self.group_id), _encode_group(self)

    def apply_to(self, group: ClassicGroup) -> None:
        group.recorded = self


class GroupTombstone(GroupRecord, frozen=True):
    """Tombstone: the group has no metadata any more."""

    kind: ClassVar[str] = CLASSIC_NAME
    is_tombstone: ClassVar[bool] = True

    def encode(self) -> tuple[bytes, bytes | None]:
        return _encode_key(self.group_id), None

    def apply_to(self, group: ClassicGroup) -> None:
        group.recorded = None


def _decode(reader: Reader, value: bytes | None) -> GroupRecord:
    group_id = reader.string()
    reader.expect_end()
    return GroupTombstone(group_id) if value is None else _decode_group(group_id, value)


CLASSIC_DECODERS: Final[dict[int, Decoder]] = {GROUP_KEY: _decode}


def _encode_key(group_id: str) -> bytes:
    writer = Writer()
    writer.i16(GROUP_KEY)
    writer.string(group_id)
    return writer.finish()


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
    version = version_of(reader, GROUP_VERSION_MAX, "a group")
    flexible = version >= FLEXIBLE_VERSION
    protocol_type = reader.compact_string() if flexible else reader.string()
    generation_id = reader.i32()
    protocol_name = nullable_string(reader, flexible)
    leader_id = nullable_string(reader, flexible)
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
    instance_id = nullable_string(reader, flexible) if version >= 3 else None
    client_id = reader.compact_string() if flexible else reader.string()
    client_host = reader.compact_string() if flexible else reader.string()
    rebalance_timeout_ms = reader.i32() if version >= 1 else -1
    session_timeout_ms = reader.i32()
    subscription = reader.compact_bytes() if flexible else reader.bytes_()
    assignment = reader.compact_bytes() if flexible else reader.bytes_()
    if flexible:
        reader.skip_tagged_fields()
    if rebalance_timeout_ms == -1:
        # Before version 1 the session time-out was the rebalance time-out as well.
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

"""Records of groups: what Kafka wrote is read, what is written is what Kafka writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.support.group_scene import KINDS

from tarry.base.errors import CorruptData
from tarry.base.placement import partition_of_key, string_hash
from tarry.group.classic.records import (
    GroupMetadata,
    GroupTombstone,
    MemberRow,
)
from tarry.group.offsets.records import (
    NO_TOPIC_ID,
    OffsetCommitted,
    OffsetTombstone,
)
from tarry.group.records import (
    GroupRecord,
    can_be_written,
)

ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("kafka_records.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
KAFKA = {
    name: (bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
    for name, key, value in (row for row in ROWS if row[0] != "hash")
}
HASHES = [(row[1], int(row[2])) for row in ROWS if row[0] == "hash"]

TOPIC_ID = bytes.fromhex("0123456789abcdef1122334455667788")
WALL_MS = 1_800_000_000_000


def group_of_version(version: int) -> GroupMetadata:
    """What the golden record of this version says."""

    def member(member_id: str, instance_id: str | None, assignment: bytes) -> MemberRow:
        timeout_ms = 45_000 if version == 0 else 300_000
        return MemberRow(
            member_id,
            instance_id if version >= 3 else None,
            "client-é",
            "/127.0.0.1",
            timeout_ms,
            45_000,
            b"\0\1\2",
            assignment,
        )

    return GroupMetadata(
        "grüppe",
        protocol_type="consumer",
        generation_id=7,
        protocol_name="range",
        leader_id="m-1",
        state_timestamp_ms=WALL_MS if version >= 2 else -1,
        members=[member("m-1", None, b"\t"), member("m-2", "i-2", b"")],
    )


@pytest.mark.parametrize("version", range(5))
def test_a_group_of_every_version_that_kafka_reads_is_read(version: int) -> None:
    record = KINDS.decode(*KAFKA[f"group-v{version}"])

    assert record == group_of_version(version)


@pytest.mark.parametrize("version", range(5))
def test_an_empty_group_of_every_version_is_read(version: int) -> None:
    record = KINDS.decode(*KAFKA[f"empty-v{version}"])

    assert record == GroupMetadata(
        "g",
        protocol_type="",
        generation_id=0,
        protocol_name=None,
        leader_id=None,
        state_timestamp_ms=-1,
        members=[],
    )


@pytest.mark.parametrize(
    ("name", "leader_epoch", "expire_timestamp_ms", "topic_id"),
    [
        ("offset-v0", -1, -1, NO_TOPIC_ID),
        ("offset-v1", -1, WALL_MS + 99_999, NO_TOPIC_ID),
        ("offset-v2", -1, -1, NO_TOPIC_ID),
        ("offset-v3", 5, -1, NO_TOPIC_ID),
        ("offset-v4", 5, -1, NO_TOPIC_ID),
        ("offset-v4-id", 5, -1, TOPIC_ID),
    ],
)
def test_an_offset_of_every_version_that_kafka_reads_is_read(
    name: str, leader_epoch: int, expire_timestamp_ms: int, topic_id: bytes
) -> None:
    record = KINDS.decode(*KAFKA[name])

    assert record == OffsetCommitted(
        "g",
        topic="topic",
        partition=3,
        offset=1_234_567_890_123,
        leader_epoch=leader_epoch,
        metadata="tëxt",
        commit_timestamp_ms=WALL_MS + 1,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=topic_id,
    )


def test_an_offset_under_the_oldest_key_is_read() -> None:
    record = KINDS.decode(*KAFKA["legacy-offset"])

    assert record == OffsetCommitted(
        "g", topic="topic", partition=3, offset=5, commit_timestamp_ms=6
    )


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("group-v3", group_of_version(3)),
        ("group-tombstone", GroupTombstone("g")),
        ("offset-tombstone", OffsetTombstone("g", topic="topic", partition=3)),
        (
            "written-offset",
            OffsetCommitted(
                "g",
                topic="topic",
                partition=3,
                offset=42,
                leader_epoch=2,
                metadata="m",
                commit_timestamp_ms=WALL_MS + 2,
            ),
        ),
        (
            "offset-v4-id",
            OffsetCommitted(
                "g",
                topic="topic",
                partition=3,
                offset=1_234_567_890_123,
                leader_epoch=5,
                metadata="tëxt",
                commit_timestamp_ms=WALL_MS + 1,
                topic_id=TOPIC_ID,
            ),
        ),
        (
            "written-offset-expiring",
            OffsetCommitted(
                "g",
                topic="topic",
                partition=3,
                offset=42,
                metadata="m",
                commit_timestamp_ms=WALL_MS + 2,
                expire_timestamp_ms=WALL_MS + 9,
            ),
        ),
    ],
)
def test_a_record_is_written_as_kafka_writes_it(name: str, record: GroupRecord) -> None:
    written = record.encode()

    assert written == KAFKA[name]
    assert KINDS.decode(*written) == record


@pytest.mark.parametrize(("group_id", "partition"), HASHES)
def test_a_group_lies_in_the_partition_where_kafka_has_it(group_id: str, partition: int) -> None:
    assert partition_of_key(group_id, 50) == partition


def test_the_hash_wraps_to_a_32_bit_number_with_a_sign() -> None:
    assert string_hash("polygenelubricants") == -(2**31)
    assert string_hash("zzzzzzzzzzzzzzzzzzzz") < 2**31


short_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
member_rows = st.builds(
    MemberRow,
    short_texts,
    st.none() | short_texts,
    short_texts,
    short_texts,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=20),
    st.binary(max_size=20),
)
records = st.one_of(
    st.builds(GroupTombstone, short_texts),
    st.builds(OffsetTombstone, short_texts, topic=short_texts, partition=int32s),
    st.builds(
        OffsetCommitted,
        short_texts,
        topic=short_texts,
        partition=int32s,
        offset=int64s,
        leader_epoch=int32s,
        metadata=short_texts,
        commit_timestamp_ms=int64s,
        topic_id=st.binary(min_size=16, max_size=16),
    ),
    st.builds(
        GroupMetadata,
        short_texts,
        protocol_type=short_texts,
        generation_id=int32s,
        protocol_name=st.none() | short_texts,
        leader_id=st.none() | short_texts,
        state_timestamp_ms=int64s,
        members=st.lists(member_rows, max_size=4),
    ),
)


@given(records)
def test_a_record_comes_back_as_it_was_written(record: GroupRecord) -> None:
    assert KINDS.decode(*record.encode()) == record


@pytest.mark.parametrize("name", [name for name, (_, value) in KAFKA.items() if value])
def test_a_value_that_is_cut_short_or_has_more_behind_it_is_refused(name: str) -> None:
    key, value = KAFKA[name]
    assert value is not None

    for size in range(len(value)):
        with pytest.raises(CorruptData):
            KINDS.decode(key, value[:size])
    with pytest.raises(CorruptData):
        KINDS.decode(key, value + b"\0")


@pytest.mark.parametrize("name", ["group-v3", "offset-v4", "legacy-offset"])
def test_a_key_that_is_cut_short_or_has_more_behind_it_is_refused(name: str) -> None:
    key, value = KAFKA[name]

    for size in range(len(key)):
        with pytest.raises(CorruptData):
            KINDS.decode(key[:size], value)
    with pytest.raises(CorruptData):
        KINDS.decode(key + b"\0", value)


@given(st.sampled_from(sorted(KAFKA)), st.data())
def test_bytes_that_were_changed_give_a_record_or_are_refused(
    name: str, data: st.DataObject
) -> None:
    key, value = KAFKA[name]
    whole = bytearray(key + (value or b""))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    changed = bytes(whole)

    try:
        record = KINDS.decode(changed[: len(key)], changed[len(key) :] or None)
    except CorruptData:
        return
    assert record is None or isinstance(record, GroupRecord)


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x03"])
def test_a_count_of_members_beyond_the_bytes_that_are_left_is_refused(count: bytes) -> None:
    key, value = KAFKA["group-v3"]
    assert value is not None
    position = value.index(b"\x00\x00\x00\x02\x00\x03m-1")
    hostile = value[:position] + count + value[position + 4 :]

    with pytest.raises(CorruptData):
        KINDS.decode(key, hostile)


@pytest.mark.parametrize("name", ["group-v3", "offset-v3"])
@pytest.mark.parametrize("version", [5, -1, 32_767])
def test_a_version_that_is_not_known_is_refused_with_what_to_do(name: str, version: int) -> None:
    key, value = KAFKA[name]
    assert value is not None

    with pytest.raises(CorruptData, match=f"version {version}, this Tarry reads 0 to 4"):
        KINDS.decode(key, version.to_bytes(2, "big", signed=True) + value[2:])


def test_a_kind_that_tarry_does_not_have_is_passed_over() -> None:
    consumer_group_key = b"\x00\x03\x00\x01g"

    assert KINDS.decode(consumer_group_key, b"\x00\x00\x00\x00\x00\x01\x00") is None


def test_what_a_newer_release_adds_as_a_tagged_field_is_passed_over() -> None:
    key, value = KAFKA["offset-v4-id"]
    assert value is not None
    tagged = value[:-19] + b"\x02" + value[-18:] + b"\x09\x03new"

    assert KINDS.decode(key, tagged) == KINDS.decode(key, value)


def test_texts_beyond_15_bits_of_length_cannot_be_written() -> None:
    assert can_be_written("g" * 32_767, None, "")
    assert not can_be_written("é" * 16_384)

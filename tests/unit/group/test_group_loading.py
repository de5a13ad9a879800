"""Loading the groups of a partition: the same as applying every record, in steps."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.support.group_scene import KINDS, durable_part, replayed

from tarry.base.errors import CorruptData
from tarry.group.classic.records import GroupMetadata, GroupTombstone
from tarry.group.loading import Loading
from tarry.group.offsets.records import OffsetCommitted, OffsetTombstone
from tarry.group.records import GroupRecord
from tarry.group.state import Groups


def group(group_id: str, generation_id: int) -> GroupMetadata:
    return GroupMetadata(
        group_id,
        protocol_type="consumer",
        generation_id=generation_id,
        protocol_name=None,
        leader_id=None,
        state_timestamp_ms=1,
        members=[],
    )


ids = st.sampled_from(["a", "b"])
records = st.one_of(
    st.builds(group, ids, st.integers(0, 3)),
    st.builds(GroupTombstone, ids),
    st.builds(
        OffsetCommitted, ids, topic=ids, partition=st.integers(0, 1), offset=st.integers(0, 9)
    ),
    st.builds(OffsetTombstone, ids, topic=ids, partition=st.integers(0, 1)),
)


def load(encoded: list[tuple[bytes, bytes | None]], limit: int = 1) -> Groups:
    loading = Loading()
    for key, value in encoded:
        loading.add(key, value)
    groups = Groups(KINDS)
    steps = 0
    while not loading.step(groups, limit):
        steps += 1
        assert steps <= loading.key_count
    return groups


@given(st.lists(records, max_size=30), st.integers(1, 5))
def test_loading_gives_what_applying_every_record_gives(
    history: list[GroupRecord], limit: int
) -> None:
    encoded = [each.encode() for each in history]

    assert durable_part(load(encoded, limit)) == durable_part(replayed(encoded))


def test_a_key_is_decoded_once_however_often_it_was_written() -> None:
    loading = Loading()
    for offset in range(1_000):
        record = OffsetCommitted("g", topic="t", partition=offset % 2, offset=offset)
        loading.add(*record.encode())

    groups = Groups(KINDS)

    assert loading.key_count == 2
    assert not loading.step(groups, 2)
    assert loading.step(groups, 2)
    assert [each.offset for each in groups.group("g").offsets["t"].values()] == [998, 999]


def test_an_offset_under_the_oldest_key_is_the_same_offset() -> None:
    key, value = OffsetCommitted("g", topic="t", partition=0, offset=2).encode()
    legacy = (b"\x00\x00" + key[2:], bytes(9) + b"\x01" + bytes(10))

    for history, offset in [([legacy, (key, value)], 2), ([(key, value), legacy], 1)]:
        found = load(history).group("g").offset("t", 0)

        assert found is not None
        assert found.offset == offset


def test_a_step_does_no_more_than_it_may() -> None:
    encoded = [
        OffsetCommitted("g", topic="t", partition=each, offset=1).encode() for each in range(10)
    ]
    loading = Loading()
    for key, value in encoded:
        loading.add(key, value)
    groups = Groups(KINDS)

    loading.step(groups, 3)

    assert len(groups.group("g").offsets["t"]) == 3


def test_what_tarry_does_not_have_is_passed_over() -> None:
    groups = load([(b"\x00\x03\x00\x01g", b"\x00\x00\x00\x00\x00\x01\x00")])

    assert not groups.by_id


def test_a_record_that_cannot_be_read_ends_the_loading() -> None:
    key, _ = group("g", 1).encode()

    with pytest.raises(CorruptData):
        load([(key, b"\x00\x03")])
    assert not load([(key, b"\x00\x03"), (key, None)]).by_id

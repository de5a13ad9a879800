"""Packed ids beside dictionaries: every order of calls."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, strategies as st

from tarry.schedule.packed_ids import IdsOfOffsets, OffsetsOfIds

# Some begin as others do, some end with zeros, some are longer than ids may be.
IDS = st.sampled_from(
    [b"a", b"a\0", b"ab", b"b" * 8, b"b" * 9, b"b" * 16, b"b" * 17, b"c" * 1024, b"c" * 1500]
)
OFFSETS = st.integers(0, 20)


@given(calls=st.lists(st.tuples(IDS, OFFSETS, st.booleans()), max_size=60))
def test_each_id_leads_to_who_had_it_last(calls: list[tuple[bytes, int, bool]]) -> None:
    packed = OffsetsOfIds()
    known: dict[bytes, int] = {}
    for schedule_id, s_offset, leaves in calls:
        if leaves:
            packed.remove(schedule_id)
            known.pop(schedule_id, None)
        else:
            packed.put(schedule_id, s_offset)
            known[schedule_id] = s_offset

    assert packed.count == len(known)
    for schedule_id, _, _ in calls:
        assert packed.get(schedule_id) == known.get(schedule_id)


@given(calls=st.lists(st.tuples(OFFSETS, IDS), max_size=60))
def test_each_body_has_its_id(calls: list[tuple[int, bytes]]) -> None:
    packed = IdsOfOffsets()
    known: dict[int, bytes] = {}
    for s_offset, schedule_id in calls:
        # Called with again, it leaves.
        if s_offset in known:
            packed.remove(s_offset)
            del known[s_offset]
        else:
            packed.put(s_offset, schedule_id)
            known[s_offset] = schedule_id

    for s_offset in range(21):
        assert packed.get(s_offset) == known.get(s_offset, b"")


def test_an_id_takes_its_bytes_twice_and_little_more() -> None:
    count = 20_000
    offsets, ids = OffsetsOfIds(), IdsOfOffsets()

    tracemalloc.start()
    for number in range(count):
        schedule_id = b"order-%010d" % (number * 7_919 % count)
        offsets.put(schedule_id, number)
        ids.put(number, schedule_id)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert grown / count < 2 * (16 + 10) * 1.4

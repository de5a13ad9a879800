"""Order of what waits, beside a sorted list: every order of calls."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tarry.schedule.due_order import DueOrder
from tarry.schedule.entries import (
    NO_POSITION,
    due_ms_of,
    entry_of,
    place_key,
    record_count_of,
    s_offset_of,
    size_of,
)
from tarry.schedule.entry_order import CHUNK_ENTRIES_MAX

# Due time, s-offset, records and bytes.
DueEntry = tuple[int, int, int, int]

TIMES = st.integers(0, 6)
ADDED = st.lists(st.tuples(TIMES, st.integers(0, 40)), max_size=60, unique_by=lambda each: each[1])


def add(order: DueOrder, due_ms: int, s_offset: int, record_count: int, size: int) -> None:
    order.add(entry_of(due_ms, s_offset, NO_POSITION, size, record_count, place=-1, flags=0))


def told(entry: bytes) -> DueEntry | None:
    if not entry:
        return None
    return due_ms_of(entry), s_offset_of(entry), record_count_of(entry), size_of(entry)


def entries_of(order: DueOrder) -> list[DueEntry | None]:
    found: list[bytes] = []
    place = (-1, 0)
    while page := order.from_key(place_key(*place), 3):
        found += page
        place = (due_ms_of(found[-1]), s_offset_of(found[-1]) + 1)
    return [told(entry) for entry in found]


@given(added=ADDED, removed=st.sets(st.integers(0, 40)), ends=st.tuples(TIMES, TIMES))
def test_pages_and_sums_are_those_of_a_sorted_list(
    added: list[tuple[int, int]], removed: set[int], ends: tuple[int, int]
) -> None:
    order = DueOrder()
    known: list[DueEntry] = []
    for due_ms, s_offset in added:
        add(order, due_ms, s_offset, s_offset % 3, s_offset + 10)
        known.append((due_ms, s_offset, s_offset % 3, s_offset + 10))
        if s_offset in removed and len(known) % 2:
            order.remove_at(due_ms, s_offset)
            known.pop()
    for entry in list(known):
        if entry[1] in removed:
            order.remove_at(entry[0], entry[1])
            known.remove(entry)
    known.sort()

    sums = order.sums(*ends)

    inside = [entry for entry in known if ends[0] <= entry[0] < ends[1]]
    assert entries_of(order) == known
    assert told(order.first()) == (known[0] if known else None)
    assert told(order.last()) == (known[-1] if known else None)
    assert (sums.entry_count, sums.record_count, sums.size) == (
        len(inside),
        sum(entry[2] for entry in inside),
        sum(entry[3] for entry in inside),
    )


def test_many_entries_are_kept_in_order_and_summed_up() -> None:
    order = DueOrder()
    count = 5 * CHUNK_ENTRIES_MAX
    for number in range(count):
        # 7,919 is a prime: each due time once, in no order.
        add(order, number * 7_919 % count, number, 1, 2)
    for due_ms in range(0, count, 2):
        order.remove(place_key(due_ms, 0))

    sums = order.sums(10, count - 10)

    assert [entry[0] for entry in entries_of(order) if entry] == list(range(1, count, 2))
    assert (sums.entry_count, sums.record_count, sums.size) == (
        count // 2 - 10,
        count // 2 - 10,
        count - 20,
    )


def test_sums_tell_how_many_chunks_they_took() -> None:
    order = DueOrder()
    for number in range(10 * CHUNK_ENTRIES_MAX):
        add(order, number, number, 1, 1)

    narrow = order.sums(5, 10).chunk_count
    wide = order.sums(0, 2**63 - 1).chunk_count

    assert (narrow, wide) == (1, 10)

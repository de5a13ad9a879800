"""Order of what waits, beside a sorted list: every order of calls."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tarry.schedule import due_order
from tarry.schedule.due_order import DueEntry, DueOrder

TIMES = st.integers(0, 6)
ADDED = st.lists(st.tuples(TIMES, st.integers(0, 40)), max_size=60, unique_by=lambda each: each[1])


def entries_of(order: DueOrder) -> list[DueEntry]:
    found: list[DueEntry] = []
    place = (-1, -1)
    while page := order.from_place(*place, 3):
        found += page
        place = (found[-1][0], found[-1][1] + 1)
    return found


@given(added=ADDED, removed=st.sets(st.integers(0, 40)), ends=st.tuples(TIMES, TIMES))
def test_pages_and_sums_are_those_of_a_sorted_list(
    added: list[tuple[int, int]], removed: set[int], ends: tuple[int, int]
) -> None:
    order = DueOrder()
    known: list[DueEntry] = []
    for due_ms, s_offset in added:
        order.add(due_ms, s_offset, s_offset % 3, s_offset + 10)
        known.append((due_ms, s_offset, s_offset % 3, s_offset + 10))
        if s_offset in removed and len(known) % 2:
            order.remove(due_ms, s_offset)
            known.pop()
    for entry in list(known):
        if entry[1] in removed:
            order.remove(entry[0], entry[1])
            known.remove(entry)
    known.sort()

    sums = order.sums(*ends)

    inside = [entry for entry in known if ends[0] <= entry[0] < ends[1]]
    assert entries_of(order) == known
    assert order.first() == (known[0] if known else None)
    assert order.last() == (known[-1] if known else None)
    assert (sums.entry_count, sums.record_count, sums.size) == (
        len(inside),
        sum(entry[2] for entry in inside),
        sum(entry[3] for entry in inside),
    )


def test_many_entries_are_kept_in_order_and_summed_up() -> None:
    order = DueOrder()
    count = 5 * due_order.CHUNK_ENTRIES_MAX
    for number in range(count):
        # 7,919 is a prime: each due time once, in no order.
        order.add(number * 7_919 % count, number, 1, 2)
    for due_ms in range(0, count, 2):
        order.remove(due_ms, next(e[1] for e in order.from_place(due_ms, 0, 1)))

    sums = order.sums(10, count - 10)

    assert [entry[0] for entry in entries_of(order)] == list(range(1, count, 2))
    assert (sums.entry_count, sums.record_count, sums.size) == (
        count // 2 - 10,
        count // 2 - 10,
        count - 20,
    )


def test_sums_tell_how_many_chunks_they_took() -> None:
    order = DueOrder()
    for number in range(10 * due_order.CHUNK_ENTRIES_MAX):
        order.add(number, number, 1, 1)

    narrow = order.sums(5, 10).chunk_count
    wide = order.sums(0, 2**63 - 1).chunk_count

    assert (narrow, wide) == (1, 10)

"""S-offsets of what waits, beside a sorted list: every order of calls; and what stays of them."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, strategies as st

from tarry.schedule.offset_order import CHUNK_OFFSETS_MAX, OffsetOrder
from tarry.schedule.pending import Body, PendingHeap

OFFSETS = st.integers(0, 40)


@given(calls=st.lists(OFFSETS, max_size=80), ends=st.tuples(OFFSETS, OFFSETS))
def test_it_is_a_sorted_list(calls: list[int], ends: tuple[int, int]) -> None:
    order = OffsetOrder()
    known: set[int] = set()
    for s_offset in calls:
        # Called with again, it leaves.
        if s_offset in known:
            order.remove(s_offset)
        else:
            order.add(s_offset)
        known ^= {s_offset}

    assert order.first() == min(known, default=None)
    assert order.between(*ends) == sorted(each for each in known if ends[0] <= each < ends[1])


def test_many_offsets_are_kept_in_order() -> None:
    order = OffsetOrder()
    count = 5 * CHUNK_OFFSETS_MAX
    for number in range(count):
        # 7,919 is a prime: each offset once, in no order.
        order.add(number * 7_919 % count)
    for s_offset in range(0, count, 2):
        order.remove(s_offset)

    assert order.first() == 1
    assert order.between(0, count) == list(range(1, count, 2))
    assert order.between(1_001, 1_007) == [1_001, 1_003, 1_005]


def test_nothing_stays_of_what_has_left_behind_a_body_that_is_due_in_years() -> None:
    pending = PendingHeap()
    pending.add(Body(1, 10**15, 0, 1, 100))

    tracemalloc.start()
    for number in range(20_000):
        pending.add(Body(2 + number, number, 0, 1, 100))
        assert pending.take_due(number) is not None
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert pending.first_offset() == 1
    assert grown < 100_000

"""Packed entries, beside a sorted list: every order of calls; and what stays of them."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, strategies as st

from tarry.schedule import entries
from tarry.schedule.entry_order import CHUNK_ENTRIES_MAX, EntryOrder
from tarry.schedule.pending import Body, PendingBodies

NUMBERS = st.integers(0, 40)
WIDTH = 4


def an_entry(number: int) -> bytes:
    return number.to_bytes(WIDTH, "big")


def numbers_of(order: EntryOrder, key: bytes = b"") -> list[int]:
    found: list[int] = []
    while page := order.from_key(key, 7):
        found += [int.from_bytes(entry, "big") for entry in page]
        key = page[-1] + b"\0"
    return found


@given(calls=st.lists(NUMBERS, max_size=80), begin=NUMBERS)
def test_it_is_a_sorted_list(calls: list[int], begin: int) -> None:
    order = EntryOrder(WIDTH)
    known: set[int] = set()
    for number in calls:
        # Called with again, it leaves.
        if number in known:
            assert order.remove(an_entry(number)) == an_entry(number)
        else:
            order.add(an_entry(number))
        known ^= {number}

    assert order.first() == (an_entry(min(known)) if known else b"")
    assert order.last() == (an_entry(max(known)) if known else b"")
    assert order.find(an_entry(begin)) == (an_entry(begin) if begin in known else b"")
    assert numbers_of(order, an_entry(begin)) == sorted(each for each in known if each >= begin)


def test_many_entries_are_kept_in_order() -> None:
    order = EntryOrder(WIDTH)
    count = 5 * CHUNK_ENTRIES_MAX
    for number in range(count):
        # 7,919 is a prime: each number once, in no order.
        order.add(an_entry(number * 7_919 % count))
    for number in range(0, count, 2):
        order.remove(an_entry(number))

    assert order.first() == an_entry(1)
    assert numbers_of(order) == list(range(1, count, 2))
    assert numbers_of(order, an_entry(4_991)) == [4_991, 4_993, 4_995, 4_997, 4_999]


@given(
    due_ms=st.integers(-(2**63), 2**63 - 1),
    s_offset=st.integers(0, 2**46 - 1),
    position=st.integers(0, entries.NO_POSITION),
    size=st.integers(-1, 2**33),
    record_count=st.integers(-1, 2**32),
    place=st.integers(-1, 2**31 - 2),
    flags=st.integers(0, 127),
)
def test_an_entry_says_what_was_packed(
    due_ms: int,
    s_offset: int,
    position: int,
    size: int,
    record_count: int,
    *,
    place: int,
    flags: int,
) -> None:
    entry = entries.entry_of(
        due_ms, s_offset, position, size, record_count, place=place, flags=flags
    )

    assert len(entry) == entries.ENTRY_SIZE
    assert entries.due_ms_of(entry) == due_ms
    assert entries.s_offset_of(entry) == s_offset
    assert entries.position_of(entry) == position
    assert entries.size_of(entry) == min(max(size, 0), 2**32 - 1)
    assert entries.record_count_of(entry) == min(max(record_count, 0), 2**31 - 1)
    assert entries.place_of(entry) == place
    assert entries.flags_of(entry) == flags


PLACES = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**46 - 1))


@given(left=PLACES, right=PLACES)
def test_entries_compare_as_their_places_do(left: tuple[int, int], right: tuple[int, int]) -> None:
    entry = entries.entry_of(*right, entries.NO_POSITION, 2**32 - 1, 1, place=0, flags=127)

    assert (entries.place_key(*left) <= entry) == (left <= right)


def test_nothing_stays_of_what_has_left_behind_a_body_that_is_due_in_years() -> None:
    pending = PendingBodies()
    pending.add(Body(1, 10**15, 0, 1, 100))

    tracemalloc.start()
    for number in range(20_000):
        pending.add(Body(2 + number, number, 0, 1, 100))
        assert pending.take_due(number) is not None
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert pending.first_offset() == 1
    assert grown < 100_000


def test_a_body_that_waits_takes_some_fifty_bytes() -> None:
    count = 50_000
    pending = PendingBodies()

    tracemalloc.start()
    for number in range(count):
        # In no order of due times, as they come.
        pending.add(Body(2 * number + 1, number * 7_919 % count + 10**12, 0, 1, 100))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert grown / count < 64


def test_bodies_are_found_between_s_offsets() -> None:
    pending = PendingBodies()
    for number in range(300):
        pending.add(Body(number, 1_000 - number, 0, 2, 100, place=number % 3, position=number))

    found = pending.between(101, 221)

    assert [body.s_offset for body in found] == list(range(101, 221))
    assert [body.position for body in found] == list(range(101, 221))
    assert found[0].batch_offset == 101 - 101 % 3
    assert pending.between(500, 600) == []

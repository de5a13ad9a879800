"""Loss: each offset that a query was to read is read or told, and none of another query is."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tarry.spark.reading.loss import lost_sentence, within_cuts, within_logs
from tarry.spark.reading.plan import ReadRange

OFFSETS = st.integers(0, 12)


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS)
def test_each_offset_is_there_or_lost(first: int, size: int, start: int, length: int) -> None:
    place = ("orders", 0)
    wanted = ReadRange(*place, first, first + size)

    (there,), lost = within_logs([wanted], {place: start}, {place: start + length})

    assert there.size >= 0
    told = [offset for one in lost for offset in range(one.first, one.end or 0)]
    assert sorted([*range(there.first, there.end), *told]) == list(range(first, first + size))
    assert all(start <= offset < start + length for offset in range(there.first, there.end))
    assert all(not start <= offset < start + length for offset in told)


@given(OFFSETS, OFFSETS, st.none() | OFFSETS)
def test_of_a_log_that_was_cut_what_lay_before_the_cut_is_read(
    first: int, size: int, parting: int | None
) -> None:
    wanted = ReadRange("orders", 0, first, first + size)
    partings = {} if parting is None else {("orders", 0): parting}

    (there,), lost = within_cuts([wanted], partings)

    told = [offset for one in lost for offset in range(one.first, one.end or 0)]
    assert [*range(there.first, there.end), *told] == list(range(first, first + size))
    assert parting is None or all(offset >= parting for offset in told)
    assert parting is None or there.size == 0 or there.end <= max(parting, first)


def test_many_ranges_are_one_sentence() -> None:
    starts = {("orders", partition): 5 for partition in range(15)}
    wanted = [ReadRange("orders", partition, 0, 9) for partition in range(15)]

    _, lost = within_logs(wanted, starts, dict.fromkeys(starts, 9))

    assert "orders [9] from offset 0 to 5 (the log starts at 5); and 5 more. " in lost_sentence(
        lost
    )

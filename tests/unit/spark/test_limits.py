"""Limits: what one micro-batch takes of each partition."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tarry.spark.reading.limits import share_out

LEFT = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 20)), st.integers(0, 1_000), max_size=20
)


@given(LEFT, st.integers(1, 2_000), st.integers(0, 10_000))
def test_shares_are_the_limit_together_and_never_more_than_is_there(
    left: dict[tuple[str, int], int], limit: int, turn: int
) -> None:
    shares = share_out(left, limit, turn)

    assert sum(shares.values()) == min(limit, sum(left.values()))
    assert all(0 < share <= left[place] for place, share in shares.items())


@given(LEFT, st.integers(20, 2_000))
def test_nobody_starves_where_the_limit_suffices(
    left: dict[tuple[str, int], int], limit: int
) -> None:
    shares = share_out(left, limit, 0)

    assert sorted(shares) == sorted(place for place, count in left.items() if count)


def test_everybody_has_a_turn_where_it_does_not() -> None:
    left = {("orders", partition): 1_000 for partition in range(10)}
    served: list[int] = []
    for batch in range(5):
        served += [partition for _, partition in share_out(left, 4, turn=4 * batch)]

    assert sorted(served) == sorted([*range(10), *range(10)])


def test_shares_are_by_what_is_left() -> None:
    left = {("orders", 0): 1_000, ("orders", 1): 3_000, ("orders", 2): 1}

    assert share_out(left, 401, 0) == {("orders", 0): 101, ("orders", 1): 299, ("orders", 2): 1}

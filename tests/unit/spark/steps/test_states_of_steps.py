"""What the steps remember of a key: spans of time in which doubles lie, and waits that are open."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from tests.unit.spark.steps.test_bucket_trees import StoredLeaves

from tarry.spark.steps.buckets.tree import BucketTree
from tarry.spark.steps.seen_times import is_seen, with_time, without_old
from tarry.spark.steps.wait_outcomes import (
    COMPLETED,
    EXPIRED,
    KINDS,
    OpenWait,
    WaitOutcome,
    event_code,
    settle,
    settle_due,
    settle_events,
    wait_leaves,
)

TIMES = st.lists(st.integers(0, 60), max_size=12)


@given(TIMES, st.integers(0, 10))
def test_a_time_is_seen_where_one_within_came_before(times: list[int], within: int) -> None:
    spans: list[int] = []
    for place, time in enumerate(times):
        came = any(abs(time - other) <= within for other in times[:place])
        assert is_seen(spans, time) == came
        spans = with_time(spans, time, within)
    # Spans that touch are one.
    assert all(high < low for high, low in zip(spans[1:-1:2], spans[2::2], strict=True))


@given(TIMES, st.integers(0, 10), st.integers(0, 70))
def test_what_is_forgotten_is_of_no_use_behind_the_time(
    times: list[int], within: int, now: int
) -> None:
    spans: list[int] = []
    for time in times:
        spans = with_time(spans, time, within)

    kept = without_old(spans, now)

    assert all(is_seen(kept, time) == is_seen(spans, time) for time in range(now, 80))
    assert all(high >= now for high in kept[1::2])


EVENTS = st.lists(
    st.tuples(st.integers(0, 40), st.booleans(), st.booleans()).map(
        lambda drawn: event_code(drawn[0], starts=drawn[1], ends=drawn[2])
    ),
    max_size=10,
)
NOTHING = OpenWait(None, ())
NEVER = 10_000


@given(EVENTS, st.integers(0, 10), st.data())
def test_outcomes_are_the_same_in_every_order_and_every_pace(
    events: list[int], within: int, data: st.DataObject
) -> None:
    _, at_once = settle(NOTHING, events, NEVER, within)
    known, outcomes, watermark = NOTHING, [], -1
    # Each event comes before the watermark passes it, and behind others as it likes.
    left = data.draw(st.permutations(events))
    while left:
        take = data.draw(st.integers(1, len(left)))
        came, left = left[:take], left[take:]
        ended: list[WaitOutcome]
        known, ended = settle(known, came, watermark, within)
        outcomes += ended
        first = min((code // KINDS for code in left), default=50)
        watermark = max(watermark, data.draw(st.integers(-1, max(first - 1, -1))))
        known, ended = settle(known, [], watermark, within)
        outcomes += ended
        due = known.next_time(within)
        assert due is None or due > watermark
    known, ended = settle(known, [], NEVER, within)

    assert outcomes + ended == at_once
    assert known == NOTHING


@given(EVENTS, st.integers(0, 10))
def test_each_wait_ends_once_and_in_time(events: list[int], within: int) -> None:
    _, outcomes = settle(NOTHING, events, NEVER, within)

    begins = [one.began for one in outcomes]
    assert begins == sorted(begins)
    for one, following in pairwise(outcomes):
        assert following.began >= one.ended
    for one in outcomes:
        assert one.began <= one.ended <= one.began + within
        if one.outcome == EXPIRED:
            assert one.ended == one.began + within
        else:
            assert one.outcome == COMPLETED
            assert any(code // KINDS == one.ended and code & 2 for code in events)


def test_a_wait_that_expired_may_begin_anew() -> None:
    events = [
        event_code(0, starts=True, ends=False),
        event_code(1, starts=True, ends=False),
        event_code(11, starts=False, ends=True),
        event_code(12, starts=True, ends=False),
        event_code(20, starts=False, ends=True),
    ]

    known, outcomes = settle(NOTHING, events, 15, 10)

    assert outcomes == [WaitOutcome(EXPIRED, 0, 10)]
    assert known == OpenWait(12, (events[-1],))
    assert settle(known, [], 20, 10) == (NOTHING, [WaitOutcome(COMPLETED, 12, 20)])


def test_an_event_at_the_end_of_its_wait_completes_it() -> None:
    start = event_code(0, starts=True, ends=False)
    until = event_code(10, starts=False, ends=True)

    for watermark in (10, 11):
        # Both at once, and each in a micro-batch of its own.
        assert settle(NOTHING, [start, until], watermark, 10)[1] == [WaitOutcome(COMPLETED, 0, 10)]
        known, none = settle(NOTHING, [start], 9, 10)
        assert none == []
        assert settle(known, [until], watermark, 10)[1] == [WaitOutcome(COMPLETED, 0, 10)]


def test_an_event_behind_the_end_of_a_wait_begins_the_next_one() -> None:
    start = event_code(0, starts=True, ends=False)
    again = event_code(11, starts=True, ends=False)

    assert settle(NOTHING, [start, again], 11, 10) == (
        OpenWait(11, ()),
        [WaitOutcome(EXPIRED, 0, 10)],
    )


@pytest.mark.parametrize(("watermark", "is_over"), [(9, False), (10, True), (11, True)])
def test_a_wait_is_over_when_the_watermark_is_at_its_end(watermark: int, is_over: bool) -> None:
    tree = BucketTree(None, StoredLeaves(), wait_leaves(10))
    settle_events(tree, {"a": [event_code(0, starts=True, ends=False)]}, 5, 10)

    assert settle_due(tree, watermark, 10) == [("a", WaitOutcome(EXPIRED, 0, 10))] * is_over
    assert tree.is_empty == is_over


KEYED = st.lists(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), EVENTS.map(tuple)), max_size=4),
    max_size=5,
)


@given(KEYED, st.integers(0, 10))
def test_waits_of_a_bucket_end_as_those_of_each_key_alone(rounds, within) -> None:
    leaves, root = StoredLeaves(), None
    alone: dict[str, OpenWait] = {}
    for watermark, came in enumerate(rounds):
        codes = {key: list(events) for key, events in came}
        tree = BucketTree(root, leaves, wait_leaves(within))
        ended = settle_events(tree, codes, watermark * 10, within)
        ended += settle_due(tree, watermark * 10, within)
        root = tree.root

        expected = []
        for key in sorted({*alone, *codes}):
            left, outcomes = settle(
                alone.get(key, NOTHING), codes.get(key, []), watermark * 10, within
            )
            alone[key] = left
            expected += [(key, one) for one in outcomes]
        assert sorted(ended) == sorted(expected)
        assert tree.is_empty == all(left == NOTHING for left in alone.values())

"""The view of a wheel: what lies where, without touching it."""

from __future__ import annotations

from hypothesis import example, given, strategies as st

from tarry.timer import TimerEntry, TimingWheel
from tarry.timer.view import BucketView, look_at, pending_in


def wheel_with(*deadlines_ms: int, tick_ms: int = 1, wheel_size: int = 20) -> TimingWheel:
    wheel = TimingWheel(0, tick_ms, wheel_size)
    for deadline_ms in deadlines_ms:
        assert wheel.add(TimerEntry(deadline_ms))
    return wheel


def place_of(bucket: BucketView) -> tuple[int, int, int, int]:
    return bucket.level, bucket.slot, bucket.first_ms, bucket.last_ms


def test_the_entry_due_in_445_ms_is_seen_on_its_way_down() -> None:
    wheel = wheel_with(445)

    seen = []
    while (due_ms := wheel.next_due_ms()) is not None:
        seen.append([place_of(bucket) for bucket in look_at(wheel).queue])
        wheel.advance(due_ms)

    assert seen == [[(2, 1, 400, 799)], [(1, 2, 440, 459)], [(0, 5, 445, 445)]]


def test_a_view_tells_the_shape_of_every_level() -> None:
    wheel = wheel_with(3, 100, tick_ms=10, wheel_size=4)
    wheel.advance(55)

    levels = look_at(wheel).levels

    assert [(level.tick_ms, level.start_ms, level.end_ms) for level in levels] == [
        (10, 50, 90),
        (40, 40, 200),
    ]
    assert [level.current_slot for level in levels] == [1, 1]


def test_a_view_stays_as_it_was_when_the_wheel_goes_on() -> None:
    wheel = wheel_with(5, 7)
    view = look_at(wheel)

    wheel.advance(6)

    assert len(view) == 2
    assert view.current_ms == 0
    assert len(look_at(wheel)) == 1


def test_the_queue_is_in_the_order_in_which_its_buckets_are_met() -> None:
    wheel = wheel_with(19, 20, 1, 400)

    queue = look_at(wheel).queue

    # At one time the higher level comes first: what falls from it is in time for the lower one.
    assert [(bucket.expiration_ms, bucket.level) for bucket in queue] == [
        (1, 0),
        (19, 0),
        (20, 1),
        (400, 2),
    ]


def test_a_bucket_that_cancelling_emptied_stays_in_the_queue_until_it_is_met() -> None:
    wheel = wheel_with(9)
    entry = TimerEntry(5)
    wheel.add(entry)
    wheel.cancel(entry)

    queue = look_at(wheel).queue

    assert [(bucket.expiration_ms, len(bucket.entries)) for bucket in queue] == [(5, 0), (9, 1)]


def test_an_entry_is_found_in_its_bucket_and_nowhere_once_it_is_due() -> None:
    wheel = TimingWheel(0)
    entry = TimerEntry(25)
    wheel.add(entry)

    bucket = look_at(wheel).bucket_of(entry)
    wheel.advance(25)

    assert bucket is not None
    assert (bucket.level, bucket.slot) == (1, 1)
    assert look_at(wheel).bucket_of(entry) is None


@example(deadlines_ms=[1, 1], tick_ms=7, wheel_size=2, now_ms=7, limit=1)
@example(deadlines_ms=[1, 1, 3, 8, 9], tick_ms=7, wheel_size=2, now_ms=20, limit=5)
@given(
    deadlines_ms=st.lists(st.integers(1, 3000), max_size=60),
    tick_ms=st.sampled_from([1, 7, 10]),
    wheel_size=st.sampled_from([2, 5, 20]),
    now_ms=st.integers(0, 3000),
    limit=st.none() | st.integers(0, 20),
)
def test_every_pending_entry_lies_in_a_queued_bucket_that_is_for_its_deadline(
    deadlines_ms: list[int], tick_ms: int, wheel_size: int, now_ms: int, limit: int | None
) -> None:
    wheel = wheel_with(*deadlines_ms, tick_ms=tick_ms, wheel_size=wheel_size)
    wheel.advance(now_ms, limit)

    view = look_at(wheel)

    found = pending_in(wheel)
    assert len(view) == len(wheel) == len(found)
    for level in view.levels:
        for bucket in level.buckets:
            assert bucket.is_queued or not bucket.entries
            for entry in bucket.entries:
                assert bucket.first_ms <= entry.deadline_ms <= bucket.last_ms
                assert sum(each is entry for each in found) == 1

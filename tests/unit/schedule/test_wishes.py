"""Wishes of a batch's records, as their headers say them."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import a_batch

from tarry.base.limits import SCHEDULE_HEADERS_MAX, SCHEDULE_ID_BYTES_MAX, SCHEDULE_PLACES_MAX
from tarry.log.config import LogConfig
from tarry.records.batch import HEADER_SIZE
from tarry.records.builder import BatchBuilder, Headers
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.wishes import WishWalk
from tarry.simulation.by_hand import START_WALL_MS

CONFIG = LogConfig({"delay.enable": True, "delay.source": "header"})


def walk_over(*headers: Headers) -> WishWalk:
    batch = a_batch(*[b""] * len(headers), headers=headers)
    return WishWalk(batch[HEADER_SIZE:], len(headers), CONFIG, START_WALL_MS, RecurringTimes())


@pytest.mark.parametrize(
    "name_and_value", [("x-deliver-after", b"%d"), ("x-sched-id", b"%d"), ("x-deliver-at", b"20%d")]
)
def test_no_more_is_read_than_may_wait(name_and_value: tuple[str, bytes]) -> None:
    name, value = name_and_value
    count = 2 * SCHEDULE_PLACES_MAX
    walk = walk_over(*[[(name, value % (10**12 + number))] for number in range(count)])

    is_done = walk.step(count)

    assert is_done
    assert walk.has_too_many
    assert len(walk.wishes) == SCHEDULE_PLACES_MAX + 1


def test_records_that_are_not_delayed_are_one_wish() -> None:
    walk = walk_over(
        [],
        [("x-deliver-at", b"1")],
        [("x-deliver-at", b"%d" % START_WALL_MS)],
        [("x-deliver-after", b"0")],
        [("x-deliver-after", b"1")],
    )

    walk.step(5)

    assert [(wish.first, wish.count) for wish in walk.wishes] == [(0, 4), (4, 1)]
    assert walk.wishes[0].time_ms == START_WALL_MS


def test_records_with_the_same_headers_have_one_wish_only_if_none_is_named_or_invalid() -> None:
    after: Headers = [("x-deliver-after", b"5000")]
    named: Headers = [*after, ("x-sched-id", b"a")]
    bad: Headers = [("x-deliver-after", b"soon")]

    walk = walk_over(after, after, named, named, after, after, bad, bad, after)

    assert walk.step(9)
    found = [(wish.first, wish.count, wish.schedule_id) for wish in walk.wishes]
    assert found == [(0, 2, b""), (2, 1, b"a"), (3, 1, b"a"), (4, 3, b"")]
    assert [index for index, _ in walk.errors] == [6, 7]


def test_records_with_the_same_headers_and_keys_that_name_them_have_wishes_of_their_own() -> None:
    values = {"delay.enable": True, "delay.source": "header", "delay.replace": "key"}
    builder = BatchBuilder()
    for key in (b"a", b"b"):
        builder.append(START_WALL_MS, key, b"", [("x-deliver-after", b"5000")])

    content = builder.build()[HEADER_SIZE:]
    walk = WishWalk(content, 2, LogConfig(values), START_WALL_MS, RecurringTimes())

    assert walk.step(2)
    assert [wish.schedule_id for wish in walk.wishes] == [b"a", b"b"]


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ([], False),
        ([("x-deliver-after", b"0")], False),
        ([("x-deliver-after", b"5000"), ("x-sched-id", b"a")], False),
        ([("x-deliver-after", b"5000")], True),
        ([("x-sched-cancel", b"1")], True),
    ],
)
def test_a_long_key_is_refused_only_where_it_would_be_an_id(
    headers: Headers, is_refused: bool
) -> None:
    values = {"delay.enable": True, "delay.source": "header", "delay.replace": "key"}
    builder = BatchBuilder()
    builder.append(START_WALL_MS, b"k" * (SCHEDULE_ID_BYTES_MAX + 1), b"", headers)

    content = builder.build()[HEADER_SIZE:]
    walk = WishWalk(content, 1, LogConfig(values), START_WALL_MS, RecurringTimes())

    assert walk.step(1)
    assert bool(walk.errors) == is_refused


def test_a_record_of_many_headers_is_refused_and_they_are_not_gone_through() -> None:
    most: Headers = [("", b"")] * (SCHEDULE_HEADERS_MAX - 1) + [("x-deliver-after", b"5000")]

    walk = walk_over(most, [("", b""), *most], most)

    assert walk.step(1_000)
    assert [(wish.first, wish.time_ms) for wish in walk.wishes] == [(0, 5_000)]
    assert walk.wishes[0].count == 2
    assert walk.errors == [(1, "a record with more than 1000 headers")]


def test_a_step_goes_through_fewer_records_of_many_headers() -> None:
    walk = walk_over(*[[("", b"%d" % number)] * 800 for number in range(20)])

    steps = 1
    while not walk.step(200):
        steps += 1

    assert steps == 10

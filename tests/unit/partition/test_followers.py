"""Rules of a leader: how far records count (H), who may join (J), who lags, when it may act."""

from __future__ import annotations

import pytest

from tarry.partition.followers import TURNED_TO_MS, FetchClock, Follower, Followers, LogCopy
from tarry.partition.replicated_log import RECORDS

LEADER = 1
LAG_MS = 1_000


def of(ends: dict[int, int], *, isr: list[int] | None = None) -> Followers:
    """Followers 2 and 3 of one log that have told these ends."""
    followers = Followers(LEADER, 1)
    followers.take_row([1, 2, 3], [1, 2, 3] if isr is None else isr, 0, 0)
    for broker_id, end in ends.items():
        copy_at(followers, broker_id).told(7, end, 100, 0, 0)
    return followers


def copy_at(followers: Followers, broker_id: int) -> LogCopy:
    copy = followers.copy(broker_id, RECORDS)
    assert copy is not None
    return copy


def ids(text: str) -> list[int]:
    return [] if text == "-" else [int(each) for each in text.split(",")]


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line.strip() and line[0] != "#"]


# H.  Ends by broker id; `-`: nothing was told in this epoch.  -1: the high watermark rests.
HIGH_WATERMARKS = """
# own  second  third  isr    proposed  joining  floor  high-watermark

  9    -       -      1      -         -        1      9
  9    9       9      1,2,3  -         -        1      9
  9    5       7      1,2,3  -         -        1      5
  4    5       7      1,2,3  -         -        1      4
  9    5       7      1,3    -         -        1      7
# An addition that was proposed counts, whether it is known to be done or not.
  9    5       7      1,3    2         -        1      5
# Who is about to join counts, else it never reaches what it has to.
  9    5       7      1,3    -         2        1      5
# Who lags does not.
  9    0       7      1,3    -         -        1      7
# One in sync that has told nothing holds all up.
  9    -       7      1,2,3  -         -        1      -1
  9    -       7      1,3    2         -        1      -1
  9    -       7      1,3    -         -        1      7
# Below the floor nothing counts, whatever those have that are about to join.
  9    9       9      1      -         -        2      -1
  9    9       9      1      2         3        2      -1
  9    9       9      1,2    -         -        2      9
  9    9       9      1,2    -         -        3      -1
"""


@pytest.mark.parametrize("row", rows(HIGH_WATERMARKS), ids=" ".join)
def test_how_far_records_count(row: list[str]) -> None:
    own, second, third, isr, proposed, joining, floor, expected = row
    told = {2: second, 3: third}
    followers = of({each: int(end) for each, end in told.items() if end != "-"}, isr=ids(isr))
    followers.proposed.update(dict.fromkeys(ids(proposed), 0))
    followers.recount(ids(isr), {2: 7, 3: 7}, ids(joining))

    found = followers.high_watermark(RECORDS, int(own), len(ids(isr)), int(floor))
    assert found == int(expected)


# J.
JOINS = """
# end  high-watermark  epoch-start  may-join

  5    5               0            yes
  4    5               0            no
  6    5               0            yes
  5    5               5            yes
  5    3               6            no
  6    3               6            yes
  -    0               0            no
"""


@pytest.mark.parametrize(("end", "high_watermark", "start", "expected"), rows(JOINS))
def test_who_may_join(end: str, high_watermark: str, start: str, expected: str) -> None:
    copy = copy_at(of({} if end == "-" else {2: int(end)}), 2)

    may = copy.may_join(int(high_watermark), int(start), 0)

    assert may == (expected == "yes")


def test_who_has_told_of_one_log_in_its_life_has_not_told_of_the_other() -> None:
    follower = Follower(2, -1, 2)
    told = []
    for copy in follower.copies:
        copy.told(7, 5, 5, 0, 0)
        told.append(follower.has_told_in(7))

    assert told == [False, True]


@pytest.mark.parametrize(("told", "may"), [(-1, False), (2, False), (3, True), (4, True)])
def test_whose_log_begins_before_the_leaders_may_not_join(told: int, may: bool) -> None:
    copy = copy_at(of({2: 5}), 2)
    copy.log_start = told

    assert copy.may_join(5, 0, 3) == may


def test_an_addition_counts_until_its_row_has_moved_on() -> None:
    followers = of({}, isr=[1, 3])
    followers.proposed[2] = 4

    followers.take_row([1, 2, 3], [1, 3], 4, 0)
    same = dict(followers.proposed)
    followers.take_row([1, 2, 3], [1, 3], 5, 0)

    assert (same, followers.proposed) == ({2: 4}, {})


def test_who_is_no_replica_any_more_is_forgotten() -> None:
    followers = of({2: 5, 3: 5})

    followers.take_row([1, 3], [1, 3], 1, 0)
    followers.recount([1, 3], {2: 7, 3: 7}, [])

    assert (list(followers.by_id), followers.counted) == ([3], [3])


def test_who_has_left_the_replicas_in_sync_has_to_catch_up_anew() -> None:
    followers = of({2: 100, 3: 100})
    follower = copy_at(followers, 2)

    followers.take_row([1, 2, 3], [1, 2, 3], 1, 0)
    before = follower.is_caught_up(101, 1, LAG_MS)
    followers.take_row([1, 2, 3], [1, 3], 2, 0)
    follower.told(7, 100, 101, 2, 2)
    left = follower.is_caught_up(101, 3, LAG_MS)
    other = copy_at(followers, 3).is_caught_up(101, 3, LAG_MS)
    follower.told(7, 101, 102, 4, 4)

    assert (before, left, other) == (True, False, True)
    assert follower.is_caught_up(102, 5, LAG_MS)


# Lag: fetches as (attended ms, fetch offset, leader's end), asked at a time: caught up?
LAGS = [
    ("it has everything", [(0, 100, 100)], 100, 9_000, True),
    ("more came a moment ago", [(0, 100, 100)], 101, LAG_MS, True),
    ("more came long ago", [(0, 100, 100)], 101, LAG_MS + 1, False),
    ("it never had anything", [], 1, 0, False),
    ("always a fetch behind", [(500, 90, 100), (900, 100, 110)], 110, 1_400, True),
    ("always more than a fetch behind", [(500, 80, 100), (900, 90, 110)], 110, 950, False),
]


@pytest.mark.parametrize(
    ("fetches", "end", "now_ms", "expected"), [row[1:] for row in LAGS], ids=[r[0] for r in LAGS]
)
def test_who_lags(
    fetches: list[tuple[int, int, int]], end: int, now_ms: int, expected: bool
) -> None:
    follower = LogCopy(-1)
    for at_ms, offset, leader_end in fetches:
        follower.told(7, offset, leader_end, at_ms, at_ms)

    assert follower.is_caught_up(end, now_ms, LAG_MS) == expected


def test_a_session_that_goes_on_fetching_speaks_for_who_has_no_news() -> None:
    follower = LogCopy(-1)
    clock = FetchClock()
    follower.told(7, 100, 100, 0, 0)
    follower.ask_in(clock)
    clock.fetched_ms = clock.fetched_real_ms = 5_000
    follower.on_news()
    clock.fetched_ms = clock.fetched_real_ms = 8_000

    # It had everything when it fetched last before the news, and has fetched since all the same.
    assert (follower.last_caught_up_ms(), follower.last_fetch_real_ms()) == (5_000, 8_000)
    follower.leave_session(clock)
    clock.fetched_real_ms = 9_000
    assert (follower.last_caught_up_ms(), follower.last_fetch_real_ms()) == (5_000, 8_000)


def test_the_news_of_a_new_session_do_not_count_who_is_behind_as_caught_up() -> None:
    follower = LogCopy(-1)
    clock = FetchClock()
    follower.told(7, 90, 100, 0, 0)
    follower.ask_in(clock)
    clock.fetched_ms = 5_000

    follower.on_news()

    assert follower.last_caught_up_ms() == -1


@pytest.mark.parametrize(
    ("isr", "second_ms", "third_ms", "expected"),
    [
        ([1], -1, -1, True),
        ([1, 2], 0, -1, True),
        ([1, 2, 3], 0, -1, False),
        ([1, 2, 3], 0, 0, True),
        ([1, 2, 3], TURNED_TO_MS, 0, True),
        ([1, 2, 3], TURNED_TO_MS + 1, 0, False),
    ],
)
def test_whether_all_in_sync_have_turned_to_us(
    isr: list[int], second_ms: int, third_ms: int, expected: bool
) -> None:
    followers = of({}, isr=isr)
    now_ms = 10_000
    for broker_id, ago_ms in ((2, second_ms), (3, third_ms)):
        if ago_ms >= 0:
            copy_at(followers, broker_id).told(7, 0, 0, 0, now_ms - ago_ms)

    assert followers.have_turned_to_us(isr, now_ms) == expected


def test_deleted_records_are_gone_when_all_who_may_lead_have_said_so() -> None:
    followers = of({2: 9, 3: 9})
    followers.recount([1, 2], {3: 7}, [])
    copy_at(followers, 2).log_start = 4
    silent = followers.least_log_start(RECORDS, 6)
    copy_at(followers, 3).log_start = 5

    assert (silent, followers.least_log_start(RECORDS, 6)) == (-1, 4)
    followers.recount([1, 2], {}, [])
    copy_at(followers, 2).log_start = 8
    # Who is dead and out of sync takes the leader's log start before it may lead.
    assert followers.least_log_start(RECORDS, 6) == 6

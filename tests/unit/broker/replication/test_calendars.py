"""Calendars of leaders: told now and then, compared, and a line where two are far apart."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.leader_scene import SECOND, LeaderScene
from tests.support.replication.follower_scene import LEADER, FollowerScene

from tarry.base.limits import CALENDARS_APART_MS_MAX
from tarry.base.turn import Turn
from tarry.broker.replication.calendars import (
    CALENDAR_INTERVAL_MS,
    Calendars,
    SeenCalendar,
    calendar_entries,
)

NOW_MS = 1_800_000_000_000
FAR_MS = CALENDARS_APART_MS_MAX + 1


@pytest.fixture
def calendars() -> Calendars:
    return Calendars(Turn(0, NOW_MS))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tarry.cluster"]


def test_the_answer_that_was_under_way_for_the_shortest_time_counts(calendars: Calendars) -> None:
    for ahead_ms in (-40, -3, -300):
        calendars.compare(2, NOW_MS + ahead_ms)

    assert calendars.seen() == [SeenCalendar(2, -3, NOW_MS)]


def test_a_calendar_that_was_set_back_is_seen_after_some_answers(calendars: Calendars) -> None:
    calendars.compare(2, NOW_MS)
    for _ in range(3):
        calendars.compare(2, NOW_MS - 60_000)

    assert calendars.seen()[0].ahead_ms == -60_000


@pytest.mark.parametrize(("ahead_ms", "side"), [(FAR_MS, "ahead of"), (-FAR_MS, "behind")])
def test_far_apart_is_told_once_and_so_is_its_end(
    calendars: Calendars, caplog: pytest.LogCaptureFixture, ahead_ms: int, side: str
) -> None:
    caplog.set_level(logging.INFO, "tarry.cluster")

    for _ in range(5):
        calendars.compare(2, NOW_MS + ahead_ms)
    for _ in range(5):
        calendars.compare(2, NOW_MS)

    first, last = lines(caplog)
    assert f"broker 2 is {FAR_MS} ms {side} this broker's" in first
    assert "agrees with this broker's again" in last


def test_a_second_is_not_far(calendars: Calendars, caplog: pytest.LogCaptureFixture) -> None:
    calendars.compare(2, NOW_MS + CALENDARS_APART_MS_MAX)

    assert lines(caplog) == []


def test_entries_are_settings_that_any_client_can_ask_for(calendars: Calendars) -> None:
    calendars.compare(3, NOW_MS + 7)

    ((key, value, _),) = calendar_entries(calendars)

    assert key == "tarry.calendar.3"
    assert value == f'{{"ahead_ms":7,"at_ms":{NOW_MS}}}'


def test_a_leader_tells_its_calendar_now_and_then() -> None:
    scene = LeaderScene()
    session = scene.fetch(SECOND, {0: 0}).session_id
    before = scene.fetch(SECOND, {}, session=(session, 1))
    scene.pass_ms(CALENDAR_INTERVAL_MS)

    told = scene.fetch(SECOND, {}, session=(session, 2))
    after = scene.fetch(SECOND, {}, session=(session, 3))

    assert before.calendar_ms == after.calendar_ms == -1
    assert told.calendar_ms == scene.broker.this_turn.now_wall_ms


def test_a_follower_compares_it_until_the_leaders_life_is_over() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()

    scene.answer(calendar_ms=scene.turn_state.now_wall_ms + 5_000)
    (seen,) = scene.calendars.seen()
    scene.life(LEADER, -1)

    assert (seen.broker_id, seen.ahead_ms) == (LEADER, 4_999)
    assert scene.calendars.seen() == []

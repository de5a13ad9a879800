"""`tarry topics describe` shows a topic's scheduled records."""

from __future__ import annotations

import pytest

from tarry.cli.schedule_times import tell_flaws
from tarry.cli.topic_schedule import TopicSchedule
from tarry.client import ScheduleTotals

FLAW = "t-0.schedule is damaged at offset 7"
DAMAGED = ScheduleTotals(0, 0, 0, 0, -1, [], None, (FLAW,))


def test_a_damaged_log_is_named_where_nothing_else_waits(capsys: pytest.CaptureFixture[str]):
    shown = TopicSchedule(DAMAGED)
    tell_flaws(DAMAGED)

    assert shown.lines() == ["as far as is known, nothing waits", FLAW]
    assert shown.as_json()["flaws"] == [FLAW]
    assert capsys.readouterr().err == f"tarry: {FLAW}\n"


def test_a_sound_log_is_no_news():
    assert TopicSchedule(ScheduleTotals(0, 0, 0, 0, -1, [])).lines() == ["nothing waits"]

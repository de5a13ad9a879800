"""The broker's log says how late records came: after a full disk, a stop, a clock set forward."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import a_batch
from tests.support.broker.schedule_user import ScheduleUser

from tarry.broker.scheduling.late_report import REPORT_MS
from tarry.schedule.counts import LATE_MS

HOUR_MS = 3_600_000


@pytest.fixture
def user() -> ScheduleUser:
    return ScheduleUser()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Lines about late records since the last call."""
    found = [each.getMessage() for each in caplog.records if "came late" in each.getMessage()]
    caplog.clear()
    return found


def test_after_a_full_disk_the_log_says_how_late_records_came(
    user: ScheduleUser, caplog: pytest.LogCaptureFixture
):
    user.park_all((b"a", 1_000, ""), (b"b", 2_000, ""))
    user.hand.disk.fail_writes(count=10, path_part="orders-0/")

    user.pass_time(2_000)
    for _ in range(20):
        user.pass_time(1_000)

    assert user.values() == [b"a", b"b"]
    (line,) = lines(caplog)
    assert "2 of orders by up to 1" in line


def test_after_a_stop_the_log_says_it_once_for_all_topics(caplog: pytest.LogCaptureFixture):
    user = ScheduleUser()
    names = [f"topic-{number}" for number in range(7)]
    for name in names:
        user.create(name, delay_enable="true", delay_default_ms="1000")
        user.produce(a_batch(b"a"), topic=name)
    user.hand.stop()
    user.hand.now_wall_ms += HOUR_MS
    user.hand.start()
    user.begin_anew()
    user.pass_time(1_000)
    user.pass_time(1_000)

    (line,) = lines(caplog)
    assert line.count("topic-") == 5
    assert line.endswith("and 2 of 2 more topics")


def test_what_is_late_by_less_is_no_news(user: ScheduleUser, caplog: pytest.LogCaptureFixture):
    user.park(b"a", 1_000)

    user.pass_time(1_000 + LATE_MS - 1)
    user.pass_time(1_000)

    assert user.values() == [b"a"]
    assert lines(caplog) == []


def test_there_is_one_line_a_minute(user: ScheduleUser, caplog: pytest.LogCaptureFixture):
    for after_ms in (1_000, 1_001, 1_002, 20_000):
        user.park(b"a", after_ms)
    user.pass_time(1_002 + LATE_MS)
    user.pass_time(500)
    # The clock is set forward: the last one is late too.
    user.hand.now_wall_ms += 20_000

    for _ in range(REPORT_MS // 500 + 1):
        user.pass_time(500)

    first, second = lines(caplog)
    assert "3 of orders by up to 5.0 s" in first
    assert "1 of orders by up to 7.0 s" in second

"""A write to one log of a pair fails: the other takes nothing that a crash could then double."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch, produced
from tests.support.broker.schedule_user import ScheduleUser

from tarry.base import errors
from tarry.protocol.messages.change_scheduled_records import ScheduledChange

LATER = ([("x-deliver-after", b"1000")],)
LOGS = {"orders-0.schedule/": LATER, "orders-0/": ([],)}


def logs_with_undone_writes(user: ScheduleUser) -> list[str]:
    leadership = user.hand.broker.topics[ORDERS].partitions[0].leadership
    return [each.name for each in leadership.logs if each.log.has_undurable_cut]


@pytest.mark.parametrize("path", LOGS)
def test_a_failed_write_is_undone_on_the_disk_though_nothing_more_is_written(path):
    user = ScheduleUser()
    user.park(b"first", 60_000)
    user.produce(a_batch(b"second"))
    user.hand.disk.fail_writes(count=1, path_part=path)

    answer = user.produce(a_batch(b"third", headers=LOGS[path]))

    assert answer.error_code == errors.KAFKA_STORAGE_ERROR
    assert logs_with_undone_writes(user) == []


@pytest.mark.parametrize("path", LOGS)
def test_a_retry_is_taken_by_the_other_log_only_when_a_crash_brings_nothing_back(path):
    user = ScheduleUser()
    user.park(b"first", 60_000)
    user.produce(a_batch(b"second"))
    others = next(headers for other, headers in LOGS.items() if other != path)
    user.hand.disk.fail_writes(count=1, path_part=path)
    user.send_produce(a_batch(b"third", headers=LOGS[path], producer_id=7, sequence=0))
    user.hand.turn()
    user.hand.turn()
    assert logs_with_undone_writes(user) != []
    retry = a_batch(b"third", headers=others, producer_id=7, sequence=0)

    user.send_produce(retry)
    user.hand.turn()
    user.hand.settle()

    codes = [each.error_code for answer in user.answers() for each in produced(answer)]
    assert codes == [errors.KAFKA_STORAGE_ERROR, errors.KAFKA_STORAGE_ERROR]
    assert user.produce(retry).error_code == errors.NONE


def test_a_cancel_waits_until_a_crash_brings_no_release_back():
    user = ScheduleUser()
    user.produce(a_batch(b"first"))
    user.park(b"second", 1_000, "id")
    user.hand.disk.fail_writes(count=1, path_part="orders-0/")
    user.hand.turn(after_ms=1_000)
    user.hand.turn()
    assert logs_with_undone_writes(user) == ["orders-0"]

    user.send_changes(ScheduledChange(b"id"))
    user.hand.turn()

    (result,) = user.results()
    assert result.error_code == errors.KAFKA_STORAGE_ERROR
    assert "send the change again" in result.error_message

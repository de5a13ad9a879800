"""Counts of a topic's scheduled records: told with ListScheduledRecords, and in the event log."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User
from tests.support.broker.schedule_user import ScheduleUser, move

from tarry.base import errors
from tarry.base.wait_buckets import bucket_of
from tarry.protocol import api_keys
from tarry.protocol.messages.list_scheduled_records import (
    CountedScheduled,
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
)
from tarry.simulation.by_hand import START_WALL_MS


@pytest.fixture
def user() -> ScheduleUser:
    return ScheduleUser()


def counts(user: User) -> CountedScheduled:
    request = ListScheduledRecordsRequest(
        ORDERS, limit=0, partitions=[ListScheduledPartition(0)], include_counts=True
    )
    answer = user.client.ask(api_keys.LIST_SCHEDULED_RECORDS, 0, request)
    assert isinstance(answer, ListScheduledRecordsResponse)
    assert answer.counts is not None
    return answer.counts


def numbers(told: CountedScheduled) -> tuple[int, int, int, int]:
    return told.parked_count, told.released_count, told.cancelled_count, told.refused_count


def test_nobody_is_told_who_has_not_asked(user: ScheduleUser):
    request = ListScheduledRecordsRequest(ORDERS, partitions=[ListScheduledPartition(0)])

    answer = user.client.ask(api_keys.LIST_SCHEDULED_RECORDS, 0, request)

    assert isinstance(answer, ListScheduledRecordsResponse)
    assert answer.counts is None


def test_records_are_counted_as_they_are_parked_and_released(user: ScheduleUser):
    user.park_all((b"a", 1_000, ""), (b"b", 1_000, ""), (b"c", 5_000, ""))

    user.pass_time(1_000)

    told = counts(user)
    assert numbers(told) == (3, 2, 0, 0)
    assert told.since_ms == START_WALL_MS


def test_a_release_is_late_by_the_time_since_it_was_due(user: ScheduleUser):
    user.park_all((b"a", 1_000, ""), (b"b", 1_000, ""))

    user.pass_time(1_300)

    told = counts(user)
    assert [(each.number, each.record_count) for each in told.lateness] == [(bucket_of(300), 2)]
    assert told.longest_late_ms == 300


def test_a_cancel_and_a_replacement_take_back(user: ScheduleUser):
    user.park(b"a", 1_000, "a")
    user.park(b"b", 1_000, "b")
    user.park(b"newer", 2_000, "b")

    user.cancel("a")
    user.cancel("a")

    assert numbers(counts(user)) == (3, 0, 2, 0)


def test_a_move_takes_nothing_back(user: ScheduleUser):
    user.park(b"a", 1_000, "a")

    user.change(move("a", 3_000))
    user.pass_time(3_000)

    assert numbers(counts(user)) == (1, 1, 0, 0)


def test_a_batch_that_is_refused_counts_with_all_its_records(user: ScheduleUser):
    answer = user.produce_scheduled((b"a", 1_000, ""), (b"b", 10**15, ""))

    assert answer.error_code == errors.INVALID_RECORD
    assert numbers(counts(user)) == (0, 0, 0, 2)


def test_what_the_disk_has_not_taken_is_not_counted(user: ScheduleUser):
    user.park(b"a", 1_000, "a")
    user.hand.disk.fail_writes(count=3, path_part="orders-0.schedule/")

    parked = user.produce_scheduled((b"b", 1_000, ""), (b"c", 2_000, ""))
    replaced = user.produce_scheduled((b"newer", 1_000, "a"))
    cancelled = user.cancel("a")

    assert parked.error_code == replaced.error_code == errors.KAFKA_STORAGE_ERROR
    assert cancelled == "KAFKA_STORAGE_ERROR"
    assert numbers(counts(user)) == (1, 0, 0, 0)


def test_a_restart_begins_anew(user: ScheduleUser):
    user.park(b"a", 1_000)

    user.end("stop")
    user.pass_time(1_000)

    assert numbers(counts(user)) == (0, 1, 0, 0)

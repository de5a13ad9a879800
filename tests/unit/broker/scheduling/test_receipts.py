"""Produce tells where a batch is parked, and by that one record of it is cancelled alone."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import a_batch, records_in
from tests.support.broker.schedule_user import ScheduleUser, outcome_of

from tarry.base import errors
from tarry.base.limits import SCHEDULE_PLACES_MAX
from tarry.protocol.messages.change_scheduled_records import (
    ScheduledChange,
    ScheduledChangeResult,
)


@pytest.fixture
def user() -> ScheduleUser:
    return ScheduleUser()


def one_of(user: ScheduleUser, batch: int, place: int) -> ScheduledChangeResult:
    """Cancel the record at a place of a batch, and no other."""
    change = ScheduledChange(s_offset=batch + place, batch_s_offset=batch)
    (result,) = user.change(change)
    return result


def test_the_answer_tells_where_a_batch_is_parked(user: ScheduleUser):
    answers = [user.produce_scheduled((b"%d" % at, 1_000, "")) for at in range(3)]

    assert [each.base_offset for each in answers] == [-1, -1, -1]
    waiting = [each.s_offset for each in user.list().scheduled]
    assert [each.s_offset for each in answers] == waiting


def test_a_batch_that_is_not_parked_has_no_such_place(user: ScheduleUser):
    direct = user.produce(a_batch(b"direct"))
    refused = user.produce_scheduled((b"refused", 10**15, ""))

    assert (direct.base_offset, direct.s_offset) == (0, -1)
    assert (refused.error_code, refused.s_offset) == (errors.INVALID_RECORD, -1)


def test_a_batch_that_comes_again_is_parked_where_it_was(user: ScheduleUser):
    batch = a_batch(b"a", headers=([("x-deliver-after", b"1000")],), producer_id=7)
    first = user.produce(batch)

    again = user.produce(batch)

    assert again.s_offset == first.s_offset >= 0
    assert again.base_offset == -1


def test_one_record_of_a_batch_with_times_of_their_own_is_cancelled_alone(user: ScheduleUser):
    at = user.produce_scheduled((b"a", 1_000, ""), (b"b", 2_000, ""), (b"c", 3_000, "")).s_offset

    result = one_of(user, at, 1)
    user.pass_time(3_000)

    assert (outcome_of(result), result.s_offset) == ("cancelled", at + 1)
    assert user.values() == [b"a", b"c"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_record_that_is_due_with_others_is_not_taken_out(user: ScheduleUser, place: int):
    at = user.produce_scheduled((b"a", 1_000, ""), (b"b", 1_000, ""), (b"c", 1_000, "")).s_offset

    result = one_of(user, at, place)
    user.pass_time(1_000)

    assert result.error_code == errors.INVALID_REQUEST
    assert "give a record a schedule_id" in (result.error_message or "")
    assert user.values() == [b"a", b"b", b"c"]


def test_a_record_in_the_middle_of_those_that_are_due_together_is_not_taken_out(
    user: ScheduleUser,
):
    at = user.produce_scheduled((b"a", 500, ""), (b"b", 1_000, ""), (b"c", 1_000, "")).s_offset

    assert one_of(user, at, 2).error_code == errors.INVALID_REQUEST
    assert outcome_of(one_of(user, at, 0)) == "cancelled"


@pytest.mark.parametrize("ends", ["", "stop"])
def test_each_record_of_those_that_came_together_is_told_where_it_is(user: ScheduleUser, ends: str):
    at = user.produce_scheduled((b"a", 500, ""), (b"b", 1_000, ""), (b"c", 1_000, "")).s_offset
    user.pass_time(1_000)

    results = [one_of(user, at, place) for place in range(3)]

    assert [outcome_of(each) for each in results] == ["already_released"] * 3
    assert [each.offset for each in results] == [0, 1, 2]
    assert [each.s_offset for each in results] == [at, at + 1, at + 2]
    assert [each.value for each in records_in(user.fetch(1))] == [b"b", b"c"]


def test_a_record_that_was_moved_has_another_name(user: ScheduleUser):
    at = user.produce_scheduled((b"a", 1_000, "")).s_offset
    (moved,) = user.change(
        ScheduledChange(s_offset=at, due_ms=user.hand.broker.this_turn.now_wall_ms + 5_000)
    )

    assert outcome_of(one_of(user, at, 0)) == "unknown"
    assert outcome_of(one_of(user, moved.s_offset, 0)) == "cancelled"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [(-1, "named by its s-offset and its batch's"), (SCHEDULE_PLACES_MAX, "only the first 10,000")],
)
def test_a_place_that_no_record_can_have_is_refused(user: ScheduleUser, place: int, sentence: str):
    at = user.produce_scheduled((b"a", 1_000, "")).s_offset

    refused = one_of(user, at, place)

    assert refused.error_code == errors.INVALID_REQUEST
    assert sentence in str(refused.error_message)
    assert user.waiting() == [(1_000, None)]


def test_a_record_that_nobody_parked_is_unknown(user: ScheduleUser):
    at = user.produce_scheduled((b"a", 1_000, "")).s_offset

    assert outcome_of(one_of(user, at, 7)) == "unknown"
    assert user.waiting() == [(1_000, None)]

"""ListScheduledRecords: what waits, in pages, with its sums, and what is refused."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.schedule_user import ScheduleUser

from tarry.base import errors
from tarry.base.limits import SCHEDULE_BUCKETS_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
)
from tarry.records import decode_records
from tarry.simulation.by_hand import START_WALL_MS
from tarry.wire.reader import Window

FIRST = ListScheduledPartition(0)


@pytest.fixture
def user() -> ScheduleUser:
    return ScheduleUser()


@pytest.mark.parametrize("ends", ["", "stop", "crash"])
def test_what_waits_is_listed_in_the_order_of_due_times(user: ScheduleUser, ends: str):
    user.park(b"c", 3_000, "c")
    user.park(b"a", 1_000, "a")
    user.park(b"b", 2_000)
    user.end(ends)

    told = user.list(FIRST)

    assert user.waiting() == [(1_000, b"a"), (2_000, None), (3_000, b"c")]
    assert (told.entry_count, told.record_count, told.damaged_count) == (3, 3, 0)
    assert told.size == sum(each.size for each in told.scheduled)
    assert told.furthest_due_ms == START_WALL_MS + 3_000
    assert not told.has_more


def test_a_page_that_is_asked_for_again_is_listed_once(user: ScheduleUser):
    user.park_all((b"a", 1_000, ""), (b"b", 2_000, ""))
    second = ListScheduledPartition(
        0, START_WALL_MS + 1_000, user.list(FIRST).scheduled[0].s_offset
    )
    request = ListScheduledRecordsRequest(ORDERS, partitions=[FIRST, second] * 1_000)

    answer = user.client.ask(api_keys.LIST_SCHEDULED_RECORDS, 0, request)

    assert isinstance(answer, ListScheduledRecordsResponse)
    listed = [[each.due_ms - START_WALL_MS for each in one.scheduled] for one in answer.partitions]
    assert listed == [[1_000, 2_000], [2_000]]


def test_what_is_released_is_listed_no_more(user: ScheduleUser):
    user.park_all((b"a", 1_000, ""), (b"b", 2_000, ""))

    user.pass_time(1_000)

    assert user.waiting() == [(2_000, None)]


def test_pages_follow_each_other_without_a_gap(user: ScheduleUser):
    user.park_all(*[(b"%d" % at, 1_000 + at // 3, "") for at in range(30)])
    user.park_all(*[(b"%d" % at, 1_000 + at // 4, f"id-{at}") for at in range(40)])
    whole = user.list(FIRST).scheduled

    seen = []
    after = (-1, -1)
    sizes = []
    while True:
        page = user.list(ListScheduledPartition(0, *after), limit=7)
        seen += [(each.due_ms, each.s_offset) for each in page.scheduled]
        sizes.append(len(page.scheduled))
        if not page.has_more:
            break
        after = seen[-1]

    assert seen == [(each.due_ms, each.s_offset) for each in whole]
    assert set(sizes[:-1]) == {7}


def test_a_range_of_due_times_is_listed_and_summed_up(user: ScheduleUser):
    user.park_all(*[(b"%d" % at, at, "") for at in range(1_000, 1_010)])

    told = user.list(FIRST, due_from_ms=START_WALL_MS + 1_002, due_until_ms=START_WALL_MS + 1_005)

    assert [each.due_ms - START_WALL_MS for each in told.scheduled] == [1_002, 1_003, 1_004]
    assert (told.entry_count, told.record_count) == (3, 3)
    assert told.furthest_due_ms == START_WALL_MS + 1_009
    assert not told.has_more


def test_a_limit_of_nothing_counts_only(user: ScheduleUser):
    user.park(b"a", 1_000)

    told = user.list(FIRST, limit=0)

    assert (told.scheduled, told.entry_count, told.has_more) == ([], 1, True)


def test_buckets_count_what_is_due_between_two_edges(user: ScheduleUser):
    user.park_all(*[(b"%d" % at, at, "") for at in (1_000, 1_000, 1_001, 1_500, 2_000)])
    edges = [START_WALL_MS + at for at in (1_000, 1_001, 1_002, 2_000)]

    told = user.list(FIRST, bucket_edges_ms=edges, limit=0)

    assert [each.record_count for each in told.buckets] == [2, 1, 1]
    assert told.buckets[0].size > 0


def test_the_batch_of_an_entry_is_what_will_be_released(user: ScheduleUser):
    user.park_all((b"a", 1_000, "x"), (b"b", 2_000, "y"))
    user.park_all((b"c", 3_000, ""), (b"d", 3_000, ""))

    told = user.list(FIRST, include_batches=True)

    found = []
    for entry in told.scheduled:
        window = entry.batch
        assert isinstance(window, Window)
        batch = window.data[window.start : window.end]
        found.append([record.value for record in decode_records(batch, size_max=1 << 20)])
    assert found == [[b"a"], [b"b"], [b"c", b"d"]]


def test_one_entry_is_found_by_its_id_or_its_s_offset(user: ScheduleUser):
    user.park_all((b"a", 1_000, "x"), (b"b", 2_000, "y"))

    (by_id,) = user.list(FIRST, schedule_id=b"y").scheduled
    (by_s_offset,) = user.list(ListScheduledPartition(0, s_offset=by_id.s_offset)).scheduled

    assert by_id.due_ms == by_s_offset.due_ms == START_WALL_MS + 2_000
    assert user.list(FIRST, schedule_id=b"z").scheduled == []


def test_an_entry_is_not_named_by_its_id_and_its_s_offset(user: ScheduleUser):
    user.park(b"a", 1_000, "x")
    (entry,) = user.list(FIRST).scheduled

    told = user.list(ListScheduledPartition(0, s_offset=entry.s_offset), schedule_id=b"x")

    assert told.error_code == errors.INVALID_REQUEST
    assert "either" in str(told.error_message)
    assert told.scheduled == []


def test_until_what_waits_is_read_a_client_is_told_to_come_again(user: ScheduleUser):
    user.park(b"a", 1_000)
    user.hand.crash()
    user.client = user.hand.connect()

    # The load takes some turns; this is its second one.
    told = user.list(FIRST)
    later = user.list(FIRST)

    assert told.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert len(later.scheduled) == 1


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("nothing", 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (ORDERS, 1, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (ORDERS, -1, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ("plain", 0, errors.INVALID_REQUEST),
        ("a/b", 0, errors.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_is_not_there_is_refused(user: ScheduleUser, topic: str, index: int, code: int):
    user.create("plain")

    told = user.list(ListScheduledPartition(index), topic=topic)

    assert told.error_code == code
    assert told.error_message


def test_of_a_partition_that_another_broker_leads_that_is_said(user: ScheduleUser):
    user.hand.broker.topics[ORDERS].leave(0)

    told = user.list(ListScheduledPartition(0))

    assert told.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert told.error_message == "another broker leads partition 0 of a topic 'orders'"


@pytest.mark.parametrize(
    "terms",
    [
        {"limit": -1},
        {"bucket_edges_ms": [2, 1]},
        {"bucket_edges_ms": [1, 1]},
        {"bucket_edges_ms": list(range(SCHEDULE_BUCKETS_MAX + 2))},
    ],
)
def test_what_cannot_be_meant_is_refused(user: ScheduleUser, terms: dict[str, object]):
    assert user.list(FIRST, **terms).error_code == errors.INVALID_REQUEST


def test_a_page_has_ten_thousand_entries_at_most_whatever_is_asked(user: ScheduleUser):
    for start in range(0, 12_000, 4_000):
        user.park_all(*[(b"", 1_000 + start + at, "") for at in range(4_000)])

    page = user.list(FIRST, limit=2**31 - 1)

    assert len(page.scheduled) == 10_000
    assert page.has_more
    assert page.entry_count == 12_000

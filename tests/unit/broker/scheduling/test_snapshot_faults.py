"""What a snapshot says, and what the logs say besides: nothing comes twice, and nothing is lost."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch, records_in
from tests.support.broker.schedule_user import ScheduleUser
from tests.unit.broker.scheduling.test_snapshots import (
    SNAPSHOT,
    Keeper,
    a_refused_snapshot,
    start_again,
)

from tarry.protocol import api_keys
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.list_scheduled_records import ListScheduledPartition

COMPANION = "orders-0.schedule"
LOG = f"{COMPANION}/00000000000000000000.log"


def delete_before(user: Keeper, offset: int) -> None:
    topic = DeleteRecordsTopic(ORDERS, [DeleteRecordsPartition(0, offset)])
    user.client.send(api_keys.DELETE_RECORDS, 2, DeleteRecordsRequest([topic], 60_000))
    while not user.answers():
        user.pass_time(100)


def lose_snapshot(user: Keeper) -> None:
    """Start again as a replica that has none."""
    user.hand.stop()
    user.hand.disk.remove(SNAPSHOT)
    user.hand.start()
    user.begin_anew()


def test_what_only_a_snapshot_knows_as_released_does_not_come_again_without_it() -> None:
    """The records that prove the releases were deleted: a note of S has to say so."""
    user = Keeper()
    user.keeps(False)
    for value, after_ms in ((b"a", 100), (b"b", 200), (b"z", 60_000)):
        user.park(value, after_ms)
    user.hand.settle()
    user.pass_time(100)
    user.pass_time(100)
    user.keeps(True)
    user.park(b"y", 60_000)
    user.hand.settle()
    user.keeps(False)
    user.hand.disk.flush([], [COMPANION])
    start_again(user, "crash")
    for _ in range(30):
        user.pass_time(100)
    come = user.values()

    delete_before(user, 2)
    user.pass_time(300)
    lose_snapshot(user)
    user.pass_time(300)

    assert come == [b"a", b"b"]
    assert records_in(user.fetch(2)) == []


def test_a_checkpoint_noted_before_a_snapshot_and_counted_after_it_forgets_no_release() -> None:
    user = Keeper()
    hand = user.hand
    user.keeps(False)
    for value, after_ms in ((b"a", 100), (b"b", 1_050), (b"z", 60_000)):
        user.park(value, after_ms)
    hand.settle()
    user.pass_time(100)
    hand.turn(after_ms=960)
    companion = user.schedule().companion.log
    end = companion.log_end_offset
    while companion.log_end_offset == end:
        # A checkpoint of the first release is noted while the second is being flushed.
        hand.turn(after_ms=1)
    user.keeps(True)
    hand.turn(*hand.disk.complete_flushes())
    hand.settle()
    user.keeps(False)
    assert hand.disk.exists(SNAPSHOT)
    hand.disk.flush([], [COMPANION])
    start_again(user, "crash")
    for _ in range(30):
        user.pass_time(100)

    lose_snapshot(user)
    user.pass_time(10)

    assert user.values() == [b"a", b"b"]


def in_line() -> Keeper:
    """Return a user whose partition waits while that of another topic writes its snapshot."""
    user = Keeper()
    user.keeps(False)
    user.create("big", delay_enable="true", delay_source="header")
    for first in range(0, 20_000, 1_000):
        headers = tuple(
            [("x-deliver-after", b"%d" % (100_000 + number))]
            for number in range(first, first + 1_000)
        )
        user.produce(a_batch(*[b"v"] * 1_000, headers=headers), topic="big")
    user.park(b"good", 70_000)
    user.park(b"damaged", 5)
    user.hand.settle()
    return user


def send(user: Keeper, batch: bytes, topic: str = ORDERS) -> None:
    user.client.send(api_keys.PRODUCE, 9, user.produce_request(batch, topic=topic))


def turn(user: Keeper, after_ms: int = 0) -> None:
    user.hand.turn(*user.hand.disk.complete_flushes(), after_ms=after_ms)


def wait_in_line(user: Keeper) -> None:
    broker = user.hand.broker
    user.keeps(True)
    send(user, a_batch(b"x", headers=([("x-deliver-after", b"90000")],)), "big")
    while not broker.scheduling.snapshots._led:
        turn(user)
    send(user, a_batch(b"b", headers=([("x-deliver-after", b"80000")],)))
    while user.schedule().snapshots not in broker.scheduling.snapshots._led:
        turn(user)


def test_what_recurs_and_came_while_its_partition_stood_in_line_is_there_after_a_start() -> None:
    user = in_line()
    wait_in_line(user)
    send(user, a_batch(b"each hour", headers=([("x-sched-cron", b"0 * * * *")],)))
    user.hand.settle()
    user.keeps(False)
    user.answers()
    before = user.waiting()

    start_again(user)

    assert user.waiting() == before


def test_what_is_damaged_while_its_partition_stands_in_line_comes_once_the_disk_is_mended() -> None:
    user = in_line()
    position = user.hand.disk.content(LOG).index(b"damaged")
    user.hand.disk.flip_bit(LOG, position, 1)
    wait_in_line(user)
    turn(user, after_ms=6)
    turn(user)
    user.hand.settle()
    user.keeps(False)
    user.hand.disk.flip_bit(LOG, position, 1)
    user.answers()

    start_again(user)
    for _ in range(3):
        user.pass_time(100_000)

    assert b"damaged" in user.values()


@pytest.mark.parametrize("s_offset", [2**46, 2**60, 2**63 - 1])
def test_a_list_that_goes_on_behind_an_impossible_place_is_answered(s_offset: int) -> None:
    user = ScheduleUser()
    user.park(b"a", 100, "x")

    asked = ListScheduledPartition(0, after_due_ms=2**62, after_s_offset=s_offset)
    found = user.list(asked, due_from_ms=-(2**63), due_until_ms=2**63 - 1)

    assert found.error_code == 0


@pytest.mark.parametrize("which", ["records", "companion"])
def test_no_snapshot_is_begun_while_an_earlier_leader_may_have_known_more(which: str) -> None:
    """The partition may have releases of bodies that this leader does not count as committed."""
    user = Keeper()
    user.keeps(False)
    user.park(b"a", 100)
    schedule = user.schedule()
    log = schedule.companion if which == "companion" else schedule.partition
    log.epoch_start = 1_000
    user.keeps(True)
    user.park(b"b", 200)
    user.hand.settle()
    was_written = user.hand.disk.exists(SNAPSHOT)

    log.epoch_start = 0
    user.park(b"c", 300)
    user.hand.settle()

    assert not was_written
    assert user.hand.disk.exists(SNAPSHOT)


def test_a_snapshot_that_a_disk_has_refused_takes_no_room_on_it() -> None:
    user = a_refused_snapshot()

    assert user.hand.disk.paths(COMPANION) == [
        path for path in user.hand.disk.paths(COMPANION) if "tmp" not in path
    ]

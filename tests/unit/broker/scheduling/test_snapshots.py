"""A start that begins with a snapshot of what waits, and what may be wrong with that."""

from __future__ import annotations

import copy

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch
from tests.support.broker.eager_snapshots import start_eager
from tests.support.broker.schedule_user import ScheduleUser

from tarry.base import errors
from tarry.broker.lifecycle import start_broker
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.schedule.entries import NO_POSITION
from tarry.schedule.notes import CheckpointNote
from tarry.schedule.snapshot import LEFT_MAX, SnapshotHeader, SnapshotReader, SnapshotWriter

SNAPSHOT = "orders-0.schedule/schedule-snapshot"
S = "orders-0.schedule/00000000000000000000.log"


class Keeper(ScheduleUser):
    """A user of a broker that keeps snapshots."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        super().__init__(settings, start=start_eager)

    def schedule(self) -> PartitionSchedule:
        leadership = self.hand.broker.topics[ORDERS].partitions[0].leadership
        schedule = self.hand.broker.scheduling.get(leadership)
        assert schedule is not None
        return schedule

    def keeps(self, is_eager: bool) -> None:
        """Let the broker keep snapshots from now on, or none."""
        settings = self.hand.broker.scheduling.snapshots.settings
        settings.offsets_min = 1 if is_eager else 1_000_000

    def snapshot_end(self) -> int:
        """Up to which s-offset the snapshot speaks that the last start has begun with."""
        return self.schedule().snapshots.s_offset


def a_keeper() -> Keeper:
    """One with a snapshot of three records, of which none is known to a later one."""
    user = Keeper()
    user.park(b"a", 100, "a")
    user.park(b"b", 200, "b")
    user.park(b"c", 300)
    user.hand.settle()
    assert user.hand.disk.exists(SNAPSHOT)
    user.keeps(False)
    return user


def start_again(user: Keeper, ends: str = "stop") -> None:
    """Start a broker that begins with a snapshot and writes none."""
    if ends == "stop":
        user.hand.stop()
    user.hand._start = start_broker
    if ends == "stop":
        user.hand.start()
    else:
        user.hand.crash()
    user.begin_anew()


def test_a_start_begins_with_what_the_snapshot_says():
    user = a_keeper()

    start_again(user)

    assert user.snapshot_end() == 7
    assert [each[0] for each in user.waiting()] == [100, 200, 300]
    assert [each[1] for each in user.waiting()] == [b"a", b"b", None]
    user.pass_time(300)
    assert user.values() == [b"a", b"b", b"c"]


def test_a_start_that_has_read_much_leaves_a_snapshot_to_the_next_one():
    user = a_keeper()
    user.hand.disk.remove(SNAPSHOT)

    user.end("stop")

    assert user.hand.disk.exists(SNAPSHOT)


def test_a_snapshot_asks_for_the_flush_that_nothing_else_asks_for():
    user = Keeper({"flush.policy": "os"})

    user.park(b"a", 100)
    user.hand.settle()

    assert user.hand.disk.exists(SNAPSHOT)


@pytest.mark.parametrize("ends", ["stop", "crash"])
def test_what_was_changed_since_is_read_from_both_logs(ends: str):
    user = a_keeper()
    user.pass_time(100)
    assert user.cancel("b") == "cancelled"
    user.park(b"d", 50, "d")

    start_again(user, ends)

    assert user.snapshot_end() == 7
    assert user.cancel("a") == "already_released"
    assert user.cancel("b") == "unknown"
    user.pass_time(300)
    assert user.values() == [b"a", b"d", b"c"]


def test_what_a_later_checkpoint_covers_comes_once():
    user = a_keeper()
    user.pass_time(200)
    # The checkpoint is noted, and speaks of both.
    user.pass_time(2_000)

    start_again(user)

    assert user.snapshot_end() == 7
    assert user.schedule().state is not None
    assert user.waiting() == []
    assert user.values() == [b"a", b"b", b"c"]


def test_a_body_that_leaves_while_the_snapshot_is_written_is_in_it():
    user = Keeper()
    user.keeps(False)
    for number in range(5):
        user.park(b"%d" % number, 100 + number, f"id {number}")
    state = user.schedule().state
    assert state is not None
    log = user.schedule().companion
    checkpoint = state.checkpoint(0, -1)
    assert checkpoint is not None
    header = SnapshotHeader(
        bytes(16), 0, log.high_watermark, 0, checkpoint, unclean_epoch=-1, hole_end=0
    )
    writer = SnapshotWriter(state, header)
    written = writer.next()
    taken = state.take_due(2**62)
    assert taken is not None
    state.add_release(taken, 0)
    while not writer.is_over:
        written += writer.next()
        left = state.pending.between(0, 100)
        if left:
            state.cancel(left[-1].s_offset, 11, 11)
    writer.end()

    reader = SnapshotReader()
    for at in range(0, len(written), 7):
        reader.take(written[at : at + 7])
        while reader.is_behind:
            reader.take(b"")

    assert reader.is_over
    found = reader.base.pending.between(0, 100)
    assert [body.schedule_id for body in found] == [b"id %d" % number for number in range(5)]
    assert [reader.base.ids.offset_of(body.schedule_id) for body in found] == [2, 4, 6, 8, 10]


def test_no_flipped_bit_of_a_snapshot_does_harm():
    user = a_keeper()
    user.hand.stop()
    disk, now = user.hand.disk, (user.hand.now_ms, user.hand.now_wall_ms)
    user.hand._start = start_broker

    for position in range(len(disk.content(SNAPSHOT))):
        user.hand.disk = copy.deepcopy(disk)
        user.hand.now_ms, user.hand.now_wall_ms = now
        user.hand.disk.flip_bit(SNAPSHOT, position, position % 8)
        user.hand.start()
        user.begin_anew()
        assert user.snapshot_end() == 0
        assert [each[1] for each in user.waiting()] == [b"a", b"b", None]
        user.pass_time(300)
        assert user.values() == [b"a", b"b", b"c"]


def test_a_damaged_snapshot_is_told_and_written_anew(caplog: pytest.LogCaptureFixture):
    user = a_keeper()
    user.hand.disk.flip_bit(SNAPSHOT, 100)

    user.end("stop")
    told = caplog.text
    user.park(b"d", 400)
    user.hand.settle()
    caplog.clear()
    start_again(user)

    assert "the snapshot of the scheduled records of orders-0 is left aside" in told
    assert SNAPSHOT in told
    assert "left aside" not in caplog.text
    assert user.snapshot_end() > 7


def test_a_torn_snapshot_does_not_count():
    user = a_keeper()
    user.hand.stop()
    file = user.hand.disk.open(SNAPSHOT)
    file.truncate(file.size - 1)
    file.close()
    user.hand._start = start_broker
    user.hand.start()
    user.begin_anew()

    assert user.snapshot_end() == 0
    user.pass_time(300)
    assert user.values() == [b"a", b"b", b"c"]


def test_a_snapshot_of_another_topic_does_not_count(caplog: pytest.LogCaptureFixture):
    user = a_keeper()
    content = user.hand.disk.content(SNAPSHOT)
    user.delete(ORDERS)
    user.hand.settle()
    user.create(ORDERS, delay_enable="true", delay_source="header")
    user.keeps(False)
    user.park(b"other", 50)
    user.park(b"second", 60)
    user.park(b"third", 70)
    user.hand.settle()
    user.hand.stop()
    file = user.hand.disk.open(SNAPSHOT, create=True)
    file.truncate(0)
    file.append([content])
    file.close()
    user.hand._start = start_broker
    user.hand.start()
    user.begin_anew()

    assert "it is of another partition" in caplog.text
    user.pass_time(300)
    assert user.values() == [b"other", b"second", b"third"]


def test_a_snapshot_behind_the_end_of_the_log_does_not_count(caplog: pytest.LogCaptureFixture):
    user = a_keeper()
    user.hand.stop()
    file = user.hand.disk.open(S)
    file.truncate(file.size // 2)
    file.close()
    user.hand.disk.flush([file], [])
    user.hand._start = start_broker
    user.hand.start()
    user.begin_anew()

    assert user.snapshot_end() == 0
    user.pass_time(300)
    assert user.values()[:1] == [b"a"]


@pytest.mark.parametrize(
    ("topic_index", "s_offset", "s_epoch", "c", "c_epoch", "told"),
    [
        (0, 7, 0, 0, -1, ""),
        (1, 7, 0, 0, -1, "it is of another partition"),
        (0, 7, 1, 0, -1, "the log of what waits has another epoch than 1"),
        (0, 8, 0, 0, -1, "the log of what waits ends before offset 8"),
        (0, 7, 0, 5, 0, "the partition does not have what had come then"),
        (0, 7, 0, 1, 1, "the partition does not have what had come then"),
    ],
)
def test_a_snapshot_counts_only_where_both_logs_have_what_it_speaks_of(
    topic_index: int,
    s_offset: int,
    s_epoch: int,
    *,
    c: int,
    c_epoch: int,
    told: str,
    caplog: pytest.LogCaptureFixture,
):
    user = a_keeper()
    user.park(b"due", 0)
    user.pass_time(0)
    state = user.schedule().state
    assert state is not None
    topic_id = user.schedule().companion.leadership.topic_id
    checkpoint = CheckpointNote(c, c_epoch, [], [])
    header = SnapshotHeader(
        topic_id, topic_index, s_offset, s_epoch, checkpoint, unclean_epoch=-1, hole_end=0
    )
    writer = SnapshotWriter(state, header)
    user.hand.stop()
    file = user.hand.disk.open(SNAPSHOT)
    file.truncate(0)
    while not writer.is_over:
        file.append([writer.next()])
    file.close()
    user.hand._start = start_broker
    user.hand.start()
    user.begin_anew()

    assert user.snapshot_end() == (0 if told else 7)
    # The log may grow up to there again, with other batches.
    assert user.hand.disk.exists(SNAPSHOT) == (told == "")
    assert told in caplog.text
    user.pass_time(300)
    assert user.values() == [b"due", b"a", b"b", b"c"]


def test_a_hint_of_where_a_body_lies_is_not_believed():
    user = ScheduleUser()
    for number in range(4):
        user.park(b"%d" % number, 100 + number)
    leadership = user.hand.broker.topics[ORDERS].partitions[0].leadership
    state = user.hand.broker.scheduling.get(leadership).state
    bodies = [state.pending.forget(body.s_offset) for body in state.pending.between(0, 100)]
    # Another one's, one in the midst of a batch, one behind the end, one that is not known.
    for body, position in zip(bodies, (bodies[1].position, 7, 10**9, NO_POSITION), strict=True):
        body.position = position
        state.pending.add(body)

    user.pass_time(200)

    assert user.values() == [b"0", b"1", b"2", b"3"]


def a_refused_snapshot() -> Keeper:
    """Return a broker whose disk has refused its snapshot; `a` and `b` wait."""
    user = Keeper()
    user.keeps(False)
    user.park(b"a", 100)
    user.keeps(True)
    user.hand.disk.fail_writes(1, SNAPSHOT)
    user.park(b"b", 200)
    user.hand.settle()
    return user


def test_a_disk_that_refuses_a_snapshot_refuses_no_record(caplog: pytest.LogCaptureFixture):
    user = a_refused_snapshot()

    user.pass_time(200)
    refused = caplog.text
    # A refused snapshot is not begun again at once.
    for _ in range(120):
        user.pass_time(500)
    user.park(b"c", 300)
    user.hand.settle()

    assert "the snapshot of the scheduled records of orders-0 cannot be written" in refused
    assert user.values() == [b"a", b"b"]
    assert user.hand.disk.exists(SNAPSHOT)


def test_what_recurs_keeps_a_partition_from_snapshots():
    user = Keeper()
    user.park(b"a", 100)
    user.hand.settle()
    before = user.hand.disk.content(SNAPSHOT)
    recurring = user.produce(a_batch(b"each day", headers=([("x-sched-cron", b"0 9 * * *")],)))
    assert recurring.error_code == errors.NONE
    user.park(b"b", 200)
    user.hand.settle()

    assert user.hand.disk.content(SNAPSHOT) == before


def test_a_snapshot_in_the_midst_of_too_many_changes_is_given_up():
    user = Keeper()
    user.park(b"a", 100)
    user.keeps(False)
    state = user.schedule().state
    assert state is not None
    checkpoint = state.checkpoint(0, -1)
    assert checkpoint is not None
    writer = SnapshotWriter(
        state, SnapshotHeader(bytes(16), 0, 3, 0, checkpoint, unclean_epoch=-1, hole_end=0)
    )
    body = state.pending.between(0, 10)[0]

    for _ in range(LEFT_MAX + 1):
        state.pending.note_leaving(body)

    assert writer.has_failed

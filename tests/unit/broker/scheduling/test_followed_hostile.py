"""Scenes of a hostile reader: what a follower's snapshot says when its logs change under it."""

from __future__ import annotations

import copy

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch, records_in
from tests.unit.broker.scheduling.test_followed_snapshots import OTHER, Follower
from tests.unit.broker.scheduling.test_snapshot_faults import COMPANION, LOG, delete_before
from tests.unit.broker.scheduling.test_snapshots import SNAPSHOT, start_again

from tarry.base.errors import CorruptData
from tarry.base.partition_row import PartitionRow
from tarry.broker.lifecycle import _is_read, start_broker
from tarry.broker.scheduling.snapshots import snapshot_load, snapshots
from tarry.broker.scheduling.snapshots.counted_load import CountedLoad
from tarry.log.state import ASKED
from tarry.schedule.notes import ScheduledNote


def batch_sizes(content: bytes) -> list[int]:
    at, sizes = 0, []
    while at + 12 <= len(content):
        size = 12 + int.from_bytes(content[at + 8 : at + 12], "big")
        sizes.append(size)
        at += size
    return sizes


def test_a_damaged_batch_header_lets_a_follower_wait() -> None:
    """Otherwise the snapshot speaks of bodies behind the damage that were never read.  Once the log
    was copied anew, that snapshot counts, and these bodies never come."""
    user = Follower()
    for number in range(6):
        user.park(b"%d" % number, 60_000 + number)
    content = user.hand.disk.content(LOG)
    sizes = batch_sizes(content)
    # The magic byte of the third note: the header of the batch is damaged.
    position = sum(sizes[:5]) + 16
    user.hand.disk.flip_bit(LOG, position, 6)

    with pytest.raises(CorruptData):
        user.load_counted()


def test_no_snapshot_is_written_of_a_log_with_a_damaged_header() -> None:
    user = Follower()
    for number in range(6):
        user.park(b"%d" % number, 60_000 + number)
    sizes = batch_sizes(user.hand.disk.content(LOG))
    position = sum(sizes[:5]) + 16
    user.hand.disk.flip_bit(LOG, position, 6)
    user.follow()

    user.look()

    # The damage was the disk's, or the log is copied anew: it is whole again.
    user.hand.disk.flip_bit(LOG, position, 6)
    start_again(user)
    for _ in range(70):
        user.pass_time(1_000)

    assert user.values() == [b"%d" % number for number in range(6)]


def test_a_start_of_the_partition_that_passes_the_reading_is_no_damage() -> None:
    """DeleteRecords and retention move the start while the follower reads, with pauses."""
    user = Follower()
    records = user.leadership.records
    for number in range(3):
        user.park(b"%d" % number, 100 + number)
    user.park(b"z", 60_000)
    for _ in range(3):
        user.pass_time(101)
        records.log.roll()
    assert records.log.log_end_offset >= 2
    load = CountedLoad(records, user.companion, grown_max=1_000_000)
    load.step_bytes = 1
    while load._releases is None:
        load.step()
    end = int(records.log.written_end_offset)
    user.park(b"late", 1)
    user.pass_time(2)
    assert records.log.written_end_offset > end
    records.log.advance_log_start_offset(records.log.written_end_offset)

    try:
        while not load.step():
            pass
    except CorruptData:
        pass

    assert records.log.flaw_offset == -1


def test_a_start_of_the_companion_log_that_passes_the_reading_is_no_damage() -> None:
    """What waited is done meanwhile, and the leader has moved the start."""
    user = Follower()
    companion = user.companion
    for number in range(3):
        companion.log.roll()
        user.park(b"%d" % number, 100 + number)
    load = CountedLoad(user.leadership.records, companion, grown_max=1_000_000)
    load.step_bytes = 1
    load.step()
    companion.log.roll()
    start = companion.log.written_end_offset
    user.park(b"late", 60_000)
    companion.log.advance_log_start_offset(start)

    try:
        while not load.step():
            pass
    except CorruptData:
        pass

    assert companion.log.flaw_offset == -1


@pytest.mark.interpreted
def test_a_start_that_moves_while_the_snapshot_is_read_ends_no_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = Follower()
    for number in range(3):
        user.park(b"%d" % number, 60_000 + number)
    user.follow()
    user.look()
    assert user.has_snapshot
    user.lead()
    user.park(b"x", 60_000)
    monkeypatch.setattr(snapshot_load, "_READ_BYTES", 16)
    load = CountedLoad(user.leadership.records, user.companion, grown_max=1_000_000)
    load.step()
    user.park(b"late", 60_000)
    user.companion.log.roll()
    user.companion.log.advance_log_start_offset(user.companion.log.written_end_offset)

    with pytest.raises(CorruptData):
        while not load.step():
            pass


def test_a_reader_is_watched_though_another_snapshot_gets_its_name() -> None:
    user = Follower()
    user.create("other", delay_enable="true", delay_source="header")
    broker = user.hand.broker
    user.park(b"a", 60_000)
    for _ in range(5):
        user.produce(a_batch(b"b", headers=([("x-deliver-after", b"60000")],)), topic="other")
    first = user.leadership
    other = broker.topics["other"].replica(0).leadership
    user.follow()
    before = other.row
    row = PartitionRow(
        OTHER, other.leader_epoch + 1, -1, 1, [other.own_id, OTHER], [other.own_id, OTHER]
    )
    other.take_row(row, is_leader=False)
    broker.parts.on_role(other, before, True)
    line = broker.scheduling.snapshots
    user.await_look()
    # Let the first be written, and wait for its flush, while the other is read.
    for _ in range(200):
        if line._all[first]._is_written and line._all[other].is_reading:
            break
        user.hand.turn(after_ms=1)
    assert line._all[first]._is_written
    assert line._all[other].is_reading
    assert broker.scheduling.is_reading(other)

    user.hand.turn(*user.hand.disk.complete_flushes(), after_ms=1)
    seen = []
    for _ in range(5):
        if line._all[other].is_reading:
            seen.append(broker.scheduling.is_reading(other))
        user.hand.turn(after_ms=1)

    assert all(seen)


def test_a_follower_whose_partition_begins_behind_the_last_checkpoint_that_it_reads_waits() -> None:
    """It does not know what was released before: only a checkpoint that it does not read does."""
    user = Follower()
    user.park(b"a", 100)
    for _ in range(30):
        user.pass_time(100)
    # S: checkpoint, note, body, checkpoint of the release.
    assert user.companion.log.log_end_offset == 4
    delete_before(user, 1)
    user.pass_time(300)
    assert user.leadership.records.log.log_start_offset == 1

    try:
        load = user.load_counted(s_high_watermark=3)
    except CorruptData:
        return

    assert load.state is not None
    assert load.c < 1 or load.state.pending.count == 0


def test_what_was_released_does_not_come_again_if_a_later_checkpoint_is_damaged() -> None:
    user = Follower()
    user.park(b"a", 100)
    for _ in range(30):
        user.pass_time(100)
    delete_before(user, 1)
    user.pass_time(300)
    assert user.leadership.records.log.log_start_offset == 1
    user.follow()
    companion = user.companion
    companion.high_watermark_position = companion.log.position_of(3)
    user.look()
    sizes = batch_sizes(user.hand.disk.content(LOG))
    user.hand.disk.flip_bit(LOG, sum(sizes[:3]) + 70, 1)

    start_again(user)
    user.pass_time(300)

    assert records_in(user.fetch(1)) == []


@pytest.mark.interpreted
def test_a_snapshot_that_the_disk_does_not_give_now_is_not_replaced_by_one_that_says_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No file can be opened, or a read fails: that passes."""
    user = Follower()
    for number in range(20):
        user.park(b"%d" % number, 60_000 + number)
    user.follow()
    user.look()
    before = user.snapshots.s_offset
    user.lead()
    for number in range(20):
        user.park(b"%d" % number, 60_000 + number)
    user.follow()
    monkeypatch.setattr(snapshots, "_READ_MIN", 4)
    user.hand.disk.fail_reads(1, SNAPSHOT)

    user.look()

    assert user.snapshots.s_offset >= before == 41


def test_no_step_reads_a_log_whose_cut_was_asked_for_behind_the_look_at_cuts() -> None:
    """Replication takes its steps behind those of scheduling, and alarms come behind both."""
    user = Follower()
    for number in range(5):
        user.park(b"%d" % number, 60_000 + number)
    user.begin_reading()
    load = user.snapshots._load
    assert load is not None
    load.step_bytes = 1
    bodies = load._bodies
    assert bodies is not None
    before = bodies._offset

    user.companion.log.cut.enter(ASKED)
    user.hand.broker.scheduling.snapshots._step_followed()

    assert bodies._offset == before


def test_a_snapshot_from_before_an_unclean_election_does_not_take_for_done_what_is_not() -> None:
    """Compaction drops what the last checkpoint says is done; a follower's snapshot may end before
    that checkpoint, and before the release.  An unclean election loses the release, the companion
    log is copied anew, and the snapshot fits both logs."""
    user = Follower()
    user.park(b"z", 1_000_000_000)
    user.park(b"a" * 3_000, 200)
    user.companion.log.roll()
    user.park(b"b", 100)
    before = copy.deepcopy(user.hand.disk)
    for _ in range(300):
        user.pass_time(100)
    for _ in range(200):
        user.pass_time(1_000)
    assert b"a" * 3_000 not in user.hand.disk.content(LOG)
    user.follow()
    companion = user.companion
    companion.high_watermark_position = companion.log.position_of(5)
    user.look()
    snapshot = user.hand.disk.content(SNAPSHOT)

    # The elected replica has all that was parked, and none of the releases.
    before.kill()
    user.hand.disk = before
    file = before.open(SNAPSHOT, create=True)
    file.append([snapshot])
    before.flush([file], [COMPANION])
    user.hand._start = start_broker
    user.hand.start()
    user.begin_anew()
    leadership = user.leadership
    row = leadership.row
    own, epoch = leadership.own_id, leadership.leader_epoch + 1
    leadership.take_row(
        PartitionRow(own, epoch, -1, 1, [own], [own], [], [], epoch), is_leader=True
    )
    user.hand.broker.parts.on_role(leadership, row, True)
    user.hand.settle()
    user.pass_time(1_000)

    assert user.values() == [b"b", b"a" * 3_000]


def test_a_cancel_whose_note_compaction_has_dropped_is_not_told_as_a_release() -> None:
    """The snapshot is older than the cancel.  A later checkpoint says that the record is done, and
    does not say how."""
    user = Follower()
    user.park(b"z", 1_000_000_000)
    user.park(b"a", 50_000, "a")
    user.follow()
    user.look()
    assert user.snapshots.s_offset == 5
    user.lead()
    assert user.cancel("a") == "cancelled"
    user.park(b"b" * 3_000, 60_000)
    user.companion.log.roll()
    user.park(b"y", 1_000_000_000)
    user.await_dropped(b"b" * 3_000)

    start_again(user)

    assert user.snapshot_end() == 5
    assert user.cancel("a") == "unknown"


def test_a_follower_keeps_a_snapshot_though_the_partition_begins_behind_the_last_checkpoint() -> (
    None
):
    """Records that were not delayed were deleted, and none was released: no checkpoint follows."""
    user = Follower()
    user.park(b"z", 60_000)
    for _ in range(3):
        user.produce(a_batch(b"direct"))
    delete_before(user, 3)
    user.pass_time(300)
    assert user.leadership.records.log.log_start_offset == 3
    user.follow()

    user.look()
    user.lead()

    assert user.snapshot_end() == 3
    assert len(user.waiting()) == 1
    for _ in range(70):
        user.pass_time(1_000)
    assert [each.value for each in records_in(user.fetch(3))] == [b"z"]


def test_what_was_released_before_the_start_is_told_by_the_checkpoint_behind_the_snapshot() -> None:
    user = Follower()
    user.park(b"a", 100)
    for _ in range(30):
        user.pass_time(100)
    delete_before(user, 1)
    user.pass_time(300)
    user.follow()
    companion = user.companion
    companion.high_watermark_position = companion.log.position_of(3)
    user.look()
    assert user.snapshots.s_offset == 3

    start_again(user)
    user.pass_time(300)

    assert user.snapshot_end() == 3
    assert user.waiting() == []
    assert records_in(user.fetch(1)) == []


def take_row(user: Follower, leader_id: int, unclean_epoch: int) -> None:
    """Take the row of the next leader epoch."""
    leadership = user.leadership
    own, before, was_leader = leadership.own_id, leadership.row, leadership.is_leader
    replicas = [own] if leader_id == own else [own, OTHER]
    row = PartitionRow(
        leader_id,
        leadership.leader_epoch + 1,
        -1,
        1,
        replicas,
        replicas,
        unclean_epoch=unclean_epoch,
    )
    leadership.take_row(row, is_leader=leader_id == own)
    user.hand.broker.parts.on_role(leadership, before, was_leader)
    user.hand.settle()


@pytest.mark.interpreted
def test_a_follower_comes_to_the_end_of_what_waited_before_an_unclean_election(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It reads a part of the log at once.  The snapshot of a part has to count for the next one,
    else the same part is read for ever."""
    user = Follower()
    for number in range(20):
        user.park(b"%d" % number, 60_000 + number)
    unclean_epoch = user.leadership.leader_epoch + 1
    take_row(user, user.leadership.own_id, unclean_epoch)
    user.park(b"x", 60_000)
    take_row(user, OTHER, unclean_epoch)
    user.keeps(True)
    monkeypatch.setattr(snapshots, "_READ_MIN", 10)
    monkeypatch.setattr(snapshots, "_READ_MAX", 10)

    for _ in range(12):
        user.look()

    assert user.snapshots.s_offset == user.companion.high_watermark == 43


def test_a_follower_drops_what_it_has_read_before_an_unclean_election() -> None:
    """The snapshot that it began with may speak of releases that are lost."""
    user = Follower()
    user.park(b"a", 60_000)
    load = CountedLoad(user.leadership.records, user.companion, grown_max=1_000_000)
    load.step()
    take_row(user, OTHER, user.leadership.leader_epoch + 1)

    with pytest.raises(CorruptData):
        load.step()


def test_a_follower_waits_while_its_companion_log_may_be_copied_anew() -> None:
    """Compaction may have dropped in it what an unclean election schedules again.  A snapshot of it
    would count for the new copy."""
    user = Follower()
    user.park(b"a", 60_000)
    take_row(user, OTHER, user.leadership.leader_epoch + 1)
    user.keeps(True)

    user.look()

    assert not user.has_snapshot


def test_a_damaged_snapshot_is_removed_outside_the_turn() -> None:
    """It may have a gigabyte."""
    user = Follower()
    user.park(b"a", 60_000)
    user.follow()
    user.look()
    user.hand.disk.flip_bit(SNAPSHOT, 20, 1)
    user.hand.disk.defers_removals = True

    user.lead()

    assert not user.has_snapshot
    assert f"{SNAPSHOT}.0.cleaned" in user.hand.disk.paths(COMPANION)
    assert [each[0] for each in user.waiting()] == [60_000]


def test_no_replaced_snapshot_is_kept_because_a_compaction_checkpoint_is_damaged() -> None:
    """Only files of segments are kept then: nobody would ever remove the others."""
    user = Follower()
    user.park(b"a", 60_000)
    user.hand.stop()
    disk = user.hand.disk
    for name in ("compaction-checkpoint", "schedule-snapshot.0.cleaned"):
        file = disk.open(f"{COMPANION}/{name}", create=True)
        file.append([b"damaged"])
        disk.flush([file], [COMPANION])
        file.close()

    user.hand.start()
    user.begin_anew()

    assert [path for path in disk.paths(COMPANION) if "cleaned" in path] == []
    assert [each[0] for each in user.waiting()] == [60_000]


def test_a_start_removes_the_part_of_a_snapshot_that_a_kill_has_left() -> None:
    user = Follower()
    for number in range(6):
        user.park(b"a", 60_000 + number)
    user.follow()
    user.await_look()
    while user.snapshots._header is None:
        user.pass_time(1)
    before = [path for path in user.hand.disk.paths(COMPANION) if "snapshot" in path]

    user.hand.start()

    assert len(before) == 1
    assert [path for path in user.hand.disk.paths(COMPANION) if "snapshot" in path] == []


@pytest.mark.parametrize("ends", ["follow", "delete"])
def test_a_broker_that_leads_no_schedule_any_more_comes_to_rest_when_records_are_due(
    ends: str,
) -> None:
    """The queue has entries of the schedules that have ended."""
    user = Follower()
    user.park(b"a", 60_000)
    if ends == "follow":
        user.follow()
    else:
        user.delete(ORDERS)

    for _ in range(61):
        user.pass_time(1_000)

    assert not user.hand.broker.scheduling.has_work_left()


def test_an_id_that_compaction_has_dropped_with_its_cancel_does_not_mean_an_earlier_release() -> (
    None
):
    """The snapshot knows the release.  The id meant another record since, which was cancelled."""
    user = Follower()
    user.park(b"z", 1_000_000_000)
    user.park(b"a", 100, "id")
    user.pass_time(100)
    user.follow()
    user.look()
    assert user.snapshots.s_offset == 5
    user.lead()
    assert user.cancel("id") == "already_released"
    user.park(b"b" * 3_000, 50_000, "id")
    assert user.cancel("id") == "cancelled"
    user.park(b"c" * 3_000, 60_000)
    user.companion.log.roll()
    user.park(b"y", 1_000_000_000)
    user.await_dropped(b"b" * 3_000)

    start_again(user)

    assert user.snapshot_end() == 5
    assert user.cancel("id") == "unknown"


@pytest.mark.interpreted
def test_a_cancel_that_compaction_dropped_before_a_snapshot_is_not_told_as_a_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The follower reads a part of the log.  A checkpoint behind that part has let compaction drop
    a cancel in it."""
    user = Follower()
    user.park(b"z", 1_000_000_000)
    user.park(b"a", 50_000, "a")
    user.follow()
    user.look()
    assert user.snapshots.s_offset == 5
    user.lead()
    assert user.cancel("a") == "cancelled"
    user.park(b"b" * 3_000, 60_000)
    user.park(b"x", 1_000_000_000)
    user.companion.log.roll()
    user.await_dropped(b"b" * 3_000)
    monkeypatch.setattr(snapshots, "_READ_MIN", 5)
    user.follow()
    user.look()
    assert user.snapshots.s_offset == 10

    start_again(user)

    assert user.snapshot_end() == 10
    assert user.cancel("a") == "unknown"


def test_the_end_of_what_counts_may_be_the_end_of_a_segment() -> None:
    """The log knows its flushed end as the end of a segment, though the next one begins there."""
    user = Follower()
    user.park(b"a", 60_000)
    log = user.companion.log
    end = int(log.log_end_offset)
    log.roll()
    while log.active.size < 1_000:
        log.append_bytes(ScheduledNote(70_000).encode(0), 0, 0)
    log.write()
    assert log.flushed_end.offset == end < log.written_end_offset

    load = user.load_counted(s_high_watermark=end)

    assert load.s_offset == end
    assert load.state is not None
    assert load.state.pending.count == 1
    assert log.flaw_offset == -1


def test_a_follower_of_a_recurring_record_writes_no_snapshot() -> None:
    """A snapshot has no room for it: the record would be lost."""
    user = Follower()
    user.park(b"a", 60_000)
    user.produce(a_batch(b"each hour", headers=([("x-sched-cron", b"0 * * * *")],)))
    user.follow()

    user.look()

    assert not user.has_snapshot


def written(user: Follower) -> None:
    """Take steps until the snapshot is written and waits for its name."""
    user.follow()
    user.await_look()
    while not user.snapshots._is_written:
        user.hand.turn(after_ms=1)


@pytest.mark.parametrize("log_name", ["companion", "records"])
def test_a_snapshot_waits_for_what_it_speaks_of_to_be_durable(log_name: str) -> None:
    user = Follower()
    user.park(b"a", 100)
    user.park(b"b", 60_000)
    user.pass_time(100)
    log = user.companion.log if log_name == "companion" else user.leadership.records.log
    written(user)
    log.flushed_offset = 0

    # The snapshot is durable now, and the flush of both logs has begun.
    user.hand.turn(*user.hand.disk.complete_flushes())
    user.hand.turn(after_ms=1)
    is_early = user.has_snapshot
    user.look()

    assert not is_early
    assert user.has_snapshot


@pytest.mark.parametrize("log_name", ["companion", "records"])
def test_a_written_snapshot_gets_no_name_once_a_log_has_other_epochs(log_name: str) -> None:
    user = Follower()
    user.park(b"a", 100)
    user.park(b"b", 60_000)
    user.pass_time(100)
    log = user.companion.log if log_name == "companion" else user.leadership.records.log
    written(user)

    log.leader_epochs.truncate_end(0)
    log.leader_epochs.assign(7, 0)
    user.look()

    assert not user.has_snapshot
    assert not user.snapshots.is_under_way


@pytest.mark.parametrize("cause", ["high watermark", "swap"])
def test_a_change_of_the_partition_drops_what_a_follower_has_read(cause: str) -> None:
    user = Follower()
    user.park(b"a", 100)
    user.park(b"b", 60_000)
    user.pass_time(100)
    user.begin_reading()
    records = user.leadership.records

    if cause == "swap":
        records.log.compaction.swaps += 1
    else:
        records.high_watermark_position = records.log.position_of(0)
    user.pass_time(0)

    assert not user.snapshots.is_under_way


def test_no_log_is_compacted_while_a_follower_reads_it() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.begin_reading()
    broker = user.hand.broker

    assert _is_read(broker, user.companion)
    assert _is_read(broker, user.leadership.records)

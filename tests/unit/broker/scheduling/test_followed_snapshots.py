"""Snapshots of partitions that another broker leads: what a follower reads, and what it leaves."""

from __future__ import annotations

import copy
import itertools

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.unit.broker.scheduling.test_snapshot_faults import COMPANION, LOG
from tests.unit.broker.scheduling.test_snapshots import SNAPSHOT, Keeper

from tarry.base.errors import CorruptData
from tarry.base.partition_row import PartitionRow
from tarry.broker.scheduling.snapshots import line, snapshots
from tarry.broker.scheduling.snapshots.counted_load import CountedLoad
from tarry.broker.scheduling.snapshots.snapshots import ScheduleSnapshots
from tarry.log.recovery.truncation import try_truncate
from tarry.log.state import ASKED
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.schedule.notes import CheckpointNote

OTHER = 9
# A follower looks at what it follows so often.
LOOK_MS = 5_000


class Follower(Keeper):
    """A user of a broker that leads the partition first, and follows another broker then."""

    def __init__(self) -> None:
        super().__init__()
        self.keeps(False)

    @property
    def leadership(self) -> Leadership:
        return self.hand.broker.topics[ORDERS].replica(0).leadership

    @property
    def companion(self) -> ReplicatedLog:
        return self.leadership.logs[1]

    @property
    def snapshots(self) -> ScheduleSnapshots:
        return self.hand.broker.scheduling.snapshots._all[self.leadership]

    @property
    def has_snapshot(self) -> bool:
        return self.hand.disk.exists(SNAPSHOT)

    def follow(self) -> None:
        """Let another broker lead from now on; write a snapshot of whatever has grown."""
        self._take_row(OTHER)
        self.keeps(True)

    def lead(self) -> None:
        self.keeps(False)
        self._take_row(self.leadership.own_id)
        self.hand.settle()

    def _take_row(self, leader_id: int) -> None:
        leadership = self.leadership
        own, before = leadership.own_id, leadership.row
        both = [own] if leader_id == own else [own, OTHER]
        row = PartitionRow(leader_id, leadership.leader_epoch + 1, -1, 1, both, both)
        was_leader = leadership.is_leader
        leadership.take_row(row, is_leader=leader_id == own)
        self.hand.broker.parts.on_role(leadership, before, was_leader)

    def look(self, steps: int = 100) -> None:
        """Let the broker look at what it follows, and take some steps."""
        self.await_look()
        for _ in range(steps):
            self.pass_time(1)

    def await_look(self) -> None:
        """Let time pass in steps that are no stall."""
        for _ in range(LOOK_MS // 500):
            self.pass_time(500)

    def begin_reading(self) -> None:
        """Follow another leader until the logs are being read for a snapshot."""
        self.follow()
        self.await_look()
        while not self.snapshots.is_reading:
            self.pass_time(1)

    def await_dropped(self, value: bytes) -> None:
        """Let time pass until compaction has dropped the body with this value."""
        for _ in range(200):
            self.pass_time(1_000)
        assert value not in self.hand.disk.content(LOG)

    def load_counted(self, s_high_watermark: int = -1) -> CountedLoad:
        """Load what counts, with this high watermark of S."""
        companion = self.companion
        if s_high_watermark >= 0:
            companion.high_watermark_position = companion.log.position_of(s_high_watermark)
        load = CountedLoad(companion.leadership.records, companion, grown_max=1_000_000)
        while not load.step():
            pass
        return load


def test_a_follower_writes_a_snapshot_with_which_it_begins_to_lead() -> None:
    user = Follower()
    for number in range(5):
        user.park(b"%d" % number, 60_000 + number, f"id {number}")
    end = int(user.companion.log.log_end_offset)
    before = user.waiting()
    user.follow()

    user.look()
    was_dropped = user.snapshots._state is None and not user.snapshots.is_under_way
    user.lead()

    assert user.has_snapshot
    assert was_dropped
    assert user.snapshot_end() == end
    assert user.waiting() == before
    for _ in range(70):
        user.pass_time(1_000)
    assert user.values() == [b"%d" % number for number in range(5)]


def test_a_follower_reads_on_from_its_last_snapshot() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.park(b"b", 70_000)
    user.follow()
    user.look()
    first = user.snapshots.s_offset
    user.lead()
    user.park(b"c", 80_000)
    user.follow()

    user.look()
    user.lead()

    assert first == 5
    assert user.snapshot_end() > first
    assert len(user.waiting()) == 3


def test_a_process_that_has_not_seen_its_snapshot_reads_of_it_what_it_speaks_of() -> None:
    user = Follower()
    user.park(b"a", 600_000)
    user.follow()
    user.look()
    end = user.snapshots.s_offset
    user.snapshots.s_offset = 0
    content = user.hand.disk.content(SNAPSHOT)

    user.look()

    assert user.snapshots.s_offset == end
    assert user.hand.disk.content(SNAPSHOT) == content
    assert not user.snapshots.is_under_way


def test_the_release_of_a_body_that_does_not_count_yet_is_not_taken_for_read() -> None:
    """The follower has copied the release before it knew that the body counts."""
    user = Follower()
    user.park(b"a", 100)
    user.park(b"b", 200)
    user.pass_time(100)
    user.pass_time(100)
    assert user.leadership.records.log.log_end_offset == 2

    load = user.load_counted(s_high_watermark=3)

    assert (load.s_offset, load.c) == (3, 1)
    assert load.state is not None
    assert load.state.pending.count == 0


def test_a_note_at_the_end_whose_body_does_not_count_is_read_again() -> None:
    user = Follower()
    user.park(b"a", 100)
    user.park(b"b", 200)

    load = user.load_counted(s_high_watermark=4)

    assert load.s_offset == 3
    assert load.state is not None
    assert [body.s_offset for body in load.state.pending.between(0, 100)] == [2]


def test_a_checkpoint_that_does_not_count_here_lets_a_follower_wait() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.schedule().append_note(CheckpointNote(5, 0, [], []))
    user.hand.settle()

    with pytest.raises(CorruptData, match="does not count here"):
        user.load_counted()


def test_what_a_snapshot_rests_on_counts_though_the_high_watermark_is_not_known_yet() -> None:
    user = Follower()
    user.park(b"a", 100)
    user.park(b"b", 60_000)
    user.pass_time(100)
    user.follow()
    user.look()
    records = user.leadership.records
    assert (user.has_snapshot, records.high_watermark) == (True, 1)

    # As after a start.
    records.high_watermark_position = records.log.position_of(0)
    # A checkpoint that was noted before, and copied after.
    checkpoint = CheckpointNote(0, -1, [], [])
    user.companion.log.append_bytes(checkpoint.encode(0), 0, 0)
    user.hand.broker.flushes.touch(user.companion)
    user.hand.settle()
    user.companion.follow_high_watermark(int(user.companion.log.log_end_offset))
    load = user.load_counted()

    assert load.c == 1
    assert load.state is not None
    assert load.state.pending.count == 1


def test_damage_lets_a_follower_wait() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    # The note lies behind the first checkpoint.
    size = 12 + int.from_bytes(user.hand.disk.content(LOG)[8:12], "big")
    user.hand.disk.flip_bit(LOG, size + 70, 1)

    with pytest.raises(CorruptData):
        user.load_counted()


@pytest.mark.parametrize("log_name", ["companion", "records"])
def test_a_cut_drops_what_a_follower_has_read(log_name: str) -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.begin_reading()
    log = user.companion if log_name == "companion" else user.leadership.records

    log.log.cut.enter(ASKED)
    user.pass_time(0)

    assert not user.snapshots.is_under_way
    assert user.hand.disk.paths(COMPANION) == [
        path for path in user.hand.disk.paths(COMPANION) if "snapshot" not in path
    ]


def test_a_lower_high_watermark_drops_what_a_follower_has_read() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.begin_reading()

    user.companion.high_watermark_position = user.companion.log.position_of(1)
    user.pass_time(0)

    assert not user.snapshots.is_under_way


def test_a_leader_does_not_go_on_with_what_it_read_as_a_follower() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.begin_reading()

    user.lead()

    assert not user.snapshots.is_under_way
    assert [each[0] for each in user.waiting()] == [60_000]


def test_a_deleted_topic_has_no_snapshots() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.follow()
    user.await_look()
    user.delete(ORDERS)
    user.hand.settle()

    user.look()

    assert user.hand.broker.scheduling.snapshots._all == {}
    assert not user.has_snapshot


def test_a_log_that_grows_little_is_not_read_again() -> None:
    """What reading and writing cost is that of a share of what waits, however much waits."""
    user = Follower()
    user.keeps(False)
    for _ in range(40):
        user.park(b"a", 600_000)
    user.follow()
    user.look()
    first = user.snapshots.s_offset
    user.lead()
    user.park(b"b", 600_000)
    user.follow()
    user.look()
    few = user.snapshots.s_offset
    user.lead()
    for _ in range(5):
        user.park(b"c", 600_000)
    user.follow()
    user.look()

    assert first == few == 81
    assert user.snapshots.s_offset > 90


def test_what_was_given_up_is_begun_again_after_pauses_that_double() -> None:
    user = Follower()
    user.park(b"a", 60_000_000)
    user.hand.disk.fail_writes(1_000, SNAPSHOT)
    user.follow()
    tries: list[int] = []
    known = 0

    for second in range(0, 1_000, 5):
        user.look(steps=20)
        if user.snapshots._failures != known:
            known = user.snapshots._failures
            tries.append(second)

    assert 3 <= len(tries) <= 5
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert gaps == sorted(gaps)


def test_a_snapshot_of_a_follower_is_not_believed_where_its_log_was_cut() -> None:
    user = Follower()
    user.park(b"a", 60_000)
    user.follow()
    user.look()
    disk = copy.deepcopy(user.hand.disk)
    assert disk.exists(SNAPSHOT)

    # Another epoch begins before its end.
    user.companion.log.leader_epochs.truncate_end(2)
    user.companion.log.leader_epochs.assign(7, 2)
    user.lead()

    assert user.snapshot_end() == 0
    assert [each[0] for each in user.waiting()] == [60_000]


@pytest.mark.interpreted
def test_what_a_dropped_load_held_is_freed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """To free a million bodies at once takes as long as a turn may not."""
    user = Follower()
    for number in range(6):
        user.park(b"a", 60_000 + number)
    user.follow()
    user.await_look()
    while (load := user.snapshots._load) is None or not load._rebuild._bodies:
        user.pass_time(1)
    monkeypatch.setattr(line, "_FREED_BODIES", 2)

    user.companion.log.cut.enter(ASKED)
    user.hand.turn()
    left = [len(load._rebuild._bodies)]
    while user.hand.broker.scheduling.snapshots._spent:
        user.hand.turn()
        left.append(len(load._rebuild._bodies))

    assert left == [6, 4, 2, 0]
    assert not user.hand.broker.scheduling.snapshots.has_work_left()


def test_a_follower_whose_log_was_cut_below_its_snapshot_writes_another() -> None:
    user = Follower()
    for number in range(6):
        user.park(b"a", 60_000 + number)
    user.follow()
    user.look()
    assert user.snapshots.s_offset == 13
    companion = user.companion
    companion.high_watermark_position = companion.log.position_of(3)
    while not try_truncate(companion.log, 3):
        user.pass_time(500)
    user.hand.broker.flushes.ask_for(companion)
    user.hand.settle()

    user.look()

    assert user.snapshots.s_offset == 3


@pytest.mark.interpreted
def test_a_load_that_failed_reads_further_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last checkpoint of the part that was read does not count here; a later one does."""
    monkeypatch.setattr(snapshots, "_READ_MIN", 8)
    user = Follower()
    user.park(b"a", 60_000)
    user.schedule().append_note(CheckpointNote(5, 0, [], []))
    user.hand.settle()
    for number in range(6):
        user.park(b"b", 60_000 + number)
    user.schedule().append_note(CheckpointNote(0, -1, [], []))
    user.hand.settle()
    end = int(user.companion.log.log_end_offset)
    user.follow()

    for _ in range(60):
        user.look(steps=20)

    assert user.snapshots.s_offset == end

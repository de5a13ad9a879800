"""A compacted log over crashes at any moment: in each step of a compaction, in recovery, between.

What must hold after every start: no key has lost its last durable record nor got an older one
back, whatever is read was written at that offset, no record turns up twice, what was compacted is
still compact, and what is younger than the lag is there.  Tombstones go with the first compaction
that begins when their time has come.  The power fails at every single operation of a compaction in
turn, and by seeds at any time of a longer life.
"""

from __future__ import annotations

import pytest
from tests.support.compaction_scene import DIRECTORY, CompactionScene
from tests.support.simulation.log_life import start_over_power_losses

from tarry.log.compaction.compaction import DONE, Compaction
from tarry.log.compaction.effort import Effort
from tarry.log.recovery import point_writer
from tarry.log.retention import delete_old_segments
from tarry.simulation.disk import PowerLoss

SEEDS = 160
BLOCK = 40
AGING_SEEDS = 40


class Life(CompactionScene):
    """A scenario that crashes and starts again, and knows what is durable."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.durable_end = 0
        # Tombstones that a compaction may have taken away for good.
        self.horizon_passed = False
        self.cleaned_seen = 0

    def flush(self) -> None:
        super().flush()
        self.durable_end = self.log.flushed_offset

    def crash(self) -> None:
        """Lose the power or only the process, and start, perhaps with the power failing again."""
        if self.random.randrange(2) == 0:
            self.disk.crash()
        else:
            self.disk.kill()
        if self.random.randrange(3) == 0:
            self.lose_snapshots()
        start_over_power_losses(self.disk, self.random, self.open, 12)
        self.check()

    def lose_snapshots(self) -> None:
        """Only the log is left to tell which producers there are."""
        for name in self.names() if self.disk.exists(DIRECTORY) else []:
            if name.endswith(".snapshot"):
                self.disk.remove(f"{DIRECTORY}/{name}")

    def check(self) -> None:
        log = self.log
        assert log.flaw_offset < 0, log.flaw_reason
        assert log.written_end_offset >= self.durable_end
        assert log.compaction.cleaned_offset >= self.cleaned_seen
        self.cleaned_seen = log.compaction.cleaned_offset
        self.written = {
            offset: written
            for offset, written in self.written.items()
            if offset < log.written_end_offset
        }
        self.durable_end = log.written_end_offset
        self.check_records()
        self.check_last_values(tombstones_may_be_gone=self.horizon_passed)
        self.check_is_compact()
        self.check_young_records()
        self.check_producers()
        self.check_time_search()
        bases = [segment.base_offset for segment in log.segments]
        assert bases == sorted(set(bases))

    def check_time_search(self) -> None:
        log = self.log
        records = [record for record in self.records() if record.offset >= log.log_start_offset]
        for _ in range(3 if records else 0):
            timestamp = records[self.random.randrange(len(records))].timestamp
            late = [record for record in records if record.timestamp >= timestamp]
            found = log.offset_for_time(timestamp, log.written_end_offset)
            assert found is not None
            assert found[1] == late[0].offset

    def fill(self, batches: int) -> None:
        for _ in range(batches):
            records: list[tuple[bytes | None, bytes | None]] = []
            for _ in range(1 + self.random.randrange(3)):
                key = b"k%d" % self.random.randrange(9)
                value = None if self.random.randrange(5) == 0 else b"v" * self.random.randrange(90)
                records.append((key, value))
            self.append(
                *records,
                codec=(0, 0, 3, 4)[self.random.randrange(4)],
                producer_id=self.some_producer(),
                timestamp=self.now_wall_ms + self.random.randrange(50) - self.lateness_ms(),
            )

    def lateness_ms(self) -> int:
        """How long a producer has held its records back: seldom, and then for long."""
        return 2_000 if self.config.min_compaction_lag_ms and self.random.randrange(2) else 0

    def some_producer(self) -> int:
        """None, or one of two; every so often they make room for others and are silent then."""
        if self.random.randrange(3) == 0:
            return -1
        return self.random.randrange(2) + 2 * (self.log.log_end_offset // 25)


def compact_until_power_fails(life: Life, operations: int) -> bool:
    """Compact, with the power failing after so many operations; True if it ended before that."""
    life.disk.crash_after(operations)
    try:
        life.compact(units=200)
    except PowerLoss:
        return False
    life.disk.heal()
    return True


@pytest.mark.parametrize("keeps_power", [True, False], ids=["kill -9", "power loss"])
@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_any_operation_of_a_compaction_leaves_the_old_or_the_new(seed, keeps_power):
    operations = 0
    is_over = False
    swapped = 0
    while not is_over:
        life = Life(seed)
        life.config.segment_bytes = 600
        life.fill(30)
        life.roll()
        life.compact(units=1_000)
        life.fill(30)
        life.roll()
        before = life.log.compaction.generation

        is_over = compact_until_power_fails(life, operations)
        if keeps_power:
            life.disk.kill()
        else:
            life.disk.crash()
        life.open()

        life.check()
        swapped += life.log.compaction.generation > before
        life.compact(units=1_000)
        life.check()
        operations += 1
    # It did fail in the middle, before the first swap and after.
    assert operations > 20
    assert 0 < swapped < operations


class Walk(Life):
    """A long life: writing, compacting step by step, recovery points, retention, crashes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.disk.defers_removals = self.random.randrange(2) == 0
        self.config.segment_bytes = 300 + self.random.randrange(2_000)
        self.config.index_interval_bytes = self.random.randrange(300)
        self.config.min_cleanable_dirty_ratio = 0.01
        self.buffer_bytes = 160 * (1 + self.random.randrange(20))
        self.config.has_deletion = self.random.randrange(3) == 0
        self.config.retention_bytes = 3_000
        # Segments of young records before old ones, in some lives.
        self.config.min_compaction_lag_ms = 900 if seed % 5 == 4 else 0
        self.compaction: Compaction | None = None
        self.compaction_began_wall_ms = 0
        self.compaction_flush = -1
        self.round_flush = -1

    def crash(self) -> None:
        self.compaction = None
        self.compaction_flush = -1
        self.round_flush = -1
        super().crash()

    def step(self) -> None:
        kind = self.random.randrange(30)
        if kind < 5:
            self.fill(1 + self.random.randrange(10))
        elif kind < 7:
            self.flush()
        elif kind < 19:
            self.compact_a_little()
        elif kind < 26:
            self.recovery_point_a_little()
        elif kind == 26:
            self.log.write()
            delete_old_segments(self.log, self.now_wall_ms, self.log.flushed_offset)
            self.disk.complete_removals()
        elif kind == 27:
            self.now_wall_ms += self.random.randrange(900)
            self.horizon_passed = True
        elif kind == 28:
            self.flush()
            self.check()
        else:
            self.crash()

    def compact_a_little(self) -> None:
        compaction = self.compaction
        if compaction is None:
            self.flush()
            compaction = self.begin()
            self.compaction = compaction
            self.compaction_began_wall_ms = self.now_wall_ms
        if self.random.randrange(40) == 0:
            self.disk.crash_after(self.random.randrange(8))
        try:
            if self.compaction_flush >= 0:
                assert self.disk.complete_flush(self.compaction_flush).error == ""
                self.compaction_flush = compaction.on_flushed()
                return
            flush_id = compaction.step(Effort(50 + self.random.randrange(4_000)), self.now_wall_ms)
        except PowerLoss:
            self.disk.crash()
            self.crash()
            return
        finally:
            if self.compaction is not None:
                self.disk.crash_after(-1)
        if flush_id == DONE:
            self.compaction = None
            self.note_compacted(compaction, self.compaction_began_wall_ms)
        self.compaction_flush = max(flush_id, -1)

    def recovery_point_a_little(self) -> None:
        points = self.logs.recovery_points
        if self.round_flush < 0:
            self.log.write()
            self.producers.settle()
            self.now_ms += 100_000
            self.round_flush = points.begin(self.now_ms)
        else:
            assert self.disk.complete_flush(self.round_flush).error == ""
            self.round_flush = points.on_flushed(self.round_flush)


def live(seed: int) -> None:
    """One life; raises if it ends badly."""
    walk = Walk(seed)
    for _ in range(30 + walk.random.randrange(160)):
        walk.step()
    walk.crash()


def age(seed: int) -> None:
    """Compactions follow each other faster than tombstones go; raises if that ends badly."""
    life = Life(seed)
    life.config.segment_bytes = 300 + life.random.randrange(600)
    for _ in range(6):
        life.fill(3 + life.random.randrange(4))
        life.roll()
        life.now_wall_ms += life.random.randrange(life.config.delete_retention_ms)
        life.horizon_passed = True
        life.compact(units=2_000)
        if life.random.randrange(4) == 0:
            life.crash()
    life.check()


@pytest.mark.parametrize("first", range(0, AGING_SEEDS, BLOCK))
def test_tombstones_go_at_last_however_often_a_log_is_compacted(first):
    for seed in range(first, first + BLOCK):
        age(seed)


@pytest.mark.interpreted
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_a_compacted_log_keeps_every_last_value_over_any_crash(first, monkeypatch):
    monkeypatch.setattr(point_writer, "RECOVERY_POINT_AGE_MS", 10)
    for seed in range(first, first + BLOCK):
        live(seed)

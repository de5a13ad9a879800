"""A follower that becomes the leader of what waits, for bench/schedule.py: with a snapshot of its
own, and without.

It runs in this process, on a disk in memory, one turn after the other, and counts CPU time: that is
what a broker needs that has nothing else to do.  The logs lie there as if they had been copied.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from peers import tell_progress
from schedule_rows import Options, Row, columns
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.schedule_user import ScheduleUser

from tarry.base.partition_row import PartitionRow
from tarry.broker.scheduling.snapshots.snapshot_load import snapshot_path
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import COMPANION, ReplicatedLog
from tarry.records.builder import BatchBuilder
from tarry.schedule.notes import ScheduledNote

VALUE: Final = bytes(100)
DAY_MS: Final = 86_400_000
# Batches that are written at once.
WRITTEN_AT_ONCE: Final = 1_000
# Step of the clock while a follower does not read.
STEP_MS: Final = 500
OTHER: Final = 9
PENDING_OF_GOALS: Final = 10_000_000


class Replica:
    """Replica of one partition, of which another broker leads most of the time."""

    def __init__(self) -> None:
        self.user = ScheduleUser()
        self.hand = self.user.hand
        # The companion log gets its first entry.
        self.user.park(VALUE, 1)
        self.user.pass_time(1)
        self.take_row(OTHER)
        builder = BatchBuilder()
        builder.append(self.hand.now_wall_ms, None, VALUE)
        self._batch = bytes(builder.build(0))
        self._chance = random.Random(7)

    @property
    def leadership(self) -> Leadership:
        replica = self.hand.broker.topics[ORDERS].replica(0)
        assert replica is not None
        return replica.leadership

    @property
    def companion(self) -> ReplicatedLog:
        return self.leadership.logs[COMPANION]

    def take_row(self, leader_id: int) -> None:
        """Let a broker lead from now on."""
        leadership = self.leadership
        before, was_leader = leadership.row, leadership.is_leader
        replicas = [leadership.own_id]
        if leader_id != leadership.own_id:
            replicas.append(leader_id)
        row = PartitionRow(leader_id, leadership.leader_epoch + 1, -1, 1, replicas, replicas)
        leadership.take_row(row, is_leader=leader_id == leadership.own_id)
        self.hand.broker.parts.on_role(leadership, before, was_leader)

    def copy(self, count: int) -> None:
        """Take so many batches and their notes from the leader, due over a day in no order."""
        now_ms = self.hand.now_wall_ms
        for first in range(0, count, WRITTEN_AT_ONCE):
            size = min(WRITTEN_AT_ONCE, count - first)
            self._copy([now_ms + DAY_MS + self._chance.randrange(DAY_MS) for _ in range(size)])

    def copy_due(self) -> None:
        """Take a batch that is due now."""
        self._copy([self.hand.now_wall_ms])

    def _copy(self, dues: list[int]) -> None:
        log, now_ms = self.companion.log, self.hand.now_wall_ms
        epoch = int(log.leader_epochs.latest_epoch)
        for due_ms in dues:
            log.append_bytes(ScheduledNote(due_ms).encode(now_ms), epoch, now_ms)
            log.append_bytes(self._batch, epoch, now_ms)
        self.hand.broker.flushes.touch(self.companion)
        self.hand.settle()
        self.companion.follow_high_watermark(int(log.log_end_offset))

    def keep(self) -> None:
        """Write snapshots until another one is not worth while."""
        snapshots = self.hand.broker.scheduling.snapshots.follow(self.companion, has_led=False)
        while snapshots.is_under_way or snapshots.is_due():
            ms = 1 if snapshots.is_under_way else STEP_MS
            self.hand.turn(*self.hand.disk.complete_flushes(), after_ms=ms)

    def lead(self) -> None:
        """Lead until the record that is due has come."""
        self.take_row(self.leadership.own_id)
        records = self.leadership.records.log
        end = records.log_end_offset
        while records.log_end_offset == end:
            self.hand.turn(*self.hand.disk.complete_flushes(), after_ms=1)

    def lead_once(self) -> float:
        """Lead until the first release, and follow again; return the CPU seconds of the first."""
        self.copy_due()
        spent = spent_s(self.lead)
        self.hand.settle()
        self.take_row(OTHER)
        return spent

    def forget(self) -> None:
        """Remove the snapshot."""
        self.hand.disk.remove(snapshot_path(self.companion))


def spent_s(act: Callable[[], None]) -> float:
    """Return the CPU seconds of an act."""
    begun_s = time.process_time()
    act()
    return time.process_time() - begun_s


def measure_takeover(options: Options) -> list[Row]:
    """Let a replica lead with a snapshot of its own, and without, in rounds."""
    count = options.pending
    replica = Replica()
    replica.copy(count)
    kept_s = spent_s(replica.keep)
    tell_progress()
    rounds: list[tuple[float, ...]] = []
    for _ in range(options.rounds):
        content = replica.hand.disk.content(snapshot_path(replica.companion))
        with_s = replica.lead_once()
        replica.forget()
        without_s = replica.lead_once()
        file = replica.hand.disk.open(snapshot_path(replica.companion), create=True)
        file.truncate(0)
        file.append([content])
        file.close()
        rounds.append((with_s, without_s))
        tell_progress()
    found = columns(rounds)
    goal = "< 0.5 s" if count == PENDING_OF_GOALS else ""
    name = f"{count:,} single records"
    return [
        Row(f"{name}: a follower's snapshots, CPU of each", "µs", [kept_s / count * 1e6]),
        Row(f"{name}: new leader to first release, with a snapshot, CPU", "s", found[0], goal),
        Row(f"{name}: new leader to first release, without one, CPU", "s", found[1]),
    ]

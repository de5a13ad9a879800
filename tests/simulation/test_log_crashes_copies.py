"""The log of a follower over crashes at any moment: copies with gaps, cuts, restarts, log starts.

What must hold after every start: the log is a part, without a hole, of one history that a leader
had: of the last one, once the cut to it was durable.  So never one batch behind another that does
not follow it there.  Nothing that was told as flushed is missing, unless it was cut.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.simulation.log_life import LogLife

from tarry.base.errors import StorageError
from tarry.log.copying import append_copy
from tarry.log.recovery import point_writer, truncation
from tarry.log.recovery.truncation import try_restart, try_truncate
from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.copies import check_copy
from tarry.simulation.disk import PowerLoss

TOPIC_ID = bytes(15) + b"\x07"
SEEDS = 240
BLOCK = 60
CALLS_MAX = 400


class Copied:
    """A batch of the leader."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        header = decode_batch_header(data, 0)
        self.base_offset = int(header.base_offset)
        self.end_offset = int(header.last_offset) + 1
        self.epoch = int(header.leader_epoch)


class History:
    """What a leader had in its log: `start`, and batches in order."""

    def __init__(self, start: int, batches: list[Copied]) -> None:
        self.start = start
        self.batches = batches

    def part(self, start: int, end: int) -> list[bytes]:
        return [
            batch.data
            for batch in self.batches
            if start < end and batch.end_offset > start and batch.base_offset < end
        ]


class Follower(LogLife):
    """One log that follows; the leader is a list of batches."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, 3000)
        self.history = History(0, [])
        # Records that a crash may bring back as well: their removal is not durable.
        self.earlier: list[History] = []
        # Told to the leader as durable, of the last history.
        self.told = 0
        self.hint = -1
        self.goal: tuple[str, int] | None = None
        self.open()

    # --- The leader.

    def make_batch(self) -> None:
        """The leader's next batch, perhaps behind a gap, seldom one of billions of offsets."""
        history = self.history
        base_offset = history.batches[-1].end_offset if history.batches else history.start
        if self.random.randrange(3) == 0:
            base_offset += self.random.randrange(20)
        if self.random.randrange(60) == 0:
            base_offset += 1 << 31
        builder = BatchBuilder()
        count = 1 + self.random.randrange(3)
        for _ in range(count):
            value, timestamp = self.next_value()
            builder.append(timestamp, None, value, [])
        built = builder.build()
        head = base_offset.to_bytes(8, "big") + built[8:12] + self.epoch.to_bytes(4, "big")
        history.batches.append(Copied(head + built[16:]))

    # --- The follower.

    def fetch(self) -> None:
        """Copy what the leader has and the log lacks; perhaps without writing it yet."""
        log = self.log
        if self.goal is not None or log.has_undurable_cut:
            return
        for _ in range(1 + self.random.randrange(4)):
            self.make_batch()
        answer = b"".join(
            batch.data for batch in self.history.batches if batch.base_offset >= log.log_end_offset
        )
        cut_short = answer + b"\0" * self.random.randrange(60)
        for window, header in check_copy(cut_short, 0, len(cut_short)):
            try:
                append_copy(log, window, header, 1000 + self.made)
            except StorageError:
                # A gap so large that everything before has to be durable.
                assert log.is_dirty or log.has_tail
                break
            self.batches.deltas[int(header.base_offset)] = int(header.last_offset_delta)
        if self.random.randrange(4):
            self.write_or_fail()

    def end_flush(self) -> None:
        super().end_flush()
        if self.goal is None and not self.log.has_undurable_cut:
            # The next fetch tells the leader.
            self.earlier = []
            self.told = max(self.told, self.log.flushed_offset)
            self.hint = max(self.hint, self.told)
            self.log.high_watermark_hint = self.told

    def diverge(self) -> None:
        """Another leader has another history from some offset on: a cut begins."""
        if self.goal is not None:
            return
        self.write()
        log = self.log
        batches = [one for one in self.history.batches if one.end_offset <= log.log_end_offset]
        kept = self.random.randrange(len(batches) + 1)
        if self.random.randrange(2):
            kept = max(kept, len(batches) - 3)
        offset = batches[kept - 1].end_offset if kept else int(log.log_start_offset)
        if offset < log.log_start_offset:
            return
        self.become(History(self.history.start, batches[:kept]))
        self.told = min(self.told, offset)
        self.goal = ("cut", offset)

    def fall_behind(self) -> None:
        """The leader's log begins behind the end of this one: a restart begins."""
        if self.goal is not None:
            return
        self.write()
        offset = int(self.log.log_end_offset) + self.random.randrange(30)
        if self.random.randrange(4) == 0:
            offset = self.random.randrange(offset + 1)
        self.become(History(offset, []))
        self.told = 0
        self.goal = ("restart", offset)

    def become(self, history: History) -> None:
        self.earlier.append(self.history)
        self.history = history
        # An earlier leader may have known less of later epochs.
        last = history.batches[-1].epoch if history.batches else 0
        self.epoch = max(last, self.epoch - 1) + self.random.randrange(2)

    def pursue(self) -> None:
        """One more call of what is under way."""
        if self.goal is None:
            return
        kind, offset = self.goal
        done = try_truncate if kind == "cut" else try_restart
        if done(self.log, offset):
            self.goal = None
            assert self.log.log_end_offset == offset
            self.check_listener()

    def follow_start(self) -> None:
        if self.goal is not None:
            return
        ends = [batch.end_offset for batch in self.history.batches]
        if ends:
            self.log.follow_start(ends[self.random.randrange(len(ends))])
        self.save_recovery_points()

    def assign_epoch(self) -> None:
        """It leads for a moment, without appending."""
        self.write()
        if self.goal is None and not self.log.is_being_cut:
            copied = [
                one for one in self.history.batches if one.end_offset <= self.log.log_end_offset
            ]
            if self.log.has_undurable_cut:
                # What a failed write left may come back, and is the last leader's.
                self.earlier.append(self.history)
            self.history = History(self.history.start, copied)
            self.epoch = max(self.epoch, int(self.log.leader_epochs.latest_epoch)) + 1
            self.log.assign_epoch(self.epoch)

    def stop(self) -> None:
        """A clean stop, also in the middle of a cut."""
        self.begin_flush()
        self.end_flush()
        if self.flush_id >= 0 or self.log.has_tail:
            return
        if self.random.randrange(2) == 0:
            self.disk.crash_after(self.random.randrange(20))
        self.logs.close_cleanly()
        self.disk.heal()
        self.restart()

    def restart(self) -> None:
        self.lose()
        super().restart()

    # --- What must hold.

    def stored(self) -> list[bytes]:
        log = self.log
        found: list[bytes] = []
        offset = int(log.log_start_offset)
        while (region := log.read(offset, log.end_position(), 1, True)) is not None:
            data = region.file.read(region.position, region.size)
            header = decode_batch_header(data, 0)
            assert header.last_offset >= offset
            found.append(data)
            offset = int(header.last_offset) + 1
        return found

    def after_start(self) -> None:
        super().after_start()
        log = self.log
        assert log.high_watermark_hint <= min(self.hint, log.log_end_offset)
        stored = self.stored()
        start, end = int(log.log_start_offset), int(log.log_end_offset)
        if self.history.part(start, end) == stored and end >= self.told:
            found = self.history
        else:
            found = next(one for one in self.earlier if one.part(start, end) == stored)
        self.history = History(found.start, [one for one in found.batches if one.end_offset <= end])
        self.earlier = []
        self.told = end
        self.goal = None
        self.epoch += 1
        self.check_listener()
        self.check_epochs()
        self.look_inside()

    def check_listener(self) -> None:
        """Derived state is that of the batches."""
        known = self.batches.deltas
        for data in self.stored():
            header = decode_batch_header(data, 0)
            assert known.get(int(header.base_offset)) == header.last_offset_delta
        assert all(base < self.log.log_end_offset for base in known)

    def check_epochs(self) -> None:
        log = self.log
        headers = [decode_batch_header(data, 0) for data in self.stored()]
        for header in headers:
            offset = max(int(header.base_offset), int(log.log_start_offset))
            assert log.epoch_at(offset) == header.leader_epoch
        for header, following in pairwise(headers):
            if following.leader_epoch > header.leader_epoch:
                # Between them an epoch may have begun that got no batch.
                epoch, end_offset = log.end_offset_for_epoch(int(header.leader_epoch))
                assert epoch == header.leader_epoch
                assert header.last_offset < end_offset <= following.base_offset

    def look_inside(self) -> None:
        """A read at any offset gives the batch that has it, or the one behind its gap."""
        log = self.log
        stored = [decode_batch_header(data, 0) for data in self.stored()]
        for _ in range(3 if stored else 0):
            chosen = stored[self.random.randrange(len(stored))]
            offset = int(chosen.last_offset) + self.random.randrange(5) - 2
            offset = max(offset, int(log.log_start_offset))
            expected = [int(one.base_offset) for one in stored if one.last_offset >= offset]
            region = log.read(offset, log.end_position(), 1, True)
            if not expected:
                assert region is None
                continue
            assert region is not None
            data = region.file.read(region.position, region.size)
            assert decode_batch_header(data, 0).base_offset == expected[0]

    # --- Chance.

    def step(self) -> None:
        self.now_ms += self.random.randrange(20)
        kind = self.random.randrange(34)
        if self.random.randrange(50) == 0:
            self.disk.crash_after(self.random.randrange(10))
        try:
            self.act(kind)
        except PowerLoss:
            self.disk.crash()
            self.restart()
        self.disk.heal()

    def act(self, kind: int) -> None:
        if kind < 9:
            self.fetch()
        elif kind < 14:
            self.begin_flush()
        elif kind < 18:
            self.end_flush()
        elif kind < 20:
            self.restart()
        elif kind < 23:
            self.save_recovery_points()
        elif kind < 28:
            self.pursue()
        elif kind < 30:
            self.diverge()
        elif kind == 30:
            self.fall_behind()
        elif kind == 31:
            self.follow_start()
        elif kind == 32:
            self.assign_epoch()
        else:
            self.stop()

    def calm(self) -> None:
        """Without faults everything comes to its end, and copying goes on."""
        for _ in range(CALLS_MAX):
            self.now_ms += 20
            self.pursue()
            self.save_recovery_points()
            self.begin_flush()
            self.end_flush()
            if self.goal is None and not self.log.has_undurable_cut:
                break
        assert self.goal is None
        assert not self.log.has_undurable_cut
        self.fetch()
        self.write()
        self.look_inside()


def live(seed: int) -> None:
    """One life; raises if it ends badly."""
    follower = Follower(seed)
    for _ in range(20 + follower.random.randrange(120)):
        follower.step()
    follower.calm()
    follower.restart()


@pytest.mark.interpreted
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_a_copy_is_a_part_of_one_history_over_any_crash(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_writer, "RECOVERY_POINT_AGE_MS", 10)
    monkeypatch.setattr(truncation, "SEGMENTS_PER_CALL_MAX", 2)
    monkeypatch.setattr(truncation, "BATCHES_PER_CALL_MAX", 3)
    for seed in range(first, first + BLOCK):
        live(seed)

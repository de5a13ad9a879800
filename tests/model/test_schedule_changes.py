"""Scheduled records in every order of parking, changing, releasing and ends, beside a dictionary.

The oracle knows what waits, by s-offset; a broker by hand is asked what is listed, what has come,
and what became of each change.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.broker.eager_snapshots import start_eager
from tests.support.broker.schedule_user import ScheduleUser, cancel, move, outcome_of

from tarry.broker.lifecycle import StartBroker, start_broker
from tarry.protocol.messages.list_scheduled_records import ListScheduledPartition, ScheduledEntry
from tarry.records import decode_records
from tarry.simulation.by_hand import START_WALL_MS
from tarry.wire.reader import Window

IDS = st.sampled_from(["", "a", "b", "c"])
DELAYS = st.integers(1, 50)


class Waiting(NamedTuple):
    """One record that waits: when it is due, its id and its value."""

    due_ms: int
    schedule_id: str
    value: bytes


class ScheduleChanging(RuleBasedStateMachine):
    """One partition, and the oracle of it."""

    start: StartBroker = staticmethod(start_broker)

    def __init__(self) -> None:
        super().__init__()
        self.user = ScheduleUser(start=self.start)
        self.now_ms = 0
        self.number = 0
        self.waiting: dict[int, Waiting] = {}
        self.released: list[bytes] = []
        self.released_offsets: dict[int, bytes] = {}
        # The last fate of each id: "released" or "cancelled".
        self.fates: dict[str, str] = {}
        # Ids of which a start may know an earlier fate only.
        self.doubtful: set[str] = set()

    # --- Parking

    @rule(records=st.lists(st.tuples(DELAYS, IDS), min_size=1, max_size=4))
    def park(self, records: list[tuple[int, str]]) -> None:
        given = []
        for delay_ms, schedule_id in records:
            self.number += 1
            given.append((b"%d" % self.number, delay_ms, schedule_id))
        before = set(self.waiting)
        self.user.park_all(*given)
        kept = {
            schedule_id or value: (value, delay_ms, schedule_id)
            for value, delay_ms, schedule_id in given
        }
        for _, _, schedule_id in kept.values():
            replaced = self._offset_of(schedule_id)
            if schedule_id and replaced is not None:
                del self.waiting[replaced]
                before.discard(replaced)
        told = self.user.list(ListScheduledPartition(0), include_batches=True).scheduled
        fresh = [each for each in told if each.s_offset not in before]
        expected = {(self.now_ms + delay_ms, s_id) for _, delay_ms, s_id in kept.values()}
        assert {(each.due_ms - START_WALL_MS, _id_of(each)) for each in fresh} == expected
        for each in fresh:
            values = self._values_in(each)
            assert len({*values}) == each.record_count
            for value in values:
                self.waiting.setdefault(
                    each.s_offset,
                    Waiting(each.due_ms - START_WALL_MS, _id_of(each), b",".join(values)),
                )
                assert value in {value for value, _, _ in kept.values()}
        for _, _, schedule_id in kept.values():
            self.fates.pop(schedule_id, None)

    def _values_in(self, entry: ScheduledEntry) -> list[bytes]:
        window = entry.batch
        assert isinstance(window, Window)
        data = window.data[window.start : window.end]
        return [record.value or b"" for record in decode_records(data, size_max=1 << 20)]

    def _offset_of(self, schedule_id: str) -> int | None:
        for s_offset, each in self.waiting.items():
            if each.schedule_id == schedule_id:
                return s_offset
        return None

    # --- Changes

    @rule(schedule_id=st.sampled_from(["a", "b", "c"]))
    def cancel_by_id(self, schedule_id: str) -> None:
        s_offset = self._offset_of(schedule_id)

        outcome = outcome_of(*self.user.change(cancel(schedule_id)))

        if s_offset is None:
            self._check_absent(schedule_id, outcome)
            return
        assert outcome == "cancelled"
        del self.waiting[s_offset]
        self.fates[schedule_id] = "cancelled"

    @rule(schedule_id=st.sampled_from(["a", "b", "c"]), delay_ms=st.integers(-5, 80))
    def move_by_id(self, schedule_id: str, delay_ms: int) -> None:
        s_offset = self._offset_of(schedule_id)

        (result,) = self.user.change(move(schedule_id, max(self.now_ms + delay_ms, 0)))

        if s_offset is None:
            self._check_absent(schedule_id, outcome_of(result))
            return
        assert outcome_of(result) == "moved"
        self._take_moved(s_offset, result.s_offset, delay_ms)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), delay_ms=st.one_of(st.none(), st.integers(-5, 80)))
    def change_by_s_offset(self, data: st.DataObject, delay_ms: int | None) -> None:
        s_offset = data.draw(st.sampled_from(sorted(self.waiting)))
        change = cancel(s_offset)
        if delay_ms is not None:
            change = move(s_offset, max(self.now_ms + delay_ms, 0))

        (result,) = self.user.change(change)

        if delay_ms is not None:
            assert outcome_of(result) == "moved"
            self._take_moved(s_offset, result.s_offset, delay_ms)
            return
        assert outcome_of(result) == "cancelled"
        gone = self.waiting.pop(s_offset)
        if gone.schedule_id:
            self.fates[gone.schedule_id] = "cancelled"

    @precondition(lambda self: self.released_offsets)
    @rule(data=st.data())
    def cancel_what_has_come(self, data: st.DataObject) -> None:
        s_offset = data.draw(st.sampled_from(sorted(self.released_offsets)))

        assert outcome_of(*self.user.change(cancel(s_offset))) == "already_released"

    def _take_moved(self, s_offset: int, moved_to: int, delay_ms: int) -> None:
        moved = self.waiting.pop(s_offset)
        due_ms = self.now_ms + max(delay_ms, 0)
        self.waiting[moved_to] = moved._replace(due_ms=due_ms)
        self._release()

    def _check_absent(self, schedule_id: str, outcome: str) -> None:
        fate = self.fates.get(schedule_id)
        if schedule_id in self.doubtful:
            assert outcome in ("already_released", "unknown")
        else:
            assert outcome == ("already_released" if fate == "released" else "unknown")

    # --- Time and ends

    @rule(ms=st.integers(0, 30))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.user.pass_time(ms)
        self._release()

    @rule(way=st.sampled_from(["stop", "crash"]))
    def end(self, way: str) -> None:
        if way == "stop":
            self.user.hand.stop()
            self.user.hand.start()
        else:
            self.user.hand.crash()
        self.user.begin_anew()
        self.doubtful |= {each for each, fate in self.fates.items() if fate == "cancelled"}

    def _release(self) -> None:
        self.user.pass_time(0)
        due = sorted((each.due_ms, at) for at, each in self.waiting.items())
        for due_ms, s_offset in due:
            if due_ms <= self.now_ms:
                gone = self.waiting.pop(s_offset)
                self.released += gone.value.split(b",")
                self.released_offsets[s_offset] = gone.value
                if gone.schedule_id:
                    self.fates[gone.schedule_id] = "released"
                    self.doubtful.discard(gone.schedule_id)

    # --- What holds after each step

    @invariant()
    def what_waits_is_listed_in_order(self) -> None:
        told = self.user.list(ListScheduledPartition(0))
        found = [
            (each.due_ms - START_WALL_MS, each.s_offset, _id_of(each)) for each in told.scheduled
        ]
        expected = [(each.due_ms, at, each.schedule_id) for at, each in self.waiting.items()]
        assert found == sorted(expected)
        assert told.entry_count == len(expected)

    @invariant()
    def what_has_come_has_come_once_and_in_order(self) -> None:
        assert self.user.values() == self.released


def _id_of(entry: ScheduledEntry) -> str:
    return (entry.schedule_id or b"").decode()


class SnapshotScheduleChanging(ScheduleChanging):
    """The same, where each start begins with a snapshot."""

    start = staticmethod(start_eager)


TestSnapshotScheduleChanging = SnapshotScheduleChanging.TestCase
TestSnapshotScheduleChanging.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None
)
TestScheduleChanging = ScheduleChanging.TestCase
TestScheduleChanging.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)

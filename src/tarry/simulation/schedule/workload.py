"""Workload of scheduled records: that of records, over topics whose records wait until due.

A record is early if it is read before the broker's calendar has ever shown its due time.

Some runs have one more topic, in which headers say when records are due, and clients cancel,
replace and move pending records by ids.
"""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.history import PARKED, Place, SentBatch, place_name
from tarry.simulation.clients.simulated_client import SimulatedClient
from tarry.simulation.faults import PLACES_OF_SCHEDULES, add_clock_steps
from tarry.simulation.records.scenario import RecordsScenario
from tarry.simulation.records.workload import RecordsWorkload
from tarry.simulation.schedule.checkers import check_schedule
from tarry.simulation.schedule.ids import DELAY_MS_MAX, BrokerScheduleIds
from tarry.simulation.schedule.scenario import (
    DELAY_DEFAULT_MS_MAX,
    delay_ms_min,
    draw_schedule_scenario,
)

# Remainders of the duration that choose the runs with ids: all others stay as they were.
_IDS_OF_SEVEN: Final = (0, 4, 6)
_IDS_SEED: Final = 0x1D5

# Longest time until all is released, after a start or the last due time: a write that the disk
# refused is tried again each second.
_RELEASED_MS: Final = 4_000
# At the end of a run the calendar is set forward if the last due time is further away than this.
_WAIT_MS: Final = 10_000


class ScheduleWorkload(RecordsWorkload):
    """Producers that schedule, readers, and their checkers."""

    places = PLACES_OF_SCHEDULES

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        add_clock_steps(self.faults, random, self.duration_ms)

    def draw_scenario(self, random: Random) -> RecordsScenario:
        return draw_schedule_scenario(random)

    def prepare(self, context: RunContext, node: BrokerNode) -> None:
        super().prepare(context, node)
        self._history = context.history
        # Count of reads of each partition that were checked; and batches by place and value.
        self._looked_at: dict[Place, int] = {}
        self._batches: dict[tuple[Place, bytes], SentBatch] = {}
        self._batch_count = 0
        self._life_began_ms = 0
        self._ids: BrokerScheduleIds | None = None
        if self.duration_ms % 7 in _IDS_OF_SEVEN:
            random = Random(self.duration_ms ^ _IDS_SEED)
            self._ids = BrokerScheduleIds(random, context, node, self.duration_ms)
        # A record with a shorter delay may be released at once.
        self._delay_ms_min = 0
        for plan in self._scenario.topics:
            context.delayed_topics[plan.name] = delay_ms_min(plan)
            self._delay_ms_min = max(self._delay_ms_min, delay_ms_min(plan))

    def begin(self) -> None:
        super().begin()
        if self._ids is not None:
            self._ids.begin()

    def clients(self) -> list[SimulatedClient]:
        found = super().clients()
        return found if self._ids is None else [*found, *self._ids.clients()]

    def on_life_begins(self, broker: Broker) -> None:
        super().on_life_begins(broker)
        self._life_began_ms = self._context.clock.now_ms

    def on_heal(self) -> None:
        clock = self._context.clock
        due_ms = self._last_due_ms()
        if self._ids is not None:
            # The clients of ids count from the calendar, whatever it has shown.
            shown_ms = self._history.calendar_max_ms + DELAY_MS_MAX
            due_ms = max(due_ms, shown_ms, self._ids.ledger.last_due_ms())
        clock.wall_offset_ms += max(0, due_ms - _WAIT_MS - clock.now_wall_ms)

    def on_life_ends(self) -> None:
        super().on_life_ends()
        # The broker may have released records in the turn in which it lost its power.
        self._look_at_calendar()

    def _look_at_calendar(self) -> None:
        history = self._history
        history.calendar_max_ms = max(history.calendar_max_ms, self._context.clock.own_wall_ms)

    def after_turn(self, broker: Broker) -> None:
        history = self._history
        self._look_at_calendar()
        if self._ids is not None:
            self._ids.after_turn(broker, history.calendar_max_ms)
        for batch in history.batches[self._batch_count :]:
            for record in batch.records:
                self._batches[batch.place, record.value] = batch
        self._batch_count = len(history.batches)
        for place, reads in history.reads.items():
            looked_at = self._looked_at.get(place, 0)
            for read in islice(reads.values(), looked_at, None):
                self._check_due(place, read.value)
            self._looked_at[place] = len(reads)

    def is_done(self, broker: Broker) -> bool:
        clock = self._context.clock
        return (
            super().is_done(broker)
            and clock.now_ms >= self._life_began_ms + _RELEASED_MS
            and clock.now_wall_ms >= self._last_due_ms() + _RELEASED_MS
            and (self._ids is None or self._ids.is_done(broker))
        )

    def check(self) -> list[str]:
        found = check_schedule(self._history)
        if self._ids is not None and not found:
            # The judge needs a whole run: one that was broken off has not come to its end.
            found = self._ids.judge()
        return found

    def _check_due(self, place: Place, value: bytes) -> None:
        batch = self._batches.get((place, value))
        if batch is None:
            return
        # A batch that is known to be parked waits until it is due.
        grace_ms = 0 if batch.outcome == PARKED else self._delay_ms_min
        if batch.due_ms - grace_ms > self._history.calendar_max_ms:
            self._history.violate(
                f"{value[:20]!r} was read in {place_name(place)}, and the calendar has never shown "
                f"{batch.due_ms}, when it is due: {self._history.calendar_max_ms}"
            )

    def _last_due_ms(self) -> int:
        return max((_due_ms(batch) for batch in self._history.batches), default=-1)


def _due_ms(batch: SentBatch) -> int:
    """Return when a batch is due, at the latest."""
    if batch.due_ms < 0 and batch.outcome == PARKED:
        return batch.acknowledged_ms + DELAY_DEFAULT_MS_MAX
    return batch.due_ms

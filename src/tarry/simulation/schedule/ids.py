"""Ids of scheduled records at one broker: their topic, the clients that change pending records,
and the time at which each batch was first seen in one of the topic's logs.

The other clients of the run know nothing of this topic.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.partition.replicated_log import COMPANION, RECORDS, ReplicatedLog
from tarry.records.batch import BatchHeader
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import SimulatedClient
from tarry.simulation.clients.topic_admin import TopicAdmin, TopicPlan
from tarry.simulation.cluster.disk_log import DiskBatch, DiskLog
from tarry.simulation.schedule.changer import Changer
from tarry.simulation.schedule.judge import Judge
from tarry.simulation.schedule.ledger import ScheduleLedger
from tarry.simulation.schedule.seen import (
    UNSEEN_MS,
    SightedBatch,
    parked_records,
    released_records,
)

_TOPIC: Final = "with-ids"
_DELAYS_MS: Final = (0, 60, 90, 150, 400, 1_500, 4_000)
DELAY_MS_MAX: Final = 4_000


class _FirstSight:
    """Batch of a log, with the times at which it was first seen."""

    def __init__(self, batch: DiskBatch, seen_ms: int, wall_ms: int) -> None:
        self.batch = batch
        self.seen_ms = seen_ms
        self.wall_ms = wall_ms


class _SeenLog:
    """Log as it was seen after each turn, with the batches that now lie below its start."""

    def __init__(self) -> None:
        self.disk_log: DiskLog | None = None
        self.batches: dict[int, _FirstSight] = {}

    def look(self, node: BrokerNode, log: ReplicatedLog, calendar_max_ms: int) -> list[int]:
        """Note new batches, and forget cut ones; return base offsets of new records."""
        seen = self.disk_log
        is_new = seen is None or seen.log is not log.log
        if seen is None or is_new:
            seen = self.disk_log = DiskLog(log.log)
            self._cut(int(log.log.log_end_offset))
        elif log.log.written_end_offset < seen.end_offset:
            seen.cut(int(log.log.written_end_offset))
            self._cut(int(log.log.written_end_offset))
        if log.log.written_end_offset <= seen.end_offset:
            return []
        new: list[int] = []
        wall_ms = calendar_max_ms
        if log.which != RECORDS:
            # The first look does not tell appends of this turn from those of an earlier life.
            wall_ms = UNSEEN_MS if is_new else node.clock.own_wall_ms
        for batch in seen.read(node.disk):
            known = self.batches.get(batch.base_offset)
            if known is None or known.batch.data != batch.data:
                self.batches[batch.base_offset] = _FirstSight(batch, node.clock.now_ms, wall_ms)
                if not BatchHeader(batch.data, 0).is_control:
                    new.append(batch.base_offset)
        return new

    def _cut(self, end_offset: int) -> None:
        self.batches = {
            base: each for base, each in self.batches.items() if each.batch.end_offset <= end_offset
        }

    def in_order(self) -> list[SightedBatch]:
        """Return all batches, in their order."""
        return [
            SightedBatch(each.batch.data, each.seen_ms, each.wall_ms)
            for _base, each in sorted(self.batches.items())
        ]


class BrokerScheduleIds:
    """Ids of one run: the ledger of its clients, and the logs of their topic."""

    def __init__(self, random: Random, run: RunContext, node: BrokerNode, duration_ms: int) -> None:
        self.ledger = ScheduleLedger(random)
        self.ledger.delays_ms = _DELAYS_MS[random.randrange(len(_DELAYS_MS)) :]
        self._run = run
        self._node = node
        # Context of clients that know this topic alone.
        self._context = RunContext(node.clock, node.network, run.random, run.trace)
        # The administrator makes the topic and does nothing else.
        self._context.is_quiet = True
        plan = TopicPlan(_TOPIC, 1 + random.randrange(2), is_lasting=True)
        plan.configs["delay.enable"] = "true"
        plan.configs["delay.source"] = "header"
        plan.configs["message.timestamp.after.max.ms"] = str(1 << 62)
        if random.randrange(2) == 0:
            # A start reads a segment a turn at most, so that many small ones take their time.
            plan.configs["segment.index.bytes"] = str(8 * (8 + random.randrange(8)))
            plan.configs["index.interval.bytes"] = "400"
        self._admin = TopicAdmin(self._context, "admin-of-ids", [plan])
        # A long run has no more changes than others.
        self._pause_ms_max = (1, 4, 15)[random.randrange(3)] * max(20, duration_ms // 400)
        self._changer_count = 1 + random.randrange(4)
        self._changers: list[Changer] = []
        self._logs: dict[tuple[int, int], _SeenLog] = {}

    def clients(self) -> list[SimulatedClient]:
        """Return the clients, in their order."""
        return [self._admin, *self._changers]

    def begin(self) -> None:
        """Start to make the topic."""
        self._admin.start()

    def after_turn(self, broker: Broker, calendar_max_ms: int) -> None:
        """Look at the logs of the topic."""
        context = self._context
        if context.topics and not self._changers:
            self._begin_changers()
        for index in range(context.topics[0].partitions if context.topics else 0):
            partition = broker.topics.partition(_TOPIC, index)
            for log in () if partition is None else partition.leadership.logs:
                seen = self._logs.setdefault((index, log.which), _SeenLog())
                new = seen.look(self._node, log, calendar_max_ms)
                if log.which != RECORDS and new:
                    place = (context.topics[0].topic_id, index)
                    self.ledger.parked.setdefault(place, []).extend(new)

    def _begin_changers(self) -> None:
        for number in range(self._changer_count):
            changer = Changer(
                RunContext(
                    self._context.clock,
                    self._context.network,
                    self._context.random,
                    self._context.trace,
                ),
                f"changer{number}",
                self._run,
                self._context.topics[0],
                self.ledger,
                pause_ms_max=self._pause_ms_max,
                leads=lambda place: True,
            )
            self._changers.append(changer)
            changer.start()

    def is_done(self, broker: Broker) -> bool:
        """Return whether the clients are done, and no record is pending."""
        if not all(client.is_done for client in (self._admin, *self._changers)):
            return False
        for index in range(self._context.topics[0].partitions):
            partition = broker.topics.partition(_TOPIC, index)
            schedule = None if partition is None else partition.leadership.parking
            if not isinstance(schedule, PartitionSchedule) or schedule.state is None:
                return False
            if schedule.state.count:
                return False
        return True

    def judge(self) -> list[str]:
        """Return a sentence for each violation."""
        found: list[str] = [*self._context.history.violations]
        ledger = self.ledger
        once = set(ledger.wishes)
        for topic in self._context.topics:
            for place in topic.places():
                parked = parked_records(self._batches(place[1], COMPANION))
                came = released_records(self._batches(place[1], RECORDS))
                found += Judge(place, ledger, parked, came, once).sentences()
        return found

    def _batches(self, index: int, which: int) -> list[SightedBatch]:
        seen = self._logs.get((index, which))
        return [] if seen is None else seen.in_order()

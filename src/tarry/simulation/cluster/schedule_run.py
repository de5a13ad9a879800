"""Run of a cluster whose topic parks records until they are due, and whose leaders change.

The cluster, its faults and its clients are those of `cluster_run`; the timestamps of records lie in
the future.  Companion logs are checked as all logs are.  When all has healed, each record that was
acknowledged with acks=all was released once, and none was released before the calendar of the
broker that released it showed its time.

In some seeds headers say when records are due, and records have ids: clients cancel, replace and
move pending records, and the judge compares what each client was answered with the logs.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.partition.replicated_log import RECORDS, ReplicatedLog
from tarry.records.batch import BatchHeader
from tarry.schedule.release_identity import NO_S_OFFSET, released_s_offset
from tarry.simulation.clients.history import Place, place_name
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.cluster_run import ClusterRun
from tarry.simulation.cluster.disk_log import DiskBatch
from tarry.simulation.cluster.faulty_cluster import TOPIC
from tarry.simulation.cluster.results import Found, check_handed_out, records_of
from tarry.simulation.cluster.scenario import DIVIDED, KILL, OF_CHANGES, ClusterScenario
from tarry.simulation.cluster.schedule_ids import CLOCK_STEPS, ClusterScheduleIds
from tarry.simulation.schedule.changer import Changer
from tarry.simulation.trace import Trace

# Delays until records are due, of which a seed has some: none, a flush, a lease, most of a run.
_DELAYS_MS: Final = (0, 60, 150, 400, 1_500, 3_000, 6_000)

# Ids are drawn from a seed of their own: runs without ids stay as they were.
_IDS_SEED: Final = 0x285


class ClusterScheduleScenario(ClusterScenario):
    """Scenario of a cluster with scheduled records."""

    # After an unclean election records may be lost or come again: the checks allow for neither.
    may_be_unclean = False

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.topic_configs = {"delay.enable": "true", "delay.source": "timestamp"}
        first = random.randrange(len(_DELAYS_MS))
        self.delays_ms = _DELAYS_MS[first:]
        self.has_ids = self.is_of_changes = False
        if self.duration_ms % 2 == 0:
            # The duration chooses, nothing is drawn.  With small segments compaction drops
            # released batches during the run.  Still smaller ones would slow down a new leader,
            # which reads one a turn.
            self.broker_settings["log.cleaner.backoff.ms"] = str(50 + self.duration_ms % 300)
            self.topic_configs["segment.index.bytes"] = str(8 * (6 + self.duration_ms % 6))
            self.topic_configs["index.interval.bytes"] = "2000"

    def favour(self, setting: str, random: Random) -> None:
        if setting == OF_CHANGES:
            self._draw_of_changes(random)
        else:
            super().favour(setting, random)

    def _draw_of_changes(self, random: Random) -> None:
        """End the lives of leaders that are cut off while clients change what waits."""
        self.is_of_changes = True
        self.kinds = [DIVIDED, DIVIDED, DIVIDED, KILL]
        self.is_operated = self.prefers_leaders = self.strikes_two = False
        self.delays_additions = self.remakes_topic = False
        self.partitions = 1
        self.lag_ms = 1_500
        self.flush_ms_max = (3, 60)[random.randrange(2)]
        self.delay_ms_max = 20
        self.power_after_cut_percent = 0
        self.duration_ms = 6_000
        self.pause_ms_max = 900
        self.producer_pause_ms_max = 150
        self.delays_ms = (60, 150, 400, 1_500)

    def draw_ids(self, random: Random) -> None:
        """Draw whether headers say when records are due, and which ids they have."""
        self.has_ids = random.randrange(2) == 0 or self.is_of_changes
        if self.has_ids:
            self.topic_configs["delay.source"] = "header"

    def _draw_of_disks(self, random: Random) -> None:
        """Let no disk refuse directories and files: the workload `cluster-disks` has that."""


class ClusterScheduleRun(ClusterRun):
    """Run of one seed."""

    make_scenario = ClusterScheduleScenario

    def __init__(self, seed: int, trace: Trace | None = None, *, setting: str = "") -> None:
        super().__init__(seed, trace, setting=setting)
        assert isinstance(self.scenario, ClusterScheduleScenario)
        random = Random(seed ^ _IDS_SEED)
        self.scenario.draw_ids(random)
        self.is_of_changes = self.scenario.is_of_changes
        self.ids: ClusterScheduleIds | None = None
        if self.scenario.has_ids:
            self.ids = ClusterScheduleIds(random, self.checker)
            if self.is_of_changes:
                self.ids.favour_changes()
        self.checker.on_batch = self._see
        self.early: list[str] = []
        # Count of released batches that were seen when they were written.
        self.released = 0

    @property
    def fault_counts(self) -> dict[str, int]:
        counts = super().fault_counts
        if self.ids is not None and self.ids.clock_steps:
            counts[CLOCK_STEPS] = self.ids.clock_steps
        return counts

    def begin_clients(self) -> None:
        super().begin_clients()
        ids = self.ids
        if ids is None:
            return
        ids.ledger.delays_ms = self.scenario.delays_ms
        for producer in self.producers:
            producer.delays_ms = ()
            producer.ledger = ids.ledger
        for number, node in enumerate(self.nodes * ids.changers):
            Changer(
                self.visitor_context(node),
                f"changer{number}",
                self.context,
                self.context.topics[0],
                ids.ledger,
                pause_ms_max=ids.pause_ms_max,
                leads=partial(_leads, node),
                imitates=self.is_of_changes,
            ).start()

    def strike(self) -> None:
        super().strike()
        if self.ids is not None:
            self.ids.step_a_clock(self.nodes)

    def _see(self, node: ClusterNode, log: ReplicatedLog, batch: DiskBatch) -> None:
        if log.leadership.topic != TOPIC:
            return
        if self.ids is not None:
            self.ids.see(node, log, batch)
        else:
            self._check_due(node, log, batch)

    def _check_due(self, node: ClusterNode, log: ReplicatedLog, batch: DiskBatch) -> None:
        """Check that a batch that a leader has just written is due by its own calendar."""
        leadership = log.leadership
        if log.which != RECORDS or not leadership.is_leader:
            return
        if batch.leader_epoch != leadership.leader_epoch:
            return
        header = BatchHeader(batch.data, 0)
        self.released += released_s_offset(header) != NO_S_OFFSET
        now_wall_ms = node.clock.own_wall_ms
        if header.max_timestamp > now_wall_ms:
            self.early.append(
                f"{log.name} has a batch at offset {batch.base_offset}, due at "
                f"{header.max_timestamp}, when the calendar of {node.name} shows {now_wall_ms}"
            )

    def unfinished(self, brokers: list[Broker]) -> list[str]:
        found: list[str] = []
        for index in range(self.scenario.partitions):
            leaders = [broker.topics.partition(TOPIC, index) for broker in brokers]
            for partition in leaders:
                if partition is not None:
                    found += _waiting(partition)
        return found or super().unfinished(brokers)

    def seen_at_once(self) -> list[str]:
        return [*super().seen_at_once(), *self.early]

    def wrong_at_the_end(self) -> list[str]:
        records = records_of(self.checker, self.context.topics[0])
        wrong = self._check_released(records) if self.ids is None else self._judge(self.ids)
        return [
            *wrong,
            *check_handed_out(self.history, self.context, self.checker, records),
        ]

    def _judge(self, ids: ClusterScheduleIds) -> list[str]:
        careful = [one.name for one in self.producers if one.settings.acks == -1]
        starts = tuple(name.encode() + b"-" for name in careful)
        for values in self.history.promised.values():
            for value in values:
                if value.startswith(starts):
                    ids.ledger.wishes[value].is_promised = True
        places = self.context.topics[0].places()
        return ids.judge(places, (*starts, b"changer"))

    def _check_released(self, found: Found) -> list[str]:
        """Check that each record acknowledged with acks=all was released, and none of them twice.

        In a partition with deleted records some of the others may be gone, too.
        """
        sentences: list[str] = []
        careful = [one.name for one in self.producers if one.settings.acks == -1]
        starts = tuple(name.encode() + b"-" for name in careful)
        for place, records in found.items():
            counts = Counter(records.values.values())
            name = place_name(place)
            for value in self.history.promised.get(place, []):
                if value.startswith(starts) and not counts[value] and not records.start_offset:
                    sentences.append(f"{name} has lost {value[:20]!r}, which was acknowledged")
            for value, count in counts.items():
                if value.startswith(starts) and count > 1:
                    sentences.append(f"{name} has {value[:20]!r} {count} times")
        return sentences


def _leads(node: ClusterNode, place: Place) -> bool:
    """Return whether this broker believes that it leads a partition."""
    broker = node.broker
    partition = None if broker is None else broker.topics.partition(TOPIC, place[1])
    return partition is not None and partition.leadership.is_leader


def _waiting(partition: ReplicatedLog) -> list[str]:
    schedule = partition.leadership.parking
    if not isinstance(schedule, PartitionSchedule) or schedule.state is None:
        return [f"the schedule of {partition.name} is not there"]
    count = schedule.state.count
    if count:
        return [f"{count} batches of {partition.name} wait"]
    # The last checkpoint comes up to a second after the last release.
    companion = schedule.companion
    if schedule.needs_checkpoint() or companion.high_watermark < companion.log.log_end_offset:
        return [f"a checkpoint of {partition.name} is still to come"]
    return []

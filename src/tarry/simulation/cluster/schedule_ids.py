"""Ids of scheduled records in a cluster: a ledger of changes, and the batches seen in logs."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.partition.replicated_log import RECORDS, ReplicatedLog, wire_index
from tarry.records.batch import BatchHeader
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.committed import Place
from tarry.simulation.cluster.disk_log import DiskBatch
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.schedule.judge import Judge
from tarry.simulation.schedule.ledger import ScheduleLedger
from tarry.simulation.schedule.seen import SightedBatch, parked_records, released_records

CLOCK_STEPS: Final = "clock step"
_STEPS_MS: Final = (-3_000, -400, -30, 30, 400, 3_000)


class ClusterScheduleIds:
    """Ids of one run: the ledger of its clients, and when each batch was seen in a leader's log."""

    def __init__(self, random: Random, checker: ReplicaChecker) -> None:
        self.random = random
        self.ledger = ScheduleLedger(random)
        self.pause_ms_max = (30, 120)[random.randrange(2)]
        # Number of clients of each broker that change pending records.
        self.changers = (1, 3)[random.randrange(2)]
        self.steps_clocks = random.randrange(3) == 0
        self.clock_steps = 0
        self._checker = checker
        # By place, leader epoch and base offset of a batch: the world's time, and the leader's
        # calendar, when it was first seen.
        self._seen: dict[tuple[Place, int, int], tuple[int, int]] = {}

    def favour_changes(self) -> None:
        """Let many clients send and change few ids, without pauses."""
        self.pause_ms_max = 30
        self.changers = 4
        self.steps_clocks = False
        self.ledger.id_count = 12

    def step_a_clock(self, nodes: list[ClusterNode]) -> None:
        """Set the calendar of a broker forward or back."""
        random = self.random
        if self.steps_clocks and random.randrange(3) == 0:
            node = nodes[random.randrange(len(nodes))]
            node.clock.wall_offset_ms += _STEPS_MS[random.randrange(len(_STEPS_MS))]
            self.clock_steps += 1

    def see(self, node: ClusterNode, log: ReplicatedLog, batch: DiskBatch) -> None:
        """Note when a batch was first seen: its leader has written it in this turn."""
        place = (log.key[0], wire_index(log.key))
        name = (place, batch.leader_epoch, batch.base_offset)
        if name in self._seen:
            return
        self._seen[name] = (node.clock.now_ms, node.clock.own_wall_ms)
        if log.which != RECORDS and not BatchHeader(batch.data, 0).is_control:
            place = (log.key[0], log.key[1])
            self.ledger.parked.setdefault(place, []).append(batch.base_offset)

    def judge(self, places: list[Place], once: tuple[bytes, ...]) -> list[str]:
        """Return the violations; values that start with one of `once` may come once at most."""
        found: list[str] = []
        ledger = self.ledger
        values = {value for value in ledger.wishes if value.startswith(once)}
        for topic_id, index in places:
            parked = parked_records(self._batches((topic_id, -1 - index)))
            came = released_records(self._batches((topic_id, index)))
            found += Judge((topic_id, index), ledger, parked, came, values).sentences()
        return found

    def _batches(self, place: Place) -> list[SightedBatch]:
        """Return the committed batches of a log."""
        found: list[SightedBatch] = []
        for batch in self._checker.committed(place):
            name = (place, batch.leader_epoch, batch.base_offset)
            found.append(SightedBatch(batch.data, *self._seen[name]))
        return found

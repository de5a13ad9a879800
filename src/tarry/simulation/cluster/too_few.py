"""Too few replicas in sync for an hour: all brokers but one are away, then they come back.

Nothing else goes wrong, so some seconds later each partition has to be whole again: it has a leader
that may act, and takes records with acks=all.
"""

from __future__ import annotations

from typing import Final

from tarry.partition.replicated_log import ReplicatedLog
from tarry.simulation import faults
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.etcd_node import EtcdNode
from tarry.simulation.cluster.scenario import HOUR_MS
from tarry.simulation.world import World

# Longest time until all is served again: starts, lives, claims and missed records, a second each.
SERVED_AGAIN_MS: Final = 5_000
# Time after which written records have to be committed.
_COMMIT_MS: Final = 1_000
# Time between two looks of etcd at its clock in that hour.
_STEP_MS: Final = 100


class TooFew:
    """The hour of one run.  `violations` has a sentence for each partition that is not served."""

    def __init__(
        self,
        world: World,
        etcd_node: EtcdNode,
        nodes: list[ClusterNode],
        duration_ms: int = HOUR_MS,
    ) -> None:
        self.violations: list[str] = []
        self._duration_ms = duration_ms
        self.has_begun = False
        self._world = world
        self._etcd_node = etcd_node
        self._nodes = nodes
        # Written end of each leader's log, a moment before the check.
        self._ends: dict[str, int] = {}

    def begin(self) -> None:
        """End all brokers but one, drawn by chance, and have them start again in an hour."""
        self.has_begun = True
        random = self._world.random
        staying = self._nodes[random.randrange(len(self._nodes))]
        self._etcd_node.step_ms = _STEP_MS
        for node in self._nodes:
            if node is not staying:
                node.note("fault: away for an hour")
                node.absent_until_ms = node.clock.now_ms + self._duration_ms
                node.lose((faults.KILL, faults.POWER)[random.randrange(2)])
        look_ms = self._duration_ms + SERVED_AGAIN_MS
        staying.clock.after(look_ms - _COMMIT_MS, self._note_ends)
        staying.clock.after(look_ms, self._check)

    def _leaders(self) -> dict[str, ReplicatedLog]:
        """Return the leaders that may act, by the names of their partitions."""
        return {
            partition.name: partition
            for node in self._nodes
            if node.broker is not None
            for partition in node.broker.topics.partitions()
            if partition.leadership.may_act()
        }

    def _note_ends(self) -> None:
        for name, leader in self._leaders().items():
            self._ends[name] = int(leader.log.written_end_offset)

    def _check(self) -> None:
        """Check that each partition is served again."""
        leaders = self._leaders()
        for node in self._nodes:
            replicas = [] if node.broker is None else node.broker.topics.replicas()
            for name in [replica.name for replica in replicas]:
                what = self._wrong_with(name, leaders.get(name))
                if what:
                    self.violations.append(
                        f"{name} {what} {SERVED_AGAIN_MS} ms after enough brokers can start again"
                    )
        if any(node.broker is None for node in self._nodes):
            self.violations.append(f"a broker does not run {SERVED_AGAIN_MS} ms later")

    def _wrong_with(self, name: str, leader: ReplicatedLog | None) -> str:
        if leader is None:
            return "is led by nobody"
        if leader.leadership.is_under_min_isr():
            return "has too few in sync"
        if leader.high_watermark < self._ends.get(name, 0):
            return "has records that are not committed"
        return ""

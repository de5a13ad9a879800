"""Faults of a replicated cluster, one after the other, each counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tarry.base.etcd import Operation, Put
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.rows import decode_row
from tarry.simulation.cluster import scenario as kinds
from tarry.simulation.cluster.cluster_node import SESSION_MS, ClusterNode
from tarry.simulation.cluster.etcd_node import EtcdNode
from tarry.simulation.cluster.frozen import AGAIN_MS, LedBefore
from tarry.simulation.cluster.remaker import MADE_AGAIN
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.cluster.scenario import ClusterScenario
from tarry.simulation.etcd import SimulatedEtcdDoor
from tarry.simulation.faults import Fault
from tarry.simulation.world import World

_REFUSED_MS_MIN: Final = 4_000
_REFUSED_MS_MAX: Final = 6_000
_FILES_MAX: Final = 6
_STALL_MS_MAX: Final = 4_000
_CUT_MS_MAX: Final = 4_000
_DIVIDED_MS_MAX: Final = 400
_FROZEN_MS_MAX: Final = 2_000
# Time for followers that lag to leave the in-sync set, and for a lease to end.
_STRANDED_MS: Final = 3_500
_LATE_WATCH_MS_MAX: Final = 1_500
_REVISIONS_TOLD_AGAIN_MAX: Final = 8
# Time from the request of a late transaction to the loss of its link.
_LATE_DEED_CUT_MS: Final = 10
_LATE_DEED_MS: Final = 200
_LATE_DEED_MS_MAX: Final = 2_500
# About as long as an earlier life lasts, and as a broker waits for a transaction.
_LATE_ADDITION_MS: Final = 1_600
_LATE_ADDITION_MS_MAX: Final = 2_240


class ClusterFaults:
    """Faults that strike the brokers of a world, until they are healed."""

    def __init__(
        self,
        world: World,
        etcd_node: EtcdNode,
        nodes: list[ClusterNode],
        checker: ReplicaChecker,
        scenario: ClusterScenario,
    ) -> None:
        self.counts: dict[str, int] = {}
        self._world = world
        self._random = world.random
        self._etcd_node = etcd_node
        self._etcd = etcd_node.etcd
        # Violations seen after etcd was frozen.  Until `_quiet_until_ms` no other fault strikes.
        self.violations: list[str] = []
        self._quiet_until_ms = 0
        self._nodes = nodes
        self._checker = checker
        self._scenario = scenario
        self._is_over = False
        self._has_new_disk = False
        # Count of each broker's absences from etcd: the end of an earlier absence brings none back.
        self._absences = dict.fromkeys(nodes, 0)
        checker.on_cut = self._on_cut
        self._ways: dict[str, Callable[[ClusterNode, str], None]] = {
            kinds.KILL: self._lose,
            kinds.POWER: self._lose,
            kinds.CLEAN: self._stop,
            kinds.POWER_AFTER_CLEAN: self._stop,
            kinds.POWER_IN_FLUSH: self._lose_in_flush,
            kinds.FLUSH_FAULT: self._fail_a_flush,
            kinds.STALL: self._stall,
            kinds.AWAY: self._go_away,
            kinds.NEW_DISK: self._replace_disk,
            kinds.CUT_OFF: self._cut_off,
            kinds.LOST_ANSWERS: self._lose_answers,
            kinds.DEAF: self._cut_links,
            kinds.APART: self._cut_links,
            kinds.ALONE: self._cut_links,
            kinds.DIVIDED: self._divide,
            kinds.ALL_POWER: self._lose_all,
            kinds.ETCD_AWAY: self._cut_all_off,
            kinds.COMPACTED: self._compact,
            kinds.STRANDED: self._strand,
            kinds.COMPACTED_AWAY: self._compact_while_away,
            kinds.LATE_WATCH: self._delay_watch,
            kinds.DOUBLED_WATCH: self._repeat_watch,
            kinds.LATE_DEED: self._delay_a_deed,
            kinds.BRIDGE: self._bridge,
            kinds.ISOLATED: self._isolate,
            kinds.STALLED_RENEWED: self._stall_behind_renewal,
            kinds.SLOW_DISK: self._slow_disk,
            kinds.LATE_CLAIM: self._delay_claims,
            kinds.FROZEN: self._freeze,
            kinds.REFUSED_DIRECTORY: self._refuse_directory,
            kinds.FEW_FILES: self._take_files,
        }
        self._put_clocks_off()

    def _put_clocks_off(self) -> None:
        drifts = self._scenario.drifts_per_mille
        for node, drift_per_mille in zip(self._nodes, drifts, strict=True):
            node.clock.drift_per_mille = drift_per_mille
            if drift_per_mille:
                self._count(node, kinds.CLOCKS_OFF)

    def strike(self) -> None:
        """Let one of the seed's faults happen to a broker drawn by chance."""
        if self._is_quiet():
            return
        kind = self._kind()
        node = self._nodes[self._random.randrange(len(self._nodes))]
        self._strike(node, kind)
        if self._scenario.strikes_two and not self._is_quiet():
            others = [each for each in self._nodes if each is not node]
            self._strike(others[self._random.randrange(len(others))], self._kind())
        if self._scenario.delays_additions:
            for each in self._nodes:
                self._delay_an_addition(each)

    def _kind(self) -> str:
        kinds_of_seed = self._scenario.kinds
        return kinds_of_seed[self._random.randrange(len(kinds_of_seed))]

    def _strike(self, node: ClusterNode, kind: str) -> None:
        self._count(node, kind)
        self._ways[kind](node, kind)

    def _is_quiet(self) -> bool:
        """Return whether no fault may strike, since the state after a frozen etcd is compared."""
        return self._world.agenda.now_ms < self._quiet_until_ms

    def heal(self) -> None:
        """End all faults."""
        self._is_over = True
        for node in self._nodes:
            node.heal()
            node.reconnect()
            node.network.deaf_to.clear()
            if node.door is not None:
                # A call whose answer was lost is asked again once its link is cut.
                node.door.lose_answers = 0
                node.door.lateness = None
                node.door.on_renewed = None
                node.door.watch_limit = None
                node.door.cut()

    def _count(self, node: ClusterNode, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        node.note(f"fault: {kind}")

    # --- A broker.

    def _lose(self, node: ClusterNode, kind: str) -> None:
        node.lose(kind)

    def _stop(self, node: ClusterNode, kind: str) -> None:
        node.request_stop(kind)

    def _lose_in_flush(self, node: ClusterNode, kind: str) -> None:
        node.end_in_flush = kind

    def _fail_a_flush(self, node: ClusterNode, kind: str) -> None:
        # After a failed flush the broker may stop by itself.
        node.plan.faults.append(Fault(0, kind))
        node.disk.fail_flushes()

    def _refuse_directory(self, node: ClusterNode, kind: str) -> None:
        """Refuse a directory of the topic that is made again and again."""
        path = f"{MADE_AGAIN}-{self._random.randrange(2)}"
        node.disk.refuse_directory(path)
        duration_ms = _REFUSED_MS_MIN + self._random.randrange(_REFUSED_MS_MAX)
        node.clock.after(duration_ms, partial(node.disk.accept_directory, path))

    def _take_files(self, node: ClusterNode, kind: str) -> None:
        node.files_per_turn = self._random.randrange(_FILES_MAX)
        duration_ms = self._random.randrange(_REFUSED_MS_MAX)
        node.clock.after(duration_ms, partial(_give_files_back, node))

    def _stall(self, node: ClusterNode, kind: str) -> None:
        node.busy_until_ms = node.clock.now_ms + self._random.randrange(_STALL_MS_MAX)

    def _stall_behind_renewal(self, node: ClusterNode, kind: str) -> None:
        """Stall the process for longer than a life, while the answer to a renewal is on its way."""
        door = node.door
        if door is not None:
            door.on_renewed = partial(self._stall_renewed, node, door)

    def _stall_renewed(self, node: ClusterNode, door: SimulatedEtcdDoor) -> None:
        door.on_renewed = None
        duration_ms = SESSION_MS + self._random.randrange(SESSION_MS)
        node.busy_until_ms = node.clock.now_ms + duration_ms

    def _slow_disk(self, node: ClusterNode, kind: str) -> None:
        """Have flushes take nearly as long as a follower may lag."""
        lag_ms = self._scenario.lag_ms
        node.plan.flush_ms_min = lag_ms * 7 // 8
        node.clock.after(4 * lag_ms, partial(_hurry, node))

    def _go_away(self, node: ClusterNode, kind: str) -> None:
        """Kill the broker; it comes back after some seconds."""
        self._leave_etcd(node, self._random.randrange(self._scenario.away_ms_max))
        node.lose((kinds.KILL, kinds.POWER)[self._random.randrange(2)])

    def _replace_disk(self, node: ClusterNode, kind: str) -> None:
        """Give the broker an empty disk, once in a run, if all replicas are in sync."""
        if self._are_all_in_sync():
            self._lose_disk(node)

    def _lose_disk(self, node: ClusterNode) -> None:
        if self._has_new_disk or node.broker is None:
            return
        self._has_new_disk = True
        node.lose(kinds.POWER)
        node.replace_disk()
        self._checker.forget_disk(node)

    def _are_all_in_sync(self) -> bool:
        return all(
            len(row.isr) == len(row.replicas)
            for topic in self._checker.state.topics.values()
            for row in topic.partitions
        )

    def _on_cut(self, node: ClusterNode) -> None:
        """Lose power soon after a cut, before or after it is durable."""
        if self._is_over or self._random.randrange(100) >= self._scenario.power_after_cut_percent:
            return
        # After a longer time the cut is mostly durable.
        after_ms = self._random.randrange(self._scenario.flush_ms_max // 2 + 1)
        node.clock.after(after_ms, partial(self._lose_after_cut, node, node.life))

    def _lose_after_cut(self, node: ClusterNode, life: int) -> None:
        if not self._is_over and node.life == life and node.broker is not None:
            self._count(node, kinds.POWER_AFTER_CUT)
            node.lose(kinds.POWER)

    # --- Links.

    def _cut_links(self, node: ClusterNode, kind: str) -> None:
        """Cut links between brokers for a while; clients and etcd still reach all."""
        self._cut_links_for(node, kind, self._random.randrange(_CUT_MS_MAX))

    def _cut_links_for(self, node: ClusterNode, kind: str, duration_ms: int) -> None:
        others = [one for one in self._nodes if one is not node]
        if kind in (kinds.DEAF, kinds.APART):
            others = [others[self._random.randrange(len(others))]]
        pairs = [(node.network, other.network) for other in others]
        if kind != kinds.DEAF:
            pairs += [(other.network, node.network) for other in others]
        for here, there in pairs:
            here.deaf_to.add(there)
            node.clock.after(duration_ms, partial(here.deaf_to.discard, there))

    def _divide(self, node: ClusterNode, kind: str) -> None:
        """Cut a broker's links, then end its life with the records that only it has."""
        duration_ms = 50 + self._random.randrange(_DIVIDED_MS_MAX)
        self._cut_links_for(node, kind, duration_ms)
        end = (kinds.KILL, kinds.KILL, kinds.POWER)[self._random.randrange(3)]
        node.clock.after(duration_ms, partial(self._lose_if_alive, node, end))

    def _lose_if_alive(self, node: ClusterNode, kind: str) -> None:
        if not self._is_over:
            node.lose(kind)

    # --- Etcd.

    def _cut_off(self, node: ClusterNode, kind: str) -> None:
        self._leave_etcd(node, self._random.randrange(self._scenario.away_ms_max))

    def _leave_etcd(self, node: ClusterNode, duration_ms: int) -> None:
        self._absences[node] += 1
        node.cut_off()
        node.clock.after(duration_ms, partial(self._come_back, node, self._absences[node]))

    def _come_back(self, node: ClusterNode, absence: int) -> None:
        if self._absences[node] == absence:
            node.reconnect()

    def _cut_all_off(self, node: ClusterNode, kind: str) -> None:
        duration_ms = self._random.randrange(self._scenario.away_ms_max)
        for each in self._nodes:
            self._leave_etcd(each, duration_ms)

    def _lose_answers(self, node: ClusterNode, kind: str) -> None:
        if node.door is not None:
            node.door.lose_answers = self._random.randrange(3)
            node.door.cut()

    def _compact(self, node: ClusterNode, kind: str) -> None:
        self._etcd.compact(self._etcd.revision)

    def _compact_while_away(self, node: ClusterNode, kind: str) -> None:
        duration_ms = self._random.randrange(self._scenario.away_ms_max)
        # The compaction comes before the return: actions of one time run as they were planned.
        node.clock.after(duration_ms, partial(self._compact, node, kind))
        self._leave_etcd(node, duration_ms)

    def _delay_watch(self, node: ClusterNode, kind: str) -> None:
        door = node.door
        if door is not None:
            door.watch_limit = self._etcd.revision
            duration_ms = self._random.randrange(_LATE_WATCH_MS_MAX)
            node.clock.after(duration_ms, partial(_let_watch, door))

    def _repeat_watch(self, node: ClusterNode, kind: str) -> None:
        if node.door is not None:
            node.door.repeat(1 + self._random.randrange(_REVISIONS_TOLD_AGAIN_MAX))

    def _delay_a_deed(self, node: ClusterNode, kind: str) -> None:
        """Have the next rows of partitions written late."""
        door = node.door
        if door is not None:
            door.lateness = partial(self._late_rows, node, door)

    def _delay_an_addition(self, node: ClusterNode) -> None:
        door = node.door
        if door is not None and door.lateness is None:
            ways = (self._late_addition, self._late_addition_of_a_new_disk)
            door.lateness = partial(ways[self._random.randrange(2)], node, door)

    def _late_rows(
        self, node: ClusterNode, door: SimulatedEtcdDoor, operations: list[Operation]
    ) -> int:
        """Delay a write of partitions' rows and cut its link, so that its outcome is unknown."""
        puts = [each.key for each in operations if isinstance(each, Put)]
        parts = [key for key in puts if b"/parts/" in key]
        if self._scenario.delays_deleted:
            parts = [key for key in parts if self._is_made_again(key)]
        if not parts:
            return 0
        door.lateness = None
        node.clock.after(_LATE_DEED_CUT_MS, door.cut)
        return _LATE_DEED_MS + self._random.randrange(_LATE_DEED_MS_MAX)

    def _delay_claims(self, node: ClusterNode, kind: str) -> None:
        """Take a broker away for longer than its life, and have its partitions claimed late."""
        self._leave_etcd(node, 2 * SESSION_MS + self._random.randrange(SESSION_MS))
        node.lose(kinds.KILL)
        for each in self._nodes:
            if each.door is not None and each is not node:
                each.door.lateness = partial(self._late_claim, each, each.door)

    def _late_claim(
        self, node: ClusterNode, door: SimulatedEtcdDoor, operations: list[Operation]
    ) -> int:
        """Delay a claim until the life of the broker that asked for it is over."""
        if not any(self._is_claim(node, each) for each in operations):
            return 0
        for each in self._nodes:
            if each.door is not None:
                each.door.lateness = None
        duration_ms = SESSION_MS + self._random.randrange(SESSION_MS)
        node.clock.after(_LATE_DEED_CUT_MS, partial(self._leave_etcd, node, duration_ms))
        return duration_ms

    def _is_claim(self, node: ClusterNode, operation: Operation) -> bool:
        """Return whether an operation makes this broker the leader of a partition."""
        if not isinstance(operation, Put) or b"/parts/" not in operation.key:
            return False
        row = decode_row("parts", operation.key, operation.value)
        assert isinstance(row, PartitionRow)
        before = self._checker.row(self._checker.place(operation.key))
        return before is not None and row.leader_id == node.broker_id != before.leader_id

    def _is_made_again(self, key: bytes) -> bool:
        """Return whether a row belongs to the topic that is deleted and made again."""
        topic = self._checker.state.topic_by_id(self._checker.place(key)[0])
        return topic is not None and topic.name == MADE_AGAIN

    def _late_addition(
        self, node: ClusterNode, door: SimulatedEtcdDoor, operations: list[Operation]
    ) -> int:
        """Delay an addition to an isr; meanwhile the leader hears nothing of the added broker."""
        added = self._added_late(node, door, operations)
        if added is None:
            return 0
        self._deafen(node, added, 2 * _CUT_MS_MAX)
        return _LATE_ADDITION_MS + self._random.randrange(_LATE_DEED_MS_MAX)

    def _late_addition_of_a_new_disk(
        self, node: ClusterNode, door: SimulatedEtcdDoor, operations: list[Operation]
    ) -> int:
        """Delay an addition to an isr; meanwhile the added broker may restart without data."""
        added = self._added_late(node, door, operations)
        if added is None:
            return 0
        if self._may_lose_all(added):
            self._count(added, kinds.NEW_DISK)
            node.clock.after(0, partial(self._lose_disk, added))
            self._deafen(node, added, 2 * _CUT_MS_MAX)
            self._deafen(added, node, 2 * _CUT_MS_MAX)
        return self._random.randrange(_LATE_ADDITION_MS, _LATE_ADDITION_MS_MAX)

    def _added_late(
        self, node: ClusterNode, door: SimulatedEtcdDoor, operations: list[Operation]
    ) -> ClusterNode | None:
        """Return the broker that these operations add to an isr; later ones are not delayed."""
        added = self._added(node, operations)
        if added is not None:
            door.lateness = None
            self._count(added, kinds.LATE_ADDITION)
        return added

    def _added(self, node: ClusterNode, operations: list[Operation]) -> ClusterNode | None:
        """Return the broker that these operations add to an isr, or None."""
        for each in operations:
            if not isinstance(each, Put) or b"/parts/" not in each.key:
                continue
            row = decode_row("parts", each.key, each.value)
            assert isinstance(row, PartitionRow)
            before = self._checker.row(self._checker.place(each.key))
            if before is None or not before.leader_id == row.leader_id == node.broker_id:
                continue
            for other in self._nodes:
                if other.broker_id in row.isr and other.broker_id not in before.isr:
                    return other
        return None

    def _may_lose_all(self, node: ClusterNode) -> bool:
        """Return whether this broker is in no isr, and no election may be unclean."""
        return not self._scenario.is_unclean and not any(
            node.broker_id in row.isr
            for topic in self._checker.state.topics.values()
            for row in topic.partitions
        )

    def _deafen(self, node: ClusterNode, other: ClusterNode, duration_ms: int) -> None:
        """Cut the link from `other` to `node` for so long."""
        node.network.deaf_to.add(other.network)
        node.clock.after(duration_ms, partial(node.network.deaf_to.discard, other.network))

    def _bridge(self, node: ClusterNode, kind: str) -> None:
        duration_ms = self._random.randrange(self._scenario.away_ms_max)
        others = [one for one in self._nodes if one is not node]
        other = others[self._random.randrange(len(others))]
        self._deafen(node, other, duration_ms)
        self._deafen(other, node, duration_ms)
        self._leave_etcd(other, duration_ms)

    def _isolate(self, node: ClusterNode, kind: str) -> None:
        half_ms = self._scenario.away_ms_max // 2
        duration_ms = half_ms + self._random.randrange(half_ms)
        self._cut_links_for(node, kinds.ALONE, duration_ms)
        self._leave_etcd(node, duration_ms)

    def _freeze(self, node: ClusterNode, kind: str) -> None:
        """Freeze etcd for longer than a session; soon after it wakes all has to be as before."""
        duration_ms = SESSION_MS + 500 + self._random.randrange(_FROZEN_MS_MAX)
        self._etcd_node.freeze(duration_ms)
        self._quiet_until_ms = self._world.agenda.now_ms + duration_ms + AGAIN_MS
        before = LedBefore(self._nodes)
        # An operator may move leaders meanwhile: then nothing is compared.
        if before.is_whole and not self._scenario.is_operated:
            node.clock.after(duration_ms + AGAIN_MS, partial(self._check_again, before))

    def _check_again(self, before: LedBefore) -> None:
        if not self._is_over:
            self.violations += before.violations()

    # --- All.

    def _lose_all(self, node: ClusterNode, kind: str) -> None:
        for each in self._nodes:
            each.lose(kinds.POWER)

    def _strand(self, node: ClusterNode, kind: str) -> None:
        """Leave one broker in sync alone, then take it away as the others come back."""
        for other in self._nodes:
            if other is not node:
                self._leave_etcd(other, _STRANDED_MS)
                other.lose(kinds.KILL)
        node.clock.after(_STRANDED_MS, partial(self._take_away, node))

    def _take_away(self, node: ClusterNode) -> None:
        if not self._is_over:
            self._leave_etcd(node, _STRANDED_MS)
            node.lose(kinds.KILL)


def _hurry(node: ClusterNode) -> None:
    """Let flushes be fast again."""
    node.plan.flush_ms_min = 0


def _let_watch(door: SimulatedEtcdDoor) -> None:
    """End the lateness of a door's watch."""
    door.watch_limit = None


def _give_files_back(node: ClusterNode) -> None:
    node.files_per_turn = None

"""Cluster node: a broker of a cluster, with a door to the simulated etcd for each of its lives."""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Disk, Event, Random, Transport
from tarry.base.errors import TarryError
from tarry.base.etcd import EtcdEvent
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.cluster_start import start_member
from tarry.broker.membership.cluster_member import HAND_OVER_MS_MAX
from tarry.cluster.etcd.joining import Joining
from tarry.cluster.state.levels import Release
from tarry.simulation import faults
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.cluster.etcd_node import EtcdNode
from tarry.simulation.etcd import SimulatedEtcdDoor
from tarry.simulation.faults import FaultPlan
from tarry.simulation.world import World

SESSION_MS: Final = 2_000
_HEARTBEAT_MS: Final = 400
SIMULATED: Final = Release("simulated")
_DELAY_MS_MAX: Final = 5
# Most steps of a start.  Without delays and losses a broker has read everything by then.
_STEPS_MAX: Final = 100


class EtcdAway(TarryError):
    """Start that would have to wait for etcd; the node tries it again later."""


class ClusterNode(BrokerNode):
    """Broker `broker_id` of a world; clients reach it at port 9092 of the host `b<id>`."""

    def __init__(
        self,
        world: World,
        etcd_node: EtcdNode,
        broker_id: int,
        plan: FaultPlan,
        observer: NodeObserver,
    ) -> None:
        self.broker_id = broker_id
        # Door of the life that is under way, or of the last one.
        self.door: SimulatedEtcdDoor | None = None
        # True while this broker cannot reach etcd.
        self.is_cut_off = False
        self._etcd_node = etcd_node
        # Events of etcd that come before the broker is made; None when it is made.
        self._early: list[Event] | None = None
        self._is_open = False
        # Release that the next start runs.
        self.release = SIMULATED
        # Number of starts of the machine.
        self._boots = 1
        super().__init__(world, plan, observer, name=f"b{broker_id}", start=self._join)
        self.stop_ms_max += HAND_OVER_MS_MAX
        self.settings = {
            "node.id": str(broker_id),
            "metadata.store": "etcd://etcd:2379/simulated",
            "listeners": f"PLAINTEXT://{self.name}:9092",
            "broker.session.timeout.ms": str(SESSION_MS),
            "broker.heartbeat.interval.ms": str(_HEARTBEAT_MS),
        }

    @property
    def is_ready(self) -> bool:
        """True while clients can connect."""
        return self.broker is not None and self._is_open

    def cut_off(self) -> None:
        """Lose the link to etcd until `reconnect`; what is under way may be done or not."""
        self.is_cut_off = True
        if self.door is not None:
            self.door.go_away()

    def reconnect(self) -> None:
        """Let etcd be reached again."""
        self.is_cut_off = False
        if self.door is not None and self.broker is not None:
            self.door.come_back()

    # --- Lives.

    def _join(
        self,
        disk: Disk,
        transport: Transport,
        random: Random,
        settings: Settings,
        now_ms: int,
        now_wall_ms: int,
    ) -> Broker:
        """Join the cluster at once; raise `EtcdAway` where a process would wait for etcd."""
        self.must_wait = True
        if self.is_cut_off:
            raise EtcdAway("etcd cannot be reached")
        door = SimulatedEtcdDoor(self._etcd_node.etcd, self.world.random, self._post)
        door.owner_id = self.broker_id
        self.door = door
        self._early = []
        joining = Joining(door, disk, random, settings, now_ms, now_wall_ms, release=self.release)
        for _ in range(_STEPS_MAX):
            if joining.is_done:
                break
            door.step()
            events, self._early = self._early, []
            joining.turn(events, now_ms, now_wall_ms)
        else:
            # Or the key of an earlier life, with another disk, is still in etcd.
            raise EtcdAway("etcd does not let it go on")
        self.must_wait = False
        door.delay_ms_max = _DELAY_MS_MAX
        broker = start_member(
            disk,
            transport,
            random,
            settings,
            now_ms,
            now_wall_ms,
            joining=joining,
            boot_id=str(self._boots),
        )
        for event in self._early:
            self.network.tell_broker(event)
        self._early = None
        return broker

    def _post(self, event: EtcdEvent) -> None:
        if self._early is not None:
            self._early.append(event)
        else:
            self.network.tell_broker(event)

    def _try_start(self) -> bool:
        has_started = super()._try_start()
        # The port opens when the cluster knows that this broker serves.
        self.network.is_accepting = False
        self._is_open = False
        return has_started

    def turn(self) -> None:
        """Give the broker its turn, and open its port when it is ready."""
        super().turn()
        broker = self.broker
        if broker is not None and not self._is_open and broker.is_ready:
            self._is_open = True
            self.network.is_accepting = not self.network.is_stopping

    def _on_stopped(self, broker: Broker) -> None:
        super()._on_stopped(broker)
        # A recovery point may be lower than needed, because of a cut that did not come.
        self._is_clean_start = False

    def _forget_broker(self, kind: str) -> None:
        super()._forget_broker(kind)
        if kind not in faults.KILLS:
            self._boots += 1
        self._early = None
        if self.door is not None:
            # A call under way may still be done, but its answer reaches no broker.
            self.door.go_away()

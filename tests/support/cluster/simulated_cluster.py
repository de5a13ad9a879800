"""A simulated cluster under producers of the product, with faults from a seed, and its checks."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.state import ClusterState
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import decode_batch_header
from tarry.records.record import decode_records
from tarry.simulation import faults
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.topic_admin import TopicAdmin, TopicPlan
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.etcd_node import EtcdNode
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.faults import FaultPlan
from tarry.simulation.product.history import ProductHistory
from tarry.simulation.product.producer import ProducerNode
from tarry.simulation.trace import Trace
from tarry.simulation.world import World

SIZE: Final = 3
PARTITIONS: Final = 4
# Everything is healed for so long before the end.
QUIET_MS_MAX: Final = 60_000
DURATION_MS: Final = 8_000
ENDS: Final = (faults.KILL, faults.POWER, "clean", "stall", "cut off", "cut")
# Cuts between brokers besides: a link in one direction, both ways, or all of a broker's.
LINK_FAULTS: Final = ("deaf", "apart", "alone")


class LeaderWatch(NodeObserver):
    """Notes which broker led which partition in which epoch: never two in one."""

    def __init__(self) -> None:
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        self.violations: list[str] = []

    def after_turn(self, node: object) -> None:
        assert isinstance(node, ClusterNode)
        if node.broker is None:
            return
        for partition in node.broker.topics.partitions():
            one = partition.leadership
            key = (one.topic_id, one.index, one.leader_epoch)
            leader = self.leaders.setdefault(key, node.broker_id)
            if leader != node.broker_id:
                self.violations.append(f"{partition.name} has two leaders in one epoch")


class Observers(NodeObserver):
    """Several observers of a node, one after the other."""

    def __init__(self, observers: list[NodeObserver]) -> None:
        self._observers = observers

    def after_turn(self, node: BrokerNode) -> None:
        for one in self._observers:
            one.after_turn(node)


class SimulatedCluster:
    """Three brokers, an etcd, an administrator and producers, two if nothing else is said."""

    def __init__(
        self,
        seed: int,
        trace: Trace | None = None,
        *,
        replication_factor: int = 1,
        producers: tuple[str, ...] = ("all", "all"),
        configs: dict[str, str] | None = None,
    ) -> None:
        # The acks of each producer, and settings of the topics.
        self.acks = producers
        self.configs = configs or {}
        self.ends = ENDS
        self.replication_factor = replication_factor
        self.chance = Random(seed)
        self.world = World(seed, trace)
        self.etcd_node = EtcdNode(self.world)
        self.etcd_node.etcd.late_expiry_ms_max = 500
        self.watch = LeaderWatch()
        self.replicas = ReplicaChecker(self.etcd_node)
        observers = Observers([self.watch, self.replicas])
        self.nodes = [
            ClusterNode(self.world, self.etcd_node, number, FaultPlan(), observers)
            for number in range(1, SIZE + 1)
        ]
        first = self.nodes[0]
        self.context = RunContext(first.clock, first.network, self.world.random, self.world.trace)
        self.history = ProductHistory()
        self.producers: list[ProducerNode] = []

    def start(self) -> None:
        """Start all brokers and make the topics."""
        for node in self.nodes:
            node.start()
        self.run_until(self.all_know_all, "brokers that know each other")
        plans = [TopicPlan(f"t{number}", PARTITIONS, is_lasting=True) for number in range(2)]
        for plan in plans:
            plan.replication_factor = self.replication_factor
            plan.configs["message.timestamp.after.max.ms"] = str(1 << 62)
            plan.configs.update(self.configs)
        TopicAdmin(self.context, "admin", plans).start()
        self.run_until(lambda: len(self.context.topics) == len(plans), "topics")
        for number, acks in enumerate(self.acks):
            self.producers.append(
                ProducerNode(
                    self.world,
                    self.context,
                    f"producer{number}",
                    {
                        "acks": acks,
                        "enable.idempotence": acks == "all",
                        "bootstrap.servers": "b1:9092,b2:9092,b3:9092",
                        "request.timeout.ms": 2_000,
                        "metadata.max.age.ms": 3_000,
                        "reconnect.backoff.max.ms": 200,
                        "retry.backoff.max.ms": 200,
                        "delivery.timeout.ms": 2 * QUIET_MS_MAX,
                        "max.block.ms": QUIET_MS_MAX,
                    },
                    self.history,
                    60,
                )
            )

    def all_know_all(self) -> bool:
        """Whether every broker knows that every broker serves."""
        return all(
            node.is_ready and node.broker is not None and self._knows_all(node.broker)
            for node in self.nodes
        )

    def _knows_all(self, broker: Broker) -> bool:
        return len(broker.store.state.placeable_ids) == SIZE

    def run_until(self, is_so: object, what: str) -> None:
        assert callable(is_so)
        world = self.world
        world.run_until(world.agenda.now_ms + QUIET_MS_MAX, is_so)
        assert is_so(), f"did not come: {what}"

    def go_wrong(self) -> None:
        """One fault, of a broker drawn by chance."""
        node = self.nodes[self.chance.randrange(SIZE)]
        kind = self.ends[self.chance.randrange(len(self.ends))]
        node.note(f"fault: {kind}")
        if kind in (faults.KILL, faults.POWER):
            node.lose(kind)
        elif kind == "clean":
            node.request_stop(faults.CLEAN)
        elif kind == "stall":
            node.busy_until_ms = node.clock.now_ms + self.chance.randrange(5_000)
        elif kind == "cut off":
            node.cut_off()
            node.clock.after(self.chance.randrange(5_000), node.reconnect)
        elif kind in LINK_FAULTS:
            self.cut_links(node, kind)
        elif node.door is not None:
            node.door.lose_answers = self.chance.randrange(3)
            node.door.cut()

    def cut_links(self, node: ClusterNode, kind: str) -> None:
        """Cut links between brokers for a while; clients and etcd still reach all."""
        others = [one for one in self.nodes if one is not node]
        if kind != "alone":
            others = [others[self.chance.randrange(len(others))]]
        pairs = [(node.network, other.network) for other in others]
        if kind != "deaf":
            pairs += [(other.network, node.network) for other in others]
        for here, there in pairs:
            here.deaf_to.add(there)
            node.clock.after(self.chance.randrange(4_000), partial(here.deaf_to.discard, there))

    def play(self) -> None:
        """Let faults come for some seconds, then heal and wait until everything is settled."""
        end_ms = self.world.agenda.now_ms + DURATION_MS
        while self.world.agenda.now_ms < end_ms:
            self.world.run_for(self.chance.randrange(800))
            self.go_wrong()
        self.context.is_quiet = True
        for node in self.nodes:
            node.heal()
            node.reconnect()
            node.network.deaf_to.clear()
        self.run_until(self.is_settled, f"an end; {self.unsettled()}")
        # Rows that the watches have still to bring.
        self.world.run_for(1_000)

    def unsettled(self) -> list[str]:
        found = [f"{node.name} is not ready" for node in self.nodes if not node.is_ready]
        found += [f"{one.name} is not settled" for one in self.producers if not one.is_settled]
        return found

    def is_settled(self) -> bool:
        return not self.unsettled() and all(
            node.broker is not None and node.broker.is_ready for node in self.nodes
        )

    # --- Checks.

    def partition(self, topic: KnownTopic, index: int) -> ReplicatedLog:
        """The partition at the broker that leads it."""
        found = [
            partition
            for broker in self.brokers()
            if (partition := broker.topics.replica(topic.name, index)) is not None
        ]
        assert len(found) == self.replication_factor, f"{topic.name}-{index} is not everywhere"
        # The one that leads, or any while nobody does.
        return max(found, key=lambda partition: partition.leadership.is_leader)

    def brokers(self) -> list[Broker]:
        return [node.broker for node in self.nodes if node.broker is not None]

    def values(self, topic: KnownTopic, index: int) -> list[bytes]:
        """All values of a partition, in the order of its log."""
        return list(self.records(topic, index).values())

    def records(self, topic: KnownTopic, index: int) -> dict[int, bytes]:
        """All values of a partition by offset."""
        log = self.partition(topic, index).log
        values: dict[int, bytes] = {}
        offset: int = log.log_start_offset
        while offset < log.written_end_offset:
            region = log.read(offset, log.end_position(), 1 << 20, True)
            assert region is not None
            data = region.file.read(region.position, region.size)
            position = 0
            while position < len(data):
                header = decode_batch_header(data, position)
                for one in decode_records(data, size_max=1 << 30, position=position):
                    values[one.offset] = one.value or b""
                position += int(header.size)
                offset = int(header.last_offset) + 1
        return values

    def violations(self) -> list[str]:
        """Everything that is wrong at the end."""
        found = [*self.watch.violations, *self.replicas.violations]
        found += self.context.history.violations
        for node in self.nodes:
            found += node.violations
        for topic in self.context.topics:
            for index in range(topic.partitions):
                found += self._wrong_in(topic, index)
        # In whatever order they have come to know of topics.
        known = [broker.store.state for broker in self.brokers()]
        states = [sorted(map(repr, state.snapshot())) for state in [*known, self.replay()]]
        if any(state != states[0] for state in states):
            found.append("brokers and etcd do not say the same")
        return found

    def _wrong_in(self, topic: KnownTopic, index: int) -> list[str]:
        name = f"{topic.name}-{index}"
        # With acks=1 a record may be lost with its leader, and come twice without idempotence.
        careful = [
            one for one, acks in zip(self.producers, self.acks, strict=True) if acks == "all"
        ]
        names = tuple(one.name.encode() + b"-" for one in careful)
        values = [value for value in self.values(topic, index) if value.startswith(names)]
        found = [] if len(set(values)) == len(values) else [f"{name} has a record twice"]
        promised = self.history.promised.get((topic.topic_id, index), [])
        found += [
            f"{name} lost {value!r}"
            for value in promised
            if value.startswith(names) and value not in values
        ]
        for producer in careful:
            own = [value for value in values if value.startswith(producer.name.encode() + b"-")]
            numbers = [int(value.split(b"-")[1]) for value in own]
            if numbers != sorted(numbers):
                found.append(f"{name} has records of {producer.name} out of order")
        return found

    def replay(self) -> ClusterState:
        """The state that etcd's rows give by themselves."""
        keys = Keys("/simulated/")
        known = KnownRows(keys)
        state = ClusterState()
        rows = self.etcd_node.etcd.rows(keys.prefix)
        for record in known.apply(known.difference(rows)):
            state.apply(record)
        return state

    def stores(self) -> list[EtcdStore]:
        return [broker.store for broker in self.brokers() if isinstance(broker.store, EtcdStore)]

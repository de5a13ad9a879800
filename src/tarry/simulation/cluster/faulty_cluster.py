"""Faulty cluster: three brokers, an etcd and one topic, faults of the seed, peace, and the checks.

What clients do and what they have to see is a subclass's own: `cluster_run` writes and reads
records, `groups` commits offsets and shares the topic among members.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.client.settings import SettingValue
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import Keys
from tarry.cluster.state.state import ClusterState
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.topic_admin import TopicAdmin, TopicPlan
from tarry.simulation.cluster.cluster_faults import ClusterFaults
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.etcd_node import EtcdNode
from tarry.simulation.cluster.member_checker import MemberChecker
from tarry.simulation.cluster.remaker import MadeTopic, MadeTopicWriter, Remaker
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.cluster.replica_operator import ReplicaOperator
from tarry.simulation.cluster.row_checker import RowChecker
from tarry.simulation.cluster.scenario import (
    OPERATED,
    TOO_FEW,
    TOPIC_MADE_AGAIN,
    ClusterScenario,
)
from tarry.simulation.cluster.served_checker import ServedChecker
from tarry.simulation.cluster.too_few import TooFew
from tarry.simulation.faults import FaultPlan
from tarry.simulation.product.history import ProductHistory
from tarry.simulation.product.producer import ProducerNode
from tarry.simulation.trace import Trace
from tarry.simulation.world import World

BROKERS: Final = 3
TOPIC: Final = "t0"
# Prefix of all keys in etcd.
PREFIX: Final = "/simulated/"
# Longest time until everything is in sync once all is healed: lease, lag, and room beyond them.
_HEALED_MS_MAX: Final = 60_000
_START_MS_MAX: Final = 20_000
# Time between two looks whether all is well again.
_LOOK_MS: Final = 25
# Faults that were added later are drawn from a seed of their own.
_WIDER_SEED: Final = 0x31DE
# Time for the watches to bring the last rows.
_LAST_ROWS_MS: Final = 1_000

CLIENT_SETTINGS: Final[dict[str, SettingValue]] = {
    "bootstrap.servers": "b1:9092,b2:9092,b3:9092",
    "request.timeout.ms": 2_000,
    "metadata.max.age.ms": 3_000,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.max.ms": 200,
}


class Observers(NodeObserver):
    """Several observers of the same nodes, which look one after the other."""

    def __init__(self) -> None:
        self.all: list[NodeObserver] = []

    def after_turn(self, node: BrokerNode) -> None:
        for one in self.all:
            one.after_turn(node)

    def on_life_begins(self, node: BrokerNode) -> None:
        for one in self.all:
            one.on_life_begins(node)


class FaultyCluster:
    """Run of one seed.  `run` returns a sentence for each violation."""

    def __init__(
        self,
        seed: int,
        trace: Trace | None,
        make_scenario: Callable[[Random], ClusterScenario],
        setting: str,
    ) -> None:
        self.world = World(seed, trace)
        self.scenario = make_scenario(self.world.random)
        if setting:
            self.scenario.favour(setting, Random(seed ^ _WIDER_SEED))
        else:
            self.scenario.widen(Random(seed ^ _WIDER_SEED))
        self.etcd_node = EtcdNode(self.world)
        self.etcd_node.etcd.late_expiry_ms_max = 500
        self.checker = ReplicaChecker(self.etcd_node)
        self.rows = RowChecker(self.etcd_node.etcd, PREFIX, self.checker.new_disks)
        self.observers = Observers()
        self.members_seen = MemberChecker(
            self.etcd_node, self.checker, PREFIX, self.scenario.lag_ms
        )
        self.rows.may_prefer = self.scenario.is_operated
        self.checker.replicas_move = self.scenario.is_operated
        self.observers.all += [self.checker, self.members_seen]
        self.nodes = [self._node(number) for number in range(1, BROKERS + 1)]
        self.served = ServedChecker(self.checker, self.nodes)
        if self.scenario.is_of_disks:
            self.observers.all.append(self.served)
        self.too_few = TooFew(self.world, self.etcd_node, self.nodes)
        first = self.nodes[0]
        self.context = RunContext(first.clock, first.network, self.world.random, self.world.trace)
        self.history = ProductHistory()
        self.producers: list[ProducerNode] = []
        self.made = MadeTopic()
        if self.scenario.is_of_disks:
            # Long enough for another broker to lead a log that one broker's disk refuses.
            self.made.partitions = 2
            self.made.life_ms_max = 9_000
        self.faults = ClusterFaults(
            self.world, self.etcd_node, self.nodes, self.checker, self.scenario
        )

    @property
    def fault_counts(self) -> dict[str, int]:
        """Return how often each kind of fault has struck."""
        counts = self.faults.counts
        if self.too_few.has_begun:
            counts[TOO_FEW] = 1
        if self.made.count:
            counts[TOPIC_MADE_AGAIN] = self.made.count
        if self.scenario.is_operated:
            counts[OPERATED] = 1
        return counts

    @property
    def client_settings(self) -> dict[str, SettingValue]:
        """Settings that all clients of the product have in common."""
        return {**CLIENT_SETTINGS, **self.scenario.client_settings}

    def run(self) -> list[str]:
        """Run the seed; return a sentence for each violation."""
        if not self.start():
            return ["the brokers and their topic did not come to be"]
        self._go_wrong()
        return self.finish()

    def finish(self) -> list[str]:
        """Heal everything, wait until all is well, and check."""
        self.context.is_quiet = True
        self.faults.heal()
        if not self._wait_until_well():
            return [*self.seen_at_once(), *self.unhealed()]
        return self.violations()

    # --- For subclasses.

    def begin_clients(self) -> None:
        """Start the clients, when brokers, topic and producers are there."""
        raise NotImplementedError

    def strike(self) -> None:
        """Inject the next fault."""
        if not self.scenario.is_of_an_hour:
            self.faults.strike()
        elif not self.too_few.has_begun:
            self.too_few.begin()

    def unfinished(self, brokers: list[Broker]) -> list[str]:
        """Return what clients still have to do when all brokers are well."""
        raise NotImplementedError

    def wrong_at_the_end(self) -> list[str]:
        """Return a sentence for each promise to a client that does not hold."""
        raise NotImplementedError

    # --- What happens.

    def _node(self, number: int) -> ClusterNode:
        scenario = self.scenario
        plan = FaultPlan()
        plan.flush_ms_max = scenario.flush_ms_max
        plan.delay_ms_max = scenario.delay_ms_max
        node = ClusterNode(self.world, self.etcd_node, number, plan, self.observers)
        # A follower that lags leaves soon, so that there is time for it to come back.
        node.settings["replica.lag.time.max.ms"] = str(scenario.lag_ms)
        node.settings.update(scenario.broker_settings)
        if scenario.prefers_leaders:
            node.settings["leader.imbalance.check.interval.seconds"] = "1"
            node.settings["leader.imbalance.per.broker.percentage"] = "0"
        return node

    def start(self) -> bool:
        """Start brokers, topic and clients; False if that takes too long."""
        world = self.world
        end_ms = world.agenda.now_ms + _START_MS_MAX
        for node in self.nodes:
            node.start()
        world.run_until(end_ms, self._do_all_know_all)
        plan = TopicPlan(TOPIC, self.scenario.partitions, is_lasting=True)
        plan.replication_factor = BROKERS
        plan.configs["message.timestamp.after.max.ms"] = str(1 << 62)
        plan.configs["min.insync.replicas"] = str(self.scenario.floor)
        plan.configs.update(self.scenario.topic_configs)
        if self.scenario.is_unclean:
            plan.configs["unclean.leader.election.enable"] = "true"
        TopicAdmin(self.context, "admin", [plan], pause_ms_max=1_000).start()
        world.run_until(end_ms, lambda: len(self.context.topics) == 1)
        if not self.context.topics:
            return False
        for number, acks in enumerate(self.scenario.producer_acks):
            self.producers.append(self._producer(f"producer{number}", acks))
        if self.scenario.remakes_topic:
            self._begin_remaking()
        self.begin_clients()
        if self.scenario.is_operated:
            self._begin_operating()
        return True

    def visitor_context(self, node: ClusterNode) -> RunContext:
        """Return the context of a client that connects to this broker alone."""
        world = self.world
        return RunContext(node.clock, node.network, world.random, world.trace)

    def _begin_remaking(self) -> None:
        """Start clients that make a topic, write to it and delete it, over and over."""
        made = self.made
        remaker = Remaker(
            self.visitor_context(self.nodes[0]), "remaker", self.context, made, BROKERS
        )
        remaker.start()
        for node in self.nodes:
            name = f"writer{node.broker_id}"
            MadeTopicWriter(self.visitor_context(node), name, self.context, made).start()

    def _begin_operating(self) -> None:
        """Start an operator at each broker."""
        scenario = self.scenario
        for node in self.nodes:
            ReplicaOperator(
                self.visitor_context(node),
                f"operator{node.broker_id}",
                self.context,
                self.checker,
                TOPIC,
                brokers=BROKERS,
                # Each partition has to survive the loss of a disk where disks may be lost.
                replicas_min=2 if scenario.floor == 2 else 1,
                pause_ms_max=scenario.operator_pause_ms_max,
            ).start()

    def _producer(self, name: str, acks: str) -> ProducerNode:
        settings: dict[str, SettingValue] = {
            **self.client_settings,
            "acks": acks,
            "enable.idempotence": acks == "all",
            "delivery.timeout.ms": 2 * _HEALED_MS_MAX,
            "max.block.ms": _HEALED_MS_MAX,
        }
        if self.scenario.batch_bytes:
            # Each record is sent in a batch of its own.
            settings["batch.size"] = 1
        producer = ProducerNode(
            self.world,
            self.context,
            name,
            settings,
            self.history,
            self.scenario.producer_pause_ms_max,
        )
        producer.batch_bytes = self.scenario.batch_bytes
        producer.delays_ms = self.scenario.delays_ms
        return producer

    def _do_all_know_all(self) -> bool:
        return all(
            node.is_ready
            and node.broker is not None
            and len(node.broker.store.state.placeable_ids) == BROKERS
            for node in self.nodes
        )

    def _go_wrong(self) -> None:
        """Inject faults, one after the other."""
        world = self.world
        end_ms = world.agenda.now_ms + self.scenario.duration_ms
        while world.agenda.now_ms < end_ms:
            world.run_for(1 + world.random.randrange(self.scenario.pause_ms_max))
            self.strike()
        world.run_for(world.random.randrange(self.scenario.pause_ms_max))

    def _wait_until_well(self) -> bool:
        """Wait until nothing is amiss, now and a second later; False if that takes too long.

        Etcd that has just come back may yet end leases.
        """
        world = self.world
        end_ms = world.agenda.now_ms + _HEALED_MS_MAX
        while world.agenda.now_ms < end_ms:
            if not self.unhealed():
                world.run_for(_LAST_ROWS_MS)
                if not self.unhealed():
                    return True
            world.run_for(_LOOK_MS)
        return False

    # --- The end.

    def brokers(self) -> list[Broker]:
        """Return the brokers that run."""
        return [node.broker for node in self.nodes if node.broker is not None]

    def unhealed(self) -> list[str]:
        """Return a sentence for each thing that is not as it was before the faults."""
        brokers = self.brokers()
        found = [f"{node.name} is not ready" for node in self.nodes if not node.is_ready]
        found += [f"{one.name} is not settled" for one in self.producers if not one.is_settled]
        if found or len(brokers) < BROKERS:
            return found or ["a broker does not run"]
        found = [*self.checker.unhealed(brokers), *self.unfinished(brokers)]
        # The last row may still be on its way to a broker.
        return found or self._untold(brokers)

    def _untold(self, brokers: list[Broker]) -> list[str]:
        """Return a sentence for each broker whose state differs from that of etcd's rows."""
        told = self._replay()
        return [
            f"b{broker.broker_id} and etcd do not say the same"
            for broker in brokers
            if sorted(map(repr, broker.store.state.snapshot())) != told
        ]

    def seen_at_once(self) -> list[str]:
        """Return the violations that were noticed when they happened."""
        found = [*self.rows.violations, *self.checker.violations, *self.members_seen.violations]
        found += [*self.served.violations, *self.context.history.violations]
        found += [*self.faults.violations, *self.too_few.violations]
        for node in self.nodes:
            found += node.violations
        return found

    def violations(self) -> list[str]:
        """Return all violations, when all has healed."""
        return [*self.seen_at_once(), *self.checker.unlike()] or self.wrong_at_the_end()

    def _replay(self) -> list[str]:
        """Return the state that follows from etcd's rows alone."""
        keys = Keys(PREFIX)
        known = KnownRows(keys)
        state = ClusterState()
        for record in known.apply(known.difference(self.etcd_node.etcd.rows(keys.prefix))):
            state.apply(record)
        return sorted(map(repr, state.snapshot()))

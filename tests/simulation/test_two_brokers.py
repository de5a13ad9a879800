"""Two brokers in one world that know nothing of each other: each has disk, clock and network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tarry.base.errors import StorageError
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import start_broker
from tarry.simulation import faults
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.checkers import check_history
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.history import ACKNOWLEDGED
from tarry.simulation.clients.topic_admin import TopicAdmin, TopicPlan
from tarry.simulation.faults import FaultPlan
from tarry.simulation.records.collector import RecordCollector
from tarry.simulation.records.producer import ProducerPlan, SimulatedProducer
from tarry.simulation.trace import Trace
from tarry.simulation.world import World


class Site:
    """A broker with a producer and a topic of its own."""

    def __init__(self, world: World, name: str) -> None:
        self.is_device_gone = False
        self.node = BrokerNode(world, FaultPlan(), NodeObserver(), name=name, start=self._start)
        self.context = RunContext(self.node.clock, self.node.network, world.random, world.trace)
        self.history = self.context.history
        self.node.start()
        TopicAdmin(self.context, f"{name}-admin", [TopicPlan(name, 2, is_lasting=True)]).start()
        plan = ProducerPlan()
        plan.batches = 1_000
        self.producer = SimulatedProducer(self.context, f"{name}-producer", plan)
        self.producer.start()

    def _start(self, *arguments: Any) -> Broker:
        if self.is_device_gone:
            raise StorageError("the device is gone")
        return start_broker(*arguments)

    def finish(self) -> None:
        """Bring to its end what is under way, and read everything."""
        self.context.is_quiet = True
        self._run_until(lambda: self.producer.is_done)
        collector = RecordCollector(self.context, f"{self.node.name}-collector")
        collector.start()
        self._run_until(lambda: collector.is_done)

    def _run_until(self, is_done: Callable[[], bool]) -> None:
        world = self.node.world
        world.run_until(world.agenda.now_ms + 20_000, is_done)

    def acknowledged(self) -> int:
        return sum(batch.outcome == ACKNOWLEDGED for batch in self.history.batches)

    def topics(self) -> list[str]:
        assert self.node.broker is not None
        return self.node.broker.topics.names()


def two_sites(trace: Trace | None = None) -> tuple[World, Site, Site]:
    world = World(7, trace)
    return world, Site(world, "east"), Site(world, "west")


def test_each_broker_has_the_topics_and_records_that_were_sent_to_it() -> None:
    world, east, west = two_sites()

    world.run_for(3_000)

    assert east.acknowledged() > 10
    assert west.acknowledged() > 10
    assert east.topics() == ["east"]
    assert west.topics() == ["west"]
    assert east.node.disk.paths() != west.node.disk.paths()


def test_one_broker_goes_on_while_the_other_is_down() -> None:
    world, east, west = two_sites()
    world.run_for(2_000)
    before = (east.acknowledged(), west.acknowledged())

    east.node.lose(faults.POWER)
    east.is_device_gone = True
    world.run_for(3_000)

    assert (east.node.life > 1, west.node.life) == (True, 1)
    assert east.acknowledged() == before[0]
    assert west.acknowledged() > before[1] + 10


def test_no_acknowledged_record_is_lost_by_either_of_them() -> None:
    world, east, west = two_sites()
    for site, kind in ((east, faults.POWER), (west, faults.KILL), (east, faults.KILL)):
        world.run_for(1_500)
        site.node.lose(kind)

    for site in (east, west):
        site.finish()

    for site in (east, west):
        assert site.acknowledged() > 20
        assert len(site.history.finals) == 2
        assert check_history(site.history) == []
        assert site.node.violations == []


def test_their_clocks_stall_and_jump_apart() -> None:
    world, east, west = two_sites()
    world.run_for(500)

    east.node.busy_until_ms = world.agenda.now_ms + 5_000
    west.node.clock.wall_offset_ms += 3_600_000
    world.run_for(6_000)

    assert (east.node.clock.stalls, west.node.clock.stalls) == (1, 0)
    assert west.node.clock.alive_ms - east.node.clock.alive_ms > 4_000
    assert west.node.clock.now_wall_ms - east.node.clock.now_wall_ms == 3_600_000
    assert east.node.clock.now_ms == west.node.clock.now_ms


def test_a_seed_of_two_brokers_has_one_trace() -> None:
    digests = []
    for _ in range(2):
        trace = Trace()
        two_sites(trace)[0].run_for(2_000)
        digests.append(trace.digest())

    assert digests[0] == digests[1]

"""Workloads of the product's own clients: `clients` choose their partitions, `members` share them.

When all has healed and every client is settled, a calm begins for members: one more comes, another
leaves, and no record may be handed out twice.  Then all clients end in good order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.broker.broker import Broker
from tarry.group.classic.round import STABLE
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.checkers import check_history
from tarry.simulation.checkers.groups.rounds import classic_round
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import ScriptedClient
from tarry.simulation.clients.topic_admin import TopicAdmin
from tarry.simulation.connection import ClientSocket
from tarry.simulation.faults import DAMAGE, Fault, draw_faults
from tarry.simulation.product import scenario as kinds
from tarry.simulation.product.checkers import check_contents, check_members, check_promised
from tarry.simulation.product.client_node import ClientNode
from tarry.simulation.product.consumer import ConsumerNode
from tarry.simulation.product.history import ProductHistory
from tarry.simulation.product.lost_counts import LostCounts
from tarry.simulation.product.member import MemberNode
from tarry.simulation.product.producer import ProducerNode
from tarry.simulation.product.scenario import (
    GROUP,
    ProductScenario,
    draw_clients_scenario,
    draw_members_scenario,
)
from tarry.simulation.records.collector import RecordCollector
from tarry.simulation.workload import Workload
from tarry.wire.compression import NONE, ZSTD

_ADMIN_PAUSE_MS_MAX: Final = 3_000
_LOOK_MS: Final = 50
_SLOW_MS: Final = 3_000
_SLOW_DELAY_MS_MAX: Final = 700
_CALM_MS: Final = 2_500
# One of so many polls with records is followed by a failure of the user's loop.
_FAILS_EVERY: Final = 8


class ProductWorkload(Workload):
    """Base of both workloads."""

    def __init__(self, random: Random, draw_scenario: Callable[[Random], ProductScenario]) -> None:
        super().__init__()
        self._random = random
        self._scenario = draw_scenario(random)
        self.duration_ms = self._scenario.duration_ms
        self.settings = self._scenario.settings
        self.faults = draw_faults(random, self.duration_ms)
        for _ in range(random.randrange(3)):
            damage = Fault(random.randrange(self.duration_ms), DAMAGE)
            damage.number = 1
            self.faults.faults.append(damage)
        self._history = ProductHistory()
        self._nodes: list[ClientNode] = []
        self._names: dict[str, int] = {}
        # Number of clients whose start is planned.
        self._coming = 0
        self._has_begun = False
        self._is_ending = False

    def prepare(self, context: RunContext, node: BrokerNode) -> None:
        self._context = context
        self._node = node
        self._world = node.world
        context.codecs = [NONE, ZSTD]
        self._admin = TopicAdmin(
            context, "admin", self._scenario.topics, pause_ms_max=_ADMIN_PAUSE_MS_MAX
        )

    def begin(self) -> None:
        self._admin.start()
        self._begin_when_topics_are_made()

    def _begin_when_topics_are_made(self) -> None:
        if len(self._context.topics) < len(self._scenario.topics):
            self._context.clock.after(_LOOK_MS, self._begin_when_topics_are_made)
            return
        self._has_begun = True
        for number in range(len(self._scenario.producers)):
            self._plan(partial(self._add_producer, number))
        self.begin_readers()
        for at_ms, kind in self._scenario.client_faults:
            self._context.clock.after(at_ms, partial(self._go_wrong, kind))

    def begin_readers(self) -> None:
        """Plan the start of all readers.  For subclasses."""
        raise NotImplementedError

    def _plan(self, add: Callable[[], None]) -> None:
        """Plan the start of a client within 500 ms."""
        self._coming += 1
        self._context.clock.after(self._random.randrange(500), partial(self._come, add))

    def _come(self, add: Callable[[], None]) -> None:
        self._coming -= 1
        add()

    def _name(self, kind: str) -> str:
        """Return a name that no other client of the run has."""
        self._names[kind] = self._names.get(kind, 0) + 1
        return f"{kind}{self._names[kind]}"

    def _add_producer(self, number: int) -> None:
        scenario = self._scenario
        self._nodes.append(
            ProducerNode(
                self._world,
                self._context,
                self._name("producer"),
                scenario.producers[number],
                self._history,
                scenario.producer_pause_ms_max,
            )
        )

    def sockets(self) -> list[ClientSocket]:
        sockets = [] if self._admin.socket is None else [self._admin.socket]
        return sockets + [socket for node in self._nodes for socket in node.sockets()]

    # --- Faults of clients.

    def _living(self) -> list[ClientNode]:
        return [node for node in self._nodes if not node.is_gone]

    def _go_wrong(self, kind: str) -> None:
        living = self._living()
        if self._context.is_quiet or not living:
            return
        node = living[self._random.randrange(len(living))]
        self._context.trace.add(self._context.clock.now_ms, f"fault of {node.name}: {kind}")
        if kind == kinds.KILL:
            node.kill()
            self._plan(partial(self._replace, node))
        elif kind == kinds.STALL:
            node.stall(self._random.randrange(200, 6_000))
        elif kind == kinds.SLOW:
            conditions = self._context.network.conditions
            conditions.delay_ms_max = self._random.randrange(60, _SLOW_DELAY_MS_MAX)
            self._context.clock.after(_SLOW_MS, self._hurry)
        else:
            self._change_members(kind, node)

    def _hurry(self) -> None:
        self._context.network.conditions.delay_ms_max = self.faults.delay_ms_max

    def _replace(self, node: ClientNode) -> None:
        """Start a process in place of one that was killed."""
        if isinstance(node, ProducerNode):
            self._add_producer(self._random.randrange(len(self._scenario.producers)))

    def _change_members(self, kind: str, node: ClientNode) -> None:
        """Let a member come or go.  For groups."""

    # --- The end.

    def after_turn(self, broker: Broker) -> None:
        if self._context.is_quiet and not self._is_ending and self._is_settled(broker):
            self._on_settled()

    def _on_settled(self) -> None:
        """End all clients: each has finished its work."""
        self._is_ending = True
        for node in self._living():
            if isinstance(node, ConsumerNode):
                node.is_to_end = True
            else:
                node.kill()

    def _is_settled(self, broker: Broker) -> bool:
        return not any(self._unsettled(broker))

    def _unsettled(self, broker: Broker) -> list[str]:
        """Return a sentence for each thing that is still to be done."""
        if not self._admin.is_done or not self._has_begun:
            return ["the topics are not made"]
        if self._coming:
            return [f"{self._coming} clients are still to come"]
        ends = self._ends(broker)
        found = [f"{node.name} is stopped" for node in self._living() if node.is_stalled]
        for node in self._living():
            if isinstance(node, ProducerNode) and not node.is_settled:
                found.append(f"{node.name} has records that are not acknowledged")
            elif isinstance(node, ConsumerNode) and not isinstance(node, MemberNode):
                found += [
                    f"{node.name} is at {node.position(place)} of {place}, which ends at {end}"
                    for place, end in ends.items()
                    if node.position(place) != end
                ]
        return found

    def _ends(self, broker: Broker) -> dict[TopicPartition, int]:
        """Return the high watermark of each partition."""
        return {
            (topic.name, index): broker.topics[topic.name].partitions[index].high_watermark
            for topic in self._context.topics
            for index in range(topic.partitions)
        }

    def is_done(self, broker: Broker) -> bool:
        # The broker has noticed the ends of all clients; only the administrator is connected.
        sockets = self._node.network.sockets()
        return self._is_ending and not self._living() and len(sockets) <= 1

    def unfinished_sentences(self) -> list[str]:
        broker = self._node.broker
        unsettled = [] if broker is None else self._unsettled(broker)
        return unsettled or [f"{node.name} does not end" for node in self._living()]

    def collectors(self) -> list[ScriptedClient]:
        return [RecordCollector(self._context, "collector")]

    def check(self) -> list[str]:
        return [
            *check_history(self._context.history),
            *check_promised(self._context, self._history),
            *check_contents(self._context, self._history),
        ]


class ClientsWorkload(ProductWorkload):
    """Producers, and consumers that choose their partitions."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, draw_clients_scenario)

    def prepare(self, context: RunContext, node: BrokerNode) -> None:
        super().prepare(context, node)
        self._lost_counts = LostCounts(context, node, self._producers)

    def _producers(self) -> list[ProducerNode]:
        return [node for node in self._living() if isinstance(node, ProducerNode)]

    def begin_readers(self) -> None:
        # The duration chooses the seeds, so that nothing more of a run is drawn.
        if self.duration_ms % 4 == 1:
            self._lost_counts.look()
        for _ in range(self._scenario.consumers):
            self._plan(self._add_consumer)

    def _add_consumer(self) -> None:
        scenario = self._scenario
        self._nodes.append(
            ConsumerNode(
                self._world,
                self._context,
                self._name("consumer"),
                scenario.consumer_settings,
                self._history,
                scenario.work_ms_max,
            )
        )

    def _replace(self, node: ClientNode) -> None:
        if isinstance(node, ConsumerNode):
            self._add_consumer()
        else:
            super()._replace(node)


class MembersWorkload(ProductWorkload):
    """A producer, and a group that shares what it writes."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, draw_members_scenario)
        self._calm_end_ms = -1
        self._static_left = self._scenario.static_members
        # In a third of the seeds the loops of users fail at times.
        self._fails_every = _FAILS_EVERY if self.duration_ms % 3 == 0 else 0

    def begin_readers(self) -> None:
        for _ in range(self._scenario.members):
            self._plan(self._add_member)

    def _add_member(self, instance_id: str = "") -> None:
        scenario = self._scenario
        name = self._name("member")
        settings = dict(scenario.member_settings)
        if not instance_id and self._static_left:
            self._static_left -= 1
            instance_id = f"instance-{name}"
        if instance_id:
            settings["group.instance.id"] = instance_id
        member = MemberNode(
            self._world, self._context, name, settings, self._history, scenario.work_ms_max
        )
        member.fails_every = self._fails_every
        self._nodes.append(member)

    def _members(self) -> list[MemberNode]:
        return [node for node in self._living() if isinstance(node, MemberNode)]

    def _replace(self, node: ClientNode) -> None:
        if isinstance(node, MemberNode):
            # A static member comes back under its name.
            self._add_member(node.settings.instance_id or "")
        else:
            super()._replace(node)

    def _change_members(self, kind: str, node: ClientNode) -> None:
        # A member that was told to leave may still be there.  At least one member stays.
        members = [member for member in self._members() if not member.is_to_end]
        if kind == kinds.COME:
            self._add_member()
        elif len(members) > 1:
            members[self._random.randrange(len(members))].is_to_end = True

    def after_turn(self, broker: Broker) -> None:
        for node in self._nodes:
            if isinstance(node, MemberNode) and node.is_fenced:
                node.is_fenced = False
                self._restart_fenced(node)
            elif isinstance(node, MemberNode) and node.has_failed and node.is_gone:
                node.has_failed = False
                self._plan(partial(self._add_member, node.settings.instance_id or ""))
        super().after_turn(broker)

    def _restart_fenced(self, node: MemberNode) -> None:
        """Start the instance again, as its supervisor does, unless another process has its name."""
        instance_id = node.settings.instance_id or ""
        if not any(member.settings.instance_id == instance_id for member in self._members()):
            self._plan(partial(self._add_member, instance_id))

    # --- The end.

    def _unsettled(self, broker: Broker) -> list[str]:
        found = super()._unsettled(broker)
        if found or not self._context.topics:
            return found
        if self._calm_end_ms >= 0 and self._context.clock.now_ms < self._calm_end_ms:
            return ["the calm goes on"]
        ends = self._ends(broker)
        members = self._members()
        shard = broker.groups.shard_of(GROUP)
        now = None if shard is None else classic_round(shard, GROUP)
        living = sorted(member.consumer_core.membership.member_id for member in members)
        if now is None or now.phase != STABLE or sorted(now.members) != living:
            return [f"the group is not stable with its living members {living}"]
        owned = sorted(place for member in members for place in member.owned)
        if owned != sorted(ends):
            return [f"{owned} are read"]
        reached: dict[TopicPartition, int] = {}
        for member in members:
            for place in member.owned:
                reached[place] = member.position(place)
        return [
            f"{place} is read up to {reached[place]}, not {end}"
            for place, end in ends.items()
            if reached[place] != end
        ]

    def _on_settled(self) -> None:
        if self._history.calm_ms >= 0:
            super()._on_settled()
            return
        clock = self._context.clock
        self._history.calm_ms = clock.now_ms
        self._calm_end_ms = clock.now_ms + _CALM_MS
        self._add_member()
        for node in self._living():
            if isinstance(node, ProducerNode):
                node.extra_records = 3
        leaver = self._members()[0]
        clock.after(_CALM_MS // 2, partial(self._leave, leaver))

    def _leave(self, member: MemberNode) -> None:
        member.is_to_end = True

    def check(self) -> list[str]:
        finals = self._context.history.finals
        ends = {
            (topic.name, index): finals[(topic.topic_id, index)].end_offset
            for topic in self._context.topics
            for index in range(topic.partitions)
            if (topic.topic_id, index) in finals
        }
        return [*super().check(), *check_members(self._history, ends)]

"""Observer of coordinators that move from one broker to another.

A broker that gives a group up answers all requests that wait.  A broker that has a group knows
exactly what the group's log holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.replication.leader import REST_LOOK_MS
from tarry.group.classic.state import ClassicGroup
from tarry.protocol import api_keys
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.checkers.groups.log_replay import LogReplay
from tarry.simulation.checkers.groups.rounds import waits_in_vain
from tarry.simulation.cluster.groups.history import MovedGroup
from tarry.simulation.cluster.groups.scenario import GROUP
from tarry.simulation.cluster.remaker import MADE_AGAIN
from tarry.simulation.groups.history import GroupHistory

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

GROUP_PURGATORIES: Final = ("Join", "Sync", "Heartbeat", "Commit")
_OF_MEMBERS: Final = (api_keys.JOIN_GROUP, api_keys.SYNC_GROUP)


class CoordinatorWatch(NodeObserver):
    """Observer of all brokers of one world."""

    def __init__(self, group: MovedGroup) -> None:
        self.violations: list[str] = []
        # Number of times that a broker was seen to become the group's coordinator.
        self.moves = 0
        self._group = group
        self._coordinators: dict[str, bool] = {}
        # Time since which a broker may not act for any of its groups, by its own clock.
        self._resting_ms: dict[str, int] = {}
        self._replays: dict[str, LogReplay] = {}

    def on_life_begins(self, node: BrokerNode) -> None:
        replay = self._replays.get(node.name)
        if replay is not None:
            replay.on_life_begins()
        self._coordinators[node.name] = False
        self._resting_ms.pop(node.name, None)
        self._group.note_loading(node.name, node.world.agenda.now_ms, is_loading=False)

    def after_turn(self, node: BrokerNode) -> None:
        """Check which operations wait in the broker, and what it knows of groups."""
        broker = node.broker
        if broker is None:
            return
        replay = self._replays.get(node.name)
        if replay is None:
            replay = self._replays[node.name] = LogReplay(node.disk, GroupHistory(), _is_deleted)
        # The node may have got a new disk.
        replay.disk = node.disk
        replay.forget_others(broker)
        # Records that are committed at the end of this turn are applied, and answered, in the next.
        if not broker.groups.has_work_left():
            for sentence in replay.after_turn(broker, node.network.turn):
                self._violate(f"{node.name}: {sentence}")
            self._check_rounds(node, broker)
        shard = broker.groups.shard_of(GROUP)
        is_coordinator = shard is not None
        is_loading = shard is not None and shard.runtime.is_loading()
        self._group.note_loading(node.name, node.world.agenda.now_ms, is_loading=is_loading)
        if is_coordinator and not self._coordinators.get(node.name, False):
            self.moves += 1
        self._coordinators[node.name] = is_coordinator
        if not broker.groups.shards:
            self._check_nothing_waits(node, broker)
        self._check_who_rests(node, broker)
        for socket in node.network.sockets():
            if socket.has_surplus_answer:
                self._violate(f"{node.name} answers more often than it was asked")
            head = socket.head()
            if (
                # A broker that stops takes no new requests, and its connections end with it.
                node.is_serving
                and head is not None
                and head.api_key in _OF_MEMBERS
                and 0 <= head.delivered_turn < node.network.turn
                and not is_coordinator
            ):
                self._violate(
                    f"a request with API key {head.api_key} waits at {node.name}, which does not "
                    "coordinate its group"
                )

    def _check_rounds(self, node: BrokerNode, broker: Broker) -> None:
        """Check that no member waits for a round or an assignment that is there already."""
        for shard in broker.groups.shards.values():
            if shard.runtime.error_code == errors.NONE:
                for group_id, group in shard.groups.by_id.items():
                    assert isinstance(group, ClassicGroup)
                    sentence = waits_in_vain(group)
                    if sentence:
                        self._violate(f"{node.name}: group {group_id}: {sentence}")

    def _check_who_rests(self, node: BrokerNode, broker: Broker) -> None:
        """Check that no request waits in a broker whose groups another one may coordinate."""
        shards = broker.groups.shards.values()
        if not shards or not all(shard.runtime.rests() for shard in shards):
            self._resting_ms.pop(node.name, None)
            return
        now_ms = node.clock.own_ms
        if now_ms - self._resting_ms.setdefault(node.name, now_ms) <= REST_LOOK_MS:
            return
        if broker.groups.waiting:
            self._violate(
                f"{broker.groups.waiting} requests wait at {node.name}, which may not act for "
                "their groups any more"
            )

    def _check_nothing_waits(self, node: BrokerNode, broker: Broker) -> None:
        for purgatory in broker.parts.purgatories():
            if purgatory.name in GROUP_PURGATORIES and purgatory.delayed:
                self._violate(
                    f"{purgatory.delayed} wait in {purgatory.name} of {node.name}, which "
                    "coordinates nothing"
                )
        if broker.groups.waiting:
            self._violate(
                f"{broker.groups.waiting} requests wait at {node.name}, which coordinates nothing"
            )

    def _violate(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)


def _is_deleted(topic: str) -> bool:
    return topic == MADE_AGAIN

"""Workload of groups: members, simple consumers and administrators over a few topics.

When the faults are over, every group becomes Stable with exactly its living members, or empty,
within session time-out, initial delay and rebalance time-out together.  At the end all members and
groups are removed, and nothing waits any more.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.cluster.state.topic_names import OFFSETS_TOPIC
from tarry.group.classic.round import (
    EMPTY,
    PHASE_NAMES,
    STABLE,
)
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.checkers.groups import check_groups
from tarry.simulation.checkers.groups.log_replay import LogReplay
from tarry.simulation.checkers.groups.rounds import RoundChecker, classic_round
from tarry.simulation.checkers.topics import check_topics
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import ScriptedClient, SimulatedClient
from tarry.simulation.clients.topic_admin import TopicAdmin
from tarry.simulation.faults import (
    PLACES_OF_GROUPS,
    READ_FAULT,
    WRITE_FAULT,
    draw_faults,
    without_loss_of_power,
)
from tarry.simulation.groups.admin import GroupAdmin
from tarry.simulation.groups.collector import GroupCollector, LastLook
from tarry.simulation.groups.context import GroupsContext
from tarry.simulation.groups.history import ALL, GroupHistory, OffsetWrite
from tarry.simulation.groups.member import SimulatedMember
from tarry.simulation.groups.scenario import GroupPlan, draw_groups_scenario
from tarry.simulation.groups.simple_consumer import SimpleConsumer
from tarry.simulation.workload import Workload

# Time for connections to come again, and for a broker to start and load.
_UNREST_MS: Final = 500
# Time for which the process stands still before a write of groups fails.
_GATHERING_MS: Final = 300
# Longest time until the administrator of topics notices that all is quiet.
_ADMIN_PAUSE_MS_MAX: Final = 3_000


class GroupsWorkload(Workload):
    """Members, simple consumers, administrators and their checkers."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        # Operations of members may wait at rest: members live on until they are removed.
        self.waits_at_rest = ("Join", "Sync", "Heartbeat", "Commit")
        self._random = random
        self._scenario = draw_groups_scenario(random)
        self.duration_ms = self._scenario.duration_ms
        self.settings = self._scenario.settings
        self.faults = draw_faults(random, self.duration_ms, PLACES_OF_GROUPS)
        if self.settings.get("flush.policy") == "os":
            without_loss_of_power(self.faults)
        self._members: list[SimulatedMember] = []
        self._simple: list[SimpleConsumer] = []
        groups = self._scenario.groups
        # Within this time all groups are Stable, whatever else is still under way.
        self._stable_ms_max = (
            max(group.session_timeout_ms_max for group in groups)
            + max(group.rebalance_timeout_ms_max for group in groups)
            + self._scenario.initial_delay_ms
            + _UNREST_MS
        )

    def prepare(self, context: RunContext, node: BrokerNode) -> None:
        self._context = context
        self._node = node
        self._disk = node.disk
        self._history = GroupHistory(context.network.turn_times_ms)
        self._history.has_size_limit = self._scenario.group_size_max > 0
        if self._scenario.retention_minutes:
            self._history.retention_ms = self._scenario.retention_minutes * 60_000
        self._groups = GroupsContext(context, self._history, self._scenario)
        self._groups.flush_ms_max = self.faults.flush_ms_max
        self._groups.may_fail_to_load = self.faults.has(READ_FAULT)
        pause_ms_max = min(_ADMIN_PAUSE_MS_MAX, self._scenario.admin_pause_ms_max)
        self._admin = TopicAdmin(context, "admin", self._scenario.topics, pause_ms_max=pause_ms_max)
        self._group_admin = GroupAdmin(self._groups, "group-admin", self._scenario.groups)
        self._rounds = RoundChecker()
        self._stable_due_ms = -1
        self._replay = LogReplay(node.disk, self._history, self._is_topic_deleted)

    def begin(self) -> None:
        self._admin.start()
        self._group_admin.start()
        self._add_write_faults()
        for group in self._scenario.groups:
            if group.is_simple:
                self._simple.append(SimpleConsumer(self._groups, f"s-{group.name}", group.name))
                self._simple[-1].start()
            for number, plan in enumerate(group.members):
                member = SimulatedMember(self._groups, f"{group.name}-m{number}", group, plan)
                self._members.append(member)
                self._context.clock.after(self._random.randrange(2_000), member.start)

    def _add_write_faults(self) -> None:
        """Plan failures of writes to the groups' own topic, and of no others."""
        if not self.faults.has(WRITE_FAULT):
            return
        for _ in range(1 + self._random.randrange(8)):
            self._context.clock.after(self._random.randrange(self.duration_ms), self._fail_a_write)

    def _fail_a_write(self) -> None:
        """Refuse the next append; while the process stands still, several of a group gather."""
        if not self._context.is_quiet:
            self._node.busy_until_ms = self._context.clock.now_ms + _GATHERING_MS
            self._disk.fail_writes(1, OFFSETS_TOPIC)

    def clients(self) -> list[SimulatedClient]:
        return [self._admin, self._group_admin, *self._simple, *self._members]

    def collectors(self) -> list[ScriptedClient]:
        names = [group.name for group in self._scenario.groups]
        return [
            GroupCollector(self._groups, "collector", names),
            LastLook(self._groups, "last-look", names),
        ]

    # --- At rest.

    def is_done(self, broker: Broker) -> bool:
        return (
            self._admin.is_done
            and self._group_admin.is_done
            and all(simple.is_done for simple in self._simple)
            and all(member.is_done or member.is_settled for member in self._members)
            and not any(self._unrests(broker))
        )

    def unfinished_sentences(self) -> list[str]:
        sentences = [
            f"{member.name} lives and is not settled"
            for member in self._members
            if not member.is_done and not member.is_settled
        ]
        if self._broker is not None:
            sentences += [sentence for sentence in self._unrests(self._broker) if sentence]
        return sentences

    _broker: Broker | None = None

    def _unrest_of(self, plan: GroupPlan, broker: Broker) -> str:
        """Return why a group is not Stable with its living members, or ""."""
        living = sorted(
            member.member_id
            for member in self._members
            if member.group is plan and not member.is_done
        )
        shard = broker.groups.shard_of(plan.name)
        now = None if shard is None else classic_round(shard, plan.name)
        if now is None or now.phase == EMPTY:
            return f"group {plan.name} has no members, and {living} live" if living else ""
        if now.phase != STABLE or sorted(now.members) != living or now.pending_members:
            return (
                f"group {plan.name} is {PHASE_NAMES[now.phase]} with {sorted(now.members)} and "
                f"open {list(now.pending_members)}, and {living} live"
            )
        return ""

    # --- Moments of the run, reported by the world.

    def on_start(self) -> None:
        has_read_faults = self.faults.has(READ_FAULT)
        if has_read_faults and not self._context.is_quiet and self._random.randrange(2) == 0:
            # Either recovery or loading cannot read the groups' log.
            self._disk.fail_reads(1, OFFSETS_TOPIC)

    def on_life_begins(self, broker: Broker) -> None:
        self._broker = broker
        self._replay.on_life_begins()
        self._rounds.on_life_begins()

    def settings_of(self, life: int) -> dict[str, str]:
        if not self._scenario.is_size_changing:
            return self.settings
        size_max = 1 + self._random.randrange(self._scenario.group_size_max + 1)
        return {**self.settings, "group.max.size": str(size_max)}

    def on_stall(self, turn: int) -> None:
        self._history.stall_turns.append(turn)
        self._rounds.on_stall()

    def after_turn(self, broker: Broker) -> None:
        violations = self._context.history.violations
        violations += self._replay.after_turn(broker, self._context.network.turn)
        violations += self._rounds.after_turn(broker)
        violations += self._late_unrest(broker)

    def _late_unrest(self, broker: Broker) -> list[str]:
        """Return why groups are not Stable, once the time for that is over."""
        context = self._context
        if not context.is_quiet or context.is_still:
            return []
        if self._stable_due_ms < 0:
            self._stable_due_ms = context.clock.now_ms + self._stable_ms_max
        if context.clock.now_ms < self._stable_due_ms:
            return []
        return [sentence for sentence in self._unrests(broker) if sentence]

    def _unrests(self, broker: Broker) -> list[str]:
        """Return for each group why it is not Stable with its living members, or ""."""
        return [self._unrest_of(group, broker) for group in self._scenario.groups]

    def on_life_ends(self) -> None:
        self._broker = None
        self._stable_due_ms = -1
        self._history.last_turns.append(self._context.network.turn)

    def on_collected(self, broker: Broker) -> None:
        coordinator = broker.groups
        for purgatory in broker.parts.purgatories():
            if purgatory.name not in self.waits_at_rest:
                continue
            if purgatory.delayed or purgatory.watched:
                self._context.history.violate(
                    f"{purgatory.delayed} operations wait in purgatory {purgatory.name} when all "
                    f"groups are gone, and {purgatory.watched} are watched"
                )
        if coordinator.waiting:
            self._context.history.violate(
                f"{coordinator.waiting} requests wait for groups when all of them are gone"
            )

    def _is_topic_deleted(self, name: str) -> bool:
        """Return true if a client has asked to delete the topic."""
        changes = self._context.history.topic_changes
        return any(not change.is_creation and change.name == name for change in changes)

    # --- The verdict.

    def check(self) -> list[str]:
        history = self._context.history
        for change in history.topic_changes:
            if not change.is_creation:
                # The offsets of a topic go some time after a request to delete the topic.
                write = OffsetWrite(("", change.name, ALL), "", -1)
                write.sent_turn = change.sent_turn
                self._history.writes.append(write)
        return [*history.violations, *check_groups(self._history), *check_topics(history)]

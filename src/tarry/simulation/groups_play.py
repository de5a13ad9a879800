"""The play of groups: members, simple consumers and administrators over a few topics.

With the faults over, every group is Stable with exactly those members that live, or has none,
within session time-out, initial delay and rebalance time-out together.  At the end all members and
groups are removed, and nothing waits any more.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.cluster.topic_names import OFFSETS_TOPIC
from tarry.group.state import EMPTY, PHASE_NAMES, STABLE
from tarry.simulation.checkers.groups import check_groups
from tarry.simulation.checkers.groups.log_replay import LogReplay
from tarry.simulation.checkers.groups.rounds import RoundChecker
from tarry.simulation.checkers.topics import check_topics
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.faults import (
    PLACES_OF_GROUPS,
    READ_FAULT,
    WRITE_FAULT,
    draw_faults,
    without_loss_of_power,
)
from tarry.simulation.group_history import ALL, GroupHistory, OffsetWrite
from tarry.simulation.group_scene import GroupPlan, draw_group_scene
from tarry.simulation.play import Play
from tarry.simulation.workload.actor import Actor, ScriptedActor
from tarry.simulation.workload.admin import Admin
from tarry.simulation.workload.group_admin import GroupAdmin
from tarry.simulation.workload.group_collector import GroupCollector, LastLook
from tarry.simulation.workload.group_stage import GroupStage
from tarry.simulation.workload.member import Member
from tarry.simulation.workload.simple_consumer import SimpleConsumer
from tarry.simulation.workload.stage import Stage

# For connections to come again, and for a broker to start and load.
_UNREST_MS: Final = 500
# So long at most the administrator of topics does not notice that all is quiet.
_ADMIN_PAUSE_MS_MAX: Final = 3_000


class GroupsPlay(Play):
    """See the module's text."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        # Members live on until they are removed.
        self.waits_at_rest = ("Join", "Sync", "Heartbeat", "Commit")
        self._random = random
        self._scene = draw_group_scene(random)
        self.duration_ms = self._scene.duration_ms
        self.settings = self._scene.settings
        self.faults = draw_faults(random, self.duration_ms, PLACES_OF_GROUPS)
        if self.settings.get("flush.policy") == "os":
            without_loss_of_power(self.faults)
        self._members: list[Member] = []
        self._simple: list[SimpleConsumer] = []
        groups = self._scene.groups
        # Within this time all groups are Stable, whatever else is still under way.
        self._stable_ms_max = (
            max(group.session_timeout_ms_max for group in groups)
            + max(group.rebalance_timeout_ms_max for group in groups)
            + self._scene.initial_delay_ms
            + _UNREST_MS
        )

    def enter(self, stage: Stage, disk: SimulatedDisk) -> None:
        self._stage = stage
        self._disk = disk
        self._history = GroupHistory(stage.network.turn_times_ms)
        self._history.has_size_limit = self._scene.group_size_max > 0
        if self._scene.retention_minutes:
            self._history.retention_ms = self._scene.retention_minutes * 60_000
        self._groups = GroupStage(stage, self._history, self._scene)
        self._groups.flush_ms_max = self.faults.flush_ms_max
        pause_ms_max = min(_ADMIN_PAUSE_MS_MAX, self._scene.admin_pause_ms_max)
        self._admin = Admin(stage, "admin", self._scene.topics, pause_ms_max=pause_ms_max)
        self._group_admin = GroupAdmin(self._groups, "group-admin", self._scene.groups)
        self._rounds = RoundChecker()
        self._stable_due_ms = -1
        self._replay = LogReplay(disk, self._history, self._is_topic_deleted)

    def begin(self) -> None:
        self._admin.start()
        self._group_admin.start()
        self._add_write_faults()
        for group in self._scene.groups:
            if group.is_simple:
                self._simple.append(SimpleConsumer(self._groups, f"s-{group.name}", group.name))
                self._simple[-1].start()
            for number, plan in enumerate(group.members):
                member = Member(self._groups, f"{group.name}-m{number}", group, plan)
                self._members.append(member)
                self._stage.clock.after(self._random.randrange(2_000), member.start)

    def _add_write_faults(self) -> None:
        """What groups write fails at times, and nothing else."""
        if not any(fault.kind == WRITE_FAULT for fault in self.faults.faults):
            return
        for _ in range(1 + self._random.randrange(8)):
            self._stage.clock.after(self._random.randrange(self.duration_ms), self._fail_a_write)

    def _fail_a_write(self) -> None:
        if not self._stage.is_quiet:
            self._disk.fail_writes(1, OFFSETS_TOPIC)

    def actors(self) -> list[Actor]:
        return [self._admin, self._group_admin, *self._simple, *self._members]

    def collectors(self) -> list[ScriptedActor]:
        names = [group.name for group in self._scene.groups]
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

    def complaints(self) -> list[str]:
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
        """Why a group is not Stable with its living members, or ""."""
        living = sorted(
            member.member_id
            for member in self._members
            if member.group is plan and not member.is_done
        )
        shard = broker.coordinator.shard_of(plan.name)
        now = None if shard is None else shard.group(plan.name).round
        if now is None or now.phase == EMPTY:
            return f"group {plan.name} has no members, and {living} live" if living else ""
        if now.phase != STABLE or sorted(now.members) != living or now.pending_members:
            return (
                f"group {plan.name} is {PHASE_NAMES[now.phase]} with {sorted(now.members)} and "
                f"open {list(now.pending_members)}, and {living} live"
            )
        return ""

    # --- What the world tells.

    def on_start(self) -> None:
        has_read_faults = any(fault.kind == READ_FAULT for fault in self.faults.faults)
        if has_read_faults and not self._stage.is_quiet and self._random.randrange(2) == 0:
            # Recovery cannot read the groups' log, or loading cannot.
            self._disk.fail_reads(1, OFFSETS_TOPIC)

    def on_life_begins(self, broker: Broker) -> None:
        self._broker = broker
        self._replay.on_life_begins()
        self._rounds.on_life_begins()

    def settings_of(self, life: int) -> dict[str, str]:
        if not self._scene.is_size_changing:
            return self.settings
        size_max = 1 + self._random.randrange(self._scene.group_size_max + 1)
        return {**self.settings, "group.max.size": str(size_max)}

    def on_stall(self, turn: int) -> None:
        self._history.stall_turns.append(turn)
        self._rounds.on_stall()

    def after_turn(self, broker: Broker) -> None:
        violations = self._stage.history.violations
        violations += self._replay.after_turn(broker, self._stage.network.turn)
        violations += self._rounds.after_turn(broker)
        violations += self._late_unrest(broker)

    def _late_unrest(self, broker: Broker) -> list[str]:
        """With the faults over, and in a life of the broker after that, the time is limited."""
        stage = self._stage
        if not stage.is_quiet or stage.is_still:
            return []
        if self._stable_due_ms < 0:
            self._stable_due_ms = stage.clock.now_ms + self._stable_ms_max
        if stage.clock.now_ms < self._stable_due_ms:
            return []
        return [sentence for sentence in self._unrests(broker) if sentence]

    def _unrests(self, broker: Broker) -> list[str]:
        """Every group that is not Stable with those who live, a sentence each or ""."""
        return [self._unrest_of(group, broker) for group in self._scene.groups]

    def on_life_ends(self) -> None:
        self._broker = None
        self._stable_due_ms = -1
        self._history.last_turns.append(self._stage.network.turn)

    def on_collected(self, broker: Broker) -> None:
        coordinator = broker.coordinator
        for purgatory in broker.parts.purgatories():
            if purgatory.name not in self.waits_at_rest:
                continue
            if purgatory.delayed or purgatory.watched:
                self._stage.history.violate(
                    f"{purgatory.delayed} operations wait in purgatory {purgatory.name} when all "
                    f"groups are gone, and {purgatory.watched} are watched"
                )
        if coordinator.waiting:
            self._stage.history.violate(
                f"{coordinator.waiting} requests wait for groups when all of them are gone"
            )

    def _is_topic_deleted(self, name: str) -> bool:
        """Whether somebody has asked for that."""
        changes = self._stage.history.topic_changes
        return any(not change.is_creation and change.name == name for change in changes)

    # --- The verdict.

    def check(self) -> list[str]:
        history = self._stage.history
        for change in history.topic_changes:
            if not change.is_creation:
                # Its offsets go with it, some time after somebody has asked for that.
                write = OffsetWrite(("", change.name, ALL), "", -1)
                write.sent_turn = change.sent_turn
                self._history.writes.append(write)
        return [*history.violations, *check_groups(self._history), *check_topics(history)]

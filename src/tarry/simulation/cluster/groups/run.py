"""Run of groups in a cluster: their coordinators die, stop and move, and nobody notices.

Members of one group share what producers write, and come and go; visitors of each broker commit and
read the offset of another group.  Then everything heals, and the group has read everything.
"""

from __future__ import annotations

from typing import Final

from tarry.base.ids import TopicPartition
from tarry.broker.broker import Broker
from tarry.client.settings import SettingValue
from tarry.group.classic.round import STABLE
from tarry.simulation.checkers.groups.rounds import classic_round
from tarry.simulation.cluster.faulty_cluster import TOPIC, FaultyCluster
from tarry.simulation.cluster.groups import scenario as kinds
from tarry.simulation.cluster.groups.history import MovedGroup, MovedOffset
from tarry.simulation.cluster.groups.member import OverheardMember
from tarry.simulation.cluster.groups.moves import GROUP_PURGATORIES, CoordinatorWatch
from tarry.simulation.cluster.groups.scenario import GROUP, ClusterGroupsScenario
from tarry.simulation.cluster.groups.visitor import MadeTopicVisitor, OffsetsVisitor
from tarry.simulation.cluster.results import check_promises, records_of
from tarry.simulation.product.checkers import check_members
from tarry.simulation.trace import Trace

_WORK_MS_MAX: Final = 100
_FIRST_ROUND_MS_MAX: Final = 5_000
_MEMBERS_MAX: Final = 4
_MEMBER_STALL_MS_MAX: Final = 3_000
_MEMBER_FAULTS: Final = (
    kinds.MEMBER_KILLED,
    kinds.MEMBER_STALLED,
    kinds.MEMBER_COMES,
    kinds.MEMBER_LEAVES,
)


class ClusterGroupsRun(FaultyCluster):
    """Run of one seed."""

    scenario: ClusterGroupsScenario

    def __init__(self, seed: int, trace: Trace | None = None, *, setting: str = "") -> None:
        super().__init__(seed, trace, ClusterGroupsScenario, setting)
        # No log of a run is long enough to be compacted.
        self.checker.looks_at_compacted = True
        self.group = MovedGroup(self.history)
        self.moves = CoordinatorWatch(self.group)
        self.observers.all.append(self.moves)
        self.history.session_ms = int(str(self.scenario.member_settings["session.timeout.ms"]))
        self.offset = MovedOffset()
        self.members: list[OverheardMember] = []
        self._members_made = 0

    def begin_clients(self) -> None:
        world = self.world
        for _ in range(self.scenario.members):
            self._add_member()
        for node in self.nodes:
            context = self.visitor_context(node)
            name = f"visitor{node.broker_id}"
            OffsetsVisitor(context, name, self.context, self.offset, TOPIC).start()
            if self.scenario.is_of_disks:
                MadeTopicVisitor(context, f"made-{name}", self.context, node).start()
        # Faults begin when the group has its first assignment; otherwise few would strike a group.
        end_ms = world.agenda.now_ms + _FIRST_ROUND_MS_MAX
        world.run_until(end_ms, lambda: any(member.owned for member in self.members))

    def _add_member(self) -> None:
        self._members_made += 1
        settings: dict[str, SettingValue] = {
            **self.client_settings,
            **self.scenario.member_settings,
        }
        self.members.append(
            OverheardMember(
                self.world,
                self.context,
                f"member{self._members_made}",
                settings,
                self.group,
                _WORK_MS_MAX,
            )
        )

    def living_members(self) -> list[OverheardMember]:
        """Return the members whose processes have not ended."""
        return [member for member in self.members if not member.is_gone]

    def strike(self) -> None:
        super().strike()
        random = self.world.random
        if random.randrange(100) < self.scenario.member_faults_percent:
            self._strike_member(_MEMBER_FAULTS[random.randrange(len(_MEMBER_FAULTS))])

    def _strike_member(self, kind: str) -> None:
        random = self.world.random
        # A member that was told to leave may still be there.  At least one member stays.
        staying = [member for member in self.living_members() if not member.is_to_end]
        member = staying[random.randrange(len(staying))]
        if kind == kinds.MEMBER_COMES:
            if len(staying) >= _MEMBERS_MAX:
                return
            self._add_member()
        elif kind == kinds.MEMBER_STALLED:
            member.stall(random.randrange(_MEMBER_STALL_MS_MAX))
        elif kind == kinds.MEMBER_KILLED:
            member.kill()
            self._add_member()
        elif len(staying) > 1:
            member.is_to_end = True
        else:
            return
        self.faults.counts[kind] = self.faults.counts.get(kind, 0) + 1

    # --- The end.

    def coordinators(self) -> list[Broker]:
        """Return the brokers that decide about the group now."""
        return [broker for broker in self.brokers() if broker.groups.find(GROUP)[0] is not None]

    def ends(self) -> dict[TopicPartition, int]:
        """Return the ends of all partitions, at their leaders."""
        found: dict[TopicPartition, int] = {}
        for broker in self.brokers():
            for index in range(self.scenario.partitions):
                partition = broker.topics.partition(TOPIC, index)
                if partition is not None:
                    found[TOPIC, index] = int(partition.high_watermark)
        return found

    def unfinished(self, brokers: list[Broker]) -> list[str]:
        coordinators = self.coordinators()
        if len(coordinators) != 1:
            return [f"group {GROUP} has {len(coordinators)} coordinators"]
        shard = coordinators[0].groups.shard_of(GROUP)
        assert shard is not None
        now = classic_round(shard, GROUP)
        members = self.living_members()
        ids = sorted(member.consumer_core.membership.member_id for member in members)
        if now.phase != STABLE or sorted(now.members) != ids:
            return [f"the group is {now.phase} with {sorted(now.members)}, not {ids}"]
        for member in members:
            # The answer that tells of the round may be lost, until the member's request times out.
            membership = member.consumer_core.membership
            if membership.is_joining or membership.generation_id != now.generation_id:
                return [f"{member.name} has no assignment of generation {now.generation_id}"]
        ends = self.ends()
        owned = sorted(place for member in members for place in member.owned)
        if owned != sorted(ends) or len(ends) != self.scenario.partitions:
            return [f"{owned} are read"]
        return [
            f"{place} is read up to {member.position(place)}, not {ends[place]}"
            for member in members
            for place in member.owned
            if member.position(place) != ends[place]
        ]

    def seen_at_once(self) -> list[str]:
        return [*super().seen_at_once(), *self.moves.violations, *self.group.violations]

    def wrong_at_the_end(self) -> list[str]:
        records = records_of(self.checker, self.context.topics[0])
        found = check_promises(self.context, self.producers, self.checker, records)
        found += check_members(self.history, self.ends())
        for broker in self.brokers():
            for purgatory in broker.parts.purgatories():
                # The members' sessions wait at their coordinator.
                is_session = purgatory.name == "Heartbeat" and broker in self.coordinators()
                if purgatory.name in GROUP_PURGATORIES and purgatory.delayed and not is_session:
                    found.append(
                        f"{purgatory.delayed} wait in {purgatory.name} of b{broker.broker_id}"
                    )
        return found

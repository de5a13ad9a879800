"""Scenario of groups: groups, their members and simple consumers, drawn from the seed."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.simulation.clients.topic_admin import TopicPlan

# All members of a group support the same protocols, each in its own order.  Other sets are of no
# use: a group that was loaded knows only its chosen protocol, and refuses members without that one.
_PROTOCOLS: Final = (("range", "roundrobin"), ("roundrobin", "range"))


class MemberPlan:
    """Traits of one member, and the rates of its faults."""

    def __init__(self) -> None:
        self.instance_id: str | None = None
        self.protocols: tuple[str, ...] = ("range",)
        self.session_timeout_ms = 6_000
        self.rebalance_timeout_ms = 6_000
        self.heartbeat_ms = 1_000
        # First version of JoinGroup that the member uses; below 4 a member is let in without an id.
        self.join_version_min = 1
        # Of 1,000 rounds of the member's work, so many end in this way.
        self.deaths_per_mille = 20
        self.pauses_per_mille = 20
        self.leaves_per_mille = 15
        self.rejoins_per_mille = 10
        self.commits_per_mille = 400
        # A commit of an earlier process or generation arrives late.
        self.late_requests_per_mille = 20
        # Of 1,000 requests, so many lose their answers.
        self.losses_per_mille = 20

    @property
    def is_hopeless(self) -> bool:
        """True for a member whose rebalance timeout is too short to sync in time."""
        return self.rebalance_timeout_ms <= 1


class GroupPlan:
    """Plan of one group."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: list[MemberPlan] = []
        # The broker understands subscriptions only if the type is that of consumers.
        self.protocol_type = "consumer"
        # True if one consumer without membership commits for the group, and no other client does.
        self.is_simple = False

    @property
    def session_timeout_ms_max(self) -> int:
        return max([0, *(member.session_timeout_ms for member in self.members)])

    @property
    def rebalance_timeout_ms_max(self) -> int:
        return max([0, *(member.rebalance_timeout_ms for member in self.members)])


class GroupsScenario:
    """Groups and topics of one run."""

    def __init__(self) -> None:
        self.duration_ms = 20_000
        self.settings: dict[str, str] = {}
        self.topics: list[TopicPlan] = []
        self.groups: list[GroupPlan] = []
        self.admin_pause_ms_max = 3_000
        self.initial_delay_ms = 0
        self.commit_timeout_ms = 5_000
        self.group_size_max = 0
        # True if the limit of members differs between the lives of the broker.
        self.is_size_changing = False
        # True if an administrator deletes the topic of the offsets.
        self.loses_offsets_topic = False
        # Retention of offsets, in minutes; 0 if it is longer than any run.
        self.retention_minutes = 0


def draw_groups_scenario(random: Random) -> GroupsScenario:
    """Draw the scenario of one run."""
    scenario = GroupsScenario()
    # Some runs are long, since recovery points are a minute apart, and so is the retention.
    slowness = 1 if random.randrange(8) else 8
    scenario.duration_ms = slowness * (8_000 + random.randrange(20_000))
    scenario.admin_pause_ms_max = slowness * (500 + random.randrange(4_000))
    scenario.initial_delay_ms = slowness * (0, 300, 1_000)[random.randrange(3)]
    if random.randrange(8) == 0 or (slowness > 1 and random.randrange(2)):
        scenario.retention_minutes = 1
    scenario.commit_timeout_ms = (1_000, 5_000)[random.randrange(2)]
    if random.randrange(8) == 0:
        scenario.group_size_max = 1 + random.randrange(3)
        scenario.is_size_changing = random.randrange(2) == 0
    scenario.loses_offsets_topic = random.randrange(15) == 0
    scenario.settings = _draw_settings(random, scenario)
    for number in range(1 + random.randrange(2)):
        scenario.topics.append(
            TopicPlan(f"lasting-{number}", 1 + random.randrange(3), is_lasting=True)
        )
    if random.randrange(3) == 0:
        scenario.topics.append(TopicPlan("passing", 1 + random.randrange(2), is_lasting=False))
    for number in range(1 + random.randrange(2)):
        scenario.groups.append(_draw_group(random, f"group-{number}", slowness))
    if random.randrange(2) == 0:
        simple = GroupPlan("simple")
        simple.is_simple = True
        scenario.groups.append(simple)
    return scenario


def _draw_settings(random: Random, scenario: GroupsScenario) -> dict[str, str]:
    settings = {
        "group.min.session.timeout.ms": "500",
        "group.initial.rebalance.delay.ms": str(scenario.initial_delay_ms),
        "offsets.topic.num.partitions": str(1 + random.randrange(3)),
        "offsets.topic.replication.factor": "1",
        "offsets.commit.timeout.ms": str(scenario.commit_timeout_ms),
        "offsets.retention.check.interval.ms": str(1_000 + random.randrange(10_000)),
        # A new segment for every few entries, so that there is something to compact.
        "log.index.interval.bytes": str(random.randrange(400)),
        "log.segment.delete.delay.ms": str(random.randrange(2_000)),
    }
    if random.randrange(4):
        settings["log.index.size.max.bytes"] = str(8 * (3 + random.randrange(20)))
        settings["log.cleaner.backoff.ms"] = str(100 + random.randrange(2_000))
        settings["log.cleaner.min.cleanable.ratio"] = ("0.01", "0.3")[random.randrange(2)]
        settings["log.cleaner.delete.retention.ms"] = str((0, 500, 5_000)[random.randrange(3)])
    if scenario.group_size_max:
        settings["group.max.size"] = str(scenario.group_size_max)
    if scenario.retention_minutes:
        settings["offsets.retention.minutes"] = str(scenario.retention_minutes)
    if random.randrange(12) == 0:
        settings["flush.policy"] = "os"
    return settings


def _draw_group(random: Random, name: str, slowness: int) -> GroupPlan:
    group = GroupPlan(name)
    if random.randrange(6) == 0:
        group.protocol_type = "connect"
    session_timeout_ms = slowness * (600, 1_500, 3_000)[random.randrange(3)]
    rebalance_timeout_ms = slowness * (600, 1_500, 4_000)[random.randrange(3)]
    wildness = random.randrange(4)
    has_choice = random.randrange(2) == 0
    is_static = random.randrange(5) == 0
    for number in range(1 + random.randrange(4)):
        member = MemberPlan()
        member.session_timeout_ms = session_timeout_ms + random.randrange(slowness * 500)
        member.rebalance_timeout_ms = rebalance_timeout_ms + random.randrange(slowness * 500)
        member.heartbeat_ms = 100 + session_timeout_ms // 4
        if has_choice:
            member.protocols = _PROTOCOLS[random.randrange(len(_PROTOCOLS))]
        member.deaths_per_mille = 20 * wildness
        member.pauses_per_mille = 20 * wildness
        member.leaves_per_mille = 10 * wildness
        member.rejoins_per_mille = 10 * wildness
        member.late_requests_per_mille = 15 * wildness
        member.losses_per_mille = 15 * random.randrange(4)
        member.commits_per_mille = 200 + random.randrange(800)
        if random.randrange(6) == 0:
            member.join_version_min = 4 if random.randrange(2) else 9
        if is_static or random.randrange(5) < 2:
            # Two processes with one instance id take each other's place.
            member.instance_id = f"{name}-i{random.randrange(number + 1)}"
        if random.randrange(15) == 0:
            # No process can rejoin as fast.  Such a member has ended when groups are to be Stable.
            member.rebalance_timeout_ms = random.randrange(3) - 1
        group.members.append(member)
    return group

"""Scenario of groups in a cluster: the cluster's faults, and members that come and go."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.client.settings import SettingValue
from tarry.simulation.cluster.scenario import ClusterScenario

GROUP: Final = "readers"
OFFSETS_TOPIC: Final = "__consumer_offsets"

# Faults of a member, by name.
MEMBER_KILLED: Final = "member killed"
MEMBER_STALLED: Final = "member stalled"
MEMBER_COMES: Final = "member comes"
MEMBER_LEAVES: Final = "member leaves"

_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


class ClusterGroupsScenario(ClusterScenario):
    """Scenario of one seed."""

    # Unclean elections would lose records that the group has read.
    may_be_unclean = False

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.deletes_records = False
        # A rebalance takes time, and so does a commit: pauses between faults must be long enough.
        self.duration_ms += 2_000
        self.pause_ms_max = max(self.pause_ms_max, (400, 900, 1_600)[random.randrange(3)])
        self.producer_acks = ("all",) if random.randrange(2) else ("all", "1")
        self.producer_pause_ms_max = 150
        self.batch_bytes = 0
        self.members = 1 + random.randrange(3)
        # Percentage of faults that come with a fault of a member.
        self.member_faults_percent = (0, 20, 50)[random.randrange(3)]
        self.broker_settings = {
            "group.min.session.timeout.ms": "500",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": str(1 + random.randrange(2)),
            "offsets.topic.replication.factor": "3",
            "min.insync.replicas": str(self.floor),
        }
        if self.duration_ms % 2 == 0:
            # The check of retention walks over all groups, whatever the shards are doing.  The
            # duration chooses these seeds, so that nothing more of a run is drawn.
            self.broker_settings["offsets.retention.check.interval.ms"] = "700"
        self.member_settings: dict[str, SettingValue] = {
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": _ASSIGNORS[random.randrange(len(_ASSIGNORS))],
            "session.timeout.ms": (1_500, 6_000)[random.randrange(2)],
            "heartbeat.interval.ms": 400,
            "auto.commit.interval.ms": 300,
            "max.poll.interval.ms": 20_000,
            "fetch.max.wait.ms": 300,
            "default.api.timeout.ms": 60_000,
            "close.timeout.ms": 2_000,
        }

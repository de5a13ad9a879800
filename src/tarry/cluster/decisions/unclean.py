"""Unclean elections: a replica outside the isr, or a doubtful member, leads; records may be lost.

An operator asks for an unclean election, or `unclean.leader.election.enable` causes one once no
member of the isr has lived for a while.  The row names the epoch of the election, so that replicas
cut the records that the new leader lacks.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.configs.topic_settings import default_value, topic_value
from tarry.cluster.decisions.row_changes import (
    NO_LIFE,
    LifeGuard,
    Place,
    RowsChange,
    Spells,
    is_serving,
    lives_in,
)
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.records import MetadataRecord
from tarry.cluster.state.state import ClusterState, TopicState, is_alive, is_led

KEY: Final = "unclean.leader.election.enable"

# How long no member of the isr must have lived before the setting causes an election.
UNCLEAN_MS: Final = 10_000
# Pause between the elections of two candidates.
CANDIDATE_MS: Final = 250


def is_flushed(topic: TopicState, settings: Settings) -> bool:
    """Return whether acknowledged records of a topic are always flushed.  If so, a replica in sync
    whose log is not whole has lost its disk, or part of it, and not just the last seconds.
    """
    if settings.flush_policy == "commit":
        return True
    return topic_value("flush.messages", topic.configs, settings) == 1


def unclean_successor(view: ClusterState, row: PartitionRow, *, last: int = -1) -> int:
    """Return the replica that an unclean election takes: the first that serves, but `last` only if
    no other one serves; -1 if none serves.
    """
    serving = [each for each in row.replicas if is_serving(view, each)]
    return next((each for each in serving if each != last), serving[0] if serving else -1)


def elected_uncleanly(view: ClusterState, row: PartitionRow, broker_id: int) -> PartitionRow:
    """Return the row in which this broker, which serves, leads alone.  `guards_of` gives its
    condition.
    """
    return replace(
        row,
        leader_id=broker_id,
        leader_epoch=row.leader_epoch + 1,
        partition_epoch=row.partition_epoch + 1,
        isr=[broker_id],
        broker_epoch=view.brokers[broker_id].broker_epoch,
        unclean_epoch=row.leader_epoch + 1,
    )


def guards_of(after: PartitionRow) -> list[LifeGuard]:
    """Return the condition of an unclean election: the new leader lives."""
    return [LifeGuard(after.leader_id, after.broker_epoch, is_over=False)]


class ElectUncleanly(RowsChange):
    """Elections by `unclean.leader.election.enable`, of this broker in one of its lives.

    `spells` knows since when no member of the isr lives.  `doubts` are the partitions whose log on
    this broker is not whole: if this broker is the last member, it cannot claim the partition, so
    it counts as not living.
    """

    def __init__(
        self,
        known: KnownRows,
        broker_id: int,
        broker_epoch: int,
        settings: Settings,
        spells: Spells,
        doubts: Container[Place] = (),
    ) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._settings = settings
        self._spells = spells
        self._doubts = doubts
        # Value of the setting for a topic that does not set it.
        self._is_default = False

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        if not self._begin:
            self._spells.begin()
        records = super().decide(view)
        self._spells.end(is_whole=self.is_last)
        return records

    def may_begin(self, view: ClusterState) -> bool:
        self._is_default = bool(default_value(KEY, self._settings))
        is_same = lives_in(view, self._broker_id, self.broker_epoch)
        return is_same and is_serving(view, self._broker_id)

    def concerns(self, topic: TopicState) -> bool:
        if KEY not in topic.configs:
            return self._is_default
        return bool(topic_value(KEY, topic.configs, self._settings))

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        own_id = self._broker_id
        if own_id not in row.replicas or is_led(view, row):
            return None
        place = (topic.topic_id, index)
        is_doubtful = place in self._doubts
        for each in row.isr:
            if is_alive(view, each) and not (each == own_id and is_doubtful):
                return None
        before = row.replicas[: row.replicas.index(own_id)]
        wait_ms = UNCLEAN_MS + CANDIDATE_MS * sum(is_serving(view, each) for each in before)
        # A member that came back and led between two passes was in sync and alive, so nothing is
        # lost.
        if self._spells.lasted_ms((place, row.leader_epoch)) < wait_ms:
            return None
        elected = own_id
        if is_doubtful and is_flushed(topic, self._settings):
            # A replica that followed the doubtful log has more records, and would have to cut them.
            elected = unclean_successor(view, row, last=own_id)
        return elected_uncleanly(view, row, elected)

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        # A member of the isr that has come back meanwhile is the better leader.
        absent = [
            LifeGuard(each, NO_LIFE, is_over=False)
            for each in before.isr
            if each != self._broker_id
        ]
        return [*guards_of(after), *absent]

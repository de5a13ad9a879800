"""Unclean elections: a replica leads though no member of the isr does, and records may be lost.

An operator asks for one, or `unclean.leader.election.enable` does once nobody in sync has lived for
a while.  The row says in which epoch it was, so that replicas cut what nobody has any more.
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

# So long nobody in sync has lived before a setting elects.
UNCLEAN_MS: Final = 10_000
# Between the elections of two candidates.
CANDIDATE_MS: Final = 250


def is_flushed(topic: TopicState, settings: Settings) -> bool:
    """Return whether what counts of a topic is flushed: then a replica in sync whose log is not
    whole has lost its disk, or part of it, and not just the records of the last seconds.
    """
    if settings.flush_policy == "commit":
        return True
    return topic_value("flush.messages", topic.configs, settings) == 1


def unclean_successor(view: ClusterState, row: PartitionRow, *, last: int = -1) -> int:
    """Return which replica an unclean election takes: the first that serves, `last` only if no
    other one does; -1 if none does.
    """
    serving = [each for each in row.replicas if is_serving(view, each)]
    return next((each for each in serving if each != last), serving[0] if serving else -1)


def elected_uncleanly(view: ClusterState, row: PartitionRow, broker_id: int) -> PartitionRow:
    """Return the row once this broker, which serves, leads alone; `guards_of` says what for."""
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
    """Return what must hold for an unclean election: the new leader lives."""
    return [LifeGuard(after.leader_id, after.broker_epoch, is_over=False)]


class ElectUncleanly(RowsChange):
    """Elections by `unclean.leader.election.enable`, of this broker in one of its lives.

    `spells` know since when no member of the isr lives.  `doubts`: where this broker itself is the
    last member, and its log is not whole: it may not claim, so it does not count.
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
        # What counts for a topic that says nothing.
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
        # Who came back and led between two looks, however far apart, was in sync and lived.
        if self._spells.lasted_ms((place, row.leader_epoch)) < wait_ms:
            return None
        elected = own_id
        if is_doubtful and is_flushed(topic, self._settings):
            # Whoever followed it has more, and would have to cut that.
            elected = unclean_successor(view, row, last=own_id)
        return elected_uncleanly(view, row, elected)

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        # Whoever is in sync and has come back meanwhile is the better leader.
        absent = [
            LifeGuard(each, NO_LIFE, is_over=False)
            for each in before.isr
            if each != self._broker_id
        ]
        return [*guards_of(after), *absent]

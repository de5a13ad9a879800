"""Doubts at a start: partitions whose log here may lack records that this broker had
acknowledged.
"""

from __future__ import annotations

import logging

from tarry.base.doors import Disk
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.broker.topics import Topics
from tarry.cluster.decisions.row_changes import Place
from tarry.cluster.lives.last_life import (
    UNREADABLE,
    Doubts,
    Then,
    doubted_places,
    read_last_life,
    was_trustworthy,
)
from tarry.cluster.state.records import PartitionChanged
from tarry.cluster.state.state import ClusterState, stands_still
from tarry.log.logs import Logs
from tarry.partition.leadership import Leadership

logger = logging.getLogger("tarry.cluster")


class UnwholeLogs:
    """Container of the partitions whose logs here are not whole.  They are doubted since the start,
    were found to be damaged since, or cannot be opened because the disk refuses it.

    A damaged log is not among them if it is the only replica, since no other broker has more.
    """

    def __init__(self, doubts: Doubts, topics: Topics) -> None:
        self._doubts = doubts
        self._topics = topics

    def __contains__(self, place: object) -> bool:
        if place in self._doubts:
            return True
        assert isinstance(place, tuple)
        hosted = self._topics.with_id(place[0])
        if hosted is not None and place[1] in hosted.refused:
            return True
        replica = None if hosted is None else hosted.replica(place[1])
        if replica is None:
            return False
        leadership = replica.leadership
        return leadership.has_flaw() and len(leadership.replicas) > 1

    def damaged_in_sync(self) -> list[Place]:
        """Return the partitions with a damaged log in whose isr this broker is, and not alone."""
        found: list[Place] = []
        for replica in self._topics.replicas():
            one = replica.leadership
            if one.has_flaw() and one.own_id in one.isr and len(one.isr) > 1:
                found.append((one.topic_id, one.index))
        return found


def find_older_rows(topics: Topics, state: ClusterState) -> list[PartitionChanged]:
    """Return records that let partitions stand still whose rows are older than the data here, or
    gone.

    etcd had each leader epoch of a log before the log had it.  If the broker followed an older row,
    two leaders could write in one epoch, and committed records could be cut.
    """
    found: list[PartitionChanged] = []
    for partition in topics.replicas():
        leadership = partition.leadership
        topic_id, index = leadership.topic_id, leadership.index
        row = state.topics_by_id[topic_id].partitions[index]
        is_host = leadership.own_id in row.replicas
        is_sound = not leadership.is_ahead_of(row) and (is_host or row.partition_epoch)
        if stands_still(row) or is_sound:
            continue
        found.append(stand_still(leadership, row))
    return found


def stand_still(leadership: Leadership, row: PartitionRow) -> PartitionChanged:
    """Return the record that a partition stands still, because its row is older than the data here;
    log it if it is new.
    """
    if not stands_still(leadership.row):
        logger.error(
            "%s stands still here, this broker neither leads it nor removes its data, which is of "
            "leader epoch %d: its row in etcd, parts/%s/%d, %s; put it back as it was",
            leadership.records.name,
            leadership.records.log.leader_epochs.latest_epoch,
            id_text(leadership.topic_id),
            leadership.index,
            "is older" if row.partition_epoch else "was removed",
        )
    return PartitionChanged(topic_id=leadership.topic_id, index=leadership.index, row=row.still())


def find_doubts(
    disk: Disk,
    settings: Settings,
    logs: Logs,
    topics: Topics,
    state: ClusterState,
    *,
    boot_id: str,
    is_other_disk: bool,
    then: Then,
) -> Doubts:
    """Return the partitions that are doubted after the recovery of the logs, and save them.

    If this broker has the only replica, no other broker has more, so a crash or damage makes no
    doubt: what is left is served, as by a broker that is alone, unless the whole disk is another
    one.
    """
    last = read_last_life(disk)
    is_trusted = not logs.has_lost_points and was_trustworthy(
        last, settings.flush_policy, boot_id, was_clean=logs.was_clean
    )
    doubted = dict.fromkeys(doubted_places(last))
    places: list[Place] = []
    for partition in topics.replicas():
        leadership = partition.leadership
        row = state.topics_by_id[leadership.topic_id].partitions[leadership.index]
        place = (leadership.topic_id, leadership.index)
        # A partition that stands still may have this broker in its isr once its row is mended.
        if settings.node_id not in row.isr and not stands_still(row):
            continue
        is_flawed = leadership.has_flaw()
        is_doubted = is_other_disk or last is UNREADABLE or place in doubted
        # The replicas of a partition that stands still may be unknown.
        is_alone = len(row.replicas) == 1
        if is_doubted or (not is_alone and (is_flawed or not is_trusted)):
            places.append(place)
    doubts = Doubts(disk, settings.flush_policy, boot_id, places, then=then)
    doubts.save()
    return doubts

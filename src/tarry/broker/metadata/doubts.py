"""Doubts at a start: in which partitions this broker may lack what it has promised to keep."""

from __future__ import annotations

from tarry.base.doors import Disk
from tarry.base.settings import Settings
from tarry.broker.topics import Topics
from tarry.cluster.last_life import (
    UNREADABLE,
    Doubts,
    doubted_places,
    read_last_life,
    was_trustworthy,
)
from tarry.cluster.row_changes import Place
from tarry.cluster.state import ClusterState, stands_still
from tarry.log.logs import Logs


def find_doubts(
    disk: Disk,
    settings: Settings,
    logs: Logs,
    topics: Topics,
    state: ClusterState,
    *,
    boot_id: str,
    is_other_disk: bool,
) -> Doubts:
    """Return what is doubted now that the logs are recovered, and keep it on the disk.

    Where this broker has the only replica there is nobody who knows better: what a crash or damage
    has left is served, as by a broker that is alone, unless the whole disk is another one.
    """
    last = read_last_life(disk)
    is_trusted = not logs.has_lost_points and was_trustworthy(
        last, settings.flush_policy, boot_id, was_clean=logs.was_clean
    )
    doubted = dict.fromkeys(doubted_places(last))
    places: list[Place] = []
    for partition in topics.replicas():
        row = state.topics_by_id[partition.topic_id].partitions[partition.index]
        place = (partition.topic_id, partition.index)
        # What stands still may name this broker as in sync once it is mended.
        if settings.node_id not in row.isr and not stands_still(row):
            continue
        is_flawed = partition.log.flaw_offset >= 0
        is_doubted = is_other_disk or last is UNREADABLE or place in doubted
        # Of what stands still nobody may know the replicas.
        is_alone = len(row.replicas) == 1
        if is_doubted or (not is_alone and (is_flawed or not is_trusted)):
            places.append(place)
    doubts = Doubts(disk, settings.flush_policy, boot_id, places)
    doubts.save()
    return doubts

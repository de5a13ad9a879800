"""The metadata of a stopped broker, read from its directory, which is not changed.

Whole batches count, as at a start.  A batch that a crash has torn was acknowledged to nobody.
"""

from __future__ import annotations

from tarry.base.doors import Disk
from tarry.base.errors import CorruptData, InvalidSetting
from tarry.cluster.state.levels import LEVELS, why_not_known
from tarry.cluster.state.records import NewerFormat, decode_record
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.embedded import METADATA_DIRECTORY
from tarry.log.batch_walk import UNKNOWN_OFFSET, BatchWalk
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import (
    CLEAN_MARKER,
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    decode_recovery_points,
)
from tarry.log.recovery.verification import BATCH_BYTES_MAX, verify_log
from tarry.log.segment import LOG_SUFFIX, segment_path
from tarry.log.small_files import read_file
from tarry.records.record import decode_records


def read_stored_state(disk: Disk) -> ClusterState:
    """Return the state that the embedded store of this directory holds.

    Raises `InvalidSetting` if there is no store, `CorruptData` if it is damaged, `NewerFormat` if a
    newer release wrote it.
    """
    if not disk.exists(METADATA_DIRECTORY):
        raise InvalidSetting(
            f"there is no {METADATA_DIRECTORY} in it, so it holds no topics of a broker that keeps "
            "its metadata itself: name the directory that its log.dirs names"
        )
    verified = verify_log(
        disk, METADATA_DIRECTORY, _point(disk), was_clean=disk.exists(CLEAN_MARKER)
    )
    for finding in verified.findings:
        if finding.is_damage:
            raise CorruptData(
                f"{finding.path} is damaged: {finding.problem}; restore the directory from a copy"
            )
    state = ClusterState()
    for base_offset in Listing(disk, METADATA_DIRECTORY).base_offsets:
        _apply_segment(disk, base_offset, verified.end_offset, state)
    fault = why_not_known(state.feature_levels.items(), LEVELS)
    if fault:
        raise NewerFormat(fault)
    if not state.cluster_id:
        raise InvalidSetting(
            f"{METADATA_DIRECTORY} holds no cluster yet: the broker was never started to its end"
        )
    return state


def _point(disk: Disk) -> RecoveryPoint | None:
    content = read_file(disk, RECOVERY_POINTS_FILE)
    points = None if content is None else decode_recovery_points(content)
    if points is None:
        return None
    return points.get(METADATA_DIRECTORY) or RecoveryPoint(METADATA_DIRECTORY, "")


def _apply_segment(disk: Disk, base_offset: int, end_offset: int, state: ClusterState) -> None:
    file = disk.open(f"{segment_path(METADATA_DIRECTORY, base_offset)}{LOG_SUFFIX}")
    try:
        walk = BatchWalk(file, 0, file.size, UNKNOWN_OFFSET)
        walk.has_gaps = True
        walk.checks_crc = True
        while (header := walk.next()) is not None and header.base_offset < end_offset:
            data = walk.batch_bytes(header)
            for stored in decode_records(data, size_max=BATCH_BYTES_MAX, position=0):
                if stored.value is None:
                    raise CorruptData(f"{METADATA_DIRECTORY} holds an empty record")
                record = decode_record(stored.value)
                if record is not None:
                    state.apply(record)
    finally:
        file.close()

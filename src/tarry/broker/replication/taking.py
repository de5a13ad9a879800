"""Appending of a leader's answer about one partition to the log here."""

from __future__ import annotations

from tarry.base.turn import Turn
from tarry.broker.replication.followed import Followed
from tarry.log.copying import append_copy
from tarry.records.copies import check_copy
from tarry.wire.reader import Window


def first_offset(followed: Followed, window: Window) -> int:
    """Return the first offset of these records if the log is empty, or has only records that the
    leader has deleted; -1 otherwise.

    If it is not the log's end, the log has to restart.  A leader whose log begins inside a batch
    sends that batch whole.  It no longer knows the epochs before the batch, so a log that ends
    there could differ without being noticed.  Where a gap lies before the first batch, the epoch of
    the leader's log start is not known.
    """
    log = followed.partition.log
    is_empty = log.log_start_offset == log.log_end_offset
    if not is_empty and followed.leader_log_start < log.log_end_offset:
        return -1
    batches = check_copy(window.data, window.start, window.end)
    return int(batches[0][1].base_offset) if batches else -1


def copy_records(followed: Followed, window: Window, turn: Turn) -> None:
    """Append the batches of an answer to the tail, with their offsets and leader epochs.

    Raises `CorruptData` if the answer is damaged, and then appends nothing.  Raises `StorageError`
    if the log takes no more; batches that it has taken before stay in its tail.
    """
    partition = followed.partition
    log, producers = partition.log, partition.producers
    for batch, header in check_copy(window.data, window.start, window.end):
        append_copy(log, batch, header, turn.now_wall_ms)
        producers.follow(header, turn.now_ms)

"""Taking of what a leader has answered about one partition into the log here."""

from __future__ import annotations

from tarry.base.turn import Turn
from tarry.broker.replication.followed import Followed
from tarry.log.copying import append_copy
from tarry.records.copies import check_copy
from tarry.wire.reader import Window


def begins_before(followed: Followed, window: Window) -> int:
    """Return the offset at which a log has to begin to take these records, -1 if it may begin where
    it does: one that is empty, or has nothing but what is deleted at the leader.

    A leader whose log begins inside a batch sends that batch whole.  Of what lies before it the
    leader knows no epochs any more, so a log that ends there may differ and nobody tells.
    """
    log = followed.partition.log
    is_empty = log.log_start_offset == log.log_end_offset
    if not is_empty and followed.leader_log_start < log.log_end_offset:
        return -1
    batches = check_copy(window.data, window.start, window.end)
    base_offset: int = batches[0][1].base_offset if batches else log.log_end_offset
    return base_offset if base_offset < log.log_end_offset else -1


def copy_records(followed: Followed, window: Window, turn: Turn) -> None:
    """Append the batches of an answer to the tail, each with the offsets and the epoch that it has.

    `CorruptData` if the answer is not sound: nothing of it is taken.  `StorageError` if the log
    takes no more; what it has taken before is in its tail.
    """
    partition = followed.partition
    log, producers = partition.log, partition.producers
    for batch, header in check_copy(window.data, window.start, window.end):
        append_copy(log, batch, header, turn.now_wall_ms)
        producers.follow(header, turn.now_ms)

"""Committed batches of a log, whichever broker leads it, and the comparison of two replicas."""

from __future__ import annotations

from tarry.partition.replicated_log import RECORDS, key_of
from tarry.simulation.cluster.disk_log import DiskBatch, DiskLog

# Topic id and index; a companion log has the negative index by which brokers name it.
Place = tuple[bytes, int]


class CommittedBatches:
    """Committed batches of one partition, in order, with the offset at which they end."""

    def __init__(self) -> None:
        self.batches: list[DiskBatch] = []
        # Leader epoch in which each batch was committed.
        self.epochs: list[int] = []
        self.end_offset = 0
        # Offset below which clients were told that records are deleted.
        self.deleted_end = 0
        # The last leader epoch that began with an unclean election; and whether it is not known yet
        # what the elected replica has.
        self.unclean_epoch = -1
        self.is_in_doubt = False
        # Base and end offsets of the batches that an unclean election has lost.
        self.lost: dict[tuple[int, int], None] = {}

    def lose(self, batches: list[DiskBatch]) -> None:
        """Note batches that are lost; some may have been noted before."""
        self.lost.update({(each.base_offset, each.end_offset): None for each in batches})


def are_alike(one: DiskLog, other: DiskLog, start_offset: int, place: Place) -> bool:
    """Return whether two replicas in sync have the same batches from this offset on."""
    if key_of(*place)[2] == RECORDS:
        return one.content_from(start_offset) == other.content_from(start_offset)
    # Each replica by itself drops released batches of its companion log: compare common ones.  What
    # lies below the start of one of them was given up, and a cut may have left anything there.
    theirs = other.batches
    return all(
        mine.end_offset <= start_offset or theirs.get(base, mine).data == mine.data
        for base, mine in one.batches.items()
    )

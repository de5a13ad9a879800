"""Batches of a log that count, wherever it is led, and what replicas have to have alike."""

from __future__ import annotations

from tarry.partition.replicated_log import RECORDS, key_of
from tarry.simulation.cluster.disk_log import DiskBatch, DiskLog

# Topic id and index; of a companion log the negative one by which brokers name it.
Place = tuple[bytes, int]


class CommittedBatches:
    """Batches of one partition that count, in order, and up to where."""

    def __init__(self) -> None:
        self.batches: list[DiskBatch] = []
        # In which leader epoch each was committed.
        self.epochs: list[int] = []
        self.end_offset = 0
        # What clients were told to be deleted lies below.
        self.deleted_end = 0
        # The last leader epoch that began with an unclean election, and whether it is open still
        # what the elected replica has.
        self.unclean_epoch = -1
        self.is_in_doubt = False
        # Where the batches began and ended that an unclean election has lost.
        self.lost: dict[tuple[int, int], None] = {}

    def lose(self, batches: list[DiskBatch]) -> None:
        """Note batches that count no more; some may have been noted before."""
        self.lost.update({(each.base_offset, each.end_offset): None for each in batches})


def are_alike(one: DiskLog, other: DiskLog, start_offset: int, place: Place) -> bool:
    """Return whether two replicas that are in sync have the same from this offset on."""
    if key_of(*place)[2] == RECORDS:
        return one.content_from(start_offset) == other.content_from(start_offset)
    # Of a companion log each replica drops by itself what waits no more.
    theirs = other.batches
    return all(theirs.get(base, mine).data == mine.data for base, mine in one.batches.items())

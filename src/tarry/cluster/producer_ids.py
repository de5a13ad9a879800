"""Producer ids: reserved durably in blocks, given out from memory, never twice.

A block is given out only once its reservation is durable.  What a stop or a crash leaves of it is
not used again: ids are plentiful, 64 bits of them.
"""

from __future__ import annotations

from tarry.base.limits import PRODUCER_IDS_PER_RESERVATION
from tarry.cluster.records import MetadataRecord, ProducerIdsReserved
from tarry.cluster.state import ClusterView

NONE_LEFT = -1


class ProducerIds:
    """The ids that are reserved and not given out yet."""

    def __init__(self) -> None:
        self._next_id = 0
        self._end_id = 0
        # End offset of the reservation under way, so that many wait for one; -1: none.
        self.awaited_offset = -1

    def take(self) -> int:
        """An id that nobody had before, or `NONE_LEFT`."""
        if self._next_id >= self._end_id:
            return NONE_LEFT
        taken = self._next_id
        self._next_id += 1
        return taken

    def add(self, record: ProducerIdsReserved) -> None:
        """A reservation has become durable."""
        self._next_id = record.first_id
        self._end_id = record.first_id + record.count
        self.awaited_offset = -1


def decide_reserve_producer_ids(view: ClusterView) -> list[MetadataRecord]:
    """The next block of ids."""
    return [ProducerIdsReserved(first_id=view.producer_id_end, count=PRODUCER_IDS_PER_RESERVATION)]

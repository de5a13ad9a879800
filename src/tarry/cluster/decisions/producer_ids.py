"""Producer ids: reserved durably in blocks, given out from memory, never twice.

Ids of a block are given out only once its reservation is durable.  Ids that are left when the
broker stops or crashes are never used: there are 2^63 of them.
"""

from __future__ import annotations

from tarry.base.limits import PRODUCER_IDS_PER_RESERVATION
from tarry.cluster.state.records import MetadataRecord, ProducerIdsReserved
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore

NONE_LEFT = -1


class ReserveProducerIds(Change):
    """The reservation of the next block of ids."""

    def __init__(self) -> None:
        super().__init__()
        self.first_id = NONE_LEFT

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        # Skip a block that other brokers have reserved meanwhile, or that is perhaps this broker's
        # own.
        self.first_id = max(self.first_id, view.producer_id_end)
        return [ProducerIdsReserved(first_id=self.first_id, count=PRODUCER_IDS_PER_RESERVATION)]


class ProducerIds:
    """The ids that this broker has reserved and not given out yet."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._next_id = 0
        self._end_id = 0
        self._reservation: ReserveProducerIds | None = None

    def take(self) -> int:
        """Return an id that was never given out before, or `NONE_LEFT`."""
        reservation = self._reservation
        if reservation is not None and reservation.is_ended:
            self._reservation = None
            if not reservation.refusal:
                self._next_id = reservation.first_id
                self._end_id = self._next_id + PRODUCER_IDS_PER_RESERVATION
        if self._next_id >= self._end_id:
            return NONE_LEFT
        taken = self._next_id
        self._next_id += 1
        return taken

    def reserve(self) -> ReserveProducerIds:
        """Return the reservation under way, on which several requests may wait, or begin one."""
        if self._reservation is None:
            self._reservation = ReserveProducerIds()
            self._store.change(self._reservation)
        return self._reservation

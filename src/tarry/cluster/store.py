"""The contract of metadata stores: records go in, and are applied once they are durable.

The embedded store keeps them in a log of this broker; a store shared by several brokers fits
behind the same contract.
"""

from __future__ import annotations

from typing import Protocol

from tarry.cluster.producer_ids import ProducerIds
from tarry.cluster.records import MetadataRecord
from tarry.cluster.state import ClusterState, ClusterView


class MetadataStore(Protocol):
    """Decisions read `latest`; clients are answered from `state`."""

    state: ClusterState
    producer_ids: ProducerIds
    # Records below this offset are applied to `state`.
    applied_end_offset: int

    @property
    def latest(self) -> ClusterView:
        """The state as it will be once everything appended is durable."""

    @property
    def has_pending(self) -> bool:
        """Whether `latest` is ahead of `state`."""

    def append(self, records: list[MetadataRecord], now_wall_ms: int) -> int:
        """Append the records as one; return the offset behind them.

        They are all kept or none.  Raises `StorageError` if nothing can be appended any more.
        """

    def flushed(self, offset: int) -> list[MetadataRecord]:
        """What is below `offset` is durable: apply it; return what was applied, in order."""

    def on_write_failed(self) -> None:
        """What was appended since the last write is lost: nobody decides on it any more."""

"""Waiting for metadata that somebody else has proposed already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.broker.metadata_writes import METADATA_KEY, MetadataWrite

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


def wait_until_applied(broker: Broker, offset: int, write: MetadataWrite) -> None:
    """`write` completes when everything below `offset` is durable and applied."""
    write.store = broker.store
    write.required_offset = offset
    broker.metadata_purgatory.try_complete_else_watch(write, [METADATA_KEY])

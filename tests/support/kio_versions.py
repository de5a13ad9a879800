"""The versions of APIs that kio, the foreign codec, does not have: newer than its Kafka."""

from __future__ import annotations

from kio.index import KioIndexError, load_payload_module
from kio.static.constants import EntityType


def kio_knows(key: int, version: int) -> bool:
    """Whether kio reads this version of an API."""
    try:
        load_payload_module(key, version, EntityType.response)
    except KioIndexError:
        return False
    return True

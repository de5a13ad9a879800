"""FindCoordinator: the question which brokers coordinate groups, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tarry.base.errors import NONE
from tarry.client.core.topic import BrokerMetadata
from tarry.client.errors import BrokerError
from tarry.link.events import Address
from tarry.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

KEY_TYPE_GROUP: Final = 0

# From this version on one request may name several groups.
VERSION_WITH_KEYS: Final = 4

Found = BrokerMetadata | BrokerError


def find_coordinator_request(group_ids: Sequence[str], version: int) -> FindCoordinatorRequest:
    """Return a request for the coordinators of groups; of the first group if a request takes only
    one."""
    if version >= VERSION_WITH_KEYS:
        return FindCoordinatorRequest(key_type=KEY_TYPE_GROUP, coordinator_keys=[*group_ids])
    return FindCoordinatorRequest(key=group_ids[0], key_type=KEY_TYPE_GROUP)


def coordinators_of(
    group_ids: Sequence[str], response: FindCoordinatorResponse, version: int
) -> dict[str, Found]:
    """Return the coordinator of each group that the answer names, or its error."""
    if version < VERSION_WITH_KEYS:
        return {group_ids[0]: _found(group_ids[0], response)}
    return {one.key: _found(one.key, one) for one in response.coordinators}


def _found(group_id: str, answer: Coordinator | FindCoordinatorResponse) -> Found:
    if answer.error_code != NONE:
        sentence = answer.error_message or f"no broker names the coordinator of group {group_id}"
        return BrokerError(answer.error_code, sentence)
    return BrokerMetadata(answer.node_id, Address(answer.host, answer.port), None)

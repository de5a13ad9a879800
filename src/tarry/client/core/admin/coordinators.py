"""The coordinators of groups: look-up, and calls that are sent to them.

A group lives on the broker that leads its partition of `__consumer_offsets`.  The groups of one
coordinator share a call.  If a group's coordinator moved, is loading or cannot be reached, its
coordinator is looked up again; the other groups do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic

from tarry.base.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
)
from tarry.client.core.connections import Connections
from tarry.client.core.find_coordinator import Found, coordinators_of, find_coordinator_request
from tarry.client.core.routing import ANYONE
from tarry.client.core.topic import BrokerMetadata
from tarry.client.errors import BrokerError
from tarry.link.errand import A, Call, Outcomes, Steps, until_settled
from tarry.link.errors import ClientError, TimedOut
from tarry.link.exchange import Decoder, R
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorResponse,
    decode_find_coordinator_response,
)

# Errors after which the coordinator is looked up again, after a pause.
MOVED: Final = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})


class FindCoordinator(Call[FindCoordinatorResponse, dict[str, Found]]):
    """Result: the coordinator of each group, or an error; only that of the first group if the
    broker takes one group in a request."""

    def __init__(self, group_ids: list[str]) -> None:
        super().__init__(api_keys.FIND_COORDINATOR, decode_find_coordinator_response, ANYONE)
        self.group_ids = group_ids

    def build(self, version: int) -> Message:
        return find_coordinator_request(self.group_ids, version)

    def interpret(self, response: FindCoordinatorResponse) -> dict[str, Found]:
        return coordinators_of(self.group_ids, response, self.version)


def find_coordinators(
    connections: Connections, group_ids: Iterable[str]
) -> Steps[dict[str, BrokerMetadata | ClientError]]:
    """Find the coordinator of each group in one pass; the value is an error if the look-up
    failed."""
    found: dict[str, BrokerMetadata | ClientError] = {}
    left = list(dict.fromkeys(group_ids))
    calls = [FindCoordinator(left)] if left else []
    while calls:
        yield calls
        for call in calls:
            if call.error is not None:
                found.update(dict.fromkeys(call.group_ids, call.error))
            else:
                found.update(call.result)
        missing = [group_id for group_id in left if group_id not in found]
        if len(missing) == len(left):
            # The answers cover none of the missing groups, so asking again would not end.
            raise ClientError("the broker did not tell the coordinators it was asked for")
        left = missing
        calls = [FindCoordinator([group_id]) for group_id in left]
    for coordinator in found.values():
        if isinstance(coordinator, BrokerMetadata):
            connections.add_broker(coordinator.broker_id, coordinator.address)
    return found


class GroupsCall(Call[R, dict[str, A | ClientError]], Generic[R, A]):
    """Call to one coordinator about some of its groups.  Result: an answer or an error for each
    group."""

    repeats = False

    def __init__(
        self, api_key: int, decode: Decoder[R], broker_id: int, group_ids: list[str]
    ) -> None:
        super().__init__(api_key, decode, broker_id)
        self.group_ids = group_ids


MakeCalls = Callable[[BrokerMetadata, list[str]], Sequence[GroupsCall[Any, A]]]


def at_coordinators(
    connections: Connections, group_ids: Iterable[str], make: MakeCalls[A]
) -> Steps[dict[str, A | ClientError]]:
    """Send the calls of `make` to the coordinators, and retry until the time is up; return the
    answer or the error of each group."""

    def attempt(outcomes: Outcomes[str, A]) -> Steps[None]:
        found = yield from find_coordinators(connections, outcomes.left)
        by_broker: dict[int, tuple[BrokerMetadata, list[str]]] = {}
        for group_id, coordinator in found.items():
            if isinstance(coordinator, ClientError):
                outcomes.settle(group_id, coordinator)
            else:
                by_broker.setdefault(coordinator.broker_id, (coordinator, []))[1].append(group_id)
        calls = [call for broker, ids in by_broker.values() for call in make(broker, ids)]
        yield calls
        for call in calls:
            outcomes.settle_call(call, call.group_ids, ClientError(_SILENT))

    return until_settled(Outcomes(group_ids, _may_pass), attempt, _late_error)


_SILENT: Final = "the coordinator did not answer for this group"


def _may_pass(error: ClientError) -> bool:
    return error.code in MOVED if isinstance(error, BrokerError) else error.is_retriable


def _late_error(group_id: str, reason: ClientError, late: TimedOut) -> ClientError:
    words = "" if isinstance(reason, TimedOut) else "no answer in time: "
    return TimedOut(f"group {group_id}: {words}{reason}")

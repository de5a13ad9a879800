"""The coordinators of groups: who they are, and calls that go to them.

A group lives on the broker that leads its partition of `__consumer_offsets`.  Calls for several
groups go to each coordinator together; a group whose coordinator moved, is loading or cannot be
reached is looked up again, and the others do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from tarry.base.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
)
from tarry.client.core.admin.errand import Pause, Steps
from tarry.client.core.call import Call
from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Broker
from tarry.client.errors import BrokerError, ClientError, TimedOut
from tarry.client.settings import Address
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    decode_find_coordinator_response,
)

KEY_TYPE_GROUP: Final = 0

# From this version on one request asks for several groups.
VERSION_WITH_KEYS: Final = 4

# The group is elsewhere, or is not there yet: ask for its coordinator again, after a pause.
MOVED: Final = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})

Found = Broker | ClientError


class FindCoordinator(Call):
    """Result: for each group its coordinator or an error; only for the first one of several where
    the broker takes one a request."""

    def __init__(self, group_ids: list[str]) -> None:
        super().__init__(api_keys.FIND_COORDINATOR, decode_find_coordinator_response)
        self.group_ids = group_ids

    def build(self, version: int, timeout_ms: int) -> Message:
        if version >= VERSION_WITH_KEYS:
            return FindCoordinatorRequest(
                key_type=KEY_TYPE_GROUP, coordinator_keys=list(self.group_ids)
            )
        return FindCoordinatorRequest(key=self.group_ids[0], key_type=KEY_TYPE_GROUP)

    def interpret(self, response: Any, version: int) -> dict[str, Found]:
        if version < VERSION_WITH_KEYS:
            return {self.group_ids[0]: _coordinator_of(self.group_ids[0], response)}
        return {one.key: _coordinator_of(one.key, one) for one in response.coordinators}


def _coordinator_of(group_id: str, answer: Any) -> Found:
    if answer.error_code != NONE:
        sentence = answer.error_message or f"no broker coordinates group {group_id}"
        return BrokerError(answer.error_code, sentence)
    return Broker(answer.node_id, Address(answer.host, answer.port), None)


def find_coordinators(
    connections: Connections, group_ids: Iterable[str]
) -> Steps[dict[str, Found]]:
    """The coordinator of each group, asked once; an error in place of one that is not known."""
    found: dict[str, Found] = {}
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
            # An answer about none of them: nothing is gained by asking on.
            raise ClientError("the broker did not tell the coordinators it was asked for")
        left = missing
        calls = [FindCoordinator([group_id]) for group_id in left]
    for coordinator in found.values():
        if isinstance(coordinator, Broker):
            connections.add_broker(coordinator.broker_id, coordinator.address)
    return found


class GroupsCall(Call):
    """A call to one coordinator about some of its groups.  Result: for each group an answer or
    the error of this group alone."""

    repeats = False

    def __init__(self, api_key: int, decode: Any, broker_id: int, group_ids: list[str]) -> None:
        super().__init__(api_key, decode, broker_id)
        self.group_ids = group_ids


MakeCall = Callable[[Broker, list[str]], list[GroupsCall]]


def at_coordinators(
    connections: Connections, group_ids: Iterable[str], make: MakeCall
) -> Steps[dict[str, Any]]:
    """What the calls of `make` brought for each group, or its error; until the time is up."""
    wanted = list(dict.fromkeys(group_ids))
    answers: dict[str, Any] = {}
    failures = 0
    while True:
        reasons: dict[str, ClientError] = {}
        found = yield from find_coordinators(connections, _without(wanted, answers))
        by_broker: dict[int, tuple[Broker, list[str]]] = {}
        for group_id, coordinator in found.items():
            if isinstance(coordinator, ClientError):
                _settle(answers, reasons, group_id, coordinator)
            else:
                by_broker.setdefault(coordinator.broker_id, (coordinator, []))[1].append(group_id)
        calls = [call for broker, ids in by_broker.values() for call in make(broker, ids)]
        yield calls
        for call in calls:
            told = call.result if call.error is None else dict.fromkeys(call.group_ids, call.error)
            for group_id in call.group_ids:
                _settle(answers, reasons, group_id, told.get(group_id, _SILENT))
        if not reasons:
            return {group_id: answers[group_id] for group_id in wanted}
        failures += 1
        try:
            yield Pause(failures, next(iter(reasons.values())))
        except TimedOut:
            for group_id, reason in reasons.items():
                late = "" if isinstance(reason, TimedOut) else "no answer in time: "
                answers[group_id] = TimedOut(f"group {group_id}: {late}{reason}")
            return {group_id: answers[group_id] for group_id in wanted}


_SILENT: Final = ClientError("the coordinator did not answer for this group")


def _without(wanted: list[str], answers: dict[str, Any]) -> list[str]:
    return [group_id for group_id in wanted if group_id not in answers]


def _settle(
    answers: dict[str, Any], reasons: dict[str, ClientError], group_id: str, answer: Any
) -> None:
    """Keep what will not change; errors that may pass are reasons to ask again."""
    if _may_pass(answer):
        reasons[group_id] = answer
    else:
        answers[group_id] = answer


def _may_pass(answer: Any) -> bool:
    if isinstance(answer, BrokerError):
        return answer.code in MOVED
    return isinstance(answer, ClientError) and answer.is_retriable

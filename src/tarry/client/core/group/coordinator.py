"""Coordinator: the broker that keeps the group, and the connection to it.

    unknown -> being asked for -> known -> lost -> unknown

The group has its own connection, so that a heartbeat never waits behind a long fetch.  While a join
or a sync waits on it, urgent requests take the ordinary connection to the same broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from tarry.base import errors
from tarry.client.core.connections import Connections
from tarry.client.core.find_coordinator import coordinators_of, find_coordinator_request
from tarry.client.core.group import reactions
from tarry.client.core.topic import BrokerMetadata
from tarry.client.errors import BrokerError
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.link.exchange import Exchange
from tarry.link.link import READY, Link
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorResponse,
    decode_find_coordinator_response,
)

log = logging.getLogger("tarry.client")

# A coordinator lost this soon after it was found: brokers do not agree yet, so pause.
FOUND_JUST_NOW_MS: Final = 1_000

NAMED_NONE: Final = BrokerError(errors.COORDINATOR_NOT_AVAILABLE, "the broker named no coordinator")


class CoordinatorFinder:
    """Finder of the coordinator: `want` asks for it, one question at a time; `lose` forgets it."""

    def __init__(self, connections: Connections, group_id: str) -> None:
        self.connections = connections
        self.group_id = group_id
        self.broker_id = -1
        # Callback with the error code if no broker will ever name a coordinator.
        self.when_refused: Callable[[int, int], None] | None = None
        # Callback when a known coordinator is lost.
        self.when_lost: Callable[[str, int], None] | None = None
        self.last_error: ClientError | None = None
        # Permanent refusal of the last question; None after the next question is sent.
        self.refusal: BrokerError | None = None
        self._connection: Link | None = None
        self._loss = ""
        self._is_in_flight = False
        self._found_ms = -FOUND_JUST_NOW_MS
        self._pauses = connections.pauses()

    @property
    def is_known(self) -> bool:
        return self._connection is not None

    def want(self, now_ms: int) -> None:
        """Ask for the coordinator, unless it is known or being asked for."""
        if self._connection is not None or self._is_in_flight:
            return
        if self._pauses.holds(now_ms):
            return
        self._is_in_flight = True
        self.refusal = None
        self.connections.for_anyone(now_ms).send(_FindCoordinator(self), now_ms)

    def send(self, exchange: Exchange[Any], now_ms: int) -> None:
        """Send an exchange on the group's own connection; the coordinator must be known."""
        assert self._connection is not None
        self._connection.send(exchange, now_ms)

    def send_aside(self, exchange: Exchange[Any], now_ms: int) -> None:
        """Send an exchange to the coordinator on another connection, while a join or a sync waits
        on the group's own."""
        aside = self.connections.for_broker(self.broker_id)
        if aside is None:
            self.send(exchange, now_ms)
        else:
            aside.send(exchange, now_ms)

    def reopen(self, now_ms: int) -> None:
        """Open another connection to the same broker, and abandon the old one with its pending
        requests."""
        old = self._connection
        if old is not None:
            # The failure of the old connection is not a loss of the coordinator.
            self._connection = None
            old.when_lost = None
            self.connections.release(old, "not waited for any more", now_ms)
            self._open(old.broker_id, old.address)

    def lose(self, reason: str, now_ms: int) -> None:
        """Forget the coordinator: its broker does not keep the group any more, or cannot be
        reached.  Does nothing if no coordinator is known."""
        old = self._connection
        if old is None:
            return
        log.info("group %s: coordinator %s is lost: %s", self.group_id, old, reason)
        self._connection = None
        self._loss = reason
        old.when_lost = None
        self.connections.release(old, reason, now_ms)
        if now_ms - self._found_ms < FOUND_JUST_NOW_MS:
            self._pauses.begin(now_ms)
        else:
            self._pauses.failures = 0
        if self.when_lost is not None:
            self.when_lost(reason, now_ms)

    @property
    def trouble(self) -> str:
        """Reason of the last loss of the coordinator; empty while it is connected."""
        if self._connection is not None and self._connection.state == READY:
            return ""
        return self._loss

    def close(self) -> None:
        """Close with the client; the end of the connection is then no loss of the coordinator."""
        if self._connection is not None:
            self._connection.when_lost = None
        self._connection = None
        self.when_lost = None

    def _open(self, broker_id: int, address: Address) -> None:
        self.broker_id = broker_id
        connection = self.connections.dedicated(broker_id, address)
        connection.when_lost = self._on_connection_lost
        self._connection = connection

    def _on_connection_lost(self, now_ms: int) -> None:
        reason = self._connection.last_error if self._connection is not None else ""
        self.lose(reason or "the connection is closed", now_ms)
        # The broker may be restarting: pause before the next question.
        self._pauses.begin(now_ms)

    # --- Answers

    def on_found(self, broker: BrokerMetadata, now_ms: int) -> None:
        self._is_in_flight = False
        self.last_error = None
        self._found_ms = now_ms
        self._open(broker.broker_id, broker.address)
        log.info(
            "group %s: the coordinator is broker %d at %s",
            self.group_id, broker.broker_id, broker.address,
        )  # fmt: skip

    def on_refused(self, error: BrokerError, now_ms: int) -> None:
        self._is_in_flight = False
        self.last_error = error
        is_passing = reactions.reaction_to(error.code) in (reactions.RETRY, reactions.FIND)
        if not is_passing:
            self.refusal = error
            if self.when_refused is not None:
                self.when_refused(error.code, now_ms)
        self._pauses.begin(now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._is_in_flight = False
        self.last_error = error
        if not error.is_retriable and self.when_refused is not None:
            self.when_refused(errors.UNSUPPORTED_VERSION, now_ms)
        self._pauses.begin(now_ms)


class _FindCoordinator(Exchange[FindCoordinatorResponse]):
    def __init__(self, coordinator: CoordinatorFinder) -> None:
        timeout_ms = coordinator.connections.settings.request_timeout_ms
        super().__init__(api_keys.FIND_COORDINATOR, decode_find_coordinator_response, timeout_ms)
        self.coordinator = coordinator

    def build(self, version: int) -> Message:
        return find_coordinator_request([self.coordinator.group_id], version)

    def on_response(self, response: FindCoordinatorResponse, now_ms: int) -> None:
        group_id = self.coordinator.group_id
        found = coordinators_of([group_id], response, self.version).get(group_id, NAMED_NONE)
        if isinstance(found, BrokerMetadata):
            self.coordinator.on_found(found, now_ms)
        else:
            self.coordinator.on_refused(found, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.coordinator.on_failure(error, now_ms)

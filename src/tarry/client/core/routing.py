"""Routing: the broker to which a client's call goes, according to metadata."""

from __future__ import annotations

from typing import Any, Final

from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Metadata
from tarry.client.core.refresh import Refresh
from tarry.link.errand import UNKNOWN, Call
from tarry.link.errors import BrokerUnreachable, ClientError, timed_out
from tarry.link.link import Link
from tarry.protocol import api_keys

# Targets of calls beside the ids of brokers.
ANYONE: Final = -1
CONTROLLER: Final = -2


class Routing:
    """The router of one core's calls."""

    def __init__(self, connections: Connections, metadata: Metadata, refresh: Refresh) -> None:
        self.connections = connections
        self.metadata = metadata
        self.refresh = refresh

    def link_for(self, call: Call[Any, Any], now_ms: int) -> Link | None:
        """Return the link for a call; None while the broker is not known, and then request
        metadata."""
        if call.target == ANYONE:
            return self.connections.for_anyone(now_ms)
        is_controller = call.target == CONTROLLER
        link = self.connections.for_broker(
            self.metadata.controller_id if is_controller else call.target
        )
        if link is None and not is_controller:
            self._check_there(call)
        if link is None or (is_controller and call.attempts > 1):
            self.refresh.want(now_ms)
        return link

    def _check_there(self, call: Call[Any, Any]) -> None:
        """Raise BrokerUnreachable if metadata that are newer than the call lack the broker."""
        if call.known_version == UNKNOWN:
            call.known_version = self.metadata.version
        elif call.known_version != self.metadata.version:
            brokers = ", ".join(f"{broker_id}" for broker_id in sorted(self.metadata.brokers))
            raise BrokerUnreachable(
                f"there is no broker {call.target}; the cluster has {brokers or 'none'}"
            )

    def on_failure(self, now_ms: int) -> None:
        self.refresh.want(now_ms)

    def late_error(self, call: Call[Any, Any], waited_ms: int) -> ClientError:
        reason = (
            call.last_error
            or self.connections.failure_of(call.target)
            or self.refresh.last_error
            or self.connections.last_failure
        )
        what = f"{api_keys.APIS[call.api_key].name} was not answered"
        if reason is None:
            # Time was up before anything could fail, so the text names the servers that were tried.
            what += f" by {self.connections.bootstrap_addresses}"
        return timed_out(what + self._stranger(call.target), waited_ms, reason)

    def _stranger(self, target: int) -> str:
        """Return why no broker was asked, if the target is not in the cluster; empty if it is."""
        brokers = self.metadata.brokers
        if target < 0 or not brokers or target in brokers:
            return ""
        known = ", ".join(f"{broker_id}" for broker_id in sorted(brokers))
        return f" (there is no broker {target}; the cluster has {known})"

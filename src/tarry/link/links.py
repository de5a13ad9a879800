"""Links: all links of one core, by broker, and their common state.

A broker that moves gets a new link; requests under way on the old one fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tarry.base.doors import CONNECTED, DISCONNECTED, RECEIVED, Event, Random
from tarry.link.errors import ClientError, ConnectionLost
from tarry.link.events import Address, LinkEvent, Output, Resolved
from tarry.link.frames import ANSWER_BYTES_MAX
from tarry.link.link import READY, Link
from tarry.link.pauses import Pauses, backoff_ms
from tarry.link.tasks import Tasks


class LinkSettings(NamedTuple):
    """Settings of links: their client id, time limits, pauses."""

    client_id: str
    request_timeout_ms: int
    connection_setup_timeout_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_ms_max: int
    retry_backoff_ms: int
    retry_backoff_ms_max: int
    # Negative: a connection stays until the broker closes it.
    connection_idle_ms_max: int


class Links:
    """Links to brokers by id; `take_outputs` returns their orders, in order."""

    def __init__(self, settings: LinkSettings, tasks: Tasks, random: Random) -> None:
        self.settings = settings
        self.tasks = tasks
        self.random = random
        # Called when a connection is lost, because the knowledge of the cluster may be stale then.
        self.when_lost: Callable[[int], None] | None = None
        # Number of connections that became ready, that ended later, and that never became ready.
        self.made = 0
        self.lost = 0
        self.failed = 0
        # Sum of the throttle times in the answers of brokers.
        self.throttled_ms = 0
        self._outputs: list[Output] = []
        self._by_broker: dict[int, Link] = {}
        self._by_id: dict[int, Link] = {}
        self._last_id = 0
        self._dedicated: dict[Link, None] = {}
        self._addresses: dict[int, Address] = {}
        self._advertised_by = ""

    # --- Links to brokers

    def set_brokers(self, addresses: dict[int, Address], source: str, now_ms: int) -> None:
        """Take over the addresses of brokers; close links to brokers that moved or left."""
        self._addresses = addresses
        self._advertised_by = source
        for broker_id in list(self._by_broker):
            link = self._by_broker[broker_id]
            if addresses.get(broker_id) != link.address:
                del self._by_broker[broker_id]
                link.close(ConnectionLost(f"{link} has left or moved"), now_ms)

    def add_broker(self, broker_id: int, address: Address) -> None:
        """Add a broker that an answer named before `set_brokers` did."""
        if broker_id not in self._addresses:
            self._addresses = {**self._addresses, broker_id: address}

    def for_broker(self, broker_id: int) -> Link | None:
        """Return the link to a broker, which is made if needed; None if the broker is unknown."""
        link = self._by_broker.get(broker_id)
        if link is None:
            address = self._addresses.get(broker_id)
            if address is None:
                return None
            link = Link(self, broker_id, address)
            self._by_broker[broker_id] = link
        return link

    def dedicated(
        self, broker_id: int, address: Address, answer_bytes_max: int = ANSWER_BYTES_MAX
    ) -> Link:
        """Return a link that only the caller uses and ends by `release`."""
        link = Link(self, broker_id, address, answer_bytes_max)
        self._dedicated[link] = None
        return link

    def release(self, link: Link, reason: str, now_ms: int) -> None:
        """Close a dedicated link; requests under way on it fail."""
        if link in self._dedicated:
            del self._dedicated[link]
            link.close(ConnectionLost(f"{link}: {reason}"), now_ms)

    def failure_of(self, broker_id: int) -> ClientError | None:
        """Return why the last connection to a broker failed; None if it is ready, or was not
        tried.
        """
        link = self._by_broker.get(broker_id)
        if link is None or link.state == READY:
            return None
        return link.last_failure

    def retry_pause_ms(self, failures: int) -> int:
        """Return the pause after the `failures`th failed request in a row, in ms."""
        settings = self.settings
        first_ms, ms_max = settings.retry_backoff_ms, settings.retry_backoff_ms_max
        return backoff_ms(first_ms, ms_max, failures, self.random)

    def pauses(self) -> Pauses:
        """Return pauses for one thing that is repeated."""
        return Pauses(self.tasks, self.retry_pause_ms)

    def in_backoff(self, now_ms: int) -> int:
        """Count the links that wait before they connect again."""
        count = 0
        for link in (*self._by_broker.values(), *self._dedicated):
            if link.is_in_backoff(now_ms):
                count += 1
        return count

    # --- What links need

    def put(self, output: Output) -> None:
        self._outputs.append(output)

    def take_outputs(self) -> list[Output]:
        outputs = self._outputs
        self._outputs = []
        return outputs

    def origin_of(self, link: Link) -> str:
        """Return which server named the address of a broker, for the text of an error."""
        if link.broker_id < 0 or not self._advertised_by:
            return ""
        return (
            f", which {self._advertised_by} named as broker {link.broker_id} (advertised.listeners)"
        )

    def new_connection_id(self, link: Link) -> int:
        self._last_id += 1
        self._by_id[self._last_id] = link
        return self._last_id

    def forget(self, connection_id: int) -> None:
        self._by_id.pop(connection_id, None)

    def on_lost(self, link: Link, now_ms: int) -> None:
        if self.when_lost is not None:
            self.when_lost(now_ms)
        if link.when_lost is not None:
            link.when_lost(now_ms)

    # --- Events

    def handle(self, event: LinkEvent, now_ms: int) -> None:
        """Take an event; ignore one of a connection that was closed meanwhile."""
        link = self._by_id.get(event.connection_id)
        if link is None:
            return
        if isinstance(event, Resolved):
            link.on_resolved(event.addresses, event.error, now_ms)
        else:
            self._handle_stream(link, event, now_ms)

    def _handle_stream(self, link: Link, event: Event, now_ms: int) -> None:
        if event.kind == RECEIVED:
            link.on_received(event.data, now_ms)
        elif event.kind == CONNECTED:
            assert event.is_outgoing
            link.on_connected(now_ms)
        elif event.kind == DISCONNECTED:
            link.on_disconnected(event.error, now_ms)

    def close(self, error: ClientError, now_ms: int) -> None:
        """Close every link; requests under way fail with `error`."""
        for link in [*self._by_broker.values(), *self._dedicated]:
            link.close(error, now_ms)

"""Connections: which connections there are, by broker, and which one to ask.

Bootstrap addresses have negative ids.  A broker that moves gets a new connection; what the old
one owed fails.
"""

from __future__ import annotations

from collections.abc import Callable

import tarry
from tarry.base.doors import CONNECTED, DISCONNECTED, RECEIVED, Event, Random
from tarry.client.core.backoff import backoff_ms
from tarry.client.core.connection import READY, Connection
from tarry.client.core.events import ClientEvent, Output, Resolved
from tarry.client.core.tasks import Tasks
from tarry.client.errors import ClientError, ConnectionLost
from tarry.client.settings import Address, ClientSettings


class Connections:
    """All connections of one core, and what they ask of the face."""

    def __init__(self, settings: ClientSettings, tasks: Tasks, random: Random) -> None:
        self.settings = settings
        self.tasks = tasks
        self.random = random
        self.software_version = tarry.__version__
        # Called when a connection is lost: metadata may be stale then.
        self.when_lost: Callable[[int], None] | None = None
        self._outputs: list[Output] = []
        self._by_broker: dict[int, Connection] = {}
        self._by_id: dict[int, Connection] = {}
        self._last_id = 0
        self._dedicated: dict[Connection, None] = {}
        self._addresses: dict[int, Address] = {}
        self._advertised_by = ""
        self._bootstrap = [
            Connection(self, -1 - place, address)
            for place, address in enumerate(settings.bootstrap_servers)
        ]
        # Clients that start together begin at different servers.
        self._bootstrap_next = random.randrange(len(self._bootstrap))

    # --- Whom to ask

    def set_brokers(self, addresses: dict[int, Address], source: str, now_ms: int) -> None:
        """What metadata says; connections to brokers that moved or left are closed."""
        self._addresses = addresses
        self._advertised_by = source
        for broker_id in list(self._by_broker):
            connection = self._by_broker[broker_id]
            if addresses.get(broker_id) != connection.address:
                del self._by_broker[broker_id]
                connection.close(ConnectionLost(f"{connection} has left or moved"), now_ms)
        self._adopt_bootstrap()

    def _adopt_bootstrap(self) -> None:
        """A bootstrap server whose address a broker has is that broker: one connection less."""
        for place, connection in enumerate(self._bootstrap):
            for broker_id in sorted(self._addresses):
                is_free = broker_id not in self._by_broker
                same = self._addresses[broker_id] == connection.address
                if is_free and same and connection.state == READY:
                    self._by_broker[broker_id] = connection
                    connection.broker_id = broker_id
                    self._bootstrap[place] = Connection(self, -1 - place, connection.address)

    def add_broker(self, broker_id: int, address: Address) -> None:
        """A broker that an answer pointed to before metadata knew it."""
        if broker_id not in self._addresses:
            self._addresses = {**self._addresses, broker_id: address}

    def for_broker(self, broker_id: int) -> Connection | None:
        """The connection to a known broker, made if there is none; None: not known."""
        connection = self._by_broker.get(broker_id)
        if connection is None:
            address = self._addresses.get(broker_id)
            if address is None:
                return None
            connection = Connection(self, broker_id, address)
            self._by_broker[broker_id] = connection
        return connection

    def dedicated(self, broker_id: int, address: Address) -> Connection:
        """A connection of one's own, to be given back by `release`."""
        connection = Connection(self, broker_id, address)
        self._dedicated[connection] = None
        return connection

    def release(self, connection: Connection, reason: str, now_ms: int) -> None:
        """Close a dedicated connection; what is under way on it fails."""
        if connection in self._dedicated:
            del self._dedicated[connection]
            connection.close(ConnectionLost(f"{connection}: {reason}"), now_ms)

    def for_anyone(self, now_ms: int) -> Connection:
        """A connection to any broker: the ready one with the least to do, else one to make.

        When no known broker can be reached the bootstrap servers are asked again (KIP-899).
        """
        known = [self.for_broker(broker_id) for broker_id in sorted(self._addresses)]
        candidates = [one for one in known if one is not None]
        usable = [one for one in candidates if not one.is_in_backoff(now_ms)]
        if any(one.failures == 0 for one in usable):
            return min(usable, key=_load)
        ready = [one for one in self._bootstrap if one.state == READY]
        if ready:
            return min(ready, key=_load)
        bootstrap = self._next_bootstrap(now_ms)
        if bootstrap is not None:
            return bootstrap
        if usable:
            return min(usable, key=_load)
        return self._bootstrap[self._bootstrap_next]

    def _next_bootstrap(self, now_ms: int) -> Connection | None:
        for _ in self._bootstrap:
            connection = self._bootstrap[self._bootstrap_next]
            if not connection.is_in_backoff(now_ms):
                if connection.failures > 0:
                    self._bootstrap_next = (self._bootstrap_next + 1) % len(self._bootstrap)
                return connection
            self._bootstrap_next = (self._bootstrap_next + 1) % len(self._bootstrap)
        return None

    @property
    def last_failure(self) -> ClientError | None:
        """Why no bootstrap server could be reached; None if that is not known."""
        for connection in self._bootstrap:
            if connection.last_failure is not None:
                return connection.last_failure
        return None

    def failure_of(self, broker_id: int) -> ClientError | None:
        """Why the last connection to a broker failed; None while it is there, or was not tried."""
        connection = self._by_broker.get(broker_id)
        if connection is None or connection.state == READY:
            return None
        return connection.last_failure

    def silence(self, now_ms: int) -> str:
        """Return the address that has taken no connection for a while; empty if there is none."""
        for connection in [*self._by_broker.values(), *self._bootstrap]:
            waits = connection.waits_for(now_ms)
            if waits:
                return waits
        return ""

    def retry_pause_ms(self, failures: int) -> int:
        """How long to wait after the `failures`th failed request in a row."""
        settings = self.settings
        first_ms, ms_max = settings.retry_backoff_ms, settings.retry_backoff_ms_max
        return backoff_ms(first_ms, ms_max, failures, self.random)

    def origin_of(self, connection: Connection) -> str:
        """Where the address of a broker came from, for the text of an error."""
        if connection.broker_id < 0 or not self._advertised_by:
            return ""
        return (
            f", which {self._advertised_by} named as broker {connection.broker_id} "
            "(advertised.listeners)"
        )

    # --- What the connections need

    def put(self, output: Output) -> None:
        self._outputs.append(output)

    def take_outputs(self) -> list[Output]:
        outputs = self._outputs
        self._outputs = []
        return outputs

    def new_connection_id(self, connection: Connection) -> int:
        self._last_id += 1
        self._by_id[self._last_id] = connection
        return self._last_id

    def forget(self, connection_id: int) -> None:
        self._by_id.pop(connection_id, None)

    def on_lost(self, connection: Connection, now_ms: int) -> None:
        if self.when_lost is not None:
            self.when_lost(now_ms)
        if connection.when_lost is not None:
            connection.when_lost(now_ms)

    # --- Events

    def handle(self, event: ClientEvent, now_ms: int) -> None:
        """An event of a connection that was closed meanwhile counts for nothing."""
        connection = self._by_id.get(event.connection_id)
        if connection is None:
            return
        if isinstance(event, Resolved):
            connection.on_resolved(event.addresses, event.error, now_ms)
        else:
            self._handle_stream(connection, event, now_ms)

    def _handle_stream(self, connection: Connection, event: Event, now_ms: int) -> None:
        if event.kind == RECEIVED:
            connection.on_received(event.data, now_ms)
        elif event.kind == CONNECTED:
            connection.on_connected(now_ms)
        elif event.kind == DISCONNECTED:
            connection.on_disconnected(event.error, now_ms)

    def close(self, error: ClientError, now_ms: int) -> None:
        """Close everything; what is under way fails with `error`."""
        for connection in [*self._by_broker.values(), *self._bootstrap, *self._dedicated]:
            connection.close(error, now_ms)


def _load(connection: Connection) -> tuple[bool, bool, int]:
    return connection.state != READY, connection.failures > 0, connection.in_flight

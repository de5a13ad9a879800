"""Connections: the links of one client, which begin at bootstrap servers.

Links to bootstrap servers have negative ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base.doors import Random
from tarry.client.settings import ClientSettings
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.link.link import READY, Link
from tarry.link.links import Links
from tarry.link.tasks import Tasks

if TYPE_CHECKING:
    from tarry.client.metrics import ConnectionMetrics


class Connections(Links):
    """Links of one core by broker, with links to the bootstrap servers."""

    def __init__(self, settings: ClientSettings, tasks: Tasks, random: Random) -> None:
        super().__init__(settings.link, tasks, random)
        self._bootstrap = [
            Link(self, -1 - place, address)
            for place, address in enumerate(settings.bootstrap_servers)
        ]
        # The first server is drawn, so that clients which start together begin at different ones.
        self._bootstrap_next = random.randrange(len(self._bootstrap))

    # --- Choice of a link

    def set_brokers(self, addresses: dict[int, Address], source: str, now_ms: int) -> None:
        super().set_brokers(addresses, source, now_ms)
        self._adopt_bootstrap()

    def _adopt_bootstrap(self) -> None:
        """Use the ready link to a bootstrap server for the broker with the same address, to save a
        link."""
        for place, link in enumerate(self._bootstrap):
            for broker_id in sorted(self._addresses):
                is_free = broker_id not in self._by_broker
                same = self._addresses[broker_id] == link.address
                if is_free and same and link.state == READY:
                    self._by_broker[broker_id] = link
                    link.broker_id = broker_id
                    self._bootstrap[place] = Link(self, -1 - place, link.address)

    def for_anyone(self, now_ms: int, rather_not: Link | None = None) -> Link:
        """Return a link to any broker: the ready one with the least to do, or else one to be made.

        `rather_not` is chosen only if there is no other.  If no known broker can be reached, the
        bootstrap servers are asked again (KIP-899).
        """
        known = [self.for_broker(broker_id) for broker_id in sorted(self._addresses)]
        candidates = [one for one in known if one is not None]
        usable = [one for one in candidates if not one.is_in_backoff(now_ms)]
        sound = [one for one in usable if one.failures == 0]
        others = [one for one in sound if one is not rather_not]
        if others:
            return min(others, key=_load)
        if sound:
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

    def _next_bootstrap(self, now_ms: int) -> Link | None:
        for _ in self._bootstrap:
            link = self._bootstrap[self._bootstrap_next]
            if not link.is_in_backoff(now_ms):
                if link.failures > 0:
                    self._bootstrap_next = (self._bootstrap_next + 1) % len(self._bootstrap)
                return link
            self._bootstrap_next = (self._bootstrap_next + 1) % len(self._bootstrap)
        return None

    # --- Failures

    @property
    def bootstrap_addresses(self) -> str:
        """The addresses that the user gave, for a sentence."""
        return ", ".join(f"{link.address}" for link in self._bootstrap)

    @property
    def last_failure(self) -> ClientError | None:
        """Error that made the bootstrap servers unreachable; None if none is known."""
        for link in self._bootstrap:
            if link.last_failure is not None:
                return link.last_failure
        return None

    def silence(self, now_ms: int) -> str:
        """Return the address that has accepted no connection for a while; "" if there is none."""
        for link in [*self._by_broker.values(), *self._bootstrap]:
            waits = link.waits_for(now_ms)
            if waits:
                return waits
        return ""

    def in_backoff(self, now_ms: int) -> int:
        waiting = [link for link in self._bootstrap if link.is_in_backoff(now_ms)]
        return super().in_backoff(now_ms) + len(waiting)

    def metrics(self, now_ms: int) -> ConnectionMetrics:
        """Return a snapshot of the counts of connections."""
        # Imported here, because few programs ask for metrics.
        from tarry.client.metrics import ConnectionMetrics

        return ConnectionMetrics(self.made, self.lost, self.failed, self.in_backoff(now_ms))

    def close(self, error: ClientError, now_ms: int) -> None:
        super().close(error, now_ms)
        for link in self._bootstrap:
            link.close(error, now_ms)


def _load(link: Link) -> tuple[bool, bool, int]:
    return link.state != READY, link.failures > 0, link.in_flight

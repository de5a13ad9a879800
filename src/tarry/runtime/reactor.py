"""Reactor: maps ready descriptors to their sources, which turn them into events."""

from __future__ import annotations

from typing import Protocol

from tarry.base.doors import Event
from tarry.runtime.poller import Poller


class Source(Protocol):
    """Owner of a registered descriptor."""

    def ready(self, mask: int, events: list[Event]) -> None:
        """Do what is possible without waiting; add events for the turn to `events`."""


class Reactor:
    """Poller with its sources, and events that are known before the next poll."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._sources: dict[int, Source] = {}
        self._events: list[Event] = []

    def add(self, descriptor: int, mask: int, source: Source) -> None:
        self._poller.register(descriptor, mask)
        self._sources[descriptor] = source

    def change(self, descriptor: int, mask: int) -> None:
        self._poller.modify(descriptor, mask)

    def remove(self, descriptor: int) -> None:
        """Remove a descriptor before it is closed, because its number may be reused at once."""
        del self._sources[descriptor]
        self._poller.unregister(descriptor)

    def has(self, descriptor: int) -> bool:
        return descriptor in self._sources

    def post(self, event: Event) -> None:
        """Add an event from elsewhere; the `wait` under way, or the next one, returns it."""
        self._events.append(event)

    def wait(self, timeout_ms: int) -> list[Event]:
        """Wait for events, at most `timeout_ms`."""
        events: list[Event] = []
        if self._events:
            timeout_ms = 0
        sources = self._sources
        for descriptor, mask in self._poller.poll(timeout_ms):
            # A source handled before this one may have removed it.
            source = sources.get(descriptor)
            if source is not None:
                source.ready(mask, events)
        if self._events:
            # Posted events are ends of connections, which follow the bytes before them.
            events += self._events
            self._events = []
        return events

    def close(self) -> None:
        self._poller.close()

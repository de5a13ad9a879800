"""Pollers, which report ready descriptors: epoll if the system has it, else `selectors`.

Both have one contract, level-triggered.  epoll costs 0.67 µs a poll, `selectors` 1.58
(docs/explanation/performance.md).
"""

from __future__ import annotations

import select
import selectors
from typing import Final, Protocol

# The bits are epoll's own.
READABLE: Final = 1
WRITABLE: Final = 4
BROKEN: Final = 8 | 16

# Descriptors handled in one turn; with reads of 256 KiB they bound a turn's memory at 64 MiB.
READY_MAX: Final = 256


class Poller(Protocol):
    """Poller; the interest in a descriptor is a mask of READABLE and WRITABLE, possibly 0."""

    def register(self, descriptor: int, mask: int) -> None: ...

    def modify(self, descriptor: int, mask: int) -> None: ...

    def unregister(self, descriptor: int) -> None: ...

    def poll(self, timeout_ms: int) -> list[tuple[int, int]]:
        """Return ready descriptors with their masks; BROKEN comes unasked if the system has it.

        At most READY_MAX are returned; none after `timeout_ms`.
        """

    def close(self) -> None: ...


class SelectorPoller:
    """Poller over `selectors`: kqueue on macOS, poll or select elsewhere."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selectors.DefaultSelector() if selector is None else selector
        self._masks: dict[int, int] = {}

    def register(self, descriptor: int, mask: int) -> None:
        self._masks[descriptor] = mask
        if mask:
            self._selector.register(descriptor, _to_selector(mask))

    def modify(self, descriptor: int, mask: int) -> None:
        # A selector refuses an empty interest, so a descriptor without one is not registered.
        if not self._masks[descriptor]:
            self.register(descriptor, mask)
        elif mask:
            self._selector.modify(descriptor, _to_selector(mask))
            self._masks[descriptor] = mask
        else:
            self._selector.unregister(descriptor)
            self._masks[descriptor] = 0

    def unregister(self, descriptor: int) -> None:
        if self._masks.pop(descriptor):
            self._selector.unregister(descriptor)

    def poll(self, timeout_ms: int) -> list[tuple[int, int]]:
        ready = self._selector.select(timeout_ms / 1000)
        return [(key.fd, _from_selector(events)) for key, events in ready[:READY_MAX]]

    def close(self) -> None:
        self._selector.close()


def _to_selector(mask: int) -> int:
    events = selectors.EVENT_READ if mask & READABLE else 0
    return events | (selectors.EVENT_WRITE if mask & WRITABLE else 0)


def _from_selector(events: int) -> int:
    mask = READABLE if events & selectors.EVENT_READ else 0
    return mask | (WRITABLE if events & selectors.EVENT_WRITE else 0)


if hasattr(select, "epoll"):

    class EpollPoller:
        """Poller over `select.epoll`, whose methods it uses, except for the time-out's unit."""

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.register = self._epoll.register
            self.modify = self._epoll.modify
            self.unregister = self._epoll.unregister
            self.close = self._epoll.close

        def poll(self, timeout_ms: int) -> list[tuple[int, int]]:
            return self._epoll.poll(timeout_ms / 1000, READY_MAX)


def make_poller() -> Poller:
    """Return the best poller that this system has."""
    if hasattr(select, "epoll"):
        return EpollPoller()
    return SelectorPoller()

"""Look-ups of names beside the loop, because the system's resolver may take many seconds.

Two threads, started before the first turn, ask the resolver; `Wake` reports the end to the loop,
outside a turn.  Numeric addresses need no look-up and never come here.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tarry.base.doors import Event
from tarry.runtime.refusal import reason_of
from tarry.runtime.wake import Wake

# Two threads: a look-up that waits for a silent name server does not hold up another one.
_THREADS: Final = 2

# Family and address, as `socket` takes them.
SocketAddress = tuple[socket.AddressFamily, Any]

# Callback of a look-up: gets the addresses, or none and the reason.
Found = Callable[[list[SocketAddress], str], None]


def numeric_addresses(host: str, port: int) -> list[SocketAddress]:
    """Return the address of a numeric host; empty if the host is a name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []
    return [(family, address) for family, _, _, _, address in found]


class LookUps:
    """Names under look-up; a name that is asked for again meanwhile is looked up once."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._asked: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        self._ended: deque[tuple[tuple[str, int], list[SocketAddress], str]] = deque()
        self._waiting: dict[tuple[str, int], list[Found]] = {}
        self._threads: list[threading.Thread] = []
        wake.add_collector(self._collect)

    def begin(self) -> None:
        """Start the threads; never in a turn."""
        while len(self._threads) < _THREADS:
            thread = threading.Thread(target=self._work, name="tarry-names", daemon=True)
            thread.start()
            self._threads.append(thread)

    def look_up(self, host: str, port: int, found: Found) -> None:
        """Call `found` between two turns, with the addresses of the name or the reason why there
        are none."""
        name = (host, port)
        others = self._waiting.get(name)
        if others is not None:
            others.append(found)
            return
        self._waiting[name] = [found]
        if self._threads:
            self._asked.put(name)
        else:
            self._ended.append((name, [], "names are looked up only by a member of a cluster"))
            self._wake.wake()

    def close(self) -> None:
        """Make the threads end; the process's end stops one that still waits for the system."""
        for _ in self._threads:
            self._asked.put(None)

    def _collect(self, events: list[Event]) -> None:
        while self._ended:
            name, addresses, error = self._ended.popleft()
            for found in self._waiting.pop(name):
                found(addresses, error)

    def _work(self) -> None:
        while True:
            name = self._asked.get()
            if name is None:
                return
            addresses: list[SocketAddress] = []
            error = ""
            try:
                answers = socket.getaddrinfo(*name, type=socket.SOCK_STREAM)
                addresses = [(family, address) for family, _, _, _, address in answers]
            except OSError as failure:
                error = reason_of(failure)
            except UnicodeError as failure:
                error = f"{name[0]!r} is no name of a host: {failure}"
            self._ended.append((name, addresses, error))
            self._wake.wake()

"""Repeated faults of one peer, summed up: at most one line a second for each peer and fault.

A peer is its host, as `base/hosts` counts it, because each connection of a broken client comes
from another port.  The first fault is logged at once.  Faults in the second after it are counted;
the next line, or `flush`, reports the count.  Bytes from peers are made printable, so that no peer
can forge a line of the log.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.hosts import counted_host, host_of

INTERVAL_MS: Final = 1_000

# Hosts remembered at the same time; the one whose last line is oldest makes room.
HOSTS_MAX: Final = 1_000


class RepeatedFaults:
    """Faults of peers, summed up into a log; the time is an argument."""

    def __init__(self, logger: logging.Logger, level: int = logging.WARNING) -> None:
        self._logger = logger
        self._level = level
        # Insertion order is the order of the last line, so the oldest host comes first.
        self._hosts: dict[str, _Host] = {}

    def __len__(self) -> int:
        """Count the hosts that `flush` has not forgotten yet."""
        return len(self._hosts)

    def report(self, peer: str, reason: str, now_ms: int, kind: str = "") -> None:
        """Report a fault of `peer`, "host:port" or a host; each `kind` is summed up apart."""
        counted = counted_host(host_of(peer))
        name = f"{counted} {kind}" if kind else counted
        host = self._hosts.get(name)
        if host is not None and now_ms - host.written_ms < INTERVAL_MS:
            host.unwritten += 1
            host.reason = reason
            return
        more = ""
        if host is None:
            if len(self._hosts) >= HOSTS_MAX:
                self._sum_up(next(iter(self._hosts)))
            host = _Host()
        else:
            more = host.summary()
            del self._hosts[name]
        host.written_ms = now_ms
        host.unwritten = 0
        self._hosts[name] = host
        self._logger.log(self._level, "%s: %s%s", printable(peer), printable(reason), more)

    def flush(self, now_ms: int) -> None:
        """Log the counts that no later line has reported; forget hosts without recent faults."""
        for name in list(self._hosts):
            if now_ms - self._hosts[name].written_ms >= INTERVAL_MS:
                self._sum_up(name)

    def _sum_up(self, name: str) -> None:
        host = self._hosts.pop(name)
        if host.unwritten:
            self._logger.log(
                self._level,
                "%s: %d more faults, the last: %s",
                printable(name),
                host.unwritten,
                printable(host.reason),
            )


class _Host:
    """Host whose faults are summed up, with its count since the last line."""

    __slots__ = ("reason", "unwritten", "written_ms")

    def __init__(self) -> None:
        self.written_ms = 0
        self.unwritten = 0
        self.reason = ""

    def summary(self) -> str:
        return f" (and {self.unwritten} more since the last line)" if self.unwritten else ""


def printable(text: str) -> str:
    """Return the text short and without control characters, so that one line stays one line."""
    return "".join(c if c.isprintable() else "?" for c in text[:300])

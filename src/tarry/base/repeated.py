"""Repeated faults of one peer, summed up: at most one line a second, peer and kind of fault.

A peer is its host, as `base/hosts` counts it: every connection of a broken client comes from
another port.  The first fault
is written at once; those of the following second are counted, and told with the next line or by
`flush`.  What peers send is made printable, so that nobody writes lines of their own.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.hosts import counted_host, host_of

INTERVAL_MS: Final = 1_000

# Hosts remembered at the same time; the one heard of longest ago makes room.
HOSTS_MAX: Final = 1_000


class RepeatedFaults:
    """Writes faults into a log; the time is an argument."""

    def __init__(self, logger: logging.Logger, level: int = logging.WARNING) -> None:
        self._logger = logger
        self._level = level
        # Insertion order is the order of the last line, so the oldest host comes first.
        self._hosts: dict[str, _Host] = {}

    def __len__(self) -> int:
        """Hosts that `flush` has not forgotten yet."""
        return len(self._hosts)

    def report(self, peer: str, reason: str, now_ms: int, kind: str = "") -> None:
        """`peer` is "host:port" or a host.  What has a kind is not lost among other faults."""
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
        """Tell what was counted and not followed by another line; forget quiet hosts."""
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
    """Host whose faults are summed up: what is known of it since its last line."""

    __slots__ = ("reason", "unwritten", "written_ms")

    def __init__(self) -> None:
        self.written_ms = 0
        self.unwritten = 0
        self.reason = ""

    def summary(self) -> str:
        return f" (and {self.unwritten} more since the last line)" if self.unwritten else ""


def printable(text: str) -> str:
    """Short, and without control characters: one line stays one line."""
    return "".join(c if c.isprintable() else "?" for c in text[:300])

"""Processes below one, as /proc tells of them; Linux alone does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """One process; its CPU seconds hold those of children that it has waited for."""

    pid: int
    name: str
    parent: int
    cpu_seconds: float
    resident_bytes: int


def below(root: int) -> list[Process]:
    """Return a process and all that descend from it."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, behind = entry.read_text().rpartition(")")
        except OSError:
            continue
        fields = behind.split()
        pid = int(entry.parent.name)
        found[pid] = Process(
            pid,
            before.partition("(")[2],
            int(fields[1]),
            sum(map(int, fields[11:15])) / _TICKS_PER_SECOND,
            int(fields[21]) * _PAGE_BYTES,
        )
    inside, more = set(), {root}
    while more:
        inside |= more
        more = {one.pid for one in found.values() if one.parent in inside} - inside
    return [found[pid] for pid in inside if pid in found]


def cpu_seconds(root: int) -> float:
    """Return CPU seconds of a process and all below it, those that ended too."""
    return sum(one.cpu_seconds for one in below(root))

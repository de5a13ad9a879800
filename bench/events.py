"""Broker CPU with the event log beside the same broker without it: the same requests, in pairs.

`make bench-events` runs it.  The goal is at most 1 % more.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from pathlib import Path

import brokers
import pairs
import peers

# The event log as a user has it, but for its beat: ten times as many appends as by default.
WITH_EVENTS = {"events.enable": "true", "events.interval.ms": "1000"}
WORKS = [
    work for work in brokers.WORKS if work.name != "produce 1000 x 1000 B" and work.unit != "ms"
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        wireload = peers.build_load(directory, "wireload")
        settings = {**WITH_EVENTS, **pairs.AT_ONCE}
        pair = (
            stack.enter_context(peers.tarry(directory / "without", pairs.AT_ONCE, name="without")),
            stack.enter_context(
                peers.tarry(directory / "events", settings, name="with the event log")
            ),
        )
        pairs.print_head(pair)
        pairs.print_works(pair, WORKS, wireload, arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()

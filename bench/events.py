"""Broker CPU with the event log beside the same broker without it: the same requests, in pairs.

`make bench-events` runs it.  Each round measures both brokers, the other one first each time; the
figure is the median of the rounds' ratios.  The goal is at most 1 % more.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import brokers
import peers

from tarry.client import Admin

# The event log as a user has it, but for its beat: ten times as many appends as by default.
WITH_EVENTS = {"events.enable": "true", "events.interval.ms": "1000"}
# A row writes gigabytes, which go with its topic.
AT_ONCE = {"log.segment.delete.delay.ms": "0"}
WORKS = [
    work for work in brokers.WORKS if work.name != "produce 1000 x 1000 B" and work.unit != "ms"
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    if shutil.which("go") is None:
        raise SystemExit("the load generator needs Go: install Debian's golang or from go.dev")
    print(peers.machine())
    print()
    print("| broker CPU | without | with the event log | ratio | from | to |")
    print("|---|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        wireload = brokers.build_wireload(directory)
        without = stack.enter_context(peers.tarry(directory / "without", AT_ONCE, name="without"))
        settings = {**WITH_EVENTS, **AT_ONCE}
        events = stack.enter_context(peers.tarry(directory / "events", settings, name="events"))
        for number, work in enumerate(WORKS):
            pairs = measure(wireload, without, events, work, number, arguments)
            ratios = sorted(more / less for less, more in pairs)
            middles = [statistics.median(column) for column in zip(*pairs, strict=True)]
            print(
                f"| {work.name}, {work.unit} | {middles[0]:.2f} | {middles[1]:.2f} | "
                f"{statistics.median(ratios):.3f} | {ratios[0]:.3f} | {ratios[-1]:.3f} |",
                flush=True,
            )
    print(file=sys.stderr)


def measure(
    wireload: Path,
    without: peers.Broker,
    events: peers.Broker,
    work: brokers.Work,
    number: int,
    arguments: argparse.Namespace,
) -> list[tuple[float, float]]:
    """Measure one row in pairs; return the figures without and with the event log."""
    topic = f"bench-{number}"
    for broker in (without, events):
        brokers.create_topic(broker, topic, 4)
        if work.name.startswith("fetch"):
            brokers.fill(wireload, broker, topic)
        brokers.measure(wireload, broker, work, topic, 1)
    pairs = []
    for turn in range(arguments.rounds):
        order = (without, events) if turn % 2 == 0 else (events, without)
        found = {
            one.name: brokers.measure(wireload, one, work, topic, arguments.seconds)
            for one in order
        }
        pairs.append((found[without.name], found[events.name]))
        peers.tell_progress()
    for broker in (without, events):
        with Admin(bootstrap_servers=broker.address) as admin:
            admin.delete_topics([topic])
    return pairs


if __name__ == "__main__":
    main()

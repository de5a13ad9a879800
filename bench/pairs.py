"""Two brokers measured in pairs with the same requests, the other one first each time."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import brokers
import peers

from tarry.client import Admin

Pair = tuple[peers.Broker, peers.Broker]
# A row writes gigabytes, which go with its topic.
AT_ONCE = {"log.segment.delete.delay.ms": "0"}


def print_head(pair: Pair) -> None:
    """Print the line of the machine, and the head of the table."""
    print(peers.machine())
    print()
    print(f"| broker CPU | {pair[0].name} | {pair[1].name} | ratio | from | to |")
    print("|---|--:|--:|--:|--:|--:|")


def print_row(name: str, pair: Pair, rounds: int, run: Callable[[peers.Broker], float]) -> None:
    """Measure a row: medians of both, then median, least and greatest of the rounds' ratios."""
    figures: list[tuple[float, float]] = []
    for number in range(rounds):
        order: Iterable[peers.Broker] = pair if number % 2 == 0 else reversed(pair)
        found = {broker.name: run(broker) for broker in order}
        figures.append((found[pair[0].name], found[pair[1].name]))
        peers.tell_progress()
    ratios = sorted(second / first for first, second in figures)
    middles = [statistics.median(column) for column in zip(*figures, strict=True)]
    print(
        f"| {name} | {middles[0]:.2f} | {middles[1]:.2f} | {statistics.median(ratios):.3f} | "
        f"{ratios[0]:.3f} | {ratios[-1]:.3f} |",
        flush=True,
    )


def print_works(
    pair: Pair, works: list[brokers.Work], wireload: Path, rounds: int, seconds: float
) -> None:
    """Measure rows of `make bench`, each with a topic of its own."""
    for number, work in enumerate(works):
        topic = f"bench-{number}"
        for broker in pair:
            brokers.prepare(wireload, broker, work, topic, 1)

        def run(broker: peers.Broker, work: brokers.Work = work, topic: str = topic) -> float:
            return brokers.measure(wireload, broker, work, topic, seconds)

        print_row(f"{work.name}, {work.unit}", pair, rounds, run)
        for broker in pair:
            with Admin(bootstrap_servers=broker.address) as admin:
                admin.delete_topics([topic])
    print(file=sys.stderr)

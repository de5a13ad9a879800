"""Broker CPU beside Apache Kafka: the same pre-encoded requests, interleaved in the same minutes.

`make bench` runs it.  Both brokers leave flushing to the page cache (`flush.policy=os` here, the
default there), run on this machine with the load generator, and are measured in pairs; each
figure is the median over the rounds.  Needs Java, Maven and Go; says so if one is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import peers
from peers import TARRY, Broker, tell_progress

# Written and freed before each measurement: hosts that take free memory back make the first
# touch of a page cost four times a copy, and the second broker would profit from the first.
TOUCH_BYTES = 2 << 30


class Work(NamedTuple):
    """Row of the table: wireload's arguments and which figure of its output counts."""

    name: str
    arguments: tuple[str, ...]
    figure: str
    unit: str


WORKS = (
    Work("produce 1 x 100 B", ("-mode", "produce", "-n", "1", "-s", "100"), "cpu_us_req", "µs/req"),
    Work(
        "produce 100 x 100 B",
        ("-mode", "produce", "-n", "100", "-s", "100"),
        "cpu_us_req",
        "µs/req",
    ),
    Work(
        "produce 1000 x 1000 B",
        ("-mode", "produce", "-n", "1000", "-s", "1000"),
        "cpu_ms_mb",
        "ms/MB",
    ),
    Work("fetch 1 MiB", ("-mode", "fetch", "-m", "1048576"), "cpu_ms_mb", "ms/MB"),
    Work(
        "one at a time, p50",
        ("-mode", "pingpong", "-c", "1", "-n", "1", "-s", "100"),
        "p50_ms",
        "ms",
    ),
)
FILLING = Work("fill", ("-mode", "produce", "-n", "1000", "-s", "1000"), "", "")


def create_topic(broker: Broker, topic: str, partitions: int) -> None:
    """Make the topic, waiting for the broker to answer."""
    command = [str(TARRY), "topics", "create", topic, "-b", broker.address]
    for attempt in range(60):
        done = subprocess.run(
            [*command, "--partitions", str(partitions)], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
        if attempt == 59:
            raise SystemExit(f"{broker.name}: {done.stderr}")
        time.sleep(0.5)


def touch_memory() -> None:
    """Write and free memory in a process of its own."""
    code = f"b = bytearray({TOUCH_BYTES}); b[::4096] = b'x' * len(b[::4096])"
    subprocess.run([sys.executable, "-c", code], check=True)


def run_load(
    wireload: Path, broker: Broker, work: Work, topic: str, seconds: float
) -> dict[str, float]:
    """Run one row against one broker; return all figures of the load generator."""
    command = [str(wireload), "-b", broker.address, "-t", topic, "-parts", "4"]
    command += ["-d", str(seconds), "-pid", str(broker.pid), *work.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    if figures["errors"]:
        raise SystemExit(f"{broker.name}, {work.name}: {figures['errors']} errors")
    return figures


def measure(wireload: Path, broker: Broker, work: Work, topic: str, seconds: float) -> float:
    """Return the figure of one row for one broker."""
    touch_memory()
    return float(run_load(wireload, broker, work, topic, seconds)[work.figure])


def prepare(wireload: Path, broker: Broker, work: Work, topic: str, warm_seconds: float) -> None:
    """Make a row's topic, write what fetches are to read, and warm up."""
    create_topic(broker, topic, 4)
    if work.name.startswith("fetch"):
        run_load(wireload, broker, FILLING, topic, 2)
    run_load(wireload, broker, work, topic, warm_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--without-kafka", action="store_true", help="only our own figures")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        wireload = peers.build_load(directory, "wireload")
        brokers = [
            stack.enter_context(peers.tarry(directory / policy, {}, policy, f"Tarry ({policy})"))
            for policy in ("os", "commit")
        ]
        if not arguments.without_kafka:
            others, reasons = peers.started(stack, directory / "kafka", {}, "Kafka")
            brokers += others
            for reason in reasons:
                print(reason, file=sys.stderr)
        print_table(run(wireload, brokers, arguments.rounds, arguments.seconds), brokers)


def run(
    wireload: Path, brokers: list[Broker], rounds: int, seconds: float
) -> dict[str, dict[str, list[float]]]:
    """Run all rows on all brokers, in turn, `rounds` times."""
    results: dict[str, dict[str, list[float]]] = {}
    for number, work in enumerate(WORKS):
        topic = f"bench-{number}"
        for broker in brokers:
            prepare(wireload, broker, work, topic, 1)
        for _ in range(rounds):
            for broker in brokers:
                figure = measure(wireload, broker, work, topic, seconds)
                results.setdefault(work.name, {}).setdefault(broker.name, []).append(figure)
                tell_progress()
    print(file=sys.stderr)
    return results


def print_table(results: dict[str, dict[str, list[float]]], brokers: list[Broker]) -> None:
    """Print a Markdown table with medians, and the ratio to Apache Kafka where it ran."""
    print(peers.machine())
    print()
    names = [broker.name for broker in brokers]
    print("| broker CPU | " + " | ".join(names) + " | Tarry (os) / Kafka |")
    print("|---|" + "---|" * (len(names) + 1))
    for work in WORKS:
        medians = {name: statistics.median(results[work.name][name]) for name in names}
        cells = [f"{medians[name]:.2f}" for name in names]
        ratio = f"{medians['Tarry (os)'] / medians['Kafka']:.2f}" if "Kafka" in medians else "-"
        print(f"| {work.name}, {work.unit} | " + " | ".join(cells) + f" | {ratio} |")


if __name__ == "__main__":
    main()

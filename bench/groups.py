"""Consumer groups beside Apache Kafka: the same requests, interleaved in the same minutes.

`make bench-groups` runs it; ARGS=--quick takes two minutes and tells less.  All brokers run on this
machine with the load generator and are measured in turn; each figure is the median of the rounds.
Needs Go; Java and Maven for Kafka, whose column is left out with a line that says why where they
are missing; the last table needs confluent-kafka, of which its members are made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

import peers
from peers import Broker, tell_progress
from tests.support.interop.group_members import MemberProcess, owned
from tests.support.interop.group_scene_of_clients import Scene

# The same for all: Kafka's own numbers but for the sessions, which the last table wants short.
SETTINGS: Final = {
    "offsets.topic.num.partitions": "50",
    "group.initial.rebalance.delay.ms": "3000",
    "group.min.session.timeout.ms": "1000",
}

# The members that one of them is killed of: their sessions and how often they are heard.
SESSION_MS: Final = 3_000
HEARTBEAT_MS: Final = 200
RECORD_EVERY_SECONDS: Final = 0.01


class Size(NamedTuple):
    """Size of the run."""

    rounds: int
    members: int
    groups: int
    joining: int
    warm_seconds: float
    seconds: float


FULL: Final = Size(
    rounds=3, members=10_000, groups=1_000, joining=1_000, warm_seconds=6, seconds=12
)
QUICK: Final = Size(rounds=1, members=2_000, groups=200, joining=1_000, warm_seconds=3, seconds=4)

# Table, its row's name, the figure's field, its digits.
HEARTBEATS: Final = (
    ("CPU, µs a heartbeat", "cpu_us", 1),
    ("heartbeats, /s", "per_s", 0),
    ("answer, p50 ms", "p50_ms", 2),
    ("answer, p99 ms", "p99_ms", 2),
)
JOINING: Final = (
    ("to Stable, ms", "stable_ms", 0),
    ("CPU, ms", "stable_cpu_ms", 0),
    ("answers, bytes", "answers", 0),
    ("generations", "generation", 0),
    ("again, all at once, ms", "rejoined_ms", 0),
    ("CPU, ms", "rejoined_cpu_ms", 0),
    ("answers, bytes", "rejoined_answers", 0),
)
COMMITS: Final = (
    ("commits, /s", "per_s", 0),
    ("CPU, µs a commit", "cpu_us", 1),
    ("answer, p50 ms", "p50_ms", 2),
    ("answer, p99 ms", "p99_ms", 2),
)
KILLED: Final = (("read again, ms", "again_ms", 0),)

Rows = tuple[tuple[str, str, int], ...]
Figures = dict[str, float]
Results = dict[str, list[Figures]]


class Runner:
    """Runner of the load generator, which never runs twice with the same groups."""

    def __init__(self, groupload: Path, size: Size) -> None:
        self.groupload = groupload
        self.size = size
        self.runs = 0

    def run(self, broker: Broker, mode: str, *words: str) -> Figures:
        self.runs += 1
        command = [str(self.groupload), "-b", broker.address, "-pid", str(broker.pid)]
        command += ["-mode", mode, "-g", f"{mode}-{self.runs}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{broker.name}, {mode}: {done.stderr[-500:]}")
        figures: Figures = json.loads(done.stdout)
        tell_progress()
        return figures

    def heartbeats(self, broker: Broker) -> Figures:
        words = ["-members", str(self.size.members), "-groups", str(self.size.groups)]
        words += ["-warm", str(self.size.warm_seconds), "-d", str(self.size.seconds)]
        return self.run(broker, "heartbeats", *words)

    def join(self, broker: Broker) -> Figures:
        figures = self.run(broker, "join", "-members", str(self.size.joining))
        for name in ("stable_cpu", "rejoined_cpu"):
            figures[f"{name}_ms"] = figures[name] * 1000
        return figures

    def commits(self, broker: Broker) -> Figures:
        return self.run(broker, "commits", "-d", str(self.size.seconds / 3))

    def kill(self, broker: Broker) -> Figures:
        """Measure from the kill of a member until another reads its partitions, less the
        session.
        """
        self.runs += 1
        name = f"killed-{self.runs}"
        scene = Scene(broker.address, name, name, partitions=2)
        words = [broker.address, name, name, "range", str(SESSION_MS), str(HEARTBEAT_MS)]
        victim, heir = (
            MemberProcess(one, scene.watch, "confluent-kafka", words) for one in ("victim", "heir")
        )
        scene.members += [victim, heir]
        scene.wait_until_shared_by(victim, heir)
        scene.write(1)
        scene.wait_until_all_is_committed()
        (partition,) = owned(victim)
        is_over = threading.Event()
        writer = threading.Thread(target=write_until, args=(scene, is_over))
        victim.kill()
        writer.start()
        killed_ns = victim.events[-1].stamp_ns

        def first_read_ns() -> int | None:
            stamps = [
                event.stamp_ns
                for event in tuple(heir.events)
                if event.what == "read" and any(one[0] == partition for one in event.data)
            ]
            return stamps[0] if stamps else None

        scene.watch.wait_until(first_read_ns, scene.told)
        is_over.set()
        writer.join()
        again_ns = first_read_ns()
        assert again_ns is not None
        scene.close()
        tell_progress()
        return {"again_ms": (again_ns - killed_ns) / 1e6 - SESSION_MS}


def write_until(scene: Scene, is_over: threading.Event) -> None:
    """Records all the time, so that whoever can read does."""
    while not is_over.wait(RECORD_EVERY_SECONDS):
        scene.write(1)


def table(title: str, results: Results, rows: Rows) -> list[str]:
    """Markdown: medians, and the first column's share of Kafka's."""
    with_ratio = "Kafka" in results
    head = [title, *results, *(["Tarry / Kafka"] if with_ratio else [])]
    lines = ["", f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)]
    for name, field, digits in rows:
        medians = {
            side: statistics.median(each[field] for each in rounds)
            for side, rounds in results.items()
        }
        cells = [f"{median:,.{digits}f}" for median in medians.values()]
        if with_ratio:
            ours = medians[next(iter(medians))]
            cells.append(f"{ours / medians['Kafka']:.2f}" if medians["Kafka"] > 0 else "-")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def run(runner: Runner, brokers: list[Broker]) -> list[str]:
    """Run all tables, every round of each over all brokers in turn."""
    size = runner.size
    # A member that beats or joins waits for no disk of its own.
    without_disk = [broker for broker in brokers if broker.name != "Tarry (commit)"]
    kill_title = (
        f"one of two members is killed, session {SESSION_MS:,} ms not counted, "
        f"heartbeats every {HEARTBEAT_MS} ms"
    )
    works = (
        (
            f"{size.members:,} members in {size.groups:,} groups, a heartbeat every 3 s each",
            HEARTBEATS,
            runner.heartbeats,
            without_disk,
        ),
        (
            f"{size.joining:,} members join one group, initial delay 3 s",
            JOINING,
            runner.join,
            without_disk,
        ),
        ("50 simple consumers commit one partition each", COMMITS, runner.commits, brokers),
        (kill_title, KILLED, runner.kill, without_disk),
    )
    lines: list[str] = []
    for title, rows, measure, measured in works:
        results: Results = {broker.name: [] for broker in measured}
        for _ in range(size.rounds):
            for broker in measured:
                results[broker.name].append(measure(broker))
        lines += table(title, results, rows)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round with fewer members")
    parser.add_argument("--rounds", type=int, help="how often each broker is measured")
    parser.add_argument("--without-kafka", action="store_true", help="only our own figures")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else FULL
    if arguments.rounds is not None:
        size = size._replace(rounds=max(arguments.rounds, 1))
    lines, started = [peers.machine()], time.monotonic()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        groupload = peers.build_load(directory, "groupload")
        brokers = [
            stack.enter_context(
                peers.tarry(directory / policy, SETTINGS, policy, f"Tarry ({policy})")
            )
            for policy in ("os", "commit")
        ]
        if not arguments.without_kafka:
            others, reasons = peers.started(stack, directory / "kafka", SETTINGS, "Kafka")
            brokers += others
            lines += reasons
        lines += run(Runner(groupload, size), brokers)
    print(file=sys.stderr)
    lines += ["", f"median of {size.rounds}, {time.monotonic() - started:.0f} s"]
    print("\n".join(lines))


if __name__ == "__main__":
    main()

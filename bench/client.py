"""Our client beside confluent-kafka, aiokafka and kafka-python, interleaved in the same minutes.

`make bench-client` runs it; ARGS=--quick takes some minutes and tells less.  Each figure comes from
a process of its own (`client_worker.py`): CPU is user and system time of that process, before wall
time, which depends on what else the machine does.  Every row is measured with all clients in turn,
as often as there are rounds, against Apache Kafka and against Tarry; a cell has the median and, in
parentheses, the least and the most.  Kafka needs Java and Maven, and is left out with a line that
says why where they are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import peers
from peers import Broker, tell_progress

from tarry.client import Admin, NewTopic, Producer

WORKER: Final = Path(__file__).with_name("client_worker.py")
STARTER: Final = Path(__file__).with_name("client_start.py")
RUN_SECONDS_MAX: Final = 600

# The same for both brokers; groups wait for nobody.
SETTINGS: Final = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}

PARTITIONS: Final = 4
GROUP_PARTITIONS: Final = 20
# Beside what is counted a reader warms up.
READ_AHEAD: Final = 80_000

COMPILED: Final = "tarry"
INTERPRETED: Final = "tarry, interpreted"
AIO: Final = "tarry.client.aio"
CONFLUENT: Final = "confluent-kafka"

Figures = dict[str, float]
Rounds = list[Figures]


class Subject(NamedTuple):
    """Column: a client, and the statement that imports its producer."""

    name: str
    client: str
    statement: str
    is_pure: bool = False
    # A slow client does a part of the work: its cost of a record is as well known then.
    share: int = 1


class Figure(NamedTuple):
    """Row of a work: a figure of the worker's, its unit, its digits."""

    field: str
    unit: str
    digits: int


CPU: Final = Figure("cpu_us", "CPU µs", 2)
WALL: Final = Figure("wall_us", "wall µs", 2)


class Work(NamedTuple):
    """Kind of work, with its rows; `record_bytes` of a topic that has to be filled before."""

    name: str
    word: str
    count: int
    figures: tuple[Figure, ...]
    record_bytes: int = 0
    partitions: int = PARTITIONS

    @property
    def is_by_record(self) -> bool:
        return CPU in self.figures

    @property
    def is_of_columns(self) -> bool:
        return self.word in WORDS_OF_COLUMNS


# What only our Arrow face does.
WORDS_OF_COLUMNS: Final = ("arrow-views", "arrow-all", "table")

WORKS: Final = (
    Work("produce 100 B, outcome of each known", "produce-100", 300_000, (CPU, WALL)),
    Work("produce 1 KB, outcome of each known", "produce-1000", 60_000, (CPU, WALL)),
    Work("consume 100 B, record loop", "consume", 300_000, (CPU, WALL), 100),
    Work("consume 100 B, 500 at once", "consume-batches", 300_000, (CPU, WALL), 100),
    Work("consume 1 KB, record loop", "consume", 60_000, (CPU, WALL), 1_000),
    Work("consume 100 B into Arrow, views of 3 columns", "arrow-views", 300_000, (CPU, WALL), 100),
    Work("consume 100 B into Arrow, all columns", "arrow-all", 300_000, (CPU, WALL), 100),
    Work("produce 100 B from a table of Arrow", "table", 300_000, (CPU, WALL)),
    Work(
        "send and wait",
        "latency",
        2_000,
        (Figure("p50_ms", "p50 ms", 3), Figure("p99_ms", "p99 ms", 3)),
        partitions=1,
    ),
    Work(
        "20 members until stable",
        "group",
        1,
        (Figure("stable_s", "s", 2),),
        partitions=GROUP_PARTITIONS,
    ),
    Work(
        "a program that sends one record",
        "start",
        1,
        (
            Figure("cpu_ms", "CPU ms", 0),
            Figure("wall_ms", "wall ms", 0),
            Figure("threads", "threads", 0),
        ),
        partitions=1,
    ),
)

# What a client's own faces can do.
WORDS_OF_AIO: Final = ("produce-100", "produce-1000", "consume", "start")


def subjects(form: str) -> list[Subject]:
    """Return the clients that are there, ours in both forms."""
    ours = "from tarry.client import Producer"
    found = [Subject(INTERPRETED, "tarry", ours, is_pure=True, share=5)]
    if "compiled" in form:
        found.insert(0, Subject(COMPILED, "tarry", ours))
    else:
        print(f"without the compiled form: {form}; `make setup` compiles", file=sys.stderr)
    if importlib.util.find_spec("tarry.client.aio") is not None:
        found.append(Subject(AIO, "tarry-aio", "from tarry.client.aio import Producer"))
    for name, module, share in (
        (CONFLUENT, "confluent_kafka", 1),
        ("aiokafka", "aiokafka", 2),
        ("kafka-python", "kafka", 5),
    ):
        if importlib.util.find_spec(module) is not None:
            found.append(Subject(name, name, f"import {module}", share=share))
    return found


def does(subject: Subject, work: Work) -> bool:
    """Return true if a client can do this kind of work."""
    if work.is_of_columns:
        return subject.client == "tarry" and importlib.util.find_spec("pyarrow") is not None
    return subject.client != "tarry-aio" or work.word in WORDS_OF_AIO


def environment(subject: Subject) -> dict[str, str]:
    """Return the environment of a worker; what it imports is cached, as for a user."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONDONTWRITEBYTECODE", "TARRY_PURE")
    }
    return {**kept, "TARRY_PURE": "1"} if subject.is_pure else kept


def run_worker(subject: Subject, work: Work, broker: Broker, topic: str, count: int) -> Figures:
    words = [subject.client, work.word, broker.address, topic, str(count)]
    command = [sys.executable, str(WORKER), *words]
    if work.word == "start":
        command = [sys.executable, str(STARTER), subject.client, broker.address, topic]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(subject),
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{subject.name}, {work.name}: {done.stderr[-800:]}")
    figures: Figures = json.loads(done.stdout)
    return figures


@contextlib.contextmanager
def topic_for(work: Work, broker: Broker, count: int) -> Iterator[str]:
    """Make a topic of the work's own, filled if the work reads; nothing of it stays."""
    name = f"bench-{time.time_ns()}"
    with Admin(bootstrap_servers=broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(name, work.partitions)])
        assert outcome.error is None, outcome.error
        if work.record_bytes:
            fill(broker, name, work.record_bytes, count)
        try:
            yield name
        finally:
            admin.delete_topics([name])


def fill(broker: Broker, topic: str, size: int, count: int) -> None:
    with Producer(bootstrap_servers=broker.address, batch_size=65_536) as producer:
        for number in range(count + READ_AHEAD):
            producer.send(topic, b"x" * size, partition=number // 500 % PARTITIONS)


def measure_import(subject: Subject) -> Figures:
    """CPU in ms and memory in MB of a program that imports a producer, a bare Python's left
    out."""
    bare, full = (
        _cost_of(statement, environment(subject)) for statement in ("pass", subject.statement)
    )
    return {
        "cpu_ms": full[0] * 1e3,
        "bare_cpu_ms": bare[0] * 1e3,
        "rss_mb": full[1] - bare[1],
    }


# Says that it is there, and stays until it is told to go: `ps` tells its memory meanwhile.
STAYING: Final = "; import sys; sys.stdout.write('there'); sys.stdout.flush(); sys.stdin.read()"


def _cost_of(statement: str, variables: dict[str, str]) -> tuple[float, float]:
    """Return CPU seconds and megabytes of a program."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", statement + STAYING],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.read(5) == b"there", statement
        told = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True, check=True
        )
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, int(told.stdout) / 1024


IMPORT_FIGURES: Final = (
    Figure("cpu_ms", "CPU ms", 0),
    Figure("bare_cpu_ms", "of it a bare Python, CPU ms", 0),
    Figure("rss_mb", "memory beyond a bare Python's, MB", 1),
)


def head(title: str, columns: list[Subject]) -> list[str]:
    names = [subject.name for subject in columns]
    ratio = [f"{names[0]} / {CONFLUENT}"] if CONFLUENT in names else []
    cells = [title, *names, *ratio]
    return ["", f"| {' | '.join(cells)} |", "|---|" + "--:|" * (len(cells) - 1)]


def row(name: str, figure: Figure, columns: list[Subject], found: dict[str, Rounds]) -> str:
    """Write one row: medians with their spread, and the first column's share of confluent's."""
    cells, medians = [], {}
    for subject in columns:
        taken = [figures[figure.field] for figures in found.get(subject.name, [])]
        if not taken:
            cells.append("-")
            continue
        medians[subject.name] = middle = statistics.median(taken)
        least, most = min(taken), max(taken)
        digits = figure.digits
        cells.append(f"{middle:.{digits}f} ({least:.{digits}f}..{most:.{digits}f})")
    if CONFLUENT in [subject.name for subject in columns]:
        pair = [medians.get(columns[0].name), medians.get(CONFLUENT)]
        cells.append(f"{pair[0] / pair[1]:.2f}" if pair[0] is not None and pair[1] else "-")
    return f"| {name}, {figure.unit} | {' | '.join(cells)} |"


def tell(lines: list[str]) -> None:
    """Print lines at once: a run that is broken off has told what it found."""
    print("\n".join(lines), flush=True)


def measure_work(
    broker: Broker, work: Work, columns: list[Subject], rounds: int, share: int
) -> None:
    count = max(work.count // share, 1)
    found: dict[str, Rounds] = {}
    with topic_for(work, broker, count) as topic:
        for number in range(rounds):
            # Nobody is always the first.
            turned = columns[number % len(columns) :] + columns[: number % len(columns)]
            for subject in turned:
                if does(subject, work):
                    part = count // subject.share if work.is_by_record else count
                    figures = run_worker(subject, work, broker, topic, max(part, 1))
                    found.setdefault(subject.name, []).append(figures)
                    tell_progress()
    name = f"{work.name}, {broker.name}"
    tell([row(name, figure, columns, found) for figure in work.figures])


def measure_imports(columns: list[Subject], rounds: int) -> None:
    found: dict[str, Rounds] = {}
    for subject in columns:
        # What is compiled to bytecode first is cached.
        measure_import(subject)
    for _ in range(rounds):
        for subject in columns:
            found.setdefault(subject.name, []).append(measure_import(subject))
        tell_progress()
    tell([row("import of a producer", figure, columns, found) for figure in IMPORT_FIGURES])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the work")
    parser.add_argument("--rounds", type=int, default=0, help="how often each figure is taken")
    parser.add_argument("--share", type=int, default=0, help="do one part in so many of the work")
    parser.add_argument("--without-kafka", action="store_true", help="only against our broker")
    parser.add_argument("--without-tarry", action="store_true", help="only against Apache Kafka")
    parser.add_argument("--clients", default="", help="only these columns, joined with commas")
    parser.add_argument("--only", default="", help="only works whose names have this text")
    arguments = parser.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else 5)
    works = [work for work in WORKS if arguments.only in work.name]
    form = peers.form()
    chosen = arguments.clients.split(",") if arguments.clients else []
    columns = [one for one in subjects(form) if not chosen or one.name in chosen]
    started = time.monotonic()
    share = arguments.share or (10 if arguments.quick else 1)
    tell([peers.machine()])
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        brokers = []
        if not arguments.without_tarry:
            brokers.append(stack.enter_context(peers.tarry(directory / "tarry", SETTINGS)))
        if not arguments.without_kafka:
            others, reasons = peers.started(stack, directory / "kafka", SETTINGS)
            brokers += others
            tell(reasons)
        tell(head("work", columns))
        if arguments.only in "import":
            measure_imports(columns, max(rounds, 3))
        for work in works:
            for broker in brokers:
                measure_work(broker, work, columns, rounds, share)
    print(file=sys.stderr)
    tell(["", f"median of {rounds} (least..most), {time.monotonic() - started:.0f} s"])


if __name__ == "__main__":
    main()

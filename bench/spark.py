"""Tarry's Spark source, sinks and archive beside Spark's own Kafka connector, in one run.

`make bench-spark` runs it; ARGS=--quick takes some minutes and tells less.  Two local Sparks of two
cores, one for each format, get the same work in turn, against Tarry and against Apache Kafka.  A
cell has the median and, in parentheses, the least and the most; beside rows per second stand rows
per second of CPU, of the driver's whole tree of processes.  The JVM connector has the settings that
made it fastest.  Needs Java and Maven.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import peers
from peers import ROOT, Broker, tell_progress
from tests.support.interop.kafka_server import POM, KafkaUnavailable, class_path

from tarry.client import Admin, NewTopic, Producer

sys.path.insert(0, str(ROOT / "examples" / "orders"))
from day import Day, Event

WORKER: Final = Path(__file__).with_name("spark_worker.py")
OURS: Final = "tarry"
THEIRS: Final = "kafka"
TITLES: Final = {OURS: "tarry", THEIRS: "JVM connector"}

PARTITIONS: Final = 8
ROWS: Final = 2_000_000
VALUE: Final = b"x" * 100
BATCH_BYTES: Final = 128 << 10
# What warms up.
SMALL_ROWS: Final = 1_000
QUERIES_BEFORE: Final = 30
QUERIES_OF_MEMORY: Final = 100

Figures = dict[str, float]

PER_MILLION: Final = ("M", 1e6)
PER_THOUSAND: Final = ("k", 1e3)
PIPELINE: Final = "pipeline"
ORDERS: Final = 100_000
PARTITIONS_OF_ORDERS: Final = 4
STREAM_RECORDS_PER_SECOND: Final = 1_000


class Work(NamedTuple):
    """Row of the table: work of ours beside work of theirs, and what is aimed at."""

    name: str
    word: str
    theirs: str
    goal: str
    # A part of the rows is enough for what writes.
    share: int = 1


WORKS: Final = (
    Work("100 B → rows, after 30 queries", "rows", "rows", "≥ 1.15"),
    Work("100 B → Parquet through Spark", "parquet", "parquet", "≥ 1.2"),
    Work("100 B → Parquet by `archive`", "archive", "parquet", "≥ 3"),
    Work("DataFrame → topic, acks=all", "write", "write", "≥ 1", 2),
    Work("stream → topic, ours exactly once, theirs at least once", "copy", "copy", "≥ 0.7"),
)
EARLY: Final = Work("100 B → rows, first queries", "rows", "rows", "≥ 1.6")


class Session:
    """Worker process of one format."""

    def __init__(self, form: str, jars: str) -> None:
        self.form = form
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONDONTWRITEBYTECODE", "TARRY_PURE")
        }
        # Spark speaks much; only what it says before it ends counts.
        self._told = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  # `end` closes it
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), form, jars],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            text=True,
            env=variables,
        )

    def do(self, work: str, **order: Any) -> Figures:
        """Give an order, and return its figures."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"work": work, **order}) + "\n")
        process.stdin.flush()
        told = process.stdout.readline()
        if not told:
            self._told.seek(0)
            raise SystemExit(
                f"the Spark of {self.form} ended in {work}: {self._told.read()[-2000:]}"
            )
        tell_progress()
        figures: Figures = json.loads(told)
        return figures

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._told.close()


@contextlib.contextmanager
def topic_on(broker: Broker, partitions: int = PARTITIONS) -> Iterator[str]:
    name = f"bench-{time.time_ns()}"
    with Admin(bootstrap_servers=broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(name, partitions)])
        assert outcome.error is None, outcome.error
        try:
            yield name
        finally:
            admin.delete_topics([name])


def fill(broker: Broker, topic: str, rows: int) -> None:
    with Producer(
        bootstrap_servers=broker.address, batch_size=BATCH_BYTES, linger_ms=20
    ) as producer:
        for number in range(rows):
            producer.send(topic, VALUE, partition=number // 1000 % PARTITIONS)


@contextlib.contextmanager
def fed(broker: Broker, topic: str, records_per_second: int) -> Iterator[None]:
    """Send records at a rate while the context lasts."""
    ended = threading.Event()

    def feed() -> None:
        with Producer(bootstrap_servers=broker.address, linger_ms=5) as producer:
            began, sent = time.monotonic(), 0
            while not ended.wait(0.01):
                due = int((time.monotonic() - began) * records_per_second)
                for number in range(sent, due):
                    producer.send(topic, VALUE, partition=number % PARTITIONS)
                sent = due

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# --- The table


def spread(values: list[float], digits: int) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f}..{most:.{digits}f})"


def ratio(one: list[float], other: list[float]) -> str:
    return f"{statistics.median(one) / statistics.median(other):.2f}"


def tell_work(
    name: str, goal: str, found: dict[str, list[Figures]], unit: tuple[str, float] = PER_MILLION
) -> None:
    """Print two rows: rows per second, and per second of CPU."""
    word, divisor = unit
    for title, field in ((f"{word} rows/s", "s"), (f"{word} rows/s of CPU", "cpu_s")):
        ours, theirs = (
            [one["rows"] / one[field] / divisor for one in found[form]] for form in (OURS, THEIRS)
        )
        cells = [f"{name}, {title}", spread(ours, 2), spread(theirs, 2), ratio(ours, theirs)]
        print(f"| {' | '.join(cells)} | {goal if field == 's' else ''} |", flush=True)


class Extent(NamedTuple):
    """Extent of a run."""

    rows: int
    rounds: int
    queries_before: int
    orders: int
    only: str


def measure_rows(sessions: list[Session], broker: Broker, extent: Extent) -> None:
    """Measure what is told in rows per second."""
    rows = extent.rows
    with topic_on(broker) as topic, topic_on(broker) as small, topic_on(broker) as to:
        fill(broker, topic, rows)
        fill(broker, small, SMALL_ROWS)
        first = {"address": broker.address, "topic": topic, "rows": rows}
        for one in sessions:
            # Starts the workers and loads the classes.
            one.do("rows", address=broker.address, topic=small, rows=SMALL_ROWS)
        early = {one.form: [one.do("rows", **first) for _ in range(2)] for one in sessions}
        tell_work(f"{EARLY.name}, {broker.name}", EARLY.goal, early)
        for _ in range(extent.queries_before):
            for one in sessions:
                one.do("rows", address=broker.address, topic=small, rows=SMALL_ROWS)
        for work in WORKS:
            if extent.only not in work.name:
                continue
            found: dict[str, list[Figures]] = {OURS: [], THEIRS: []}
            for number in range(extent.rounds):
                for one in sessions if number % 2 else sessions[::-1]:
                    word = work.word if one.form == OURS else work.theirs
                    order = {**first, "rows": rows // work.share, "to": to}
                    if number == 0:
                        # Loads the classes of this kind of work.
                        one.do(word, **{**order, "topic": small, "rows": SMALL_ROWS})
                    found[one.form].append(one.do(word, **order))
            tell_work(f"{work.name}, {broker.name}", work.goal, found)


def measure_micro_batches(sessions: list[Session], broker: Broker, rates: list[int]) -> None:
    for rate in rates:
        for sink, goal in (("noop", "≤ 1.1"), ("parquet", "≤ 220 ms")):
            found = {}
            for one in sessions:
                with topic_on(broker) as topic, fed(broker, topic, rate):
                    order = {"address": broker.address, "topic": topic, "sink": sink}
                    found[one.form] = one.do("micro-batches", **order)
            ours, theirs = found[OURS], found[THEIRS]
            cells = [f"micro-batch, {rate} records/s, {sink}, {broker.name}, p50 (p95) ms"]
            cells += [f"{one['p50_ms']:.0f} ({one['p95_ms']:.0f})" for one in (ours, theirs)]
            print(f"| {' | '.join(cells)} | {ours['p50_ms'] / theirs['p50_ms']:.2f} | {goal} |")


def measure_pipeline(sessions: list[Session], broker: Broker, extent: Extent) -> None:
    """Measure the demo's pipeline from end to end, on a day of orders of its own for each run."""
    day = Day(7, extent.orders)
    found: dict[str, list[Figures]] = {OURS: [], THEIRS: []}
    for number in range(extent.rounds + 1):
        for one in sessions if number % 2 else sessions[::-1]:
            with topic_on(broker, PARTITIONS_OF_ORDERS) as topic:
                # The first run loads the classes.
                events = day.events[:SMALL_ROWS] if number == 0 else day.events
                send(broker, topic, events)
                order = {"address": broker.address, "topic": topic, "rows": len(events)}
                figures = one.do("pipeline", **order)
                if number:
                    found[one.form].append(figures)
                with Admin(bootstrap_servers=broker.address) as admin:
                    made = [each.name for each in admin.list_topics()]
                    admin.delete_topics([name for name in made if name.startswith(f"{topic}.")])
    tell_work(f"the demo's pipeline, source to archive, {broker.name}", "", found, PER_THOUSAND)


def send(broker: Broker, topic: str, events: Sequence[Event]) -> None:
    with Producer(bootstrap_servers=broker.address, linger_ms=20) as producer:
        for event in events:
            producer.send(topic, event.value, key=event.key, timestamp=event.at_ms)


def measure_stream(sessions: list[Session], broker: Broker, minutes: float, rate: int) -> None:
    """Measure what streams hold over time; both formats read the same topic at the same time."""
    print(
        f"\n| stream to Parquet, {rate} records/s, {broker.name} | minutes | records "
        "| micro-batches | driver's heap MB | JVM MB | Python workers MB | driver's Python MB |"
        "\n|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    with topic_on(broker) as topic, fed(broker, topic, rate), ThreadPoolExecutor() as threads:
        order = {"address": broker.address, "topic": topic, "minutes": minutes}
        running = [threads.submit(one.do, "stream", **order) for one in sessions]
        found = [one.result() for one in running]
    for one, told in zip(sessions, found, strict=True):
        count = 1 + max(int(name.rpartition(" ")[2]) for name in told)
        fields = ("minutes", "records", "batches", "heap_mb", "jvm", "workers", "driver")
        for number in range(1, count):
            cells = [f"{told[f'{field} {number}']:.0f}" for field in fields]
            print(f"| {TITLES[one.form]} | {' | '.join(cells)} |", flush=True)


def measure_memory(sessions: list[Session], broker: Broker, queries: int) -> None:
    """Measure the heap of the drivers before and after many queries."""
    with topic_on(broker) as topic:
        fill(broker, topic, 1_000)
        before = {one.form: one.do("heap")["heap_mb"] for one in sessions}
        for _ in range(queries):
            for one in sessions:
                one.do("rows", address=broker.address, topic=topic, rows=1_000)
        cells = [f"driver's heap, {queries} queries more, MB"]
        for form in (OURS, THEIRS):
            after = next(one for one in sessions if one.form == form).do("heap")["heap_mb"]
            cells.append(f"{before[form]:.0f} → {after:.0f}")
        print(f"| {' | '.join(cells)} | | flat |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round with a tenth of the rows")
    parser.add_argument("--rounds", type=int, default=0, help="how often each figure is taken")
    parser.add_argument("--rows", type=int, default=0, help=f"rows to read (default: {ROWS})")
    parser.add_argument("--without-kafka", action="store_true", help="only against our broker")
    parser.add_argument("--only", default="", help="only works whose names have this text")
    parser.add_argument(
        "--stream-minutes", type=float, default=0, help="only this: what a stream holds over time"
    )
    parser.add_argument(
        "--rate",
        type=int,
        default=STREAM_RECORDS_PER_SECOND,
        help=f"records per second of that stream (default: {STREAM_RECORDS_PER_SECOND})",
    )
    arguments = parser.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else 5)
    rows = arguments.rows or (ROWS // 10 if arguments.quick else ROWS)
    try:
        jars = class_path(POM.with_name("spark-pom.xml"))
    except KafkaUnavailable as reason:
        raise SystemExit(f"Spark's own connector is missing: {reason}") from None
    began = time.monotonic()
    print(peers.machine(), flush=True)
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        brokers = [stack.enter_context(peers.tarry(directory / "tarry", {}))]
        if not arguments.without_kafka:
            others, reasons = peers.started(stack, directory / "kafka", {})
            brokers += others
            print(*reasons, sep="\n")
        sessions = [Session(OURS, ""), Session(THEIRS, jars)]
        for one in sessions:
            stack.callback(one.end)
        names = " | ".join(TITLES.values())
        print(f"\n| work | {names} | ratio | goal |\n|---|--:|--:|--:|--:|", flush=True)
        for broker in brokers:
            queries = 3 if arguments.quick else QUERIES_BEFORE
            orders = ORDERS // 10 if arguments.quick else ORDERS
            extent = Extent(rows, rounds, queries, orders, arguments.only)
            if arguments.stream_minutes:
                measure_stream(sessions, broker, arguments.stream_minutes, arguments.rate)
                continue
            if arguments.only != PIPELINE:
                measure_rows(sessions, broker, extent)
            if arguments.only in PIPELINE:
                measure_pipeline(sessions, broker, extent)
            if arguments.only in "micro-batch":
                rates = [100] if arguments.quick else [100, 10_000]
                measure_micro_batches(sessions, broker, rates)
        if arguments.only in "heap" and not arguments.stream_minutes:
            measure_memory(sessions, brokers[0], 10 if arguments.quick else QUERIES_OF_MEMORY)
    print(file=sys.stderr)
    print(f"\nmedian of {rounds} (least..most), {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

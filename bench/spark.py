"""Tarry's Spark source, sinks and archive beside Spark's own Kafka connector, in one run.

`make bench-spark` runs it; ARGS=--quick takes some minutes and tells less.  Local Sparks of two
cores get the same work in turn, against Tarry and against Apache Kafka: ours as it comes, and the
connector twice, at the best settings that `spark_search` finds and as it comes.  Each broker gets
new Sparks.  A cell has the median and, in parentheses, the least and the most; beside rows per
second stand rows per second of CPU, of the driver's whole tree of processes.  Ratios are ours to
the connector's.  What a search has found is kept in `build/` and used by the next run; `--search`
searches again.  Needs Java and Maven.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import peers
from peers import ROOT, Broker
from spark_search import Search
from spark_session import Figures, Session, fed, fill, topic_on
from spark_settings import AS_IT_COMES, load
from spark_values import json_value
from tests.support.interop.kafka_server import POM, KafkaUnavailable, class_path

from tarry.client import Admin, Producer

sys.path.insert(0, str(ROOT / "examples" / "orders"))
from day import Day, Event

OURS: Final = "tarry"
BEST: Final = "JVM connector, at its best"
PLAIN: Final = "JVM connector, as it comes"
THEIRS: Final = (BEST, PLAIN)

ROWS: Final = 2_000_000
# Rows of the search of a quick run: with fewer, a read is mostly its fixed cost.
SEARCH_ROWS_MIN: Final = 1_000_000
# What loads classes.
SMALL_ROWS: Final = 1_000
# Reads of all rows that are made in a young session, and before the others.
QUERIES_EARLY: Final = 2
QUERIES_BEFORE: Final = 30
QUERIES_OF_MEMORY: Final = 100

PER_MILLION: Final = ("M", 1e6)
PER_THOUSAND: Final = ("k", 1e3)
PIPELINE: Final = "pipeline"
ORDERS: Final = 100_000
PARTITIONS_OF_ORDERS: Final = 4
STREAM_RECORDS_PER_SECOND: Final = 1_000

# Figures of each column, by its title.
Found = dict[str, list[Figures]]
# Order for a session, without its work.
Order = dict[str, Any]


class Work(NamedTuple):
    """Row of the table: work of ours beside work of theirs, and what is aimed at."""

    name: str
    word: str
    theirs: str
    goal: str
    # A part of the rows is enough for what writes.
    share: int = 1
    # Whether the records are values of JSON with ten fields instead of 100 bytes.
    is_of_json: bool = False


WORKS: Final = (
    Work("100 B → rows, warm", "rows", "rows", "≥ 1.15"),
    Work("100 B → rows, `value` alone", "value", "value", "≥ 1.8"),
    Work("100 B → Parquet through Spark", "parquet", "parquet", "≥ 1.2"),
    Work("100 B → Parquet by `archive`", "archive", "parquet", "≥ 3"),
    Work("DataFrame → topic, acks=all", "write", "write", "≥ 1", 2),
    Work("JSON → rows of 10 fields", "typed", "typed", "≥ 2", 2, True),
    Work("JSON → Parquet of 10 fields", "typed_parquet", "typed_parquet", "≥ 2", 2, True),
    Work("stream → topic, ours exactly once, theirs at least once", "copy", "copy", "≥ 0.7"),
)
EARLY: Final = Work("100 B → rows, first queries", "rows", "rows", "≥ 1.6")


# --- The table


def spread(values: list[float], digits: int) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f}..{most:.{digits}f})"


def middle(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0


def cell(values: list[float], why: str) -> str:
    return spread(values, 2) if values else why


def ratio(one: list[float], other: list[float]) -> str:
    return f"{middle(one) / middle(other):.2f}" if one and other else "-"


def tell_work(
    name: str,
    goal: str,
    found: Found,
    sessions: Sequence[Session],
    unit: tuple[str, float] = PER_MILLION,
) -> None:
    """Print two rows: rows per second, and per second of CPU."""
    word, divisor = unit
    why = {one.name: one.ended for one in sessions}
    for title, field in ((f"{word} rows/s", "s"), (f"{word} rows/s of CPU", "cpu_s")):
        rates = {
            name: [one["rows"] / one[field] / divisor for one in each]
            for name, each in found.items()
        }
        cells = [f"{name}, {title}", *(cell(each, why[one]) for one, each in rates.items())]
        cells += [ratio(rates[OURS], rates[one]) for one in THEIRS]
        print(f"| {' | '.join(cells)} | {goal if field == 's' else ''} |", flush=True)


def in_turn(sessions: Sequence[Session], number: int) -> list[Session]:
    """Return the sessions in the order of a round: each begins one of three."""
    first = number % len(sessions)
    return [*sessions[first:], *sessions[:first]]


class Extent(NamedTuple):
    """Extent of a run."""

    rows: int
    rounds: int
    queries_before: int
    orders: int
    only: str


def measure_rows(sessions: Sequence[Session], broker: Broker, extent: Extent) -> None:
    """Measure what is told in rows per second."""
    rows = extent.rows
    with topic_on(broker) as topic, topic_on(broker) as small, topic_on(broker) as to:
        fill(broker, topic, rows)
        fill(broker, small, SMALL_ROWS)
        first = {"address": broker.address, "topic": topic, "rows": rows, "to": to}
        few = {**first, "topic": small, "rows": SMALL_ROWS}
        chosen = [work for work in WORKS if extent.only in work.name]
        for one in sessions:
            # Starts the workers and loads the classes.
            one.do("rows", **few)
        early: Found = {one.name: [] for one in sessions}
        for number in range(extent.queries_before):
            for one in in_turn(sessions, number):
                figures = one.do("rows", **first)
                if figures is not None and number < QUERIES_EARLY:
                    early[one.name].append(figures)
        if extent.only in EARLY.name:
            tell_work(f"{EARLY.name}, {broker.name}", EARLY.goal, early, sessions)
        for work in chosen:
            if not work.is_of_json:
                measure_work(work, sessions, broker, extent, (few, first))
    with topic_on(broker) as topic, topic_on(broker) as small:
        of_json = [work for work in chosen if work.is_of_json]
        if of_json:
            fill(broker, topic, rows // of_json[0].share, json_value)
            fill(broker, small, SMALL_ROWS, json_value)
        for work in of_json:
            orders = ({**few, "topic": small}, {**first, "topic": topic})
            measure_work(work, sessions, broker, extent, orders)


def measure_work(
    work: Work,
    sessions: Sequence[Session],
    broker: Broker,
    extent: Extent,
    orders: tuple[Order, Order],
) -> None:
    """Measure one work; the first order is of few rows, and loads the classes of this work."""
    few, first = orders
    found: Found = {one.name: [] for one in sessions}
    for number in range(extent.rounds):
        for one in in_turn(sessions, number):
            word = work.word if one.name == OURS else work.theirs
            if number == 0:
                one.do(word, **few)
            figures = one.do(word, **{**first, "rows": extent.rows // work.share})
            if figures is not None:
                found[one.name].append(figures)
    tell_work(f"{work.name}, {broker.name}", work.goal, found, sessions)


def measure_micro_batches(sessions: Sequence[Session], broker: Broker, rates: list[int]) -> None:
    for rate in rates:
        for sink, goal in (("noop", "≤ 1.1"), ("parquet", "≤ 220 ms")):
            found: dict[str, Figures | None] = {}
            for one in sessions:
                with topic_on(broker) as topic, fed(broker, topic, rate):
                    order = {"address": broker.address, "topic": topic, "sink": sink}
                    found[one.name] = one.do("micro-batches", **order)
            cells = [f"micro-batch, {rate} records/s, {sink}, {broker.name}, p50 (p95) ms"]
            cells += [
                f"{each['p50_ms']:.0f} ({each['p95_ms']:.0f})" if each else "ended"
                for each in found.values()
            ]
            times = {name: [each["p50_ms"]] if each else [] for name, each in found.items()}
            cells += [ratio(times[OURS], times[one]) for one in THEIRS]
            print(f"| {' | '.join(cells)} | {goal} |", flush=True)


def measure_pipeline(sessions: Sequence[Session], broker: Broker, extent: Extent) -> None:
    """Measure the demo's pipeline from end to end, on a day of orders of its own for each run."""
    day = Day(7, extent.orders)
    found: Found = {one.name: [] for one in sessions}
    for number in range(extent.rounds + 1):
        for one in in_turn(sessions, number):
            with topic_on(broker, PARTITIONS_OF_ORDERS) as topic:
                # The first run loads the classes.
                events = day.events[:SMALL_ROWS] if number == 0 else day.events
                send(broker, topic, events)
                order = {"address": broker.address, "topic": topic, "rows": len(events)}
                figures = one.do("pipeline", **order)
                if number and figures is not None:
                    found[one.name].append(figures)
                with Admin(bootstrap_servers=broker.address) as admin:
                    made = [each.name for each in admin.list_topics()]
                    admin.delete_topics([name for name in made if name.startswith(f"{topic}.")])
    title = f"the demo's pipeline, source to archive, {broker.name}"
    tell_work(title, "", found, sessions, PER_THOUSAND)


def send(broker: Broker, topic: str, events: Sequence[Event]) -> None:
    with Producer(bootstrap_servers=broker.address, linger_ms=20) as producer:
        for event in events:
            producer.send(topic, event.value, key=event.key, timestamp=event.at_ms)


def measure_stream(sessions: Sequence[Session], broker: Broker, minutes: float, rate: int) -> None:
    """Measure what streams hold over time; all read the same topic at the same time."""
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
        count = 1 + max((int(name.rpartition(" ")[2]) for name in told or ()), default=-1)
        fields = ("minutes", "records", "batches", "heap_mb", "jvm", "workers", "driver")
        for number in range(1, count):
            cells = [f"{(told or {})[f'{field} {number}']:.0f}" for field in fields]
            print(f"| {one.name} | {' | '.join(cells)} |", flush=True)


def measure_memory(sessions: Sequence[Session], broker: Broker, queries: int) -> None:
    """Measure the heap of the drivers before and after many queries."""

    def heap(one: Session) -> str:
        figures = one.do("heap")
        return "ended" if figures is None else f"{figures['heap_mb']:.0f}"

    with topic_on(broker) as topic:
        fill(broker, topic, SMALL_ROWS)
        before = [heap(one) for one in sessions]
        for _ in range(queries):
            for one in sessions:
                one.do("rows", address=broker.address, topic=topic, rows=SMALL_ROWS)
        after = [heap(one) for one in sessions]
    cells = [f"driver's heap, {queries} queries more, {broker.name}, MB"]
    cells += [f"{one} → {other}" for one, other in zip(before, after, strict=True)]
    print(f"| {' | '.join(cells)} | | | flat |", flush=True)


# --- The run


def started(
    stack: contextlib.ExitStack, broker: Broker, jars: str, arguments: argparse.Namespace
) -> list[Session]:
    """Find the connector's best settings against a broker, and start the sessions."""
    rows = max(extent_of(arguments).rows, SEARCH_ROWS_MIN)
    found = None if arguments.search else load(broker.name, rows)
    if found is None:
        found = Search(broker, jars, rows, is_quick=arguments.quick).run()
    else:
        print(f"\nThe connector's best settings on {broker.name}, found before ({found.told}):\n")
        print(*(f"    {line}" for line in found.settings.lines()), sep="\n", flush=True)
    sessions = [
        Session(OURS, "tarry", ""),
        Session(BEST, "kafka", jars, found.settings),
        Session(PLAIN, "kafka", jars, AS_IT_COMES),
    ]
    for one in sessions:
        stack.callback(one.end)
    return sessions


def extent_of(arguments: argparse.Namespace) -> Extent:
    is_quick = arguments.quick
    return Extent(
        rows=arguments.rows or (ROWS // 10 if is_quick else ROWS),
        rounds=arguments.rounds or (1 if is_quick else 5),
        queries_before=QUERIES_EARLY + 1 if is_quick else QUERIES_BEFORE,
        orders=ORDERS // 10 if is_quick else ORDERS,
        only=arguments.only,
    )


def measure(broker: Broker, jars: str, arguments: argparse.Namespace) -> None:
    """Measure all that was asked for on one broker, in sessions of its own."""
    extent = extent_of(arguments)
    with contextlib.ExitStack() as stack:
        sessions = started(stack, broker, jars, arguments)
        if arguments.stream_minutes:
            measure_stream(sessions, broker, arguments.stream_minutes, arguments.rate)
            return
        titles = " | ".join(one.name for one in sessions)
        print(f"\n| work | {titles} | ratio to its best | to it as it comes | goal |")
        print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
        if any(extent.only in work.name for work in (EARLY, *WORKS)):
            measure_rows(sessions, broker, extent)
        if extent.only in PIPELINE:
            measure_pipeline(sessions, broker, extent)
        if extent.only in "micro-batch":
            rates = [100] if arguments.quick else [100, 10_000]
            measure_micro_batches(sessions, broker, rates)
        if extent.only in "heap":
            measure_memory(sessions, broker, 10 if arguments.quick else QUERIES_OF_MEMORY)


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
    parser.add_argument(
        "--search", action="store_true", help="search for the connector's best settings again"
    )
    arguments = parser.parse_args()
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
        for broker in brokers:
            measure(broker, jars, arguments)
    print(file=sys.stderr)
    rounds = extent_of(arguments).rounds
    print(f"\nmedian of {rounds} (least..most), {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

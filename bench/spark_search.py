"""Search for the settings with which Spark's own Kafka connector is fastest on small records.

    python bench/spark_search.py --quick

`bench/spark.py` runs it where nothing was found yet, and with `--search`.  It begins where a person
came to (`spark_settings.BY_HAND`) and goes through all dimensions once.  A candidate and what is
best so far do the same work in turn, the order changing from pair to pair; a candidate is taken
whose median pair is faster by 2 % or more, twice.  Settings of the session need a JVM of their own,
so there two of them are measured in turn.  When its time is over the rest is not tried, and it says
so.  At the end new JVMs measure what was found, what was
found by hand and the connector as it comes; the fastest is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import peers
from peers import Broker
from spark_session import Session, fill, topic_on
from spark_settings import (
    AS_IT_COMES,
    BY_HAND,
    DIMENSIONS,
    SESSION,
    WRITING,
    Dimension,
    FoundSettings,
    Settings,
    save,
)
from tests.support.interop.kafka_server import POM, KafkaUnavailable, class_path

# Faster by less is chance.
GAIN_MIN: Final = 1.02
# Reads that warm a JVM up; a heap that is never emptied is full by then.
QUERIES_BEFORE: Final = 12
QUERIES_BEFORE_QUICK: Final = 5
# A part of the rows is enough for what writes.
WRITTEN_SHARE: Final = 2
PAIRS: Final = 5
PAIRS_QUICK: Final = 3
FORM: Final = "kafka"
# On two idle cores all of it takes some ten minutes.
MINUTES_MAX: Final = 30.0
MINUTES_MAX_QUICK: Final = 8.0

# The best settings so far and a candidate, each with the session that measures it.
Pair = tuple[tuple[Session, Settings], tuple[Session, Settings]]


class Search:
    """Search against one broker."""

    def __init__(self, broker: Broker, jars: str, rows: int, *, is_quick: bool) -> None:
        minutes = MINUTES_MAX_QUICK if is_quick else MINUTES_MAX
        self._ends_s = time.monotonic() + 60 * minutes
        self._broker = broker
        self._jars = jars
        self._rows = rows
        self._pairs = PAIRS_QUICK if is_quick else PAIRS
        self._queries_before = QUERIES_BEFORE_QUICK if is_quick else QUERIES_BEFORE
        self._topic = self._to = ""

    def run(self) -> FoundSettings:
        """Return the best settings; what is tried is printed, a line each."""
        name = self._broker.name
        print(f"\n| the connector's setting, {name} | value | beside the best so far | |")
        print("|---|---|--:|---|", flush=True)
        with topic_on(self._broker) as self._topic, topic_on(self._broker) as self._to:
            fill(self._broker, self._topic, self._rows)
            best = self._improved(BY_HAND)
            return self._kept(best)

    # --- One dimension after the other

    def _improved(self, best: Settings) -> Settings:
        session = self._started("best", best)
        try:
            for number, dimension in enumerate(DIMENSIONS):
                if time.monotonic() > self._ends_s:
                    left = ", ".join(one.name for one in DIMENSIONS[number:])
                    print(f"\nNot tried, for want of time: {left}.", flush=True)
                    break
                for value in dimension.values:
                    candidate = best.with_value(dimension, value)
                    if candidate == best:
                        continue
                    other = None
                    if dimension.part == SESSION:
                        other = self._started(dimension.name, candidate)
                    pair = (session, best), (other or session, candidate)
                    gain = self._gain(pair, dimension)
                    # Of many candidates one is the faster one by chance.
                    is_better = gain >= GAIN_MIN and self._gain(pair, dimension) >= GAIN_MIN
                    self._tell(dimension, value, gain, is_better=is_better)
                    if is_better:
                        best = candidate
                    if other is not None:
                        loser, session = (session, other) if is_better else (other, session)
                        loser.end()
                    if session.ended:
                        session.end()
                        session = self._started("best", best)
        finally:
            session.end()
        return best

    def _gain(self, pair: Pair, dimension: Dimension) -> float:
        """Return how much faster the second of two is, by the median of pairs; 0 if it fails."""
        gains: list[float] = []
        for number in range(self._pairs):
            taken = {}
            for place in (0, 1) if number % 2 else (1, 0):
                taken[place] = self._rate(*pair[place], is_writing=dimension.part == WRITING)
            if not taken[1]:
                return 0.0
            # The settings that were best have failed, and the candidate has not.
            gains.append(taken[1] / taken[0] if taken[0] else GAIN_MIN)
        return statistics.median(gains)

    def _rate(self, session: Session, settings: Settings, *, is_writing: bool) -> float:
        """Return rows per second of one work; 0 if the session ends over it."""
        order = {
            "address": self._broker.address,
            "topic": self._topic,
            "to": self._to,
            "rows": self._rows // WRITTEN_SHARE if is_writing else self._rows,
            "reading": settings.reading,
            "writing": settings.writing,
        }
        figures = session.do("write" if is_writing else "rows", **order)
        return 0.0 if figures is None else figures["rows"] / figures["s"]

    def _started(self, name: str, settings: Settings) -> Session:
        """Start a session and warm it up."""
        session = Session(f"the search, {name}", FORM, self._jars, settings)
        for _ in range(self._queries_before):
            self._rate(session, settings, is_writing=False)
        self._rate(session, settings, is_writing=True)
        return session

    def _tell(
        self, dimension: Dimension, value: dict[str, str], gain: float, *, is_better: bool
    ) -> None:
        text = ", ".join(dict.fromkeys(value.values())) or "as it comes"
        result = f"{gain:.2f}" if gain else "failed"
        print(f"| {dimension.name} | {text} | {result} | {'taken' if is_better else ''} |")
        sys.stdout.flush()

    # --- The end

    def _kept(self, best: Settings) -> FoundSettings:
        """Measure what was found beside the starting points; keep the fastest."""
        names = {"found": best, "by hand": BY_HAND, "as it comes": AS_IT_COMES}
        sessions = {name: self._started(name, one) for name, one in names.items()}
        try:
            read = self._in_turn(sessions, is_writing=False)
            written = self._in_turn(sessions, is_writing=True)
        finally:
            for session in sessions.values():
                session.end()
        print(f"\n| settings, {self._broker.name} | read, M rows/s | written, M rows/s |")
        print("|---|--:|--:|")
        for name in names:
            print(f"| {name} | {read[name] / 1e6:.2f} | {written[name] / 1e6:.2f} |", flush=True)
        reader = names[max(names, key=lambda name: read[name])]
        writer = names[max(names, key=lambda name: written[name])]
        settings = reader._replace(writing=writer.writing)
        print("\nThe connector's best settings:\n")
        print(*(f"    {line}" for line in settings.lines()), sep="\n", flush=True)
        told = f"{peers.machine()}; {self._pairs} pairs each"
        found = FoundSettings(settings, self._rows, told)
        save(self._broker.name, found)
        return found

    def _in_turn(self, sessions: dict[str, Session], *, is_writing: bool) -> dict[str, float]:
        """Return the rows per second of each session; the order changes from round to round."""
        rates: dict[str, list[float]] = {name: [] for name in sessions}
        for number in range(self._pairs):
            for name in list(sessions)[:: 1 if number % 2 else -1]:
                session = sessions[name]
                rate = self._rate(session, session.settings, is_writing=is_writing)
                rates[name].append(rate)
        return {name: statistics.median(each) for name, each in rates.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows to read")
    parser.add_argument("--on-kafka", action="store_true", help="against Apache Kafka, not Tarry")
    arguments = parser.parse_args()
    try:
        jars = class_path(POM.with_name("spark-pom.xml"))
    except KafkaUnavailable as reason:
        raise SystemExit(f"Spark's own connector is missing: {reason}") from None
    print(peers.machine(), flush=True)
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        start = peers.kafka if arguments.on_kafka else peers.tarry
        broker = stack.enter_context(start(directory, {}))
        Search(broker, jars, arguments.rows, is_quick=arguments.quick).run()


if __name__ == "__main__":
    main()

"""Lateness of scheduled records, for bench/schedule.py: when one is seen, less its due time.

The records are parked first.  A consumer that waits at the end of the topic reads them as they are
released; each batch has its due time as its timestamp, and the wall clock is the broker's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from peers import tell_progress
from schedule_cost import BY_TIME, PLAIN
from schedule_load import (
    PARTITIONS,
    Connection,
    Seen,
    Server,
    TimedFrames,
    begin_pings,
    delete_topic,
    latencies,
    make_topic,
    percentile,
    pings_of,
    plain_batch,
)
from schedule_rows import Options, Row, columns, rows_beside

# Of one record's value.
VALUE_BYTES: Final = 100
IN_FLIGHT: Final = 40
SECONDS: Final = 10
SECONDS_QUICK: Final = 4
# The first records come while caches are cold.
WARM_MS: Final = 500

BURST_BATCHES: Final = 500
BURST_RECORDS: Final = 1_000
BURST_MS: Final = 1_000
# Of pings before the burst, and of the pause that separates them from it.
CALM_MS: Final = 2_500
APART_MS: Final = 200


class Lateness(NamedTuple):
    """Lateness of one run, in ms, and the broker's CPU time for each record, in µs."""

    p50: float
    p99: float
    p999: float
    worst: float
    cpu_us: float


class Parker:
    """Records parked on a topic of its own before the first of them is due.

    Where `replicas` are named, `wait_for` is to return when those of a new topic are in sync.
    """

    def __init__(
        self,
        address: str,
        replicas: list[int] | None = None,
        wait_for: Callable[[str], None] | None = None,
    ) -> None:
        self._address = address
        self._replicas = replicas
        self._wait_for = wait_for
        self._number = 0
        # Of parking; the first run guesses, and tries again if it was wrong.
        self._batches_s = 10_000.0

    def park(
        self,
        connection: Connection,
        batch: bytes,
        due_ms: Callable[[int, int], int],
        count: int,
        calm_s: float,
    ) -> tuple[str, int]:
        """Park so many batches, the one with a number at `due_ms(begin, number)`.

        Return the topic and the begin, which is `calm_s` later than the last answer at least.
        """
        while True:
            self._number += 1
            topic = f"late-{self._number}"
            make_topic(self._address, topic, BY_TIME, self._replicas)
            if self._wait_for is not None:
                self._wait_for(topic)
            begun_s = time.time()
            begin_ms = int((begun_s + 1 + calm_s + 1.2 * count / self._batches_s) * 1000)
            frames = TimedFrames(topic, batch).spread(
                due_ms(begin_ms, number) for number in range(count)
            )
            connection.produce(topic, frames, IN_FLIGHT)
            self._batches_s = count / (time.time() - begun_s)
            if time.time() + calm_s < begin_ms / 1000:
                return topic, begin_ms
            delete_topic(self._address, topic)


def lateness(seen: list[Seen], from_ms: int, cpu_s: float) -> Lateness:
    """Return the percentiles over the records that were due from this time on."""
    late = sorted(
        each.seen_ms - each.timestamp_ms
        for each in seen
        if each.timestamp_ms >= from_ms
        for _ in range(each.record_count)
    )
    count = sum(each.record_count for each in seen)
    p50, p99, p999 = (percentile(late, share) for share in (0.5, 0.99, 0.999))
    return Lateness(p50, p99, p999, late[-1], cpu_s / count * 1e6)


def run_steady(
    address: str, parker: Parker, cpu_s: Callable[[], float], rate: int, seconds: int
) -> Lateness:
    """Let single records become due at this rate."""
    with Connection(address) as connection:
        topic, begin_ms = parker.park(
            connection,
            plain_batch(1, VALUE_BYTES),
            lambda begin_ms, number: begin_ms + number * 1000 // rate,
            rate * seconds,
            0.5,
        )
        time.sleep(max(begin_ms / 1000 - 0.2 - time.time(), 0))
        before_s = cpu_s()
        seen = connection.read(topic, [0] * PARTITIONS, rate * seconds)
        found = lateness(seen, begin_ms + WARM_MS, cpu_s() - before_s)
    delete_topic(address, topic)
    return found


def steady_rows(name: str, goals: tuple[str, str], runs: list[tuple[float, ...]]) -> list[Row]:
    """Return the rows of one rate, with the goals of p99 and p99.9."""
    p50, p99, p999, worst, cpu_us = columns(runs)
    return [
        Row(f"{name}: late, p50", "ms", p50),
        Row(f"{name}: late, p99", "ms", p99, goals[0]),
        Row(f"{name}: late, p99.9", "ms", p999, goals[1]),
        Row(f"{name}: late, worst", "ms", worst),
        Row(f"{name}: broker CPU a record", "µs", cpu_us),
    ]


def measure_lateness(options: Options) -> list[Row]:
    """Measure single records at each rate, on one broker."""
    rows: list[Row] = []
    seconds = SECONDS_QUICK if options.is_quick else SECONDS
    with Server(options.directory / "late", profiles=options.profiles) as server:
        parker = Parker(server.address)
        for rate in options.rates:
            runs: list[tuple[float, ...]] = []
            for _ in range(options.rounds):
                runs.append(run_steady(server.address, parker, server.cpu_s, rate, seconds))
                tell_progress()
            rows += steady_rows(f"{rate:,}/s due", ("≤ 10 ms", "≤ 20 ms"), runs)
    return rows


# -- a burst


class Burst(NamedTuple):
    """Figures of one burst, in ms: how late its records came, and how long other produce took."""

    late_p50: float
    late_p99: float
    late_worst: float
    ping_calm_p99: float
    ping_p99: float


def run_burst(server: Server, parker: Parker) -> Burst:
    """Let 500 batches become due in one second, while another process produces."""
    address = server.address
    with Connection(address) as connection:
        topic, begin_ms = parker.park(
            connection,
            plain_batch(BURST_RECORDS, VALUE_BYTES),
            lambda begin_ms, number: begin_ms + number * BURST_MS // BURST_BATCHES,
            BURST_BATCHES,
            CALM_MS / 1000 + 0.5,
        )
        time.sleep(max((begin_ms - CALM_MS) / 1000 - time.time(), 0))
        process = begin_pings(address, "other", begin_ms + BURST_MS + APART_MS)
        seen = connection.read(topic, [0] * PARTITIONS, BURST_BATCHES * BURST_RECORDS)
        found = pings_of(process)
    delete_topic(address, topic)
    late = lateness(seen, begin_ms, 0.0)
    calm = latencies(found, 0, begin_ms - APART_MS)
    busy = latencies(found, begin_ms, max(each.seen_ms for each in seen))
    return Burst(late.p50, late.p99, late.worst, percentile(calm, 0.99), percentile(busy, 0.99))


def measure_burst(options: Options) -> list[Row]:
    """Measure half a million records that are due in one second, and other produces meanwhile."""
    with Server(options.directory / "burst", profiles=options.profiles) as server:
        make_topic(server.address, "other", PLAIN)
        parker = Parker(server.address)
        bursts: list[tuple[float, ...]] = []
        for _ in range(options.rounds):
            bursts.append(run_burst(server, parker))
            tell_progress()
    p50, p99, worst, calm, busy = columns(bursts)
    return [
        Row("500,000 due in a second: late, p50", "ms", p50),
        Row("500,000 due in a second: late, p99", "ms", p99, "< 1,000 ms"),
        Row("500,000 due in a second: late, worst", "ms", worst),
        *rows_beside(calm, busy, "≤ 2"),
    ]

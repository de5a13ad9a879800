"""Records that are all overdue when a broker starts, for bench/schedule.py.

Single records wait for one moment.  The broker is killed before it, and started after it.  Another
process produces to another topic before the kill and while the overdue records are released.
"""

from __future__ import annotations

import signal
import time
from itertools import repeat
from typing import Final

from peers import tell_progress
from schedule_cost import BY_TIME, PLAIN
from schedule_load import (
    PARTITIONS,
    Connection,
    Server,
    TimedFrames,
    begin_pings,
    latencies,
    make_topic,
    percentile,
    pings_of,
    plain_batch,
)
from schedule_rows import Options, Row, columns, rows_beside

TOPIC: Final = "overdue"
OTHER: Final = "other"
VALUE_BYTES: Final = 100
IN_FLIGHT: Final = 40
# The slowest rates at which records are parked, with each policy of flushes, and released; they say
# how long a round waits.
PARKED_PER_S: Final = {"os": 40_000, "commit": 12_000}
RELEASED_PER_S: Final = 30_000
APART_S: Final = 15
CALM_S: Final = 10
POLL_S: Final = 0.1


def run_overdue(options: Options, policy: str, number: int) -> tuple[float, ...]:
    """Return seconds until the first and the last release, and p99 of a produce, in ms, before the
    kill and beside the releases, with a policy of flushes.
    """
    count = options.pending
    directory = options.directory / f"overdue-{policy}-{number}"
    with Server(directory, profiles=options.profiles, policy=policy) as server:
        make_topic(server.address, TOPIC, BY_TIME)
        make_topic(server.address, OTHER, PLAIN)
        due_ms = int(time.time() * 1000) + (count // PARKED_PER_S[policy] + APART_S + CALM_S) * 1000
        timed = TimedFrames(TOPIC, plain_batch(1, VALUE_BYTES))
        with Connection(server.address) as connection:
            connection.produce(TOPIC, timed.spread(repeat(due_ms, count)), IN_FLIGHT)
            calm_ms = time.time() * 1000
            process = begin_pings(server.address, OTHER, calm_ms + CALM_S * 1000)
            calm = latencies(pings_of(process), calm_ms, calm_ms + CALM_S * 1000)
        if time.time() * 1000 > due_ms - 1000:
            raise SystemExit(f"{count:,} records were not parked before they were due")
        tell_progress()
        server.end(signal.SIGKILL)
        time.sleep(due_ms / 1000 - time.time())
        begun_ms = time.time() * 1000
        server.begin()
        until_ms = begun_ms + (count / RELEASED_PER_S + APART_S) * 1000
        process = begin_pings(server.address, OTHER, until_ms)
        with Connection(server.address) as connection:
            seen = connection.read(TOPIC, [0] * PARTITIONS, 1)
            connection.wait_for_records(TOPIC, count, POLL_S)
            ended_ms = time.time() * 1000
        busy = latencies(pings_of(process), seen[0].seen_ms, ended_ms)
        tell_progress()
    first_s, last_s = (seen[0].seen_ms - begun_ms) / 1000, (ended_ms - begun_ms) / 1000
    return first_s, last_s, percentile(calm, 0.99), percentile(busy, 0.99)


def measure_overdue(options: Options) -> list[Row]:
    """Measure starts with much that is overdue, with each policy of flushes."""
    rows: list[Row] = []
    for policy in PARKED_PER_S:
        runs = [run_overdue(options, policy, number) for number in range(options.rounds)]
        first, everything, calm, busy = columns(runs)
        released = [
            options.pending / (last - begin) for begin, last in zip(first, everything, strict=True)
        ]
        name = f"{options.pending:,} overdue, flush.policy={policy}"
        # With "commit" a produce waits for the flush of the released records in its round as well.
        goal = "≤ 2" if policy == "os" else ""
        rows += [
            Row(f"{name}: start to first release", "s", first),
            Row(f"{name}: released", "/s", released),
            *rows_beside(calm, busy, goal),
        ]
    return rows

"""Much that waits, for bench/schedule.py: memory, idle CPU, cancels, and a start after kill -9.

The same for single records that wait by their timestamps and for records with ids, a hundred in a
batch.  Due times are spread over a day, in no order.  What a broker is filled with is left to the
page cache, as in the other scenes.  One that is killed flushes what it acknowledges, as it does by
default: a start trusts what was flushed, and goes through the rest once more.  Brokers are killed
when their snapshots are written; a start without them is measured beside.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from peers import tell_progress
from schedule_cost import BY_HEADER, BY_TIME, PLAIN
from schedule_load import (
    PARTITIONS,
    PATIENCE_S,
    Connection,
    Server,
    TimedFrames,
    make_topic,
    percentile,
    pings,
    plain_batch,
    produce_frame,
    wish_batch,
)
from schedule_rows import Options, Row, columns

from tarry.broker.scheduling.snapshots.snapshot_load import SNAPSHOT_FILE

TOPIC: Final = "pending"
OTHER: Final = "other"
VALUE_BYTES: Final = 100
BATCH_RECORDS: Final = 100
IN_FLIGHT: Final = 40

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
# The goal of a start is that of so many.
PENDING_OF_GOALS: Final = 10_000_000
# Parked before memory is looked at for the first time.
WARM_COUNT: Final = 2_000
# The first records are due so soon: while the broker is down, so that a start releases them.
SOON_MS: Final = 1_000

CANCELS: Final = 2_000
CANCELS_QUICK: Final = 500
IDLE_S: Final = 10.0
IDLE_S_QUICK: Final = 3.0


class Kind(NamedTuple):
    """Kind of what waits."""

    name: str
    has_ids: bool

    @property
    def configs(self) -> dict[str, str]:
        return BY_HEADER if self.has_ids else BY_TIME

    def frames(self, count: int, first_id: int, chance: random.Random) -> Iterator[bytes]:
        """Return requests that park so many records."""
        now_ms = int(time.time() * 1000) + HOUR_MS
        if not self.has_ids:
            dues = (now_ms + chance.randrange(DAY_MS) for _ in range(count))
            yield from TimedFrames(TOPIC, plain_batch(1, VALUE_BYTES)).spread(dues)
            return
        for batch in range(count // BATCH_RECORDS):
            begin = first_id + batch * BATCH_RECORDS
            wishes = [
                {
                    "x-deliver-at": b"%d" % (now_ms + chance.randrange(DAY_MS)),
                    "x-sched-id": id_of(number),
                }
                for number in range(begin, begin + BATCH_RECORDS)
            ]
            yield produce_frame(TOPIC, batch % PARTITIONS, wish_batch(VALUE_BYTES, wishes))


BATCHES: Final = Kind("single records", has_ids=False)
IDS: Final = Kind("records with ids", has_ids=True)


def id_of(number: int) -> bytes:
    """Return an id of 16 bytes."""
    return b"order-%010d" % number


class Restart(NamedTuple):
    """Start after kill -9: seconds until it is ready, and until what was due has come; memory."""

    ready_s: float
    first_s: float
    all_s: float
    resident_bytes: float


def idle_cpu_ms(server: Server, options: Options) -> float:
    """Return the CPU time in ms that the broker takes in ten seconds of nothing."""
    seconds = IDLE_S_QUICK if options.is_quick else IDLE_S
    before_s = server.cpu_s()
    time.sleep(seconds)
    return (server.cpu_s() - before_s) / seconds * IDLE_S * 1000


def snapshots_in(directory: Path) -> list[Path]:
    """Return the snapshots of the topic's partitions."""
    return list(directory.glob(f"**/{TOPIC}-*/{SNAPSHOT_FILE}"))


def wait_for_snapshots(directory: Path) -> None:
    """Wait until each partition has a snapshot."""
    end_s = time.monotonic() + PATIENCE_S
    while len(snapshots_in(directory)) < PARTITIONS:
        if time.monotonic() > end_s:
            raise SystemExit(f"the partitions had no snapshots in {PATIENCE_S:.0f} s")
        time.sleep(0.1)


def restart(server: Server, kind: Kind, removed: list[Path]) -> Restart:
    """Park a record in each partition, kill the broker, remove files, and wait for the records."""
    with Connection(server.address) as connection:
        offsets = connection.end_offsets(TOPIC)
        due_ms = int(time.time() * 1000) + SOON_MS
        if kind.has_ids:
            batch = wish_batch(VALUE_BYTES, [{"x-deliver-at": b"%d" % due_ms}])
            frames = [produce_frame(TOPIC, each, batch) for each in range(PARTITIONS)]
        else:
            timed = TimedFrames(TOPIC, plain_batch(1, VALUE_BYTES))
            frames = [timed.at(each, due_ms) for each in range(PARTITIONS)]
        connection.produce(TOPIC, frames, IN_FLIGHT)
    server.end(signal.SIGKILL)
    for path in removed:
        path.unlink()
    time.sleep(max(due_ms / 1000 - time.time(), 0))
    begun_ms = time.time() * 1000
    server.begin()
    with Connection(server.address) as connection:
        seen = connection.read(TOPIC, offsets, PARTITIONS)
    first_s, all_s = ((each.seen_ms - begun_ms) / 1000 for each in (seen[0], seen[-1]))
    return Restart(server.begin_s, first_s, all_s, float(server.resident_bytes()))


def cancels(server: Server, numbers: list[int]) -> list[float]:
    """Cancel these ids one by one; return p50 and p99 in ms, and those of a plain produce."""
    now_ms = int(time.time() * 1000)
    frames = []
    for number in numbers:
        partition = number // BATCH_RECORDS % PARTITIONS
        batch = wish_batch(0, [{"x-sched-id": id_of(number), "x-sched-cancel": b"1"}])
        frames.append(produce_frame(TOPIC, partition, batch))
    plain = TimedFrames(OTHER, plain_batch(1, VALUE_BYTES)).at(0, now_ms)
    found: list[float] = []
    with Connection(server.address) as connection:
        for topic, sent in ((TOPIC, frames), (OTHER, [plain] * len(frames))):
            latencies = sorted(each.latency_ms for each in pings(connection, topic, sent))
            found += [percentile(latencies, 0.5), percentile(latencies, 0.99)]
    return found


def measure_pending(options: Options, kind: Kind) -> list[Row]:
    """Fill a broker once; then measure what waits in it, in rounds."""
    chance = random.Random(7)
    count = options.pending
    name = f"{count:,} {kind.name}"
    idle: list[tuple[float, ...]] = []
    cancelled: list[tuple[float, ...]] = []
    restarts: list[tuple[float, ...]] = []
    without: list[tuple[float, ...]] = []
    directory = options.directory / f"pending-{kind.has_ids}"
    with Server(directory, profiles=options.profiles) as server:
        make_topic(server.address, TOPIC, kind.configs)
        make_topic(server.address, OTHER, PLAIN)
        with Connection(server.address) as connection:
            connection.produce(TOPIC, kind.frames(WARM_COUNT, 0, chance), IN_FLIGHT)
            empty_idle_ms = idle_cpu_ms(server, options)
            before_bytes, begun_s = server.resident_bytes(), time.perf_counter()
            connection.produce(TOPIC, kind.frames(count, WARM_COUNT, chance), IN_FLIGHT)
            parked_s = count / (time.perf_counter() - begun_s)
        grown = (server.resident_bytes() - before_bytes) / count
        if kind.has_ids:
            each = CANCELS_QUICK if options.is_quick else CANCELS
            numbers = chance.sample(range(WARM_COUNT + count), each * options.rounds)
        for number in range(options.rounds):
            idle.append((idle_cpu_ms(server, options),))
            if kind.has_ids:
                chosen = numbers[number * each : (number + 1) * each]
                cancelled.append(tuple(cancels(server, chosen)))
            tell_progress()
        server.end(signal.SIGTERM)
        server.policy = "commit"
        server.begin()
        for _ in range(options.rounds):
            wait_for_snapshots(directory)
            restarts.append(restart(server, kind, []))
            without.append(restart(server, kind, snapshots_in(directory)))
            tell_progress()
    ready, first, everywhere, resident = columns(restarts)
    _, slow_first, _, _ = columns(without)
    started = [(size - before_bytes) / count for size in resident]
    is_goal = count == PENDING_OF_GOALS
    rows = [
        Row(f"{name}: memory of each after parking", "bytes", [grown]),
        Row(f"{name}: memory of each after a start", "bytes", started),
        Row(f"{name}: parked", "/s", [parked_s]),
        Row("idle CPU in 10 s with 2,000 pending", "ms", [empty_idle_ms]),
        Row(f"{name}: idle CPU in 10 s", "ms", columns(idle)[0], "≈ 0"),
        Row(f"{name}: kill -9, start to ready line", "s", ready),
        Row(f"{name}: start to first release", "s", first, "< 2 s" if is_goal else ""),
        Row(f"{name}: start to a release in all partitions", "s", everywhere),
        Row(f"{name}: start to first release, without snapshots", "s", slow_first),
    ]
    if kind.has_ids:
        p50, p99, plain_p50, plain_p99 = columns(cancelled)
        rows += [
            Row(f"{name}: cancel, p50", "ms", p50),
            Row(f"{name}: cancel, p99", "ms", p99, "≤ 10 ms"),
            Row("plain produce beside it, p50", "ms", plain_p50),
            Row("plain produce beside it, p99", "ms", plain_p99),
        ]
    return rows

"""Costs of scheduled records, for bench/schedule.py: broker CPU in pairs of the same minutes.

Each pair sends the same batches to a plain topic and to one where they wait.  Then the plain one is
measured while a consumer reads it, and the other one while its records become due.
"""

from __future__ import annotations

import itertools
import time
from typing import Final, NamedTuple

from brokers import touch_memory
from peers import tell_progress
from schedule_load import (
    PARTITIONS,
    Connection,
    Server,
    TimedFrames,
    delete_topic,
    make_topic,
    plain_batch,
    produce_frame,
    wish_batch,
)
from schedule_rows import Options, Row, columns

PLAIN: Final = {"retention.ms": "-1"}
BY_TIME: Final = {"delay.enable": "true", "delay.source": "timestamp"}
BY_HEADER: Final = {"delay.enable": "true", "delay.source": "header"}

# Before the releases begin, and until nothing is due any more after a wait that was too short.
CALM_S: Final = 0.3
WAIT_S_MIN: Final = 1.5


class Shape(NamedTuple):
    """Batches of a row; `places` is how many due times a batch has, 0 if its timestamp is one."""

    name: str
    records: int
    size: int
    batches: int
    in_flight: int
    places: int = 0
    goal: str = "≤ 1.5"

    def shorter(self) -> Shape:
        return self._replace(batches=self.batches // 10)

    @property
    def configs(self) -> dict[str, str]:
        return BY_HEADER if self.places else BY_TIME

    def frames(self, topic: str, due_ms: int) -> list[bytes]:
        """Return a request for each partition, with records that are due then."""
        if not self.places:
            timed = TimedFrames(topic, plain_batch(self.records, self.size))
            return [timed.at(each, due_ms) for each in range(PARTITIONS)]
        in_place = self.records // self.places
        wishes = [
            {"x-deliver-at": b"%d" % (due_ms + number // in_place)}
            for number in range(self.records)
        ]
        batch = wish_batch(self.size, wishes)
        return [produce_frame(topic, each, batch) for each in range(PARTITIONS)]


SHAPES: Final = (
    Shape("1 x 100 B", 1, 100, 50_000, 40),
    Shape("100 x 100 B", 100, 100, 10_000, 40),
    Shape("1000 x 1000 B", 1000, 1000, 500, 8),
    # Parked as it came, once its header is read: neither goal speaks of it.
    Shape("1 x 100 B by header", 1, 100, 50_000, 40, 1, ""),
    Shape("100 x 100 B by header, 10 times", 100, 100, 5_000, 40, 10, "≤ 4"),
    Shape("100 x 100 B by header, 100 times", 100, 100, 2_000, 40, 100, "≤ 4"),
)


class Costs(NamedTuple):
    """CPU of the broker in µs for each batch."""

    produce: float
    park: float
    fetch: float
    release: float


class Pairs:
    """Pairs of one shape on one broker."""

    def __init__(self, server: Server, shape: Shape, *, touches_memory: bool) -> None:
        self._server = server
        self._shape = shape
        self._touches_memory = touches_memory
        self._number = 0
        # Until the first record is due: parking has to end before.
        self._wait_s = WAIT_S_MIN

    def measure(self) -> Costs:
        """Measure one pair; every second one in the other order."""
        self._number += 1
        address = self._server.address
        plain, waiting = f"plain-{self._number}", f"waiting-{self._number}"
        make_topic(address, plain, PLAIN)
        with Connection(address) as connection:
            if self._number % 2:
                produce, fetch = self._plain(connection, plain)
                park, release = self._waiting(connection, waiting)
            else:
                park, release = self._waiting(connection, waiting)
                produce, fetch = self._plain(connection, plain)
        delete_topic(address, plain)
        return Costs(produce, park, fetch, release)

    def _plain(self, connection: Connection, topic: str) -> tuple[float, float]:
        shape = self._shape
        self._touch_memory()
        produce = self._send(connection, topic, int(time.time() * 1000))
        before_s = self._server.cpu_s()
        connection.read(topic, [0] * PARTITIONS, shape.batches * shape.records)
        return produce, self._each_us(self._server.cpu_s() - before_s)

    def _waiting(self, connection: Connection, topic: str) -> tuple[float, float]:
        shape = self._shape
        self._touch_memory()
        while True:
            make_topic(self._server.address, topic, shape.configs)
            begun_s = time.time()
            due_s = begun_s + self._wait_s
            park = self._send(connection, topic, int(due_s * 1000))
            taken_s = time.time() - begun_s
            is_parked = time.time() < due_s - CALM_S
            self._wait_s = max(taken_s * 1.3 + 2 * CALM_S, WAIT_S_MIN)
            if is_parked:
                break
            delete_topic(self._server.address, topic)
        time.sleep(max(due_s - time.time() - CALM_S / 3, 0))
        before_s = self._server.cpu_s()
        connection.wait_for_records(topic, shape.batches * shape.records)
        release = self._each_us(self._server.cpu_s() - before_s)
        delete_topic(self._server.address, topic)
        return park, release

    def _touch_memory(self) -> None:
        if self._touches_memory:
            touch_memory()

    def _send(self, connection: Connection, topic: str, due_ms: int) -> float:
        shape = self._shape
        frames = itertools.cycle(shape.frames(topic, due_ms))
        before_s = self._server.cpu_s()
        connection.produce(topic, itertools.islice(frames, shape.batches), shape.in_flight)
        return self._each_us(self._server.cpu_s() - before_s)

    def _each_us(self, seconds: float) -> float:
        return seconds / self._shape.batches * 1e6


def measure_costs(options: Options) -> list[Row]:
    """Measure parking beside producing, and releasing beside appending and fetching."""
    rows: list[Row] = []
    with Server(options.directory / "cost", profiles=options.profiles) as server:
        for shape in SHAPES:
            chosen = shape.shorter() if options.is_quick else shape
            pairs = Pairs(server, chosen, touches_memory=not options.is_quick)
            pairs.measure()  # warm up
            costs: list[tuple[float, ...]] = []
            for _ in range(options.rounds):
                costs.append(pairs.measure())
                tell_progress()
            produce, park, fetch, release = columns(costs)
            parked = [more / less for less, more in zip(produce, park, strict=True)]
            released = [
                each / (append + read)
                for append, read, each in zip(produce, fetch, release, strict=True)
            ]
            rows += [
                Row(f"park {shape.name} / produce it", "", parked, shape.goal),
                Row(f"release {shape.name} / append and fetch it", "", released),
                Row(f"{shape.name}: produce, CPU a batch", "µs", produce),
                Row(f"{shape.name}: park", "µs", park),
                Row(f"{shape.name}: release", "µs", release),
                Row(f"{shape.name}: fetch", "µs", fetch),
            ]
    return rows


def measure_ordinary(options: Options) -> list[Row]:
    """Measure a topic that delays nothing, beside another checkout: this, other, other, this."""
    assert options.beside is not None
    rows: list[Row] = []
    here = Server(options.directory / "here")
    there = Server(options.directory / "there", options.beside)
    with here, there:
        for number, shape in enumerate(shape for shape in SHAPES if not shape.places):
            chosen = shape._replace(batches=shape.batches // (4 if options.is_quick else 1))
            topics = f"ordinary-{number}"
            for server in (here, there):
                _send_plain(server, chosen, topics, options)  # warm up
            ratios: list[float] = []
            for _ in range(options.rounds):
                spent = [
                    _send_plain(server, chosen, topics, options)
                    for server in (here, there, there, here)
                ]
                ratios.append((spent[0] + spent[3]) / (spent[1] + spent[2]))
                tell_progress()
            rows.append(Row(f"produce {shape.name}: this / other", "", ratios, "≤ 1.02"))
    return rows


def _send_plain(server: Server, shape: Shape, topic: str, options: Options) -> float:
    """Return the CPU seconds of producing to a topic that is made for it and deleted."""
    if not options.is_quick:
        touch_memory()
    make_topic(server.address, topic, PLAIN)
    frames = itertools.cycle(shape.frames(topic, int(time.time() * 1000)))
    with Connection(server.address) as connection:
        before_s = server.cpu_s()
        connection.produce(topic, itertools.islice(frames, shape.batches), shape.in_flight)
        spent_s = server.cpu_s() - before_s
    delete_topic(server.address, topic)
    return spent_s

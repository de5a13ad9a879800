"""The requests of a purgatory benchmark, drawn once and read by every side from the same file.

As in Kafka's TestPurgatoryPerformance: latencies are log-normal, given by their 50th and 75th
percentile; arrivals are a Poisson process whose gaps are rounded down to ms and carry the rest;
the keys are drawn once and are those of every request.  Where completion goes by key, each
request draws its own, as else every check would walk all that is pending.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Final, NamedTuple

# The 75th percentile of the normal distribution, in standard deviations.
NORMAL_PCT75: Final = 0.67449

WARM_UP_REQUESTS: Final = 20_000


class Load(NamedTuple):
    """Load to draw.  `by_key`: completed by a check of the first key instead of by force."""

    num: int
    rate: float
    timeout_ms: int = 500
    pct50_ms: float = 50
    pct75_ms: float = 150
    keys: int = 3
    key_space_size: int = 100
    by_key: bool = False
    seed: int = 1

    @property
    def name(self) -> str:
        """Name of the load in tables."""
        how = "completed by a check of a key" if self.by_key else "completed by force"
        return (
            f"{self.num:,} requests at {self.rate:,.0f}/s, {how}, latency p50 {self.pct50_ms:g} ms "
            f"p75 {self.pct75_ms:g} ms, time-out {self.timeout_ms} ms, "
            f"{self.keys} of {self.key_space_size} keys"
        )


class Samples(NamedTuple):
    """Requests by number: when they come, how long they take, under which keys they wait."""

    timeout_ms: int
    key_space_size: int
    arrival_ms: list[int]
    latency_ms: list[int]
    key_numbers: list[tuple[int, ...]]

    def warm_up(self) -> Samples:
        """Many requests at once, soon completed, before the run that counts."""
        count = len(self.key_numbers)
        return self._replace(
            arrival_ms=[number // 100 for number in range(WARM_UP_REQUESTS)],
            latency_ms=[number % 10 for number in range(WARM_UP_REQUESTS)],
            key_numbers=[self.key_numbers[number % count] for number in range(WARM_UP_REQUESTS)],
        )


def draw(load: Load) -> Samples:
    """Draw the samples of a load, equal ones in every call."""
    chance = random.Random(load.seed)
    mean = math.log(load.pct50_ms)
    deviation = (math.log(load.pct75_ms) - mean) / NORMAL_PCT75
    arrival_ms, latency_ms = [], []
    arrival = 0.0
    for _ in range(load.num):
        arrival += chance.expovariate(load.rate / 1000)
        arrival_ms.append(int(arrival))
        latency_ms.append(int(math.exp(chance.gauss(mean, deviation))))

    def draw_keys() -> tuple[int, ...]:
        return tuple(chance.randrange(load.key_space_size) for _ in range(load.keys))

    if load.by_key:
        key_numbers = [draw_keys() for _ in range(load.num)]
    else:
        key_numbers = [draw_keys()] * load.num
    return Samples(load.timeout_ms, load.key_space_size, arrival_ms, latency_ms, key_numbers)


def write(samples: Samples, path: Path) -> None:
    """Write a line with time-out and key space, then a line a request: arrival, latency, keys."""
    with path.open("w") as file:
        file.write(f"{samples.timeout_ms} {samples.key_space_size}\n")
        for arrival, latency, keys in zip(
            samples.arrival_ms, samples.latency_ms, samples.key_numbers, strict=True
        ):
            file.write(f"{arrival} {latency} {' '.join(map(str, keys))}\n")


def read(path: Path) -> Samples:
    """Read a file that `write` wrote."""
    head, *lines = path.read_text().splitlines()
    timeout_ms, key_space_size = map(int, head.split())
    rows = [tuple(map(int, line.split())) for line in lines]
    return Samples(
        timeout_ms,
        key_space_size,
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2:] for row in rows],
    )

"""Settings of Spark's own Kafka connector: as it comes, found by hand, and what the search tries.

A setting belongs to the session (`spark.…`, fixed when the JVM starts), to reading or to writing
(options of the format).  No candidate changes the work: acknowledgements stay `all`, nothing is
compressed, records keep their partitions.  `spark_search` finds the best ones and keeps them in a
file of `build/`, one for each broker.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from peers import ROOT

FOUND: Final = ROOT / "build" / "spark-connector"

SESSION: Final = "session"
READING: Final = "reading"
WRITING: Final = "writing"

MIB: Final = 1 << 20


class Settings(NamedTuple):
    """Settings of one session; empty: as it comes."""

    session: dict[str, str] = {}
    reading: dict[str, str] = {}
    writing: dict[str, str] = {}

    def with_value(self, dimension: Dimension, value: dict[str, str]) -> Settings:
        """Return the settings with another value of a dimension."""
        part: dict[str, str] = getattr(self, dimension.part)
        keys = {key for one in dimension.values for key in one}
        kept = {key: text for key, text in part.items() if key not in keys}
        return self._replace(**{dimension.part: kept | value})

    def lines(self) -> list[str]:
        """Return the settings as text, one a line."""
        parts = ((SESSION, self.session), (READING, self.reading), (WRITING, self.writing))
        return [f"{name}: {key} = {text}" for name, part in parts for key, text in part.items()]


class Dimension(NamedTuple):
    """Setting, or some that only make sense together, and the values that are tried."""

    name: str
    part: str
    # An empty value: as it comes.
    values: tuple[dict[str, str], ...]


def dimension(part: str, key: str, *values: object) -> Dimension:
    """Make a dimension of one key; its default is tried as well."""
    return Dimension(key, part, ({}, *({key: str(value)} for value in values)))


def evicted(seconds: int) -> dict[str, str]:
    """Return the settings that close idle consumers and drop what they have fetched."""
    after, every = f"{seconds}s", f"{max(seconds // 2, 1)}s"
    return {
        f"spark.kafka.consumer.{cache}.{name}": text
        for cache in ("cache", "fetchedData.cache")
        for name, text in (("timeout", after), ("evictorThreadRunInterval", every))
    }


AS_IT_COMES: Final = Settings()

# Where a person who profiled it came to (2026-11-24): the search begins here.  A query has a group
# of its own, so what its consumers have fetched stays in the heap until it is evicted; and each
# partition pays one idle fetch at the end of its log.
BY_HAND: Final = Settings(
    session={"spark.driver.memory": "2g", **evicted(2)},
    reading={
        "kafka.fetch.max.wait.ms": "5",
        "kafka.check.crcs": "false",
        "kafka.max.partition.fetch.bytes": str(8 * MIB),
        "kafka.fetch.max.bytes": str(64 * MIB),
        "kafka.max.poll.records": "20000",
        "kafka.receive.buffer.bytes": str(MIB),
    },
    writing={"kafka.linger.ms": "20", "kafka.batch.size": str(256 << 10)},
)

# In the order in which they are tried: what was found to matter most comes first.
DIMENSIONS: Final = (
    dimension(READING, "kafka.fetch.max.wait.ms", 1, 5, 20, 100),
    dimension(READING, "kafka.max.partition.fetch.bytes", *(MIB * n for n in (2, 4, 8, 16, 32))),
    Dimension("eviction", SESSION, ({}, evicted(1), evicted(2), evicted(10))),
    dimension(SESSION, "spark.driver.memory", "2g", "4g"),
    dimension(WRITING, "kafka.batch.size", 64 << 10, 256 << 10, 512 << 10, 900 << 10),
    dimension(WRITING, "kafka.linger.ms", 0, 20, 50),
    dimension(READING, "kafka.max.poll.records", 2_000, 5_000, 20_000, 100_000),
    dimension(READING, "kafka.check.crcs", "false"),
    # Of the JVM, not of the connector: it allocates an object a record.
    dimension(SESSION, "spark.driver.defaultJavaOptions", "-XX:+UseParallelGC"),
    # More tasks than partitions; fewer than partitions changes nothing.
    dimension(READING, "minPartitions", 16, 32),
    dimension(READING, "kafka.fetch.max.bytes", 16 * MIB, 64 * MIB, 128 * MIB),
    dimension(READING, "kafka.fetch.min.bytes", 256 << 10, MIB),
    dimension(READING, "kafka.receive.buffer.bytes", 256 << 10, MIB, -1),
    dimension(READING, "kafka.enable.metrics.push", "false"),
    dimension(WRITING, "kafka.buffer.memory", 64 * MIB, 128 * MIB),
    dimension(WRITING, "kafka.max.request.size", 8 * MIB),
    dimension(WRITING, "kafka.max.in.flight.requests.per.connection", 1, 2),
    dimension(WRITING, "kafka.send.buffer.bytes", MIB, -1),
    dimension(WRITING, "kafka.enable.idempotence", "false"),
    dimension(SESSION, "spark.kafka.consumer.cache.capacity", 8, 256),
)
# `spark.sql.streaming.kafka.useDeprecatedOffsetFetching` is not among them: with it the connector
# calls a method that the consumers of Kafka 4 do not have, and its query hangs.


class FoundSettings(NamedTuple):
    """Settings that a search has found, and over how much work."""

    settings: Settings
    rows: int
    told: str


def path_of(broker: str) -> Path:
    """Return the file of the settings that were found against a broker."""
    return FOUND / f"{broker.lower().replace(' ', '-')}.json"


def save(broker: str, found: FoundSettings) -> Path:
    """Keep what a search has found."""
    path = path_of(broker)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"settings": found.settings._asdict(), "rows": found.rows, "told": found.told}
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def load(broker: str, rows: int) -> FoundSettings | None:
    """Return what a search over at least so many rows has found; None: there was none."""
    try:
        content = json.loads(path_of(broker).read_text())
    except FileNotFoundError:
        return None
    if content["rows"] < rows:
        return None
    return FoundSettings(Settings(**content["settings"]), content["rows"], content["told"])

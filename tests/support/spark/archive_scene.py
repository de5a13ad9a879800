"""Archives of a topic `orders` without Spark: what tests of archives begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarry.client import Producer
from tarry.spark.archive.archive import ArchiveOptions, ArchiveSummary, archive
from tarry.spark.archive.verify import VerifiedArchive, verify
from tarry.spark.reading.bounds import TopicChoice
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

HOUR_MS = 3_600_000
NOON_MS = 1_760_000_000_000 // HOUR_MS * HOUR_MS
ORDERS = TopicChoice(names=("orders",))


def options(broker: Tarry, **changed: object) -> ArchiveOptions:
    return ArchiveOptions({"bootstrap.servers": broker.bootstrap}, **changed)  # type: ignore[arg-type]


def run(broker: Tarry, path: Path, **changed: object) -> ArchiveSummary:
    summary = ArchiveSummary()
    for summary in archive(None, ORDERS, path, options(broker, **changed)):  # noqa: B007
        pass
    return summary


def recount(broker: Tarry, path: Path) -> VerifiedArchive:
    return verify(path, {"bootstrap.servers": broker.bootstrap})


def rows(path: Path) -> list[tuple[int, int, bytes | None]]:
    """Partition, offset and value of every row that a reader of Parquet files sees."""
    found = [
        (row["partition"], row["offset"], row["value"])
        for file in sorted(path.glob("topic=*/**/*.parquet"))
        for row in pq.read_table(file, partitioning=None).to_pylist()
    ]
    return sorted(found, key=lambda row: row[:2])


def fill(broker: Tarry, count: int, *, times_ms: tuple[int, ...] = (NOON_MS,)) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send(
                "orders",
                b"%d" % number,
                partition=number % 2,
                timestamp=times_ms[number % len(times_ms)],
            )


def expected(count: int) -> list[tuple[int, int, bytes]]:
    return sorted((number % 2, number // 2, b"%d" % number) for number in range(count))

"""The reader of a stream, asked as Spark asks it, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tarry.client import Admin, Producer
from tarry.testing import Tarry

pytest.importorskip("pyspark")
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tarry.spark.reading.read_options import parse_read_options
from tarry.spark.reading.stream import StreamReader


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    with Tarry() as tarry:
        yield tarry


def test_offsets_of_a_group_are_told_and_never_taken(broker: Tarry) -> None:
    broker.topic("orders", partitions=1)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number)
    given = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "groupId": "pipe",
    }
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        # Somebody has moved the group, ahead of the query and then behind it.
        admin.commit_group_offsets("pipe", {("orders", 0): 8})
        reader = StreamReader(parse_read_options(given, is_stream=True))
        begun = reader.initialOffset()
        ahead = reader.latestOffset(begun, ReadAllAvailable())
        admin.commit_group_offsets("pipe", {("orders", 0): 2})
        again = StreamReader(parse_read_options(given, is_stream=True))
        behind = again.latestOffset(ahead, ReadAllAvailable())
        (told,) = admin.group_offsets(["pipe"]).values()
    read = [
        task.value
        for one in (reader.partitions(begun, ahead), again.partitions(ahead, behind))
        for task in one
    ]
    reader.stop()
    again.stop()

    assert read == [{"orders": [(0, 0, 10)]}]
    assert told["orders", 0].offset == 10

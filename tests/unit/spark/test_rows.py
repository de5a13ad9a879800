"""Rows of a task: what Spark's types cannot hold is told, with the way out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tarry.client import Admin, NewTopic, Producer
from tarry.spark.options import OptionRefused
from tarry.spark.reading.rows import RowReader
from tarry.testing import Tarry

ALL_TIMES = {f"message.timestamp.{side}.max.ms": str(2**63 - 1) for side in ("before", "after")}


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    """A broker with a topic whose last record has a time in nanoseconds."""
    with Tarry() as tarry:
        with Admin(bootstrap_servers=tarry.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 1, configs=ALL_TIMES)])
        with Producer(bootstrap_servers=tarry.bootstrap) as producer:
            producer.send("orders", b"a", timestamp=1_760_000_000_000)
            producer.send("orders", b"b", timestamp=1_760_000_000_000_000_000)
        yield tarry


def rows(broker: Tarry, *columns: str) -> list[dict[str, object]]:
    settings = {"bootstrap.servers": broker.bootstrap}
    reader = RowReader(settings, columns, fails_on_loss=True)
    batches = reader.batches({("orders", 0): (0, 2)})
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_time_that_spark_cannot_hold_is_told_and_the_rest_can_be_read(broker: Tarry) -> None:
    with pytest.raises(OptionRefused, match="by the option columns without timestamp"):
        rows(broker, "value", "timestamp")

    assert [row["value"] for row in rows(broker, "value", "offset")] == [b"a", b"b"]

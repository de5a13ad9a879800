"""The page about a move from Spark's connector: its stream goes on where the old one ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.spark.page_examples import HOW_TO, walk_page

from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def broker() -> Iterator[Tarry]:
    """A broker of this page's own: other pages have topics of the same names."""
    with Tarry() as tarry:
        yield tarry


def test_a_stream_goes_on_where_the_old_connector_stopped(
    spark: SparkSession,
    connector_jars: str,
    broker: Tarry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if connector_jars.startswith("missing: "):
        pytest.skip(f"Spark's connector is {connector_jars}")
    monkeypatch.chdir(tmp_path)
    broker.send("orders", b"order 0", b"order 1", b"order 2")
    old = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "old"))
        .trigger(availableNow=True)
        .start()
    )
    old.awaitTermination()
    broker.send("orders", b"order 3", b"order 4", b"order 5")
    # Spark finds relative paths from where its Java began.
    page = (HOW_TO / "move-from-sparks-kafka-connector.md").read_text(encoding="utf-8")
    here = tmp_path / "page.md"
    here.write_text(page.replace('"new/', f'"{tmp_path}/new/'))

    ran = walk_page(here, broker.bootstrap, tmp_path)

    assert [one.printed for one in ran] == [one.expected for one in ran]
    assert len([one for one in ran if one.expected]) == 2

"""The page about reading with Spark: its examples run from top to bottom and print what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.spark.page_examples import commands_of, run_examples, run_line

from tarry.testing import Tarry

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_examples_print_what_the_page_says(
    spark: SparkSession, broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
    (describe,) = [line for line in commands_of("read-with-spark.md") if "groups" in line]

    ran = run_examples("read-with-spark.md", broker.bootstrap)

    for printed, expected in ran:
        shown = "\n".join(line.rstrip() for line in printed.splitlines()).strip()
        assert shown == expected.strip()
    assert len(ran) == 5
    # Two records that the stream has not read: its lag.
    broker.send("orders", b"order 6", b"order 7", partition=0)
    titles, row = run_line(describe).splitlines()[-2:]
    told = dict(zip(titles.split(), row.split(), strict=True))
    asked = [told[title] for title in ("topic", "partition", "committed", "end", "lag")]
    assert asked == ["orders", "0", "6", "8", "2"]

"""The page about writing with Spark: its examples run from top to bottom and print what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.spark.page_examples import run_examples

from tarry.testing import Tarry

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_examples_print_what_the_page_says(
    spark: SparkSession, broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    ran = run_examples("write-with-spark.md", broker.bootstrap)

    for printed, expected in ran:
        assert printed == expected
    assert len(ran) == 5

"""The page about writing with Spark: its examples run from top to bottom and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarry.testing import Tarry

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/write-with-spark.md"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_examples_print_what_the_page_says(
    spark: SparkSession, broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocks = FENCED.findall(PAGE.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0

    for place, (kind, text) in enumerate(blocks):
        if kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(text.replace("127.0.0.1:9092", broker.bootstrap), namespace)
            expected = blocks[place + 1][1] if blocks[place + 1][0] == "text" else ""
            assert printed.getvalue() == expected
            ran += 1

    assert ran == 4

"""The page about pipelines: its files, commands and examples, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.spark.page_examples import FENCED, HOW_TO, walk_page

from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.testing import Tarry

PAGE = HOW_TO / "run-a-pipeline.md"


@pytest.fixture
def broker() -> Iterator[Tarry]:
    """A broker of this page's own: other pages have topics of the same names."""
    with Tarry() as tarry:
        yield tarry


@pytest.mark.usefixtures("commands_share_spark")
def test_what_the_page_shows_happens(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
    monkeypatch.chdir(tmp_path)

    ran = walk_page(PAGE, broker.bootstrap, tmp_path)

    for one in ran:
        assert not one.expected or one.printed == one.expected
    assert len([one for one in ran if one.expected]) == 2
    checked = next(one.printed for one in ran if "--check" in one.text)
    made = re.findall(r"^makes topic (\S+) with 4 partitions$", checked, re.M)
    assert made == ["orders.clean", "orders.rejected"]
    blocks = FENCED.findall(PAGE.read_text(encoding="utf-8"))
    more = [text for _, text in blocks if text.startswith(("[spark]", "[derive]", "[deduplicate]"))]
    (tmp_path / "more.toml").write_text("".join([(tmp_path / "orders.toml").read_text(), *more]))
    pipeline = read_pipeline(tmp_path / "more.toml")
    assert pipeline.aggregates and pipeline.derive and pipeline.spark

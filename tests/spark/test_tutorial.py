"""The tutorial about Spark: what it says is done, from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.spark.page_examples import DOCS, walk_page

from tarry.testing import Tarry


@pytest.fixture
def broker() -> Iterator[Tarry]:
    """A broker of the tutorial's own, which tells of itself."""
    with Tarry({"events.enable": "true", "events.interval.ms": "100"}) as tarry:
        yield tarry


@pytest.mark.usefixtures("commands_share_spark")
def test_what_the_tutorial_says_happens(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARRY_BOOTSTRAP_SERVERS", broker.bootstrap)
    monkeypatch.chdir(tmp_path)

    ran = walk_page(DOCS / "tutorial-spark.md", broker.bootstrap, tmp_path)

    for one in ran:
        assert not one.expected or one.printed == one.expected
    assert len([one for one in ran if one.expected]) == 3
    (recount,) = [one.printed for one in ran if "spark verify" in one.text]
    assert recount.startswith("whole ")
    assert "1987 compared with the broker" in recount
    for report in ("health.html", "waits.html"):
        assert "<html" in (tmp_path / report).read_text(encoding="utf-8")

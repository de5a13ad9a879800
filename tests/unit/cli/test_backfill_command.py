"""`tarry spark backfill`: what is refused before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tarry.cli.spark.commands import spark

FILE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"] }
decode = { format = "text" }
clean = { topic = "orders.clean", rejected = "orders.rejected" }
[[aggregate]]
name = "revenue"
window = "5m"
values = { orders = "count(*)" }
topic = "orders.revenue"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "orders.toml"
    path.write_text(FILE)
    return str(path)


def run(*words: str) -> Result:
    return CliRunner().invoke(spark, ["backfill", *words])


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("revenu",), 1, "has no aggregate 'revenu'; did you mean revenue?"),
        (("--from", "-1h"), 2, "invalid --from '-1h': write the time itself"),
        (("--until", "2026-10-25T02:30"), 2, "write the time with its zone, such as 2026-11-22T08"),
        (("--until", "noon"), 2, "invalid time 'noon': write 2026-11-21T08:00"),
        (("--from", "2", "--until", "1"), 1, "the time from which windows count is not before"),
        ((), 1, "orders.toml has no [archive]: name the directory of one"),
    ],
)
def test_what_cannot_be_is_told_at_once(
    file: str, words: tuple[str, ...], code: int, sentence: str
) -> None:
    told = run(file, *words)

    assert told.exit_code == code
    assert sentence in told.stderr
    assert told.stdout == ""

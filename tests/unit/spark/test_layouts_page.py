"""The page about layouts: columns and fields are those that the program writes."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from tests.support.spark.page_examples import DOCS, FENCED

from tarry.cli.spark.commands import spark
from tarry.spark.archive.compactions import FileCompaction
from tarry.spark.archive.manifest import Archived, ArchivedFile, ArchivedRange, Manifest
from tarry.spark.reading.bounds import parse_bound
from tarry.spark.reading.offsets import QueryOffsets
from tarry.spark.writing.plan import Plan, PlannedFile, Share
from tarry.testing import Tarry

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")

PAGE = (DOCS / "reference" / "spark-layouts.md").read_text(encoding="utf-8")


def rows_below(begin: str) -> list[list[str]]:
    """Cells of the first table that begins so."""
    table = PAGE[PAGE.index(begin) :].split("\n\n")[0]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def names_below(begin: str) -> list[str]:
    return sorted(name for row in rows_below(begin) for name in re.findall(r"`(\w+)`", row[0]))


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        ("| field of a round |", Manifest),
        ("| field of a range |", ArchivedRange),
        ("| field of a file |", ArchivedFile),
        ("| field of a plan |", Plan),
        ("| field of a share |", Share),
    ],
)
def test_each_field_is_told(begin: str, kind: type[msgspec.Struct]) -> None:
    assert names_below(begin) == sorted(kind.__struct_fields__)


def test_what_is_told_in_a_sentence_is_all() -> None:
    archived = PAGE[PAGE.index("### `archive.json`") :]
    compaction = re.search(r"A compaction has (.*?):", PAGE, re.DOTALL)
    files = next(row[1] for row in rows_below("| field of a plan |") if row[0] == "`files`")

    assert compaction is not None
    assert sorted(re.findall(r"`(\w+)`", compaction[1])) == sorted(FileCompaction.__struct_fields__)
    assert re.findall(r"`(\w+)`", files) == list(PlannedFile.__struct_fields__)
    told = re.findall(r"^\| `(\w+)` \|", archived[: archived.index("### A manifest")], re.MULTILINE)
    assert sorted(told) == sorted(Archived.__struct_fields__)


def test_offsets_are_those_that_a_query_keeps_and_takes() -> None:
    (shown,) = [text for kind, text in FENCED.findall(PAGE) if kind == "json"]

    kept = msgspec.json.decode(shown)

    read = QueryOffsets.from_json(kept)
    assert read.to_json() == kept
    assert dict(read.places()) == parse_bound("startingOffsets", shown).numbers
    assert [one.topic_id for one in read.topics.values()] == ["Vx8sT0aPQ2yJc1xE2mWk3A"]


def test_columns_are_those_of_a_file(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    with Tarry() as broker:
        broker.send("orders", b"one")
        words = ["archive", "orders", "--to", str(tmp_path), "--local", "-b", broker.bootstrap]
        assert CliRunner().invoke(spark, words).exit_code == 0
    (file,) = tmp_path.glob("topic=orders/date=*/hour=*/*.parquet")

    schema = pq.read_schema(file)

    rows = rows_below("| column | type in Parquet |")
    assert [row[0].strip("`") for row in rows] == schema.names
    plain = [(row[0].strip("`"), row[1]) for row in rows if not row[1].startswith("list")]
    assert [(name, str(schema.field(name).type)) for name, _ in plain] == plain
    headers = schema.field("headers").type.value_type
    assert [(part.name, str(part.type)) for part in headers] == [
        ("key", "string"),
        ("value", "binary"),
    ]

"""Shapes of JSON that the reference tells of `tarry spark`: they are those of the results."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from tests.support.spark.page_examples import DOCS

from tarry.base.percentiles import Percentile
from tarry.spark.archive.archive import ArchiveSummary
from tarry.spark.archive.compact import CompactSummary
from tarry.spark.archive.verify import VerifiedArchive
from tarry.spark.backfill.backfill import BackfillSummary
from tarry.spark.events.decoding import Tally
from tarry.spark.events.group_story import GroupRebalance, MemberTime
from tarry.spark.jobs.lag import GroupLag, LagSums, PartitionLag
from tarry.spark.jobs.lateness import LatenessRow, LatenessSums
from tarry.spark.jobs.rebalances import GroupRow, RebalanceSums
from tarry.spark.jobs.waits import LongWait, WaitRow, WaitSums
from tarry.spark.pipeline.progress import StageSums
from tarry.spark.replay.replay import ReplaySummary
from tarry.spark.reports.health_report import StageHealth

PAGE = (DOCS / "reference" / "json-shapes.md").read_text(encoding="utf-8")
SPARK = PAGE[PAGE.index("### Spark") : PAGE.index("### Profiles")]


def shapes(text: str) -> list[list[str]]:
    """Names of each shape, sorted; those of a shape within another are a shape of their own."""
    found: list[list[str]] = []
    while inner := re.search(r"\{([^{}]*)\}", text):
        names = [part.split(":")[0].strip() for part in inner[1].split(",")]
        found.append(sorted(names))
        text = text[: inner.start()] + text[inner.end() :]
    return found


def fields_of(kind: Any) -> list[str]:
    if issubclass(kind, msgspec.Struct):
        return sorted(kind.__struct_fields__)
    return sorted(field.name for field in dataclasses.fields(kind))


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("run", [StageSums]),
        ("archive", [ArchiveSummary]),
        ("compact", [CompactSummary]),
        ("replay", [ReplaySummary]),
        ("backfill", [BackfillSummary]),
        ("health", [StageHealth]),
        ("lateness", [LatenessSums, LatenessRow, Percentile]),
        ("waits", [WaitSums, WaitRow, LongWait, Percentile]),
        ("rebalances", [RebalanceSums, GroupRow, GroupRebalance, MemberTime]),
        ("lag", [LagSums, PartitionLag, GroupLag]),
    ],
)
def test_a_result_has_the_shape_that_is_told(command: str, kinds: list[Any]) -> None:
    (row,) = re.findall(rf"^\| `spark {command}` \| (.*) \|$", SPARK, re.MULTILINE)
    told = shapes(row)

    assert [fields_of(kind) for kind in kinds if fields_of(kind) not in told] == []


def test_the_tally_and_the_recount_are_told() -> None:
    (recount,) = re.findall(r"^\| `spark verify` \| (.*) \|$", SPARK, re.MULTILINE)

    assert fields_of(Tally) in shapes(SPARK)
    assert sorted(["is_whole", *fields_of(VerifiedArchive)]) in shapes(recount)

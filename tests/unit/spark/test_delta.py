"""An archive as a Delta table: each round enters once, and deltalake reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tarry.client import Admin, Producer
from tarry.spark.archive import delta
from tarry.spark.archive.archive import ArchiveOptions, Archiver, ArchiveSummary, archive
from tarry.spark.archive.compact import CompactOptions, Compactor, CompactSummary, compact
from tarry.spark.archive.compactions import FileCompaction
from tarry.spark.archive.delta import ArchiveTable
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchiveRefused, Manifest
from tarry.spark.archive.table_compactions import TableCompactions
from tarry.spark.archive.verify import VerifiedArchive, verify
from tarry.spark.archive.workers import OwnWorker
from tarry.spark.events.reading import archived_values
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")

HOUR_MS = 3_600_000
NOON_MS = 1_760_000_000_000 // HOUR_MS * HOUR_MS
ORDERS = TopicChoice(names=("orders",))


@pytest.fixture
def broker(shared: Tarry) -> Iterator[Tarry]:
    """The broker, with twelve records in the topic `orders`."""
    shared.topic("orders", partitions=2, retention_ms=-1)
    fill(shared)
    yield shared
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_topics(["orders"])


def fill(broker: Tarry) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(12):
            producer.send(
                "orders",
                b"%d" % number,
                partition=number % 2,
                timestamp=NOON_MS + number % 3 * HOUR_MS,
                headers=[("h", b"1"), ("empty", None)],
            )


def options(broker: Tarry, **changed: Any) -> ArchiveOptions:
    given = {"table": "delta", **changed}
    return ArchiveOptions({"bootstrap.servers": broker.bootstrap}, **given)


def run(broker: Tarry, path: Path, **changed: Any) -> ArchiveSummary:
    summary = ArchiveSummary()
    for summary in archive(None, ORDERS, path, options(broker, **changed)):  # noqa: B007
        pass
    return summary


def places(path: Path) -> Counter[tuple[int, int]]:
    """How often a reader of the table sees each partition and offset."""
    table = deltalake.DeltaTable(str(path)).to_pyarrow_table(columns=["partition", "offset"])
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def once(count: int) -> Counter[tuple[int, int]]:
    return Counter((partition, offset) for partition in range(2) for offset in range(count // 2))


def recount(broker: Tarry, path: Path) -> VerifiedArchive:
    return verify(path, {"bootstrap.servers": broker.bootstrap})


@pytest.mark.parametrize(
    ("by", "columns"),
    [("hour", ["topic", "date", "hour"]), ("day", ["topic", "date"]), ("none", ["topic"])],
)
def test_a_table_has_each_record_once(
    broker: Tarry, tmp_path: Path, by: str, columns: list[str]
) -> None:
    run(broker, tmp_path, by=by)
    fill(broker)
    run(broker, tmp_path, by=by)

    table = deltalake.DeltaTable(str(tmp_path))
    assert table.metadata().partition_columns == columns
    assert table.version() == 2
    assert places(tmp_path) == once(24)
    (row,) = (
        row
        for row in table.to_pyarrow_table().to_pylist()
        if (row["partition"], row["offset"]) == (1, 2)
    )
    assert (row["key"], row["value"], row["topic"]) == (None, b"5", "orders")
    assert int(row["timestamp"].timestamp() * 1000) == NOON_MS + 2 * HOUR_MS
    assert row["headers"] == [{"key": "h", "value": b"1"}, {"key": "empty", "value": None}]
    recounted = recount(broker, tmp_path)
    assert (recounted.faults, recounted.rows) == ([], 24)


class Killed(BaseException):
    """The end of a process, as a test has it."""


@pytest.mark.parametrize("step", ["before manifest", "before commit", "behind commit"])
def test_a_killed_run_neither_loses_nor_doubles_a_round(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    run(broker, tmp_path)
    fill(broker)
    owner: type[Any] = ArchiveDirectory if step == "before manifest" else ArchiveTable
    name = "commit" if step == "before manifest" else "add"
    done = getattr(owner, name)

    def killed(*arguments: Any) -> None:
        if step == "behind commit":
            done(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            run(broker, tmp_path)
    seen = places(tmp_path)
    faults = recount(broker, tmp_path).faults
    fill(broker)

    run(broker, tmp_path)

    assert seen == once(24 if step == "behind commit" else 12)
    assert len(faults) == (1 if step == "before commit" else 0)
    assert places(tmp_path) == once(36)
    assert recount(broker, tmp_path).faults == []


class TwinDirectory(ArchiveDirectory):
    """A directory in which another run adds a round to the table a moment before this one."""

    def table(self) -> ArchiveTable | None:
        made = super().table()
        return None if made is None else LateTable(self.path, "hour")


class LateTable(ArchiveTable):
    """A table that has the round already when this run adds it."""

    def add(self, table: Any, manifest: Manifest) -> None:
        ArchiveTable(self.path, "hour").add(deltalake.DeltaTable(str(self.path)), manifest)
        super().add(table, manifest)


def test_of_two_that_add_a_round_one_does(broker: Tarry, tmp_path: Path) -> None:
    run(broker, tmp_path)
    fill(broker)
    made = options(broker)
    with closing(LiveCluster(made.reading())) as cluster:
        list(Archiver(OwnWorker(), cluster, TwinDirectory(tmp_path), made).run(ORDERS))

    assert deltalake.DeltaTable(str(tmp_path)).version() == 2
    assert places(tmp_path) == once(24)
    assert recount(broker, tmp_path).faults == []


def test_a_round_of_lost_records_alone_leaves_the_table_as_it_is(
    broker: Tarry, tmp_path: Path
) -> None:
    run(broker, tmp_path)
    fill(broker)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({("orders", 0): 12, ("orders", 1): 12})

    lost = run(broker, tmp_path, fail_on_data_loss=False)
    fill(broker)
    later = run(broker, tmp_path)

    assert (lost.rounds, lost.records, lost.lost) == (1, 0, 12)
    assert (later.records, later.lost) == (12, 0)
    assert deltalake.DeltaTable(str(tmp_path)).version() == 2
    assert recount(broker, tmp_path).faults == []


def test_a_recount_finds_what_the_table_lacks(broker: Tarry, tmp_path: Path) -> None:
    run(broker, tmp_path)
    deltalake.DeltaTable(str(tmp_path)).delete("partition = 1")

    (fault,) = recount(broker, tmp_path).faults

    assert "the Delta table has 0 rows of orders [1] with 0 offsets, and the rounds have 6" in fault


def test_an_archive_stays_what_it_was_first(broker: Tarry, tmp_path: Path) -> None:
    run(broker, tmp_path / "delta")
    run(broker, tmp_path / "plain", table="parquet")

    with pytest.raises(ArchiveRefused, match="table=delta, not parquet"):
        run(broker, tmp_path / "delta", table="parquet")
    with pytest.raises(ArchiveRefused, match="table=parquet, not delta"):
        run(broker, tmp_path / "plain")


def test_a_table_without_the_library_is_refused(
    broker: Tarry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(delta, "import_module", missing)

    with pytest.raises(ArchiveRefused, match=r"pip install \"tarry\[delta\]\""):
        options(broker)


def test_another_table_is_none(broker: Tarry) -> None:
    with pytest.raises(ArchiveRefused, match="table='iceberg' is none of parquet, delta"):
        options(broker, table="iceberg")


# --- Small files of a table become larger ones.


@pytest.fixture
def grown(broker: Tarry, tmp_path: Path) -> Path:
    """A table of three rounds, of two partitions and three hours."""
    run(broker, tmp_path)
    for _ in range(2):
        fill(broker)
        run(broker, tmp_path)
    return tmp_path


def merge(path: Path, **changed: Any) -> CompactSummary:
    summary = CompactSummary()
    for summary in compact(None, path, CompactOptions(**changed)):  # noqa: B007
        pass
    return summary


def test_a_table_of_merged_files_has_the_same_rows(broker: Tarry, grown: Path) -> None:
    before = deltalake.DeltaTable(str(grown)).version()

    summary = merge(grown)

    assert (summary.directories, summary.files_before, summary.files_after) == (3, 18, 6)
    table = deltalake.DeltaTable(str(grown))
    assert (table.version(), len(table.file_uris())) == (before + 3, 6)
    assert places(grown) == once(36)
    assert recount(broker, grown).faults == []
    values = [b"%d" % number for number in range(12)] * 3
    assert sorted(archived_values(grown, "orders")) == sorted(values)
    # Who follows the table sees no new data, and who reads an older version finds its files.
    changes = [
        next(iter(action.values()))["dataChange"]
        for line in (grown / delta.LOG / f"{before + 1:020}.json").read_text().splitlines()
        if {"add", "remove"} & set(action := json.loads(line))
    ]
    assert changes == [False] * 8
    older = deltalake.DeltaTable(str(grown), version=before)
    assert older.to_pyarrow_table(columns=["offset"]).num_rows == 36
    for file in table.file_uris():
        offsets = pq.read_table(file, partitioning=None)["offset"].to_pylist()
        assert offsets == sorted(offsets)


class CountedCompactions(TableCompactions):
    """Compactions that count how often the log of the table is read for what is done."""

    reads = 0

    def table(self) -> ArchiveTable:
        self.reads += 1
        return super().table()


def test_the_log_of_a_table_is_not_read_again_for_what_is_known_to_be_done(grown: Path) -> None:
    directory = ArchiveDirectory(grown)
    counted = directory.compactions = CountedCompactions(grown, "hour")

    *_, summary = Compactor(OwnWorker(), directory, CompactOptions()).run()

    # Once before all, and for each directory once before its commit and once for it.
    assert counted.reads == 1 + 2 * summary.directories


def test_a_table_goes_on_over_merged_files(broker: Tarry, grown: Path) -> None:
    merge(grown)
    fill(broker)
    run(broker, grown)

    again = merge(grown, replaced_kept_seconds=0)

    assert (again.files_before, again.files_after) == (12, 6)
    assert places(grown) == once(48)
    assert recount(broker, grown).faults == []
    assert len(list(grown.glob("topic=*/**/*.parquet"))) == 6
    assert merge(grown).directories == 0


class KilledTable(ArchiveTable):
    """A table whose process ends before or behind the commit of a compaction."""

    step = ""

    def merge(self, *arguments: Any) -> None:
        if self.step == "before commit":
            raise Killed
        super().merge(*arguments)
        raise Killed


class KilledMoves(TableCompactions):
    """Compactions whose process ends at a step."""

    step = ""

    def move_files(self, compaction: FileCompaction) -> None:
        if self.step == "before move":
            raise Killed
        super().move_files(compaction)

    def table(self) -> ArchiveTable:
        table = KilledTable(self.path, self.by)
        table.step = self.step
        return table


class DirectoryOfKilled(ArchiveDirectory):
    """A directory of such compactions, whose process is gone before it tidies up."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        made = KilledMoves(path, "hour")
        made.step = step
        self.compactions = made

    def drop(self, run: str) -> None:
        pass


@pytest.mark.parametrize("step", ["before move", "before commit", "behind commit"])
@pytest.mark.parametrize("who", ["compact", "verify", "archive"])
def test_a_killed_compaction_leaves_the_table_whole(
    broker: Tarry, grown: Path, step: str, who: str
) -> None:
    with pytest.raises(Killed):
        list(Compactor(OwnWorker(), DirectoryOfKilled(grown, step), CompactOptions()).run())
    seen = places(grown)

    if who == "compact":
        merge(grown)
    elif who == "archive":
        run(broker, grown)
    recounted = recount(broker, grown)

    assert seen == once(36)
    assert (recounted.faults, recounted.rows) == ([], 36)
    assert places(grown) == once(36)
    assert merge(grown).directories == (0 if who == "compact" else 2)
    assert recount(broker, grown).faults == []


def test_a_table_that_something_else_has_rewritten_is_left_to_it(
    broker: Tarry, grown: Path
) -> None:
    deltalake.DeltaTable(str(grown)).optimize.compact()

    with pytest.raises(ArchiveRefused, match="something else has rewritten it"):
        merge(grown)

    assert places(grown) == once(36)

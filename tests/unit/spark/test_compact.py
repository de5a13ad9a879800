"""A compaction of an archive: what readers see, wherever it is killed, and what a recount finds."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.spark.duck import rows_of

from tarry.client import Producer
from tarry.spark.archive import compactions as compactions_module
from tarry.spark.archive.archive import ArchiveOptions, ArchiveSummary, archive
from tarry.spark.archive.compact import CompactOptions, Compactor, CompactSummary, compact
from tarry.spark.archive.compactions import COMPACTIONS, TWINS, FileCompaction, FileCompactions
from tarry.spark.archive.contents import read_contents
from tarry.spark.archive.directory import STAGED, ArchiveDirectory
from tarry.spark.archive.exchange import exchange
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused, Manifest
from tarry.spark.archive.merging import mergeable
from tarry.spark.archive.verify import VerifiedArchive, verify
from tarry.spark.archive.workers import OwnWorker
from tarry.spark.events.reading import archived_values
from tarry.spark.pipeline.faults import fault_of
from tarry.spark.reading.bounds import TopicChoice
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

HOUR_MS = 3_600_000
NOON_MS = 1_760_000_000_000 // HOUR_MS * HOUR_MS
ORDERS = TopicChoice(names=("orders",))
ROUNDS = 3
A_ROUND = 12


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    with Tarry() as tarry:
        yield tarry


@pytest.fixture(scope="module")
def archived(broker: Tarry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three rounds, of two partitions and two hours."""
    path = tmp_path_factory.mktemp("archived")
    broker.topic("orders", partitions=2, retention_ms=-1)
    for _ in range(ROUNDS):
        grow(broker, path)
    return path


@pytest.fixture
def lake(archived: Path, tmp_path: Path) -> Path:
    """A copy of the archive."""
    return shutil.copytree(archived, tmp_path / "lake")


def grow(broker: Tarry, path: Path) -> ArchiveSummary:
    """Send records and archive them."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(A_ROUND):
            producer.send(
                "orders",
                b"%d" % number,
                key=b"k",
                partition=number % 2,
                timestamp=NOON_MS + number // 2 % 2 * HOUR_MS,
                headers=[("h", None)],
            )
    summary = ArchiveSummary()
    made = ArchiveOptions({"bootstrap.servers": broker.bootstrap})
    for summary in archive(None, ORDERS, path, made):  # noqa: B007
        pass
    return summary


def run(path: Path, **changed: Any) -> CompactSummary:
    summary = CompactSummary()
    for summary in compact(None, path, CompactOptions(**changed)):  # noqa: B007
        pass
    return summary


def recount(path: Path, broker: Tarry | None = None) -> VerifiedArchive:
    return verify(path, {"bootstrap.servers": broker.bootstrap} if broker else None)


def visible(path: Path) -> list[Path]:
    return sorted(path.glob("topic=*/**/*.parquet"))


def replaced(path: Path) -> list[Path]:
    """Files that were merged, which are kept out of sight for a while."""
    return sorted((path / TWINS).glob("*/*.parquet"))


def rows(path: Path) -> list[tuple[Any, ...]]:
    """Every row that a reader of Parquet files sees."""
    found = [
        (row["partition"], row["offset"], row["key"], row["value"], row["timestamp"])
        for file in visible(path)
        for row in pq.read_table(file, partitioning=None).to_pylist()
    ]
    return sorted(found)


class GrowingDirectory(ArchiveDirectory):
    """A directory to which a round comes, and is compacted, while somebody reads its rounds."""

    def __init__(self, path: Path, broker: Tarry) -> None:
        super().__init__(path)
        self.broker = broker
        self.read = 0

    def manifest(self, number: int) -> Manifest:
        self.read += 1
        if self.read == 2:
            grow(self.broker, self.path)
            run(self.path)
        return super().manifest(number)


def test_contents_are_read_while_another_run_compacts(lake: Path, broker: Tarry) -> None:
    contents = read_contents(GrowingDirectory(lake, broker))

    assert sorted(contents.ranges) == [("orders", 0), ("orders", 1)]
    assert read_contents(ArchiveDirectory(lake)).ranges["orders", 0][1] > A_ROUND


def test_values_are_read_once_while_another_run_compacts(lake: Path) -> None:
    expected = [row[3] for row in rows(lake)]

    values = archived_values(lake, "orders")
    found = [next(values) for _ in range(3)]
    run(lake, replaced_kept_seconds=0)
    found += values

    assert found == expected


def test_small_files_become_one_and_readers_see_the_same_rows(lake: Path) -> None:
    before = rows(lake)
    schema = pq.read_schema(visible(lake)[0])

    summary = run(lake)

    assert (summary.directories, summary.files_before, summary.files_after) == (2, 12, 4)
    assert summary.records == len(before) == ROUNDS * A_ROUND
    assert rows(lake) == before
    assert len(visible(lake)) == 4
    assert all(pq.read_schema(file).equals(schema) for file in visible(lake))
    assert all(
        first <= second
        for file in visible(lake)
        for first, second in pairwise(pq.read_table(file, partitioning=None)["offset"].to_pylist())
    )
    recounted = recount(lake)
    assert (recounted.faults, recounted.rounds, recounted.files) == ([], ROUNDS, 4)
    assert recounted.rows == len(before)


def test_duckdb_reads_an_archive_before_and_behind(lake: Path) -> None:
    # Imported here it would tell at pytest's end what it leaks, behind pytest's closing line.
    if importlib.util.find_spec("duckdb") is None:
        pytest.skip("DuckDB is not installed: make setup does it")
    query = (
        'SELECT topic, hour, count(*), count(DISTINCT (partition, "offset")) FROM read_parquet('
        f"'{lake}/topic=*/**/*.parquet', hive_partitioning=true) GROUP BY ALL ORDER BY ALL"
    )

    before = rows_of(query)
    run(lake)
    behind = rows_of(query)

    half = ROUNDS * A_ROUND // 2
    assert behind == before
    assert [(row[0], int(row[1]), *row[2:]) for row in before] == [
        ("orders", 8, half, half),
        ("orders", 9, half, half),
    ]


def test_what_is_large_or_alone_is_left(lake: Path) -> None:
    run(lake)
    files = visible(lake)

    again = run(lake)
    none_small = run(lake, target_bytes=10)

    assert (again.directories, none_small.directories) == (0, 0)
    assert visible(lake) == files


def test_an_archive_goes_on_over_what_was_merged(broker: Tarry, tmp_path: Path, lake: Path) -> None:
    run(lake)
    # Other tests archive the same topic elsewhere.
    total = len(rows(lake)) + grow(broker, lake).records
    again = run(lake)
    grow(broker, lake)

    recounted = recount(lake, broker)

    assert again.files_after == 4
    assert recounted.faults == []
    assert recounted.rows == recounted.compared == len(rows(lake)) == total + A_ROUND


def test_replaced_files_are_kept_for_a_while(lake: Path) -> None:
    run(lake)
    kept = replaced(lake)
    run(lake, replaced_kept_seconds=0)

    assert len(kept) == 12
    assert list((lake / TWINS).iterdir()) == []
    assert list((lake / STAGED).iterdir()) == []
    assert recount(lake).faults == []


class CountedCompactions(FileCompactions):
    """Compactions that count how often a manifest of theirs is read."""

    reads = 0

    def read(self, number: int) -> FileCompaction:
        self.reads += 1
        return super().read(number)


def reads_of(broker: Tarry, path: Path, count: int) -> int:
    """How many manifests a compaction of so many directories reads."""
    topic = f"hours.{count}"
    broker.topic(topic, partitions=1, retention_ms=-1)
    made = ArchiveOptions({"bootstrap.servers": broker.bootstrap})
    for _ in range(2):
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for hour in range(count):
                producer.send(topic, b"x", timestamp=NOON_MS + hour * HOUR_MS)
        list(archive(None, TopicChoice(names=(topic,)), path, made))
    directory = ArchiveDirectory(path)
    counted = directory.compactions = CountedCompactions(path)
    *_, summary = Compactor(OwnWorker(), directory, CompactOptions()).run()
    assert summary.directories == count
    return counted.reads


def test_each_directory_costs_as_many_reads_as_the_one_before(
    broker: Tarry, tmp_path: Path
) -> None:
    few, more, most = (reads_of(broker, tmp_path / str(count), count) for count in (2, 5, 8))

    assert most - more == more - few


# --- Ends of a run at every step.


class Killed(BaseException):
    """The end of a process, as a test has it."""


class KilledCompactions(FileCompactions):
    """Compactions whose process ends before or behind a step."""

    step = ""

    def commit(self, compaction: FileCompaction) -> None:
        self._killed("manifest", lambda: super(KilledCompactions, self).commit(compaction))

    def build_twin(self, *arguments: Any) -> None:
        self._killed("twin", lambda: super(KilledCompactions, self).build_twin(*arguments))

    def move_away(self, *arguments: Any) -> None:
        self._killed("rename", lambda: super(KilledCompactions, self).move_away(*arguments))

    def settle(self) -> None:
        self._killed(
            "exchange", lambda: super(KilledCompactions, self).settle(), len(self.numbers())
        )

    def _killed(self, step: str, do: Callable[[], None], count: int = 1) -> None:
        if self.step == f"before {step}" and count:
            raise Killed
        do()
        if self.step == f"behind {step}" and count:
            raise Killed


class DirectoryOfKilled(ArchiveDirectory):
    """A directory of such compactions, whose process is gone before it tidies up."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        self.compactions: KilledCompactions = KilledCompactions(path)
        self.compactions.step = step

    def drop(self, run: str) -> None:
        pass


STEPS = [
    "before manifest",
    "behind manifest",
    "before twin",
    "behind twin",
    "behind exchange",
    "before rename",
    "behind rename",
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("who", ["compact", "verify", "archive"])
def test_a_killed_run_leaves_the_archive_whole(
    lake: Path, broker: Tarry, monkeypatch: pytest.MonkeyPatch, step: str, who: str
) -> None:
    before = rows(lake)
    if step.endswith("rename"):
        monkeypatch.setattr(compactions_module, "exchange", lambda one, other: False)
    with pytest.raises(Killed):
        list(Compactor(OwnWorker(), DirectoryOfKilled(lake, step), CompactOptions()).run())
    seen = rows(lake)
    monkeypatch.undo()

    if who == "compact":
        run(lake)
    elif who == "archive":
        grow(broker, lake)
    faults = recount(lake).faults

    assert faults == []
    if step == "behind rename":
        # Two names cannot change at one moment there: a directory is away until the next run.
        assert set(seen) < set(before)
    else:
        assert seen == before
    assert rows(lake)[: len(before)] == before or who == "archive"
    assert set(before) <= set(rows(lake))
    assert len(rows(lake)) == len(set(rows(lake)))


class FullCompactions(FileCompactions):
    """Compactions on a disk that has no room for another directory."""

    def build_twin(self, *arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_compaction_that_counts_keeps_its_files_on_a_full_disk(lake: Path) -> None:
    before = rows(lake)
    full = ArchiveDirectory(lake)
    full.compactions = FullCompactions(lake)
    with pytest.raises(OSError, match="No space left"):
        list(Compactor(OwnWorker(), full, CompactOptions()).run())

    run(lake)

    assert rows(lake) == before
    assert recount(lake).faults == []


def test_directories_change_names_at_one_moment(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of-{name}").touch()

    assert exchange(tmp_path / "one", tmp_path / "other")

    assert os.listdir(tmp_path / "one") == ["of-other"]
    assert os.listdir(tmp_path / "other") == ["of-one"]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "nothing")


class SlowWorker(OwnWorker):
    """A worker before or behind whose work another run does the same."""

    def __init__(self, path: Path, *, is_before: bool) -> None:
        self.path = path
        self.is_before = is_before

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        if self.is_before:
            run(self.path)
        told = super().each(work, count)
        run(self.path)
        return told


@pytest.mark.parametrize("is_before", [False, True])
def test_of_two_runs_each_directory_is_that_of_one(
    lake: Path, is_before: bool, caplog: pytest.LogCaptureFixture
) -> None:
    before = rows(lake)
    worker = SlowWorker(lake, is_before=is_before)

    merged = list(Compactor(worker, ArchiveDirectory(lake), CompactOptions()).run())

    assert merged == []
    assert "merged by another run" in caplog.text
    assert rows(lake) == before
    assert len(list((lake / COMPACTIONS).iterdir())) == 2
    assert recount(lake).faults == []


class SlowArchiveWorker(OwnWorker):
    """A worker of a compaction while which a round is archived into the same directory."""

    def __init__(self, broker: Tarry, path: Path) -> None:
        self.grow = lambda: grow(broker, path)

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        told = super().each(work, count)
        self.grow()
        return told


def test_a_round_that_comes_meanwhile_is_kept(lake: Path, broker: Tarry) -> None:
    before = rows(lake)
    worker = SlowArchiveWorker(broker, lake)

    list(Compactor(worker, ArchiveDirectory(lake), CompactOptions()).run())

    assert set(before) < set(rows(lake))
    assert len(rows(lake)) == len(set(rows(lake)))
    assert recount(lake).faults == []


# --- What is wrong.


def test_a_damaged_file_is_not_merged(lake: Path) -> None:
    file = visible(lake)[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)

    with pytest.raises(ArchiveRefused, match="is damaged: its SHA-256 is not"):
        run(lake)

    assert list((lake / STAGED).iterdir()) == []


@pytest.mark.parametrize("harm", ["lose", "cut", "manifest"])
def test_a_recount_finds_what_is_wrong_with_merged_files(lake: Path, harm: str) -> None:
    run(lake)
    kept = replaced(lake)
    # Of the newest compaction.
    file = visible(lake)[-1]
    if harm == "lose":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    else:
        sorted((lake / COMPACTIONS).iterdir())[0].unlink()

    assert recount(lake).faults
    assert replaced(lake) == kept


@pytest.mark.parametrize("who", ["compact", "archive"])
def test_a_merged_file_that_is_lost_is_told_with_the_place_of_those_it_was_made_of(
    lake: Path, broker: Tarry, who: str
) -> None:
    run(lake)
    kept = replaced(lake)
    visible(lake)[-1].unlink()
    (twin,) = {path.parent for path in (lake / TWINS).glob("*2/*.parquet")}

    with pytest.raises(ArchiveRefused, match=rf"is missing.*or undo .* files of {twin}, "):
        run(lake, replaced_kept_seconds=0) if who == "compact" else grow(broker, lake)

    assert replaced(lake) == kept


def test_a_compaction_is_undone_as_its_refusal_says(lake: Path, broker: Tarry) -> None:
    before = rows(lake)
    run(lake)
    visible(lake)[-1].unlink()
    with pytest.raises(ArchiveRefused) as told:
        run(lake)
    found = re.search(
        "move the files of (.*), which .* to (.*), remove (.*) there, and remove (.*)$",
        str(told.value),
    )
    assert found is not None
    twin, place = Path(found[1]), Path(found[2])

    for path in twin.iterdir():
        os.rename(path, place / path.name)
    for name in found[3].split(", "):
        (place / name).unlink(missing_ok=True)
    Path(found[4]).unlink()

    assert rows(lake) == before
    assert recount(lake).faults == []
    run(lake)
    assert rows(lake) == before
    grow(broker, lake)
    assert set(before) < set(rows(lake))
    assert recount(lake).faults == []


def test_a_merged_file_that_is_lost_before_its_run_is_over_comes_back(lake: Path) -> None:
    before = rows(lake)
    with pytest.raises(Killed):
        killed = DirectoryOfKilled(lake, "behind exchange")
        list(Compactor(OwnWorker(), killed, CompactOptions()).run())
    visible(lake)[0].unlink()

    run(lake)

    assert rows(lake) == before
    assert recount(lake).faults == []


@pytest.mark.parametrize("who", ["compact", "archive"])
def test_a_process_that_keeps_the_lock_is_named_and_nothing_is_lost(
    lake: Path, broker: Tarry, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """As one that was stopped where it had it."""
    before = rows(lake)
    monkeypatch.setattr(compactions_module, "LOCK_SECONDS_MAX", 0.0)
    with (
        FileCompactions(lake).lock(is_needed=True),
        pytest.raises(
            ArchiveRefused, match=f"process {os.getpid()} has had the lock of .*again"
        ) as told,
    ):
        run(lake) if who == "compact" else grow(broker, lake)
    # Another start of the stage may find it free.
    assert not fault_of(told.value).is_hopeless

    run(lake) if who == "compact" else list(
        archive(None, ORDERS, lake, ArchiveOptions({"bootstrap.servers": broker.bootstrap}))
    )

    after = rows(lake)
    assert set(before) <= set(after)
    assert (len(after) > len(before)) is (who == "archive")
    assert recount(lake).faults == []


@pytest.mark.parametrize("wrong", [{"target_bytes": 0}, {"compression": "rar"}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArchiveRefused):
        CompactOptions(**wrong)


# --- Groups, as a pure function.


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 120)), max_size=30))
def test_groups_are_small_files_side_by_side(drawn: list[tuple[int, int]]) -> None:
    files = [
        ArchivedFile(f"topic=a/{number}", "", "a", partition, number, number + 1, 1, size, "")
        for number, (partition, size) in enumerate(drawn)
    ]

    groups = mergeable(files, 100)

    grouped = [file.path for group in groups for file in group]
    assert len(grouped) == len(set(grouped))
    for group in groups:
        assert len(group) > 1
        assert sum(file.bytes for file in group) <= 100
        assert all(file.bytes < 50 for file in group)
        of_partition = [file for file in files if file.partition == group[0].partition]
        begin = of_partition.index(group[0])
        assert of_partition[begin : begin + len(group)] == group

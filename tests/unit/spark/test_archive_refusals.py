"""What an archive refuses, and what it tells of records that are gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.support.spark.archive_scene import ORDERS, fill, options, recount, rows, run

from tarry.base.ids import TopicPartition
from tarry.client import Admin, Producer, TopicRecreated
from tarry.spark.archive.archive import Archiver, archive
from tarry.spark.archive.compact import compact
from tarry.spark.archive.contents import read_contents
from tarry.spark.archive.directory import MANIFESTS, STAGED, ArchiveDirectory
from tarry.spark.archive.manifest import ArchiveRefused
from tarry.spark.archive.verify import verify
from tarry.spark.archive.workers import OwnWorker
from tarry.spark.reading import resolve
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.loss import DataLost
from tarry.testing import Tarry

pytest.importorskip("pyarrow")


def test_a_topic_that_was_made_anew_is_refused(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 4)
    run(broker, tmp_path)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics(["orders"])
    broker.topic("orders", partitions=2)
    fill(broker, 10)

    with pytest.raises(ArchiveRefused, match="orders was deleted and made anew"):
        run(broker, tmp_path)


def test_a_topic_that_one_broker_does_not_know_for_a_moment_is_archived(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    fill(broker, 4)

    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2, topic="orders")
    run(broker, tmp_path)

    assert len(rows(tmp_path)) == 4


class DelayedWorker(OwnWorker):
    """A worker before whose work the topic is deleted and made anew, with as many records."""

    def __init__(self, broker: Tarry, count: int) -> None:
        self.broker = broker
        self.records = count

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
            admin.delete_topics(["orders"])
        self.broker.topic("orders", partitions=2, retention_ms=-1)
        fill(self.broker, self.records)
        return super().each(work, count)


def test_a_topic_that_is_made_anew_while_a_round_waits_is_not_taken_for_the_old_one(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    made = options(broker)
    with closing(LiveCluster(made.reading())) as cluster:
        directory = ArchiveDirectory(tmp_path)
        late = Archiver(DelayedWorker(broker, 10), cluster, directory, made)
        with pytest.raises(TopicRecreated, match="orders"):
            list(late.run(ORDERS))

    assert directory.numbers() == []
    assert rows(tmp_path) == []
    assert list((tmp_path / STAGED).iterdir()) == []


def test_another_layout_is_refused(broker: Tarry, tmp_path: Path) -> None:
    run(broker, tmp_path)

    with pytest.raises(ArchiveRefused, match="laid out by hour, not by day"):
        run(broker, tmp_path, by="day")


def test_another_cluster_is_refused(broker: Tarry, tmp_path: Path) -> None:
    run(broker, tmp_path)
    with Tarry() as other:
        other.topic("orders", partitions=2)
        with pytest.raises(ArchiveRefused, match="archives the cluster"):
            run(other, tmp_path)


def test_records_that_retention_took_are_refused_or_counted(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    fill(broker, 10)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({("orders", 0): 8})

    with pytest.raises(DataLost, match=r"orders \[0\] from offset 5 to 8"):
        run(broker, tmp_path)
    summary = run(broker, tmp_path, fail_on_data_loss=False)

    assert (summary.records, summary.lost) == (7, 3)
    recounted = recount(broker, tmp_path)
    assert (recounted.faults, recounted.lost) == ([], 3)


def test_records_are_missed_that_a_partition_lost_before_any_of_it_was_archived(
    broker: Tarry, tmp_path: Path
) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("orders", b"first", partition=0)
    run(broker, tmp_path)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(3):
            producer.send("orders", b"%d" % number, partition=1)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({("orders", 1): 2})

    with pytest.raises(DataLost, match=r"orders \[1\] from offset 0 to 2"):
        run(broker, tmp_path)
    summary = run(broker, tmp_path, fail_on_data_loss=False)

    assert (summary.records, summary.lost) == (1, 2)
    assert recount(broker, tmp_path).faults == []


@pytest.mark.parametrize("is_merged", [False, True])
def test_records_are_counted_once_that_retention_took_from_a_partition_which_is_empty_now(
    broker: Tarry, tmp_path: Path, is_merged: bool
) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    fill(broker, 10)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({("orders", 0): 10, ("orders", 1): 10})
    made = options(broker, fail_on_data_loss=False, loss_file=str(tmp_path / "lost.jsonl"))

    told = [summary.lost for summary in archive(None, ORDERS, tmp_path, made)]
    again = list(archive(None, ORDERS, tmp_path, made))
    fill(broker, 4)
    later = run(broker, tmp_path)
    if is_merged:
        list(compact(None, tmp_path))

    assert told == [10]
    assert again == []
    assert len((tmp_path / "lost.jsonl").read_text().splitlines()) == 2
    assert (later.records, later.lost) == (4, 0)
    assert [row[:2] for row in rows(tmp_path)] == [
        (partition, offset) for partition in range(2) for offset in [*range(5), 10, 11]
    ]
    contents = read_contents(ArchiveDirectory(tmp_path))
    assert contents.ranges == {("orders", 0): (0, 12), ("orders", 1): (0, 12)}
    recounted = recount(broker, tmp_path)
    assert (recounted.faults, recounted.lost, recounted.gaps) == ([], 10, 0)


class BusyWorker(OwnWorker):
    """A worker that knows no job without a task, as Spark knows none."""

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        if count == 0:
            raise ValueError("there is no task")
        return super().each(work, count)


def test_workers_are_not_asked_for_a_round_of_lost_records_alone(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 2)
    run(broker, tmp_path)
    fill(broker, 2)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({("orders", 0): 2, ("orders", 1): 2})
    made = options(broker, fail_on_data_loss=False)

    with closing(LiveCluster(made.reading())) as cluster:
        archiver = Archiver(BusyWorker(), cluster, ArchiveDirectory(tmp_path), made)
        (summary,) = archiver.run(ORDERS)

    assert (summary.records, summary.lost) == (0, 2)


class MovingCluster(LiveCluster):
    """A cluster whose logs grow and lose all of it between two questions of a round."""

    broker: Tarry
    moves: int

    def starts(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        if self.moves:
            self.moves -= 1
            fill(self.broker, 4)
            with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
                admin.delete_records(dict.fromkeys(places, -1))
        return super().starts(places)


def test_a_place_past_the_end_that_was_looked_at_gets_no_epochs_of_a_log_that_nobody_saw(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 4)
    run(broker, tmp_path)
    directory = ArchiveDirectory(tmp_path)
    before = directory.newest()
    assert before is not None and before.epochs
    fill(broker, 4)
    made = options(broker, fail_on_data_loss=False)

    with closing(MovingCluster(made.reading())) as cluster:
        cluster.broker, cluster.moves = broker, 1
        list(Archiver(OwnWorker(), cluster, directory, made).run(ORDERS))

    newest = directory.newest()
    assert newest is not None
    assert newest.ends == {"orders": {0: 6, 1: 6}}
    assert newest.epochs.get("orders", {}) == {}
    fill(broker, 4)
    assert run(broker, tmp_path).records == 4


def test_an_unreadable_manifest_is_refused(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 2)
    run(broker, tmp_path)
    (tmp_path / MANIFESTS / f"{1:012}.json").write_text("{}")

    with pytest.raises(ArchiveRefused, match="cannot be read"):
        run(broker, tmp_path)


def test_a_round_without_its_manifest_is_not_passed_over(broker: Tarry, tmp_path: Path) -> None:
    for _ in range(3):
        fill(broker, 2)
        run(broker, tmp_path)
    (tmp_path / MANIFESTS / f"{2:012}.json").unlink()

    with pytest.raises(ArchiveRefused, match="has no manifest of round 2"):
        read_contents(ArchiveDirectory(tmp_path))


@pytest.mark.parametrize("name", ["archive.json", f"manifests/{1:012}.json"])
def test_a_file_of_a_newer_tarry_is_refused(broker: Tarry, tmp_path: Path, name: str) -> None:
    fill(broker, 2)
    run(broker, tmp_path)
    path = tmp_path / "_tarry" / name
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "version": 2}))

    with pytest.raises(ArchiveRefused, match="has the format 2, and this Tarry knows"):
        run(broker, tmp_path)


class SleepingWorker(OwnWorker):
    """A worker behind whose work the run stands still, until others have removed its files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        told = super().each(work, count)
        shutil.rmtree(self.path / STAGED)
        return told


def test_a_round_whose_files_were_removed_does_not_count(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 4)
    with closing(LiveCluster(options(broker).reading())) as cluster:
        directory = ArchiveDirectory(tmp_path)
        slept = Archiver(SleepingWorker(tmp_path), cluster, directory, options(broker))
        with pytest.raises(ArchiveRefused, match="is gone, which round 1 would count"):
            list(slept.run(ORDERS))

    assert run(broker, tmp_path).records == 4
    assert recount(broker, tmp_path).faults == []


def test_an_object_store_is_refused_and_no_directory_of_its_name_is_made(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ArchiveRefused, match="s3:/lake/orders is no directory of a file system"):
        run(broker, Path("s3://lake/orders"))
    assert list(tmp_path.iterdir()) == []


def test_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefused, match="is no archive"):
        verify(tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"by": "minute"}, {"compression": "rar"}, {"round_records_max": 0}]
)
def test_wrong_options_are_refused(broker: Tarry, wrong: dict[str, object]) -> None:
    with pytest.raises(ArchiveRefused):
        options(broker, **wrong)


def test_an_archive_can_be_moved(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 4)
    run(broker, tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")

    assert recount(broker, tmp_path / "there").faults == []

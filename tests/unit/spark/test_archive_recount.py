"""What a recount of an archive finds, and which of its files readers see."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from tests.support.spark.archive_scene import ORDERS, fill, options, recount, run

from tarry.cli.spark.commands import spark
from tarry.cli.spark.verify import RoundTeller
from tarry.client import Admin, NewTopic
from tarry.spark.archive.archive import archive
from tarry.spark.archive.directory import MANIFESTS, ArchiveDirectory
from tarry.spark.archive.manifest import ArchiveRefused, make_manifest
from tarry.spark.archive.parquet_files import ArchiveTask
from tarry.spark.archive.verify import BrokerRows, VerifiedArchive, verify
from tarry.spark.archive.workers import OwnWorker, archive_files
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.plan import ReadRange
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow as pa


def add_file(path: Path) -> None:
    shutil.copy(one_file(path), one_file(path).with_name("copy.parquet"))


def one_file(path: Path) -> Path:
    return sorted(path.glob("topic=*/**/*.parquet"))[0]


def lose_file(path: Path) -> None:
    one_file(path).unlink()


def damage_file(path: Path) -> None:
    file = one_file(path)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut_file(path: Path) -> None:
    file = one_file(path)
    file.write_bytes(file.read_bytes()[:-1])


def lose_manifest(path: Path) -> None:
    (path / MANIFESTS / f"{1:012}.json").unlink()


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lose_file, "is missing"),
        (damage_file, "is damaged"),
        (cut_file, "bytes, not"),
        (add_file, "is of no round, and readers see its rows"),
        (lose_manifest, "manifests of rounds 1 to 1 are missing"),
    ],
)
def test_a_recount_finds_what_is_wrong(
    broker: Tarry, tmp_path: Path, harm: object, sentence: str
) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    fill(broker, 2)
    run(broker, tmp_path)
    assert callable(harm)
    harm(tmp_path)

    assert any(sentence in fault for fault in verify(tmp_path).faults)


def test_a_record_that_was_left_out_is_found(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 10)
    directory = ArchiveDirectory(tmp_path)
    with closing(LiveCluster(options(broker).reading())) as cluster:
        directory.bind(cluster.cluster_id(), "none")
        topic_id = cluster.topics(ORDERS)["orders"].topic_id
    staged = directory.new_run()
    task = ArchiveTask(options(broker).reading(), str(tmp_path), staged, "none", "zstd")
    tasks = [[ReadRange("orders", 0, 0, 4), ReadRange("orders", 1, 0, 5)]]
    files = archive_files(OwnWorker(), task, tasks)
    ranges = [ReadRange("orders", 0, 0, 5), ReadRange("orders", 1, 0, 5)]
    manifest = make_manifest(None, {"orders": topic_id}, ranges, files, {}, 0)
    assert directory.commit(manifest)
    directory.publish(manifest)

    (fault,) = recount(broker, tmp_path).faults

    assert "the broker has 1 records from 0 to 5 that the archive does not have" in fault


def test_a_log_that_was_truncated_is_found_and_the_rest_is_compared(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    directory = ArchiveDirectory(tmp_path)
    (path,) = (tmp_path / MANIFESTS).iterdir()
    manifest = directory.manifest(1)
    # The log seems to have had two offsets more.
    ranges = [msgspec.structs.replace(one, end=one.end + 2) for one in manifest.ranges[:1]]
    longer = msgspec.structs.replace(manifest, ranges=[*ranges, *manifest.ranges[1:]])
    path.write_bytes(msgspec.json.encode(longer))

    found = recount(broker, tmp_path)

    assert found.faults == [
        "the archive holds orders [0] up to offset 7, and the log ends at 5: it was truncated"
    ]
    assert found.compared == 10


def test_rows_of_a_topic_that_was_made_anew_are_told_as_not_compared(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics(["orders"])
    gone = recount(broker, tmp_path)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", 2)])

    anew = recount(broker, tmp_path)

    for found in (gone, anew):
        assert (found.faults, found.compared, found.uncompared) == ([], 0, {"orders": 10})


def test_rows_that_were_not_compared_are_told_beside_the_sum(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics(["orders"])

    told = CliRunner().invoke(spark, ["verify", "-b", broker.bootstrap, str(tmp_path)])

    assert told.exit_code == 0
    assert told.stderr == (
        "tarry: 10 rows of orders cannot be compared: the broker has the topic, or a partition of "
        "it, no more or anew\n"
    )
    assert told.stdout.startswith("whole ") and "; 0 compared with the broker" in told.stdout


class LateCluster(LiveCluster):
    """A cluster of which the first answer about begins of logs is an old one."""

    is_late = True

    def starts(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        found = super().starts(places)
        if self.is_late:
            self.is_late = False
            return dict.fromkeys(found, 0)
        return found


def test_records_that_retention_takes_while_they_are_recounted_are_no_fault(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    run(broker, tmp_path)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({("orders", 0): 2, ("orders", 1): 5})
    settings = options(broker).reading()
    found = VerifiedArchive()
    offsets = {("orders", number): pa.array(range(5), pa.int64()) for number in range(2)}

    with closing(LateCluster(settings)) as cluster:
        BrokerRows(cluster, cluster, settings).compare(
            ArchiveDirectory(tmp_path).manifest(1), offsets, found
        )

    assert (found.faults, found.compared) == ([], 3)


def test_a_recount_tells_how_far_it_is(
    broker: Tarry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        fill(broker, 2)
        run(broker, tmp_path)
    told: list[tuple[int, int]] = []
    clock = iter([0.0, 9.0, 10.0, 15.0])
    teller = RoundTeller(is_silent=False, clock=lambda: next(clock))

    verify(tmp_path, tell=lambda done, count: told.append((done, count)))
    for done, count in told:
        teller.tell(done, count)

    assert told == [(1, 3), (2, 3), (3, 3)]
    assert capsys.readouterr().err == "2 of 3 rounds recounted\n"


def test_another_cluster_is_not_taken_for_one_that_has_nothing_any_more(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 2)
    run(broker, tmp_path)

    with Tarry() as other, pytest.raises(ArchiveRefused, match="and this is the cluster"):
        recount(other, tmp_path)


@pytest.fixture
def hidden(shared: Tarry, tmp_path: Path) -> Path:
    """An archive of a topic `_hidden`."""
    if "_hidden" not in {topic.name for topic in shared.admin.list_topics()}:
        shared.topic("_hidden", retention_ms=-1)
        shared.send("_hidden", b"0", b"1")
    take_hidden(shared, tmp_path)
    return tmp_path


def take_hidden(broker: Tarry, path: Path) -> None:
    list(archive(None, TopicChoice(names=("_hidden",)), path, options(broker)))


def test_readers_take_a_topic_whose_name_begins_with_an_underscore(hidden: Path) -> None:
    import pyarrow.dataset as ds

    table = ds.dataset(hidden, format="parquet", partitioning="hive").to_table()

    assert table["value"].to_pylist() == [b"0", b"1"]
    assert set(table["topic"].to_pylist()) == {"_hidden"}
    assert verify(hidden).faults == []


def test_files_that_readers_pass_over_are_told(shared: Tarry, hidden: Path) -> None:
    (file,) = hidden.glob("topic=*/**/*.parquet")
    file.rename(file.with_name(file.name.removeprefix("topic-")))
    manifest = hidden / MANIFESTS / "000000000001.json"
    manifest.write_text(manifest.read_text().replace("/topic-_hidden", "/_hidden"))

    (fault,) = verify(hidden).faults
    assert 'is passed over by pyarrow and Spark, since its name begins with "_"' in fault
    with pytest.raises(ArchiveRefused, match="archive _hidden to another path"):
        take_hidden(shared, hidden)

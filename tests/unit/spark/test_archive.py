"""An archive without Spark: what counts, what readers see, what a recount finds."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from tarry.cli.spark.verify import RoundTeller
from tarry.client import Admin, NewTopic, Producer, TopicRecreated
from tarry.spark.archive.archive import ArchiveOptions, Archiver, ArchiveSummary, archive
from tarry.spark.archive.contents import read_contents, times_of
from tarry.spark.archive.directory import MANIFESTS, STAGED, ArchiveDirectory
from tarry.spark.archive.manifest import (
    ArchivedFile,
    ArchiveRefused,
    Manifest,
    decode_manifest,
    make_manifest,
)
from tarry.spark.archive.parquet_files import (
    LAST_MS,
    SLOT_MS,
    ArchiveTask,
    _slots,
    slot_directory,
)
from tarry.spark.archive.round_plan import lost_offsets, next_ranges, within_limit
from tarry.spark.archive.verify import BrokerRows, VerifiedArchive, verify
from tarry.spark.archive.workers import OwnWorker, archive_files
from tarry.spark.histories.lines import NotedPlace
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.loss import DataLost
from tarry.spark.reading.plan import ReadRange
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow as pa
import pyarrow.parquet as pq

HOUR_MS = 3_600_000
NOON_MS = 1_760_000_000_000 // HOUR_MS * HOUR_MS
ORDERS = TopicChoice(names=("orders",))


@pytest.fixture(scope="module")
def shared() -> Iterator[Tarry]:
    with Tarry() as tarry:
        yield tarry


@pytest.fixture
def broker(shared: Tarry) -> Iterator[Tarry]:
    """The broker, with an empty topic `orders` of two partitions."""
    shared.topic("orders", partitions=2, retention_ms=-1)
    yield shared
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_topics(["orders"])


def options(broker: Tarry, **changed: object) -> ArchiveOptions:
    return ArchiveOptions({"bootstrap.servers": broker.bootstrap}, **changed)  # type: ignore[arg-type]


def run(broker: Tarry, path: Path, **changed: object) -> ArchiveSummary:
    summary = ArchiveSummary()
    for summary in archive(None, ORDERS, path, options(broker, **changed)):  # noqa: B007
        pass
    return summary


def recount(broker: Tarry, path: Path) -> VerifiedArchive:
    return verify(path, {"bootstrap.servers": broker.bootstrap})


def rows(path: Path) -> list[tuple[int, int, bytes | None]]:
    """Partition, offset and value of every row that a reader of Parquet files sees."""
    found = [
        (row["partition"], row["offset"], row["value"])
        for file in sorted(path.glob("topic=*/**/*.parquet"))
        for row in pq.read_table(file, partitioning=None).to_pylist()
    ]
    return sorted(found, key=lambda row: row[:2])


def fill(broker: Tarry, count: int, *, times_ms: tuple[int, ...] = (NOON_MS,)) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send(
                "orders",
                b"%d" % number,
                partition=number % 2,
                timestamp=times_ms[number % len(times_ms)],
            )


def expected(count: int) -> list[tuple[int, int, bytes]]:
    return sorted((number % 2, number // 2, b"%d" % number) for number in range(count))


def test_each_record_is_in_one_file_and_the_next_run_begins_behind_it(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    first = run(broker, tmp_path)
    again = run(broker, tmp_path)
    fill(broker, 4)
    second = run(broker, tmp_path)

    assert (first.rounds, first.records, first.files) == (1, 10, 2)
    assert again.rounds == 0
    assert second.records == 4
    assert [row[:2] for row in rows(tmp_path)] == sorted(
        (partition, offset) for partition in range(2) for offset in range(7)
    )
    recounted = recount(broker, tmp_path)
    assert recounted.faults == []
    assert (recounted.rounds, recounted.rows, recounted.compared) == (2, 14, 14)


def test_files_lie_by_date_and_hour_of_their_records(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 12, times_ms=(NOON_MS, NOON_MS, NOON_MS + HOUR_MS))

    run(broker, tmp_path)

    names = sorted(
        str(each.relative_to(tmp_path)) for each in tmp_path.glob("topic=*/**/*.parquet")
    )
    assert [name.rsplit("/", 1)[0] for name in names] == [
        "topic=orders/date=2025-10-09/hour=08",
        "topic=orders/date=2025-10-09/hour=08",
        "topic=orders/date=2025-10-09/hour=09",
        "topic=orders/date=2025-10-09/hour=09",
    ]
    assert names[0].endswith(f"/orders-0-{0:020}-{6:020}.parquet")
    assert rows(tmp_path) == expected(12)
    assert recount(broker, tmp_path).faults == []


def test_rounds_have_a_largest_size(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 20)

    summary = run(broker, tmp_path, round_records_max=7)

    assert summary.rounds >= 3
    assert rows(tmp_path) == expected(20)
    assert recount(broker, tmp_path).faults == []


def test_every_column_is_kept(broker: Tarry, tmp_path: Path) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(
            "orders",
            None,
            key=b"k",
            partition=0,
            timestamp=NOON_MS,
            headers=[("h", b"1"), ("h", None)],
        )

    run(broker, tmp_path)

    (file,) = tmp_path.glob("topic=*/**/*.parquet")
    (row,) = pq.read_table(file, partitioning=None).to_pylist()
    assert int(row.pop("timestamp").timestamp() * 1000) == NOON_MS
    assert row == {
        "key": b"k",
        "value": None,
        "partition": 0,
        "offset": 0,
        "timestamp_type": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    }


# --- Ends of a run at every step.


class Killed(Exception):
    """The end of a process, as a test has it."""


class KilledDirectory(ArchiveDirectory):
    """A directory whose run ends before or after a step."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        self.step = step

    def commit(self, manifest: Manifest) -> bool:
        if self.step == "before the manifest":
            raise Killed
        done = super().commit(manifest)
        if self.step == "after the manifest":
            raise Killed
        return done

    def publish(self, manifest: Manifest) -> None:
        if self.step == "between files":
            for file in manifest.files[:1]:
                path = self.path / file.path
                path.parent.mkdir(parents=True)
                os.rename(self.path / file.staged, path)
            raise Killed
        super().publish(manifest)

    def drop(self, run: str) -> None:
        """Leave everything as it is: the process is gone."""


@pytest.mark.parametrize("step", ["before the manifest", "after the manifest", "between files"])
def test_a_killed_run_is_finished_by_the_next_one(broker: Tarry, tmp_path: Path, step: str) -> None:
    fill(broker, 10)
    made = options(broker)
    cluster = LiveCluster(made.reading())
    killed = Archiver(OwnWorker(), cluster, KilledDirectory(tmp_path, step), made)
    with pytest.raises(Killed):
        list(killed.run(ORDERS))
    cluster.close()
    seen = rows(tmp_path)
    fill(broker, 2)

    run(broker, tmp_path)

    assert len(seen) == (5 if step == "between files" else 0)
    assert len(rows(tmp_path)) == 12
    assert recount(broker, tmp_path).faults == []


class FullDirectory(ArchiveDirectory):
    """A directory on a disk that is full at one step, for a process that lives on."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        self.step = step

    def commit(self, manifest: Manifest) -> bool:
        if self.step == "before the manifest":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = super().commit(manifest)
        if self.step == "after the manifest":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done

    def publish(self, manifest: Manifest) -> None:
        if self.step == "before the files":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().publish(manifest)


@pytest.mark.parametrize("step", ["before the manifest", "after the manifest", "before the files"])
def test_a_round_that_counts_keeps_its_files_on_a_full_disk(
    broker: Tarry, tmp_path: Path, step: str
) -> None:
    fill(broker, 10)
    made = options(broker)
    with closing(LiveCluster(made.reading())) as cluster:
        full = Archiver(OwnWorker(), cluster, FullDirectory(tmp_path, step), made)
        with pytest.raises(OSError, match="No space left"):
            list(full.run(ORDERS))
    staged = list((tmp_path / STAGED).iterdir())

    run(broker, tmp_path)

    # What counts for nothing takes no room on a disk that has none.
    assert len(staged) == (0 if step == "before the manifest" else 1)
    assert rows(tmp_path) == expected(10)
    assert recount(broker, tmp_path).faults == []


def test_what_killed_runs_left_goes_in_a_day(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 2)
    run(broker, tmp_path)
    old, young = (tmp_path / MANIFESTS / f"tmp-{name}" for name in "ab")
    for file in (old, young):
        file.write_bytes(b"{")
    os.utime(old, (1, 1))
    fill(broker, 2)

    run(broker, tmp_path)

    assert (old.exists(), young.exists()) == (False, True)
    assert recount(broker, tmp_path).faults == []


class SlowWorker(OwnWorker):
    """A worker while which another run takes the same round."""

    def __init__(self, broker: Tarry, path: Path) -> None:
        self.broker = broker
        self.path = path

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        told = super().each(work, count)
        run(self.broker, self.path)
        return told


def test_a_round_is_that_of_one_of_two_runs(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 10)
    made = options(broker)
    cluster = LiveCluster(made.reading())
    slow = Archiver(SlowWorker(broker, tmp_path), cluster, ArchiveDirectory(tmp_path), made)

    taken = list(slow.run(ORDERS))
    cluster.close()

    assert taken == []
    assert rows(tmp_path) == expected(10)
    assert recount(broker, tmp_path).faults == []
    assert list((tmp_path / STAGED).iterdir()) == []


class LateWorker(OwnWorker):
    """A worker while which another run takes the round, and one more that is younger."""

    def __init__(self, broker: Tarry, path: Path) -> None:
        self.broker = broker
        self.path = path

    def each(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        told = super().each(work, count)
        fill(self.broker, 4)
        run(self.broker, self.path)
        return told


def test_a_run_that_a_younger_one_has_passed_comes_to_its_end(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    made = options(broker)
    with closing(LiveCluster(made.reading())) as cluster:
        slow = Archiver(LateWorker(broker, tmp_path), cluster, ArchiveDirectory(tmp_path), made)
        taken = list(slow.run(ORDERS))

    assert taken == []
    assert len(rows(tmp_path)) == 14
    assert recount(broker, tmp_path).faults == []


def test_a_round_that_counts_is_whole_before_its_files_are_in_their_place(
    broker: Tarry, tmp_path: Path
) -> None:
    fill(broker, 10)
    made = options(broker)
    with closing(LiveCluster(made.reading())) as cluster:
        killed = Archiver(
            OwnWorker(), cluster, KilledDirectory(tmp_path, "after the manifest"), made
        )
        with pytest.raises(Killed):
            list(killed.run(ORDERS))

    assert recount(broker, tmp_path).faults == []
    assert rows(tmp_path) == expected(10)


@pytest.mark.parametrize("topic", ["t" * 249, "t" * 151])
def test_a_topic_of_any_name_is_archived(shared: Tarry, tmp_path: Path, topic: str) -> None:
    shared.topic(topic, partitions=1, retention_ms=-1)
    with Producer(bootstrap_servers=shared.bootstrap) as producer:
        producer.send(topic, b"0", timestamp=NOON_MS)

    list(archive(None, TopicChoice(names=(topic,)), tmp_path, options(shared)))

    assert rows(tmp_path) == [(0, 0, b"0")]
    assert recount(shared, tmp_path).faults == []


TIMES_OF_ALL_KINDS_MS = (NOON_MS, NOON_MS * 1000, 2**63 - 1, 0, LAST_MS, LAST_MS + 1)


@pytest.mark.parametrize("by", ["hour", "day", "none"])
def test_records_of_any_time_are_archived(shared: Tarry, tmp_path: Path, by: str) -> None:
    topic = f"times.{by}"
    any_time = {f"message.timestamp.{side}.max.ms": str(2**63 - 1) for side in ("before", "after")}
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, configs={**any_time, "retention.ms": "-1"})])
    with Producer(bootstrap_servers=shared.bootstrap) as producer:
        for time_ms in TIMES_OF_ALL_KINDS_MS:
            producer.send(topic, b"x", timestamp=time_ms)

    list(archive(None, TopicChoice(names=(topic,)), tmp_path, options(shared, by=by)))

    directory = ArchiveDirectory(tmp_path)
    files = read_contents(directory).files[topic, 0]
    assert recount(shared, tmp_path).faults == []
    assert sum(file.rows for file in files) == len(TIMES_OF_ALL_KINDS_MS)
    for file in files:
        within = times_of(file, by) or (-(2**63), 2**63)
        table = pq.read_table(tmp_path / file.path, partitioning=None)
        found = table["timestamp"].cast("int64").to_pylist()
        assert all(within[0] <= one < within[1] for one in found)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["hour", "day"]))
def test_the_directory_of_any_time_is_one_that_readers_know(time_ms: int, by: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    batch = arrow.record_batch({"timestamp": arrow.array([time_ms], arrow.timestamp("ms", "UTC"))})

    ((begin_ms, _),) = _slots(batch, SLOT_MS[by])

    directory = slot_directory(("orders", 0, begin_ms), by)
    assert re.fullmatch(r"topic=orders/date=\d{4}-\d\d-\d\d(/hour=\d\d)?", directory)
    file = ArchivedFile(f"{directory}/x.parquet", "", "orders", 0, 0, 1, 1, 1, "")
    first_ms, end_ms = times_of(file, by) or (0, 0)
    assert first_ms <= time_ms < end_ms


# --- Mistakes that are planted in a round, and what finds them.


class FilesFirst(ArchiveDirectory):
    """Directory whose files come to their place before their round counts."""

    def commit(self, manifest: Manifest) -> bool:
        for file in manifest.files:
            path = self.path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.path / file.staged, path)
        raise Killed


class FilesLast(ArchiveDirectory):
    """Directory whose manifests name files that are not written yet."""

    def commit(self, manifest: Manifest) -> bool:
        for file in manifest.files:
            (self.path / file.staged).unlink()
        super().commit(manifest)
        raise Killed


class ManifestsChange(ArchiveDirectory):
    """Directory in which the last of two manifests of a round counts."""

    def commit(self, manifest: Manifest) -> bool:
        for path in (self.path / MANIFESTS).glob(f"*{manifest.number}.json"):
            path.unlink()
        return super().commit(manifest)


def found_by(broker: Tarry, path: Path) -> list[str]:
    """Return what the next run and a recount find."""
    try:
        run(broker, path)
    except ArchiveRefused as refusal:
        return [str(refusal)]
    return recount(broker, path).faults


@pytest.mark.parametrize("planted", [FilesFirst, FilesLast])
def test_a_planted_order_of_manifest_and_files_is_found(
    broker: Tarry, tmp_path: Path, planted: type[ArchiveDirectory]
) -> None:
    fill(broker, 10)
    made = options(broker)
    with closing(LiveCluster(made.reading())) as cluster, pytest.raises(Killed):
        list(Archiver(OwnWorker(), cluster, planted(tmp_path), made).run(ORDERS))
    fill(broker, 10)

    assert found_by(broker, tmp_path) != []


def test_a_round_that_is_written_over_is_found(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 10)
    made = options(broker, round_records_max=4)
    with closing(LiveCluster(made.reading())) as cluster:
        slow = SlowWorker(broker, tmp_path)
        list(Archiver(slow, cluster, ManifestsChange(tmp_path), made).run(ORDERS))

    assert found_by(broker, tmp_path) != []


# --- What a recount finds.


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
    # As if the log had had two offsets more.
    ranges = [msgspec.structs.replace(one, end=one.end + 2) for one in manifest.ranges[:1]]
    longer = msgspec.structs.replace(manifest, ranges=[*ranges, *manifest.ranges[1:]])
    path.write_bytes(msgspec.json.encode(longer))

    found = recount(broker, tmp_path)

    assert found.faults == [
        "the archive holds orders [0] up to offset 7, and the log ends at 5: it was truncated"
    ]
    assert found.compared == 10


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


# --- Refusals.


def test_a_topic_that_was_made_anew_is_refused(broker: Tarry, tmp_path: Path) -> None:
    fill(broker, 4)
    run(broker, tmp_path)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics(["orders"])
    broker.topic("orders", partitions=2)
    fill(broker, 10)

    with pytest.raises(ArchiveRefused, match="orders was deleted and made anew"):
        run(broker, tmp_path)


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


# --- Plans, as pure functions.

PLACES = [("a", 0), ("a", 1), ("b", 0)]


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 40)),
        min_size=1,
        max_size=8,
    )
)
def test_rounds_follow_one_another_without_gap_or_overlap(
    steps: list[tuple[int, int, int]],
) -> None:
    manifest: Manifest | None = None
    ends = dict.fromkeys(PLACES, 0)
    starts = dict.fromkeys(PLACES, 0)
    taken: dict[tuple[str, int], list[tuple[int, int]]] = {place: [] for place in PLACES}
    for grown, deleted, limit in steps:
        for number, place in enumerate(PLACES):
            ends[place] += grown * (number + 1)
            starts[place] = max(starts[place], min(ends[place], ends[place] - 50 + deleted))
        lost = {(one.topic, one.partition): one for one in lost_offsets(manifest, starts)}
        ranges = within_limit(next_ranges(manifest, starts, ends), limit)
        if not ranges:
            continue
        manifest = make_manifest(manifest, {"a": "1", "b": "2"}, ranges, [], starts, 0)
        for one in manifest.ranges:
            place = one.topic, one.partition
            assert one.first >= starts[place]
            gone = lost.get(place)
            assert one.lost == (0 if gone is None else gone.size)
            taken[place].append((one.first - one.lost, one.end))
    for place in PLACES:
        parts = taken[place]
        assert all(before[1] == after[0] for before, after in pairwise(parts))


def test_the_directory_of_a_file_tells_its_time() -> None:
    slot = ("orders", 3, NOON_MS)

    assert slot_directory(slot, "none") == "topic=orders"
    assert slot_directory(slot, "day") == "topic=orders/date=2025-10-09"
    assert slot_directory(slot, "hour") == "topic=orders/date=2025-10-09/hour=08"
    assert slot_directory(("orders", 3, -1), "hour") == "topic=orders/date=1969-12-31/hour=23"


# --- Names that readers pass over.


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


def test_a_manifest_of_an_older_version_goes_on_and_gets_epochs() -> None:
    old = msgspec.json.decode(msgspec.json.encode(made([ReadRange("orders", 0, 0, 10)])))
    del old["epochs"]
    before = decode_manifest(msgspec.json.encode(old), "old")
    lines = {("orders", 0): ((0, 0), (3, 12))}

    after = make_manifest(
        before, {"orders": "a"}, [ReadRange("orders", 0, 10, 15)], [], {}, 2, lines=lines
    )
    later = make_manifest(
        after,
        {"orders": "a"},
        [ReadRange("orders", 1, 0, 5)],
        [],
        {},
        3,
        lines={("orders", 0): ((9, 9),)},
    )

    assert before.noted(("orders", 0)) == NotedPlace(10, (), "a")
    assert after.noted(("orders", 0)) == NotedPlace(15, ((0, 0), (3, 12)), "a")
    assert after.noted(("orders", 1)) is None
    assert decode_manifest(msgspec.json.encode(later), "new") == later
    assert later.noted(("orders", 0)) == after.noted(("orders", 0))
    assert later.noted(("orders", 1)) == NotedPlace(5, (), "a")


def made(ranges: list[ReadRange]) -> Manifest:
    return make_manifest(None, {"orders": "a"}, ranges, [], {}, 1)

"""An archive without Spark: what counts, what readers see, what a recount finds."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st
from tests.support.spark.archive_scene import (
    HOUR_MS,
    NOON_MS,
    ORDERS,
    expected,
    fill,
    options,
    recount,
    rows,
    run,
)

from tarry.client import Admin, NewTopic, Producer
from tarry.spark.archive.archive import Archiver, archive
from tarry.spark.archive.contents import read_contents, times_of
from tarry.spark.archive.directory import MANIFESTS, STAGED, ArchiveDirectory
from tarry.spark.archive.manifest import (
    ArchivedFile,
    ArchiveRefused,
    Manifest,
    decode_manifest,
    make_manifest,
)
from tarry.spark.archive.parquet_files import LAST_MS, SLOT_MS, _slots, slot_directory
from tarry.spark.archive.round_plan import lost_offsets, next_ranges, within_limit
from tarry.spark.archive.workers import OwnWorker
from tarry.spark.histories.lines import NotedPlace
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.plan import ReadRange
from tarry.testing import Tarry

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq


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

    # Rows that count for nothing take no room on a full disk.
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
            assert not lost
            continue
        manifest = make_manifest(manifest, {"a": "1", "b": "2"}, ranges, [], starts, 0)
        # One round reports what is lost.
        assert lost_offsets(manifest, starts) == []
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

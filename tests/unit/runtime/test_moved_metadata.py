"""Check and migration over a simulated etcd: lost answers, crashes, releases, and a start after."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from tests.support.cluster.joining_scene import JoiningScene
from tests.support.metadata_stores import EmbeddedSubject

from tarry.base.doors import Event
from tarry.base.errors import StorageError
from tarry.base.etcd import EtcdEvent, Put, StatusRead
from tarry.base.partition_row import PartitionRow
from tarry.cluster.etcd.joining import JoinRefused
from tarry.cluster.etcd.migration import MigrationRefused
from tarry.cluster.lives.identity import read_identity
from tarry.cluster.rows.rows import ROW_FORMAT, FeatureRow, Keys, encode_row
from tarry.cluster.state.levels import SCHEDULED_RECORDS
from tarry.cluster.state.records import ProducerIdsReserved, TopicCreated
from tarry.runtime.etcd.asking import AskedEtcd, QuestionFailed
from tarry.runtime.etcd.metadata import Migrated, check_store, migrate, room_notes
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.etcd import SimulatedEtcdDoor

PREFIX = "/demo/"
KEYS = Keys(PREFIX)
PARTITIONS = 400


class Scene:
    """A stopped broker's disk, a simulated etcd, and a command that asks it."""

    def __init__(self, seed: int = 4) -> None:
        self.joining = JoiningScene(seed)
        self.etcd = self.joining.etcd
        self.disk = stopped_disk()
        self.events: list[Event] = []
        self.door = SimulatedEtcdDoor(self.etcd, Random(seed), self.events.append)
        self.door.delay_ms_max = 20
        self.asked = AskedEtcd(self.door, self.wait, lambda: self.etcd.now_ms, "etcd:2379")
        self.told: list[tuple[int, int]] = []

    def wait(self, timeout_ms: int) -> list[Event]:
        self.etcd.advance(self.etcd.now_ms + 5)
        self.door.step()
        events, self.events[:] = list(self.events), []
        return events

    def migrate(self, node_id: int | None = None) -> Migrated:
        return migrate(
            self.disk, self.asked, PREFIX, node_id, lambda *counts: self.told.append(counts)
        )

    def row_count(self) -> int:
        return len(self.etcd.rows(KEYS.prefix))


def stopped_disk(configs: dict[str, str] | None = None) -> SimulatedDisk:
    subject = EmbeddedSubject()
    row = PartitionRow(1, 3, -1, 3, [1], [1])
    subject.change(
        TopicCreated(
            topic_id=bytes(range(16)),
            name="orders",
            partitions=[row] * PARTITIONS,
            configs=configs or {},
        ),
        ProducerIdsReserved(first_id=0, count=1000),
    )
    subject.settle()
    subject.logs.close_cleanly()
    return subject.disk


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene()


def test_a_moved_directory_joins_as_the_broker_that_it_was(scene: Scene) -> None:
    done = scene.migrate()
    member = scene.joining.broker(1, scene.disk)
    scene.joining.join(member)

    assert (done.topics, done.partitions, done.rows) == (1, PARTITIONS, done.rows_written)
    assert scene.told[0] == (0, done.rows)
    assert scene.told[-1] == (done.rows, done.rows)
    assert member.joining.store.state.cluster_id == done.cluster_id
    assert not member.joining.is_other_disk
    assert member.joining.store.state.topics["orders"].partitions[7].leader_epoch == 4
    assert check_store(scene.asked, PREFIX).rows.is_sound


def test_another_disk_under_its_id_is_known_as_another_one(scene: Scene) -> None:
    scene.migrate()
    stranger = scene.joining.broker(1)
    scene.joining.join(stranger)

    assert stranger.joining.is_other_disk


def test_a_directory_whose_records_wait_unnamed_is_not_moved(scene: Scene) -> None:
    scene.disk.make_directory("orders-7.schedule")
    scene.disk.open("orders-7.schedule/00000000000000000000.log", create=True)

    with pytest.raises(MigrationRefused, match=r"set delay\.enable=false on"):
        scene.migrate()

    assert scene.row_count() == 0
    assert read_identity(scene.disk) is None


@pytest.mark.parametrize("enabled", [" true", "false"])
def test_records_that_wait_bring_the_level_of_their_feature(scene: Scene, enabled: str) -> None:
    scene.disk = stopped_disk({"delay.enable": enabled, "delay.source": "timestamp"})

    scene.migrate()

    (row,) = scene.etcd.rows(KEYS.feature(SCHEDULED_RECORDS))
    assert row.value == encode_row(FeatureRow(ROW_FORMAT, 1))


@pytest.mark.parametrize("lost", ["answers", "requests"])
@pytest.mark.parametrize("after", range(4))
def test_lost_answers_end_in_the_same_rows(lost: str, after: int) -> None:
    plain, scene = Scene(), Scene()
    plain.migrate()
    # Of the transactions of a migration: after so many of them.
    begin = scene.door.begin_transaction
    count = 0

    def begin_and_lose(compares: list, operations: list) -> int:  # type: ignore[type-arg]
        nonlocal count
        if count == after:
            setattr(scene.door, f"lose_{lost}", 1)
        count += 1
        return begin(compares, operations)

    scene.door.begin_transaction = begin_and_lose  # type: ignore[method-assign]
    scene.migrate()

    # Four of 126 rows at most and the cluster's; a request that was lost is made once more.
    assert count == (5 if lost == "answers" else 6)
    assert [(row.key, row.value) for row in scene.etcd.rows(KEYS.prefix)] == [
        (row.key, row.value) for row in plain.etcd.rows(KEYS.prefix)
    ]
    assert read_identity(scene.disk) == read_identity(plain.disk)


def test_what_ended_half_way_is_repeated_and_nothing_on_the_disk_was_changed(
    scene: Scene,
) -> None:
    def go_away(written: int, total: int) -> None:
        if written > 200:
            scene.door.is_away = True

    with pytest.raises(QuestionFailed, match="repeat the command"):
        migrate(scene.disk, scene.asked, PREFIX, None, go_away)
    half = scene.row_count()
    nobody = read_identity(scene.disk)
    scene.door.come_back()
    done = scene.migrate()

    assert 200 < half < done.rows
    assert nobody is None
    assert done.rows_written == done.rows - half


def test_a_crash_before_the_directory_knows_of_it_is_repeated(scene: Scene) -> None:
    scene.disk.fail_writes(1)
    with pytest.raises(StorageError):
        scene.migrate()
    # Brokers may join by now.
    other = scene.joining.broker(2)
    scene.joining.join(other)
    other.register()
    done = scene.migrate()

    identity = read_identity(scene.disk)
    assert identity is not None
    assert (identity.cluster_id, identity.broker_id) == (done.cluster_id, 1)
    assert done.rows_written == 0
    scene.joining.join(scene.joining.broker(1, scene.disk))


def test_a_cluster_that_is_there_is_left_alone(scene: Scene) -> None:
    scene.joining.join(scene.joining.broker(2))
    rows = scene.etcd.rows(KEYS.prefix)
    with pytest.raises(MigrationRefused, match="etcdctl --endpoints etcd:2379 del --prefix /demo/"):
        scene.migrate()

    assert scene.etcd.rows(KEYS.prefix) == rows
    assert read_identity(scene.disk) is None


def test_a_directory_of_a_member_is_refused(scene: Scene) -> None:
    scene.migrate()
    with pytest.raises(MigrationRefused, match="belongs to broker 1 of cluster"):
        scene.migrate()


def test_an_old_etcd_is_refused_and_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    old = StatusRead(0, "3.4.30", 1, 1, [])
    monkeypatch.setattr(scene.asked, "status", lambda: old)
    with pytest.raises(JoinRefused, match=r"install 3\.6\.9 or newer"):
        scene.migrate()

    assert scene.row_count() == 0
    assert ["3.4.30" in each for each in check_store(scene.asked, PREFIX).problems] == [True]


def test_an_etcd_without_room_is_told(scene: Scene) -> None:
    scene.migrate()
    scene.etcd.has_space = False
    found = check_store(scene.asked, PREFIX)

    assert found.rows.is_sound
    assert ["etcdctl alarm disarm" in each for each in found.problems] == [True]


MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "used", "quota", "rows_bytes", "words"),
    [
        (0, 0, 0, 100, []),
        (1500 * MIB, 10 * MIB, 2048 * MIB, 100, []),
        (1600 * MIB, 10 * MIB, 2048 * MIB, 100, ["1600 MiB of the 2048"]),
        # Etcd 3.5 tells no quota.
        (1600 * MIB, 10 * MIB, 0, 100, []),
        (65 * MIB, 65 * MIB, 2048 * MIB, MIB, ["holds 65 MiB, and the rows of this cluster"]),
        (65 * MIB, 65 * MIB, 2048 * MIB, 4 * MIB, []),
        (1600 * MIB, 1600 * MIB, 2048 * MIB, MIB, ["of the 2048", "auto-compaction-retention"]),
    ],
)
def test_room_that_runs_out_and_history_that_stays_are_noted(
    size: int, used: int, quota: int, rows_bytes: int, words: list[str]
) -> None:
    notes = room_notes(StatusRead(1, "3.6.16", 1, 1, [], size, used, quota), rows_bytes)

    assert [word in note for word, note in zip(words, notes, strict=True)] == [True] * len(words)


def test_an_etcd_without_room_ends_a_migration_with_its_reason(scene: Scene) -> None:
    scene.etcd.has_space = False
    with pytest.raises(QuestionFailed, match="database space exceeded"):
        scene.migrate()


def test_an_etcd_that_is_away_is_waited_for_and_then_told(scene: Scene) -> None:
    scene.door.is_away = True
    begun_ms = scene.etcd.now_ms
    with pytest.raises(QuestionFailed, match="etcd at etcd:2379 does not answer"):
        check_store(scene.asked, PREFIX)

    assert 15_000 <= scene.etcd.now_ms - begun_ms < 20_000


def test_a_silent_etcd_is_asked_again(scene: Scene) -> None:
    scene.door.lose_answers = 2
    scene.etcd.transact([], [Put(KEYS.cluster, b'[1,"c"]')])

    assert check_store(scene.asked, PREFIX).rows.cluster_id == "c"


def test_answers_of_others_are_no_answers(scene: Scene) -> None:
    scene.events.append(EtcdEvent(StatusRead(99, "1.0.0", 1, 1, [])))

    assert scene.asked.status().version == "3.6.16"

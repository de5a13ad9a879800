"""The embedded store: durable before it counts, replayed at start, kept short by snapshots."""

from __future__ import annotations

import random

import pytest

from tarry.base.doors import LogFile
from tarry.base.errors import CorruptData, InvalidSetting, StorageError
from tarry.cluster.embedded import (
    METADATA_DIRECTORY,
    SNAPSHOT_BYTES_MIN,
    EmbeddedStore,
    open_store,
)
from tarry.cluster.records import (
    ClusterCreated,
    NewerFormat,
    PartitionRow,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.log.logs import Logs
from tarry.simulation.disk import SimulatedDisk

WALL_MS = 1_800_000_000_000


def start(
    disk: SimulatedDisk, broker_id: int = 1, snapshot_bytes_min: int = SNAPSHOT_BYTES_MIN
) -> EmbeddedStore:
    logs = Logs(disk)
    logs.load()
    return open_store(
        logs,
        broker_id=broker_id,
        random=random.Random(5),
        now_wall_ms=WALL_MS,
        snapshot_bytes_min=snapshot_bytes_min,
    )


def topic(name: str) -> TopicCreated:
    row = PartitionRow(1, 0, 0, [1], [1])
    return TopicCreated(
        topic_id=name.encode().ljust(16, b"."), name=name, partitions=[row], configs={}
    )


def removed(name: str) -> TopicRemoved:
    return TopicRemoved(topic_id=topic(name).topic_id)


def write(store: EmbeddedStore) -> int:
    """One turn's write, and the begin of a flush: the offset that it makes durable."""
    store.log.write()
    return store.log.collect_flush([], {})


def commit(disk: SimulatedDisk, store: EmbeddedStore) -> None:
    """Write, flush and apply what was appended."""
    store.log.write()
    files: list[LogFile] = []
    directories: dict[str, None] = {}
    offset = store.log.collect_flush(files, directories)
    disk.flush(files, list(directories))
    store.log.flushed(offset)
    store.flushed(offset)


def test_a_new_directory_gets_a_cluster_and_its_broker():
    store = start(SimulatedDisk())

    assert len(store.state.cluster_id) == 22
    assert store.state.broker_ids == [1]
    assert store.log.flushed_offset == store.log.log_end_offset == store.applied_end_offset


def test_the_cluster_stays_the_same_over_a_loss_of_power():
    disk = SimulatedDisk()
    cluster_id = start(disk).state.cluster_id

    disk.crash()

    assert start(disk).state.cluster_id == cluster_id


def test_a_record_counts_for_decisions_at_once_and_for_clients_when_it_is_durable():
    disk = SimulatedDisk()
    store = start(disk)

    end_offset = store.append([topic("orders")], WALL_MS)

    assert store.latest.topic("orders") is not None
    assert store.state.topic("orders") is None
    assert store.applied_end_offset < end_offset

    commit(disk, store)

    assert store.state.topic("orders") is not None
    assert store.applied_end_offset == end_offset


def test_only_what_lies_below_the_flushed_offset_is_applied():
    store = start(SimulatedDisk())
    store.append([topic("orders")], WALL_MS)
    offset = write(store)
    store.append([topic("bills")], WALL_MS)

    applied = store.flushed(offset)

    assert applied == [topic("orders")]
    assert list(store.state.topics) == ["orders"]
    assert store.latest.topic("bills") is not None


def test_a_write_that_failed_is_forgotten():
    disk = SimulatedDisk()
    store = start(disk)
    store.append([topic("orders")], WALL_MS)
    write(store)
    store.append([topic("bills"), ProducerIdsReserved(first_id=0, count=1000)], WALL_MS)
    disk.fail_writes()

    with pytest.raises(StorageError):
        store.log.write()
    store.on_write_failed()

    assert store.latest.topic("bills") is None
    assert store.latest.topic("orders") is not None
    assert store.latest.producer_id_end == 0
    commit(disk, store)
    assert list(store.state.topics) == ["orders"]
    assert list(start(disk).state.topics) == ["orders"]


def test_producer_ids_are_given_out_once_their_block_is_durable_and_never_again():
    disk = SimulatedDisk()
    store = start(disk)
    store.append([ProducerIdsReserved(first_id=0, count=2)], WALL_MS)

    before = store.producer_ids.take()
    commit(disk, store)
    taken = [store.producer_ids.take() for _ in range(3)]

    assert before == -1
    assert taken == [0, 1, -1]
    assert start(disk).producer_ids.take() == -1
    assert start(disk).latest.producer_id_end == 2


def test_after_an_unclean_stop_every_leader_epoch_grows_by_one():
    disk = SimulatedDisk()
    store = start(disk)
    store.append([topic("orders")], WALL_MS)
    commit(disk, store)

    disk.crash()
    store = start(disk)

    assert store.state.topics["orders"].partitions[0].leader_epoch == 1


def test_after_a_clean_stop_the_leader_epochs_stay():
    disk = SimulatedDisk()
    logs = Logs(disk)
    logs.load()
    store = open_store(logs, broker_id=1, random=random.Random(5), now_wall_ms=WALL_MS)
    store.append([topic("orders")], WALL_MS)
    commit(disk, store)

    logs.close_cleanly()
    store = start(disk)

    assert store.state.topics["orders"].partitions[0].leader_epoch == 0


def test_another_brokers_data_is_refused_with_what_to_write():
    disk = SimulatedDisk()
    start(disk, broker_id=1)

    with pytest.raises(InvalidSetting, match=r"write node\.id=1"):
        start(disk, broker_id=2)


def test_data_of_a_newer_format_is_refused():
    disk = SimulatedDisk()
    store = start(disk)
    store.append([ClusterCreated(cluster_id="", format=99)], WALL_MS)
    store.log.write()

    with pytest.raises(NewerFormat, match="format 99"):
        start(disk)


def test_a_damaged_store_is_refused():
    disk = SimulatedDisk()
    logs = Logs(disk)
    logs.load()
    store = open_store(logs, broker_id=1, random=random.Random(5), now_wall_ms=WALL_MS)
    for index in range(50):
        store.append([topic(f"t{index}")], WALL_MS)
    commit(disk, store)
    logs.close_cleanly()
    disk.flip_bit(f"{METADATA_DIRECTORY}/00000000000000000000.log", 700, 0)

    with pytest.raises((CorruptData, StorageError)):
        start(disk)


def test_a_log_that_grew_is_made_short_by_a_snapshot():
    disk = SimulatedDisk()
    store = start(disk, snapshot_bytes_min=5_000)
    cluster_id = store.state.cluster_id

    sizes = []
    for index in range(400):
        store.append([topic(f"t{index}")], WALL_MS)
        commit(disk, store)
        store.append([TopicDeleted(topic_id=topic(f"t{index}").topic_id)], WALL_MS)
        commit(disk, store)
        store.append([removed(f"t{index}")], WALL_MS)
        commit(disk, store)
        sizes.append(store.log.size_bytes)
    store.append([topic("orders")], WALL_MS)
    commit(disk, store)

    assert max(sizes) < 12_000
    assert store.log.log_start_offset > 1_000
    disk.crash()
    replayed = start(disk).state
    assert replayed.cluster_id == cluster_id
    assert list(replayed.topics) == ["orders"]


def test_a_start_makes_a_long_log_short():
    disk = SimulatedDisk()
    store = start(disk)
    for index in range(200):
        store.append([topic(f"t{index}"), TopicDeleted(topic_id=topic(f"t{index}").topic_id)], 1)
    commit(disk, store)
    store.append([removed(f"t{index}") for index in range(200)], WALL_MS)
    commit(disk, store)

    store = start(disk, snapshot_bytes_min=5_000)

    assert store.log.log_start_offset > 500
    assert store.state.topics == {}


def test_a_snapshot_that_failed_to_be_written_loses_nothing():
    disk = SimulatedDisk()
    store = start(disk)
    for index in range(100):
        store.append([topic(f"t{index}")], WALL_MS)
    commit(disk, store)
    store.snapshot_bytes_min = 1_000
    store.append([topic("dropped")], WALL_MS)
    disk.fail_writes()

    with pytest.raises(StorageError):
        store.log.write()
    store.on_write_failed()
    store.append([topic("kept")], WALL_MS)
    commit(disk, store)

    assert len(store.state.topics) == 101
    assert store.log.log_start_offset > 100
    disk.crash()
    assert sorted(start(disk).state.topics) == sorted(store.state.topics)

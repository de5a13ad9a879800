"""Migration of a single broker's metadata: its rows, their order, and what an attempt adds."""

from __future__ import annotations

from random import Random

import pytest

from tarry.base.etcd import COMPARES_MAX, OPERATIONS_MAX, Operation, Put, Row
from tarry.base.partition_row import PartitionRow
from tarry.cluster.etcd.migration import BYTES_MAX, Migration, MigrationRefused, directory_id
from tarry.cluster.rows.row_check import RowCheck
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import ROW_FORMAT, ClusterRow, Keys, encode_row
from tarry.cluster.state.levels import GROUP_CONFIGS, Release
from tarry.cluster.state.records import (
    EVERY_BROKER,
    BrokerConfigChanged,
    BrokerRegistered,
    ClusterCreated,
    FeatureLevelChanged,
    GroupConfigChanged,
    MetadataRecord,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.state.state import BrokerState, ClusterState, DeletedTopic
from tarry.simulation.etcd import SimulatedEtcd

KEYS = Keys("/demo/")
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
RELEASE = Release("1.2.3")


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def topic(number: int, partitions: int, epoch: int = 0) -> TopicCreated:
    row = PartitionRow(1, epoch, -1, epoch + 2, [1], [1])
    return TopicCreated(
        topic_id=topic_id(number),
        name=f"topic.{number}",
        partitions=[row] * partitions,
        configs={"retention.ms": str(number)},
    )


def state_of(*records: MetadataRecord) -> ClusterState:
    state = ClusterState()
    for record in (ClusterCreated(cluster_id=CLUSTER_ID), BrokerRegistered(broker_id=1), *records):
        state.apply(record)
    return state


def full_state() -> ClusterState:
    return state_of(
        topic(1, 3, epoch=4),
        topic(2, 200),
        topic(3, 1),
        TopicDeleted(topic_id=topic_id(3)),
        BrokerConfigChanged(broker_id=1, configs={"log.retention.ms": "7"}),
        BrokerConfigChanged(broker_id=EVERY_BROKER, configs={"log.retention.ms": "8"}),
        ProducerIdsReserved(first_id=0, count=3000),
        FeatureLevelChanged(name=GROUP_CONFIGS, level=1),
        GroupConfigChanged(group_id="a/b", configs={"k": "1"}),
    )


def migration_of(state: ClusterState, node_id: int = 1) -> Migration:
    return Migration(state, KEYS, node_id, RELEASE)


def write_all(migration: Migration, etcd: SimulatedEtcd) -> list[list[bytes]]:
    """The keys of each transaction that it takes."""
    steps: list[list[bytes]] = []
    while missing := migration.missing(etcd.rows(KEYS.prefix)):
        compares, puts = migration.step(missing)
        operations: list[Operation] = list(puts)
        assert etcd.transact(compares, operations)[0]
        steps.append([put.key for put in puts])
    return steps


def state_in(etcd: SimulatedEtcd) -> ClusterState:
    """What a broker of the cluster makes of the rows."""
    state = ClusterState()
    for record in KnownRows(KEYS).apply(etcd.rows(KEYS.prefix)):
        state.apply(record)
    return state


def test_a_broker_of_the_cluster_finds_what_the_single_one_knew() -> None:
    before, etcd = full_state(), SimulatedEtcd(Random(1))
    write_all(migration_of(before), etcd)
    after = state_in(etcd)

    assert after.cluster_id == CLUSTER_ID
    assert after.topics.keys() == before.topics.keys()
    assert after.broker_configs == before.broker_configs
    assert after.producer_id_end == 3000
    assert after.deleted_topics == {topic_id(3): DeletedTopic("topic.3", topic_id(3), 1, (1,))}
    broker = BrokerState(
        directory_id(CLUSTER_ID, 1), "", {}, release=RELEASE.name, levels=RELEASE.levels
    )
    assert after.brokers == {1: broker}
    assert after.feature_levels == {GROUP_CONFIGS: 1}
    assert after.group_configs == {"a/b": {"k": "1"}}
    for name, was in before.topics.items():
        now = after.topics[name]
        assert (now.topic_id, now.configs) == (was.topic_id, was.configs)
        # In an epoch of its own, led by nobody until the broker lives.
        assert now.partitions == [
            PartitionRow(1, row.leader_epoch + 1, -1, row.partition_epoch + 1, [1], [1])
            for row in was.partitions
        ]


def test_the_rows_pass_the_check() -> None:
    etcd = SimulatedEtcd(Random(1))
    write_all(migration_of(full_state()), etcd)

    assert RowCheck(KEYS, etcd.rows(KEYS.prefix)).problems == []


def test_another_id_takes_the_place_of_the_brokers_own() -> None:
    etcd = SimulatedEtcd(Random(1))
    write_all(migration_of(full_state(), node_id=9), etcd)
    after = state_in(etcd)

    assert after.broker_ids == [9]
    assert sorted(after.broker_configs) == [EVERY_BROKER, 9]
    assert {row.leader_id for each in after.topics.values() for row in each.partitions} == {9}
    assert directory_id(CLUSTER_ID, 9) != directory_id(CLUSTER_ID, 1)


def test_the_cluster_comes_last_and_alone_in_transactions_that_etcd_takes() -> None:
    migration = migration_of(full_state())
    steps = write_all(migration, SimulatedEtcd(Random(1)))

    assert [key for step in steps for key in step] == list(migration.rows)
    assert steps[-1] == [KEYS.cluster]
    assert [len(step) for step in steps[:-1]] == [126, len(migration.rows) - 127]
    missing = list(migration.rows)
    compares, puts = migration.step(missing)
    assert len(compares) <= COMPARES_MAX
    assert len(puts) <= OPERATIONS_MAX


def test_large_rows_are_spread_over_more_transactions() -> None:
    state = state_of(*(topic(number, 60_000) for number in range(1, 6)))
    migration = migration_of(state)
    missing = [key for key in migration.rows if b"/parts/" not in key]
    sizes = []
    while missing:
        _, puts = migration.step(missing)
        sizes.append(sum(len(put.key) + len(put.value) for put in puts))
        missing = missing[len(puts) :]

    assert max(sizes) <= BYTES_MAX
    assert len(sizes) == 3


@pytest.mark.parametrize("done", [1, 2])
def test_an_attempt_goes_on_where_another_one_ended(done: int) -> None:
    etcd, steps_done = SimulatedEtcd(Random(1)), 0
    first = migration_of(full_state())
    while steps_done < done:
        compares, puts = first.step(first.missing(etcd.rows(KEYS.prefix)))
        etcd.transact(compares, list(puts))
        steps_done += 1
    written = len(etcd.rows(KEYS.prefix))
    second = migration_of(full_state())
    steps = write_all(second, etcd)

    assert written + sum(map(len, steps)) == len(second.rows)
    assert len(etcd.rows(KEYS.prefix)) == len(second.rows)


def test_what_is_whole_is_left_alone_though_brokers_have_changed_rows_since() -> None:
    etcd = SimulatedEtcd(Random(1))
    migration = migration_of(full_state())
    write_all(migration, etcd)
    etcd.transact([], [Put(KEYS.broker(2), b"[1]"), Put(KEYS.producer_ids, b"[1,9000]")])

    assert migration.missing(etcd.rows(KEYS.prefix)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEYS.cluster, encode_row(ClusterRow(ROW_FORMAT, "another"))),
        (KEYS.name("topic.1"), b'[1,"topic_1","x"]'),
        (KEYS.name("foreign"), b'[1,"foreign","x"]'),
        (b"/demo/nested/cluster", b"x"),
    ],
)
def test_what_somebody_else_wrote_is_refused(key: bytes, value: bytes) -> None:
    migration = migration_of(full_state())

    with pytest.raises(MigrationRefused, match="the prefix has to be empty") as refused:
        migration.missing([Row(key, value, 2, 2)])

    assert key.decode() in str(refused.value)


def test_a_cluster_that_is_made_meanwhile_stops_every_transaction() -> None:
    etcd = SimulatedEtcd(Random(1))
    migration = migration_of(full_state())
    missing = migration.missing([])
    etcd.transact([], [Put(KEYS.cluster, b"another")])
    while missing:
        compares, puts = migration.step(missing)
        assert not etcd.transact(compares, list(puts))[0]
        missing = missing[len(puts) :]

    assert [row.key for row in etcd.rows(KEYS.prefix)] == [KEYS.cluster]

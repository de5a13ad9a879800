"""Claims: who takes a partition over, in which epoch, and what must hold when it is written."""

from __future__ import annotations

from random import Random

import pytest

from tarry.base.etcd import Operation, Put
from tarry.base.ids import id_text
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.cluster.claims import CLAIMS_PER_TRANSACTION, ClaimPartitions
from tarry.cluster.records import PartitionChanged
from tarry.cluster.row_changes import Spells
from tarry.cluster.row_records import KnownRows
from tarry.cluster.rows import (
    ROW_FORMAT,
    BlockRow,
    BrokerRow,
    ClusterRow,
    Keys,
    LifeRow,
    PartRow,
    TopicRow,
    encode_row,
)
from tarry.cluster.state import ClusterState
from tarry.cluster.transactions import Transaction
from tarry.simulation.etcd import SimulatedEtcd

KEYS = Keys("/test/")
TOPIC_ID = bytes(range(16))


class Rows:
    """Rows of a cluster in a simulated etcd, and what a broker knows of them."""

    def __init__(self) -> None:
        self.etcd = SimulatedEtcd(Random(3))
        self.put(Put(KEYS.cluster, encode_row(ClusterRow(ROW_FORMAT, "c"))))
        self.known = KnownRows(KEYS)
        self.state = ClusterState()

    def put(self, *operations: Operation) -> None:
        assert self.etcd.transact([], list(operations))[0]

    def live(self, broker_id: int) -> int:
        """Begin a life, and return its epoch."""
        self.put(
            Put(KEYS.broker(broker_id), encode_row(BrokerRow(ROW_FORMAT, "", "", {}, ""))),
            Put(KEYS.life(broker_id), encode_row(LifeRow(ROW_FORMAT, "", 0, "serving"))),
        )
        return self.etcd.revision

    def die(self, broker_id: int) -> None:
        self.etcd._remove([KEYS.life(broker_id)])

    def topic(self, replicas: list[list[int]], epochs: dict[int, int]) -> None:
        block = BlockRow(0, replicas, sorted(epochs.items()))
        row = TopicRow(ROW_FORMAT, "orders", {}, [block])
        self.put(Put(KEYS.topic(TOPIC_ID), encode_row(row)))

    def part(self, index: int, leader: int, epoch: int, life: int, isr: list[int]) -> None:
        row = PartRow(ROW_FORMAT, leader, epoch, life, epoch, [1, 2, 3], isr, [], [], -1)
        self.put(Put(KEYS.part(TOPIC_ID, index), encode_row(row)))

    def hear(self) -> None:
        """Let the broker know everything."""
        for record in self.known.apply(self.known.difference(self.etcd.rows(KEYS.prefix))):
            self.state.apply(record)

    def decide(self, broker_id: int, epoch: int) -> tuple[ClaimPartitions, list[PartitionChanged]]:
        self.hear()
        claim = ClaimPartitions(self.known, broker_id, epoch, Settings({}), Spells(Turn(0, 0)))
        records = claim.decide(self.state)
        assert all(isinstance(record, PartitionChanged) for record in records)
        return claim, [record for record in records if isinstance(record, PartitionChanged)]

    def write(self, claim: ClaimPartitions, records: list[PartitionChanged]) -> bool:
        transaction = Transaction(self.known)
        for record in records:
            transaction.add(record)
        claim.guard(transaction)
        return self.etcd.transact(transaction.compares, transaction.operations)[0]


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_what_a_living_leader_leads_is_claimed_by_nobody(rows: Rows) -> None:
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2)}
    rows.topic([[1], [2]], epochs)

    for broker_id, epoch in epochs.items():
        claim, records = rows.decide(broker_id, epoch)
        assert (records, claim.is_last) == ([], True)


def test_a_leader_that_has_begun_another_life_claims_in_a_higher_epoch(rows: Rows) -> None:
    rows.topic([[1], [2], [1]], {1: rows.live(1), 2: rows.live(2)})
    rows.die(1)
    epoch = rows.live(1)
    claim, records = rows.decide(1, epoch)

    assert [record.index for record in records] == [0, 2]
    assert {record.row.broker_epoch for record in records} == {epoch}
    assert {(record.row.leader_id, record.row.leader_epoch) for record in records} == {(1, 1)}
    assert rows.write(claim, records)
    assert rows.decide(1, epoch)[1] == []
    assert rows.state.topics["orders"].partitions[2].leader_epoch == 1
    assert rows.state.topics["orders"].partitions[1].leader_epoch == 0


def test_each_life_claims_in_an_epoch_of_its_own(rows: Rows) -> None:
    rows.topic([[1]], {1: rows.live(1)})
    found = []
    for _ in range(3):
        rows.die(1)
        claim, records = rows.decide(1, rows.live(1))
        assert rows.write(claim, records)
        found.append(records[0].row.leader_epoch)

    assert found == [1, 2, 3]


def test_the_first_living_member_of_the_isr_claims(rows: Rows) -> None:
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2, 3)}
    rows.topic([[1, 2, 3]], epochs)
    rows.part(0, leader=1, epoch=4, life=epochs[1], isr=[1, 3])
    rows.die(1)

    assert rows.decide(2, epochs[2])[1] == []
    claim, records = rows.decide(3, epochs[3])
    assert [record.row.leader_id for record in records] == [3]
    assert records[0].row.leader_epoch == 5
    assert rows.write(claim, records)


def test_nobody_claims_from_outside_the_isr(rows: Rows) -> None:
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2)}
    rows.topic([[1, 2]], epochs)
    rows.part(0, leader=1, epoch=0, life=epochs[1], isr=[1])
    rows.die(1)

    assert rows.decide(2, epochs[2])[1] == []


def claimed_late(rows: Rows) -> tuple[ClaimPartitions, list[PartitionChanged]]:
    """A claim of broker 2 that was decided and not written yet."""
    epochs = {broker_id: rows.live(broker_id) for broker_id in (1, 2)}
    rows.topic([[1, 2]], epochs)
    rows.die(1)
    return rows.decide(2, epochs[2])


def test_a_claim_fails_if_its_own_life_is_over(rows: Rows) -> None:
    claim, records = claimed_late(rows)
    rows.die(2)
    rows.live(2)

    assert not rows.write(claim, records)


def test_a_claim_fails_if_the_row_has_moved_on(rows: Rows) -> None:
    claim, records = claimed_late(rows)
    rows.part(0, leader=1, epoch=1, life=9, isr=[1, 2])

    assert not rows.write(claim, records)


def test_a_claim_brings_no_row_of_a_deleted_topic_back(rows: Rows) -> None:
    claim, records = claimed_late(rows)
    rows.etcd._remove([KEYS.topic(TOPIC_ID)])

    assert not rows.write(claim, records)
    assert rows.etcd.rows(KEYS.parts(TOPIC_ID)) == []


def test_a_claim_of_a_life_that_is_over_decides_nothing(rows: Rows) -> None:
    first = rows.live(1)
    rows.topic([[1]], {1: first})
    rows.die(1)
    rows.live(1)

    assert rows.decide(1, first)[1] == []


def test_many_partitions_are_claimed_in_transactions_that_etcd_takes(rows: Rows) -> None:
    count = 2 * CLAIMS_PER_TRANSACTION + 1
    rows.topic([[1]] * count, {1: rows.live(1)})
    rows.die(1)
    epoch = rows.live(1)
    sizes = []
    is_last = False
    while not is_last:
        claim, records = rows.decide(1, epoch)
        assert rows.write(claim, records)
        sizes.append(len(records))
        is_last = claim.is_last

    rows.hear()
    assert sizes == [CLAIMS_PER_TRANSACTION, CLAIMS_PER_TRANSACTION, 1]
    assert {row.leader_epoch for row in rows.state.topics_by_id[TOPIC_ID].partitions} == {1}
    assert id_text(TOPIC_ID).encode() in rows.etcd.rows(KEYS.parts(TOPIC_ID))[0].key

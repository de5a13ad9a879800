"""Rows of a cluster in a simulated etcd, and what a broker knows of them."""

from __future__ import annotations

from random import Random

from tarry.base.etcd import Operation, Put
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.cluster.decisions.row_changes import RowsChange, Spells
from tarry.cluster.etcd.transactions import Transaction
from tarry.cluster.rows.row_records import NOBODY, KnownRows
from tarry.cluster.rows.rows import (
    ROW_FORMAT,
    BlockRow,
    BrokerRow,
    ClusterRow,
    Keys,
    LifeRow,
    TopicRow,
    encode_row,
)
from tarry.cluster.state.records import PartitionChanged
from tarry.cluster.state.state import ClusterState
from tarry.simulation.etcd import SimulatedEtcd

KEYS = Keys("/test/")
TOPIC_ID = bytes(range(16))


class Rows:
    """One topic, written by hand; a change is decided by one broker and written or refused."""

    def __init__(self, broker_id: int = NOBODY) -> None:
        self.etcd = SimulatedEtcd(Random(3))
        self.put(Put(KEYS.cluster, encode_row(ClusterRow(ROW_FORMAT, "c"))))
        self.known = KnownRows(KEYS, broker_id=broker_id)
        self.state = ClusterState()
        self.settings = Settings({})
        self.turn = Turn(0, 0)
        self.spells = Spells(self.turn)
        self.epochs: dict[int, int] = {}
        self.configs: dict[str, str] = {}

    def put(self, *operations: Operation) -> None:
        assert self.etcd.transact([], list(operations))[0]

    def live(self, broker_id: int, phase: str = "serving") -> int:
        """Begin a life, and return its epoch."""
        self.put(
            Put(KEYS.broker(broker_id), encode_row(BrokerRow(ROW_FORMAT, "", "", {}, ""))),
            Put(KEYS.life(broker_id), encode_row(LifeRow(ROW_FORMAT, "", 0, phase))),
        )
        self.epochs[broker_id] = self.etcd.rows(KEYS.life(broker_id))[0].create_revision
        return self.epochs[broker_id]

    def die(self, broker_id: int) -> None:
        self.etcd._remove([KEYS.life(broker_id)])

    def topic(self, replicas: list[list[int]], epochs: dict[int, int] | None = None) -> None:
        living = self.epochs if epochs is None else epochs
        block = BlockRow(0, replicas, sorted(living.items()))
        row = TopicRow(ROW_FORMAT, "orders", self.configs, [block])
        self.put(Put(KEYS.topic(TOPIC_ID), encode_row(row)))

    def part(
        self,
        index: int,
        leader: int,
        epoch: int,
        life: int,
        isr: list[int],
        replicas: list[int] | None = None,
    ) -> None:
        copies = [1, 2, 3] if replicas is None else replicas
        row = PartitionRow(leader, epoch, life, epoch, copies, isr)
        self.put(Put(KEYS.part(TOPIC_ID, index), encode_row(row)))

    def hear(self) -> None:
        """Let the broker know everything."""
        for record in self.known.apply(self.known.difference(self.etcd.rows(KEYS.prefix))):
            self.state.apply(record)

    def decide(self, change: RowsChange) -> list[PartitionChanged]:
        """Decide on what is known now."""
        records = change.decide(self.state)
        assert all(isinstance(record, PartitionChanged) for record in records)
        return [record for record in records if isinstance(record, PartitionChanged)]

    def write(self, change: RowsChange, records: list[PartitionChanged]) -> bool:
        transaction = Transaction(self.known)
        for record in records:
            transaction.add(record)
        change.guard(transaction)
        return self.etcd.transact(transaction.compares, transaction.operations)[0]

    def row(self, index: int = 0) -> PartitionRow:
        """The row as it is known."""
        return self.state.topics_by_id[TOPIC_ID].partitions[index]

"""Transactions of etcd that write records: which revisions to compare, and which rows to put.

A transaction compares every row that it writes with the revision on which the records were decided.
So if two brokers decide at once, the second one's transaction fails, and it decides again.
"""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.etcd import Compare, Operation, Put, Remove
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.rows.rows import (
    ROW_FORMAT,
    AnyRow,
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    FeatureRow,
    GroupConfigsRow,
    NameRow,
    ProducerIdsRow,
    TopicRow,
    encode_row,
    partition_count,
    shown_key,
)
from tarry.cluster.rows.topic_rows import NO_EPOCH
from tarry.cluster.state.levels import GROUP_CONFIGS, SCHEDULED_RECORDS, kinds_of, may_delay
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    DeletionPending,
    FeatureLevelChanged,
    GroupConfigChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.store.change import Change


class ConditionalChange(Change):
    """Change that depends on rows which it does not write; `guard` adds compares for those."""

    def guard(self, transaction: Transaction) -> None:
        """Add the conditions under which etcd may do the transaction."""
        raise NotImplementedError


class GuardedChange(ConditionalChange):
    """Conditional change that is decided with the rows of etcd, `known`, beside the state."""

    def __init__(self, known: KnownRows) -> None:
        super().__init__()
        self._known = known


class Transaction:
    """Transaction in the making: the rows that change together, each compared and written once."""

    def __init__(self, known: KnownRows) -> None:
        self._known = known
        # Rows to write, by key; None removes the key.
        self._rows: dict[bytes, AnyRow | None] = {}
        # Prefixes whose keys are all removed: the partitions of deleted topics.
        self._prefixes: list[bytes] = []
        self._guards: dict[Compare, None] = {}
        # Why the transaction must not be done; "" if it may.
        self.obstacle = ""

    @property
    def compares(self) -> list[Compare]:
        """The guards, and for each written key the revision on which the change was decided."""
        known = self._known
        written = [Compare(key, "mod", known.mod_revision(key)) for key in self._rows]
        return [*self._guards, *written]

    @property
    def operations(self) -> list[Operation]:
        """The writes of the transaction, one a key, and the removals of prefixes."""
        written: list[Operation] = [
            Remove(key) if row is None else Put(key, encode_row(row))
            for key, row in self._rows.items()
        ]
        return [*written, *(Remove(prefix, is_prefix=True) for prefix in self._prefixes)]

    def guard_life(self, broker_id: int, broker_epoch: int) -> None:
        """Let the transaction fail unless this broker is alive in this epoch."""
        self._guard(Compare(self._known.keys.life(broker_id), "create", broker_epoch))

    def guard_end(self, broker_id: int, broker_epoch: int) -> None:
        """Let the transaction fail unless this life of the broker is over."""
        key = self._known.keys.life(broker_id)
        self._guard(Compare(key, "create", broker_epoch, is_equal=False))

    def keep_registered(self, broker_id: int) -> None:
        """Let the transaction fail unless this broker, alive or not, is still registered.

        The transaction writes the registration again unchanged.  An unregistration that another
        broker decided on before compares the old revision, so it fails too.
        """
        key = self._known.keys.broker(broker_id)
        row = self._get(key)
        if isinstance(row, BrokerRow) and not self._known.fault(key):
            self._rows[key] = row
        else:
            self._guard_there(key)

    def _guard(self, guard: Compare) -> None:
        self._guards[guard] = None

    def add(self, record: MetadataRecord) -> None:
        """Add the rows that a record changes."""
        keys = self._known.keys
        match record:
            case TopicCreated():
                self._create(record)
            case ConfigChanged():
                self._guard_delay(record.configs)
                key = keys.topic(record.topic_id)
                row = self._topic(key)
                self._rows[key] = TopicRow(ROW_FORMAT, row.name, record.configs, row.blocks)
            case PartitionsAdded():
                self._grow(record)
            case TopicDeleted():
                self._delete(record.topic_id)
            case TopicRemoved():
                self._rows[keys.deleted(record.topic_id)] = None
            case DeletionPending():
                self._strike(record)
            case PartitionChanged():
                self._change_partition(record)
            case BrokerConfigChanged():
                configs = ConfigsRow(ROW_FORMAT, record.configs) if record.configs else None
                self._rows[keys.configs(record.broker_id)] = configs
            case FeatureLevelChanged():
                self._set_level(record)
            case GroupConfigChanged():
                self._guard_level(GROUP_CONFIGS)
                group_configs = GroupConfigsRow(ROW_FORMAT, record.configs)
                self._rows[keys.group(record.group_id)] = group_configs if record.configs else None
            case ProducerIdsReserved():
                next_id = record.first_id + record.count
                self._rows[keys.producer_ids] = ProducerIdsRow(ROW_FORMAT, next_id)
            case ClusterCreated():
                self._rows[keys.cluster] = ClusterRow(ROW_FORMAT, record.cluster_id)
            case BrokerRegistered():
                self._rows[keys.broker(record.broker_id)] = BrokerRow(ROW_FORMAT, "", "", {}, "")
            case BrokerUnregistered():
                self._rows[keys.broker(record.broker_id)] = None
            case _:
                raise AssertionError(f"{type(record).__name__} is not written to etcd")

    def _get(self, key: bytes) -> AnyRow | None:
        return self._rows[key] if key in self._rows else self._known.get(key)

    def _topic(self, key: bytes) -> TopicRow:
        row = self._get(key)
        assert isinstance(row, TopicRow)
        return row

    def _create(self, record: TopicCreated) -> None:
        self._guard_delay(record.configs)
        keys = self._known.keys
        topic_id = keys.place(keys.topic(record.topic_id))[1]
        name_key = keys.name(record.name)
        if self._known.mod_revision(name_key):
            self.obstacle = (
                f"{shown_key(name_key)} in etcd takes this name for a topic that is not known, or "
                "is damaged: mend or remove that row (tarry metadata check)"
            )
        self._rows[name_key] = NameRow(ROW_FORMAT, record.name, topic_id)
        blocks = [self._block(0, record.partitions)]
        self._rows[keys.topic(record.topic_id)] = TopicRow(
            ROW_FORMAT, record.name, record.configs, blocks
        )

    def _grow(self, record: PartitionsAdded) -> None:
        key = self._known.keys.topic(record.topic_id)
        row = self._topic(key)
        first = partition_count(row)
        blocks = [*row.blocks, self._block(first, record.partitions)]
        self._rows[key] = TopicRow(ROW_FORMAT, row.name, row.configs, blocks)

    def _delete(self, topic_id: bytes) -> None:
        keys = self._known.keys
        row = self._topic(keys.topic(topic_id))
        self._rows[keys.name(row.name)] = None
        self._rows[keys.topic(topic_id)] = None
        self._rows[keys.deleted(topic_id)] = DeletedRow(
            ROW_FORMAT, row.name, partition_count(row), self._known.hosts(topic_id)
        )
        self._prefixes.append(keys.parts(topic_id))

    def _strike(self, record: DeletionPending) -> None:
        key = self._known.keys.deleted(record.topic_id)
        row = self._get(key)
        assert isinstance(row, DeletedRow)
        self._rows[key] = DeletedRow(ROW_FORMAT, row.name, row.partition_count, record.broker_ids)

    def _change_partition(self, record: PartitionChanged) -> None:
        """Put the row of a partition, under the condition that its topic is still there."""
        keys = self._known.keys
        topic = keys.topic(record.topic_id)
        part = keys.part(record.topic_id, record.index)
        if self._get(part) is None or not self._known.mod_revision(part):
            self._guard_there(topic)
        self._rows[part] = record.row

    def _set_level(self, record: FeatureLevelChanged) -> None:
        """Put a feature's level, under two conditions: no broker has registered since the decision,
        and no row has been written that needs the level before.

        A registration compares the levels in force in turn, so neither can overtake the other.
        """
        keys = self._known.keys
        # Level 0 is no row: releases that know no feature levels refuse to start beside any row.
        row = FeatureRow(ROW_FORMAT, record.level) if record.level else None
        self._rows[keys.feature(record.name)] = row
        for kind in ("brokers", *kinds_of(record.name)):
            prefix = keys.of_kind(kind)
            self._guard(Compare(prefix, "newest", self._known.newest_revision(prefix)))

    def _guard_level(self, name: str) -> None:
        """Let the transaction fail unless a feature's level is unchanged, or is written here."""
        key = self._known.keys.feature(name)
        if key not in self._rows:
            self._guard(Compare(key, "mod", self._known.mod_revision(key)))

    def _guard_delay(self, configs: Mapping[str, str]) -> None:
        """Let a topic keep records until they are due only where every broker can."""
        if may_delay(configs):
            self._guard_level(SCHEDULED_RECORDS)

    def _guard_there(self, key: bytes) -> None:
        self._guard(Compare(key, "create", self._known.create_revision(key)))

    def _block(self, first_index: int, partitions: list[PartitionRow]) -> BlockRow:
        """Return the block of new partitions, with the epochs of the brokers that are in sync.

        The transaction fails unless those brokers still live, and the other replicas' brokers are
        still registered.
        """
        serving = {broker_id: None for partition in partitions for broker_id in partition.isr}
        epochs = {broker_id: self._known.life_epoch(broker_id) for broker_id in sorted(serving)}
        living = [(broker_id, epoch) for broker_id, epoch in epochs.items() if epoch != NO_EPOCH]
        for broker_id, epoch in living:
            self.guard_life(broker_id, epoch)
        replicas = {broker_id: None for partition in partitions for broker_id in partition.replicas}
        for broker_id in replicas:
            if epochs.get(broker_id, NO_EPOCH) == NO_EPOCH:
                self.keep_registered(broker_id)
        return BlockRow(first_index, [partition.replicas for partition in partitions], living)

"""Transactions of etcd out of records: what to compare and what to write.

A record rests on the rows that it changes: each of them is compared with the revision that was
seen, so that of two brokers which decide at once the second decides again.
"""

from __future__ import annotations

from tarry.base.etcd import Compare, Operation, Put, Remove
from tarry.cluster.change import Change
from tarry.cluster.records import (
    BrokerConfigChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    DeletionPending,
    MetadataRecord,
    PartitionChanged,
    PartitionRow,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.row_records import NO_EPOCH, KnownRows, partitions_of
from tarry.cluster.rows import (
    ROW_FORMAT,
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    NameRow,
    PartRow,
    ProducerIdsRow,
    StoredRow,
    TopicRow,
    UnreadableRow,
    encode_row,
)


class ConditionalChange(Change):
    """A change that rests on more than the rows that it writes, which `guard` names."""

    def guard(self, transaction: Transaction) -> None:
        """Add what must hold when the transaction is done."""
        raise NotImplementedError


class GuardedChange(ConditionalChange):
    """A conditional change that is decided on the rows of etcd themselves, `known`."""

    def __init__(self, known: KnownRows) -> None:
        super().__init__()
        self._known = known


class Transaction:
    """Rows that change together.  Each is compared once and written once."""

    def __init__(self, known: KnownRows) -> None:
        self._known = known
        # What each key is to hold; None: the key goes.
        self._rows: dict[bytes, StoredRow | None] = {}
        # What goes as a whole with the row of a topic.
        self._prefixes: list[bytes] = []
        self._guards: dict[Compare, None] = {}

    @property
    def compares(self) -> list[Compare]:
        """Conditions: every key that is written is as it was when the change was decided."""
        known = self._known
        written = [Compare(key, "mod", known.mod_revision(key)) for key in self._rows]
        return [*self._guards, *written]

    @property
    def operations(self) -> list[Operation]:
        """Writes of the transaction, each key once."""
        written: list[Operation] = [
            Remove(key) if row is None else Put(key, encode_row(row))
            for key, row in self._rows.items()
        ]
        return [*written, *(Remove(prefix, is_prefix=True) for prefix in self._prefixes)]

    def guard_life(self, broker_id: int, broker_epoch: int) -> None:
        """Have nothing done unless this broker lives in this epoch."""
        self._guard(Compare(self._known.keys.life(broker_id), "create", broker_epoch))

    def guard_end(self, broker_id: int, broker_epoch: int) -> None:
        """Have nothing done unless this life is over."""
        key = self._known.keys.life(broker_id)
        self._guard(Compare(key, "create", broker_epoch, is_equal=False))

    def keep_registered(self, broker_id: int) -> None:
        """Have nothing done unless this broker, which need not live, is registered as it is known.

        Its row is written as it is, so that an unregistration that was decided before fails too.
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
        """Take in what a record changes."""
        keys = self._known.keys
        match record:
            case TopicCreated():
                self._create(record)
            case ConfigChanged():
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

    def _get(self, key: bytes) -> StoredRow | None:
        return self._rows[key] if key in self._rows else self._known.get(key)

    def _topic(self, key: bytes) -> TopicRow:
        row = self._get(key)
        assert isinstance(row, TopicRow)
        return row

    def _create(self, record: TopicCreated) -> None:
        keys = self._known.keys
        topic_id = keys.place(keys.topic(record.topic_id))[1]
        self._rows[keys.name(record.name)] = NameRow(ROW_FORMAT, record.name, topic_id)
        blocks = [self._block(0, record.partitions)]
        self._rows[keys.topic(record.topic_id)] = TopicRow(
            ROW_FORMAT, record.name, record.configs, blocks
        )

    def _grow(self, record: PartitionsAdded) -> None:
        key = self._known.keys.topic(record.topic_id)
        row = self._topic(key)
        first = len(partitions_of(row.blocks))
        blocks = [*row.blocks, self._block(first, record.partitions)]
        self._rows[key] = TopicRow(ROW_FORMAT, row.name, row.configs, blocks)

    def _delete(self, topic_id: bytes) -> None:
        keys = self._known.keys
        row = self._topic(keys.topic(topic_id))
        partitions = partitions_of(row.blocks)
        hosts = {broker_id: None for partition in partitions for broker_id in partition.replicas}
        for index in range(len(partitions)):
            # Reassigned since: who had replicas before may have data too.
            part = self._get(keys.part(topic_id, index))
            if isinstance(part, PartRow):
                hosts.update(dict.fromkeys(part.replicas))
            elif isinstance(part, UnreadableRow):
                # Who had it by then is not known.
                hosts.update(dict.fromkeys(self._known.registered_ids))
        self._rows[keys.name(row.name)] = None
        self._rows[keys.topic(topic_id)] = None
        self._rows[keys.deleted(topic_id)] = DeletedRow(
            ROW_FORMAT, row.name, len(partitions), sorted(hosts)
        )
        self._prefixes.append(keys.parts(topic_id))

    def _strike(self, record: DeletionPending) -> None:
        key = self._known.keys.deleted(record.topic_id)
        row = self._get(key)
        assert isinstance(row, DeletedRow)
        self._rows[key] = DeletedRow(ROW_FORMAT, row.name, row.partition_count, record.broker_ids)

    def _change_partition(self, record: PartitionChanged) -> None:
        """Write the row of a partition; a topic that is deleted meanwhile gets none."""
        keys = self._known.keys
        topic = keys.topic(record.topic_id)
        part = keys.part(record.topic_id, record.index)
        if self._get(part) is None or not self._known.mod_revision(part):
            self._guard_there(topic)
        row = record.row
        self._rows[part] = PartRow(
            ROW_FORMAT,
            row.leader_id,
            row.leader_epoch,
            row.broker_epoch,
            row.partition_epoch,
            row.replicas,
            row.isr,
            row.adding,
            row.removing,
            row.unclean_epoch,
        )

    def _guard_there(self, key: bytes) -> None:
        self._guard(Compare(key, "create", self._known.create_revision(key)))

    def _block(self, first_index: int, partitions: list[PartitionRow]) -> BlockRow:
        """Return a block with the lives of the brokers that lead and are in sync as it is made;
        they must still live when it is written, and the others must still be registered.
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

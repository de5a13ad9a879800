"""Migration of a single broker's metadata into etcd: which rows, in which order, and what next.

The row `cluster` is written last: before it no broker can join, and a failed attempt can be
repeated, which goes on where the first one ended.  Every id derives from the directory, so two
attempts write the same rows.  A row with another content was written by somebody else, and refuses
the migration.

Leader epochs go up by one, so that no batch written later bears an epoch from before the migration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from tarry.base.errors import TarryError
from tarry.base.etcd import OPERATIONS_MAX, Compare, Put, Row
from tarry.base.ids import id_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.rows import (
    ROW_FORMAT,
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    FeatureRow,
    GroupConfigsRow,
    Keys,
    NameRow,
    ProducerIdsRow,
    TopicRow,
    encode_row,
    shown_key,
)
from tarry.cluster.rows.topic_rows import NO_EPOCH
from tarry.cluster.state.levels import SCHEDULED_RECORDS, Release, may_delay
from tarry.cluster.state.state import ClusterState, TopicState

# Number of rows in a transaction; two operations are left to guards, as in every transaction.
ROWS_MAX: Final = OPERATIONS_MAX - 2
# Bound on a transaction: etcd takes requests of 1.5 MB.  A topic's row with 10,000 partitions has
# some 50 KB.
BYTES_MAX: Final = 1024 * 1024


class MigrationRefused(TarryError):
    """Refusal to move the metadata into this prefix; the sentence says what to do."""


class Migration:
    """Rows of a single broker's metadata as etcd is to have them, and the steps that write them."""

    def __init__(self, state: ClusterState, keys: Keys, node_id: int, release: Release) -> None:
        self.keys = keys
        self.cluster_id = state.cluster_id
        self.node_id = node_id
        self.directory_id = directory_id(state.cluster_id, node_id)
        self.topic_count = len(state.topics)
        self.partition_count = state.partition_count
        self._own_id = state.broker_ids[0]
        # Values of the rows by key, in the order in which they are written.
        self.rows: dict[bytes, bytes] = {}
        self._add_broker(state, release)
        levels = dict(state.feature_levels)
        if any(may_delay(topic.configs) for topic in state.topics.values()):
            # The topic may be older than the feature level.
            levels.setdefault(SCHEDULED_RECORDS, 1)
        for name, level in sorted(levels.items()):
            self.rows[keys.feature(name)] = encode_row(FeatureRow(ROW_FORMAT, level))
        for group_id, configs in sorted(state.group_configs.items()):
            self.rows[keys.group(group_id)] = encode_row(GroupConfigsRow(ROW_FORMAT, configs))
        for topic in state.topics.values():
            self._add_topic(topic)
        for deleted in state.deleted_topics.values():
            row = DeletedRow(ROW_FORMAT, deleted.name, deleted.partition_count, [node_id])
            self.rows[keys.deleted(deleted.topic_id)] = encode_row(row)
        self.rows[keys.cluster] = encode_row(ClusterRow(ROW_FORMAT, state.cluster_id))

    def _add_broker(self, state: ClusterState, release: Release) -> None:
        keys = self.keys
        # The registration has no address, only this directory.  So if a broker with another disk
        # starts first under this id, it counts as one on another disk, and its empty logs do not
        # count as this data.
        levels = dict(release.levels)
        broker = BrokerRow(ROW_FORMAT, self.directory_id, "", {}, release.name, levels)
        self.rows[keys.broker(self.node_id)] = encode_row(broker)
        for broker_id, configs in sorted(state.broker_configs.items()):
            target = self.node_id if broker_id == self._own_id else broker_id
            self.rows[keys.configs(target)] = encode_row(ConfigsRow(ROW_FORMAT, configs))
        if state.producer_id_end:
            ids = ProducerIdsRow(ROW_FORMAT, state.producer_id_end)
            self.rows[keys.producer_ids] = encode_row(ids)

    def _add_topic(self, topic: TopicState) -> None:
        keys, own = self.keys, [self.node_id]
        name = NameRow(ROW_FORMAT, topic.name, id_text(topic.topic_id))
        self.rows[keys.name(topic.name)] = encode_row(name)
        block = BlockRow(0, [own] * len(topic.partitions), [])
        row = TopicRow(ROW_FORMAT, topic.name, topic.configs, [block])
        self.rows[keys.topic(topic.topic_id)] = encode_row(row)
        for index, partition in enumerate(topic.partitions):
            part = PartitionRow(
                self.node_id,
                partition.leader_epoch + 1,
                NO_EPOCH,
                partition.partition_epoch + 1,
                own,
                own,
            )
            self.rows[keys.part(topic.topic_id, index)] = encode_row(part)

    def missing(self, there: Iterable[Row]) -> list[bytes]:
        """Return the keys that are still to be written, in their order; empty if the migration is
        done.

        Raises `MigrationRefused` if a row is there that is not of an earlier attempt.
        """
        found = {row.key: row.value for row in there}
        if found.get(self.keys.cluster) == self.rows[self.keys.cluster]:
            # The migration was completed before.  Brokers may have changed its rows since.
            return []
        for key, value in found.items():
            if self.rows.get(key) != value:
                raise MigrationRefused(
                    f"etcd holds {shown_key(key)}, which is not of this migration: the prefix has "
                    "to be empty"
                )
        return [key for key in self.rows if key not in found]

    def step(self, missing: list[bytes]) -> tuple[list[Compare], list[Put]]:
        """Return the next transaction, which writes the first of the missing keys.

        It fails if one of its keys is there already, or the prefix has a cluster.  The row
        `cluster` has a transaction of its own.
        """
        puts: list[Put] = []
        size = 0
        for key in missing[:ROWS_MAX]:
            put = Put(key, self.rows[key])
            size += len(put.key) + len(put.value)
            is_last = key == self.keys.cluster
            if puts and (size > BYTES_MAX or is_last):
                break
            puts.append(put)
        compares = [Compare(put.key, "mod", 0) for put in puts]
        if puts[0].key != self.keys.cluster:
            compares.append(Compare(self.keys.cluster, "create", 0))
        return compares, puts


def directory_id(cluster_id: str, node_id: int) -> str:
    """Return the id that the directory is given: the same in every attempt."""
    digest = hashlib.sha256(f"tarry metadata migrate {cluster_id} {node_id}".encode()).digest()
    return id_text(digest[:16])

"""The cluster's state: topics, partitions, brokers, producer ids.  Changed only by `apply`.

Life and recovery apply the same records in the same order, so a replay gives the same state.
Applying a record that does not fit is a mistake of ours, not of a client: decisions refuse first.
"""

from __future__ import annotations

from typing import Protocol

from tarry.cluster.records import (
    BrokerConfigChanged,
    BrokerRegistered,
    BrokerStartedUncleanly,
    ClusterCreated,
    ConfigChanged,
    MetadataRecord,
    PartitionRow,
    PartitionsAdded,
    ProducerIdsReserved,
    StateReset,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.topic_names import collision_key


class PartitionState:
    """One partition: who leads it since when, who has it, who is in sync."""

    __slots__ = ("index", "isr", "leader_epoch", "leader_id", "partition_epoch", "replicas")

    def __init__(self, index: int, row: PartitionRow) -> None:
        self.index = index
        self.leader_id = row.leader_id
        self.leader_epoch = row.leader_epoch
        self.partition_epoch = row.partition_epoch
        self.replicas = row.replicas
        self.isr = row.isr

    def raise_leader_epoch(self) -> None:
        self.leader_epoch += 1
        self.partition_epoch += 1

    def row(self) -> PartitionRow:
        return PartitionRow(
            self.leader_id, self.leader_epoch, self.partition_epoch, self.replicas, self.isr
        )


class TopicState:
    """A topic: its settings are those that differ from the broker's, as text."""

    __slots__ = ("configs", "name", "partitions", "topic_id")

    def __init__(self, record: TopicCreated) -> None:
        self.name = record.name
        self.topic_id = record.topic_id
        self.partitions = [PartitionState(i, row) for i, row in enumerate(record.partitions)]
        self.configs = record.configs

    def add_partitions(self, rows: list[PartitionRow]) -> None:
        first = len(self.partitions)
        self.partitions.extend(PartitionState(first + i, row) for i, row in enumerate(rows))

    def record(self) -> TopicCreated:
        """The record that makes this topic as it is now."""
        return TopicCreated(
            topic_id=self.topic_id,
            name=self.name,
            partitions=[partition.row() for partition in self.partitions],
            configs=self.configs,
        )


class DeletedTopic:
    """A topic whose data is still to be removed."""

    __slots__ = ("name", "partition_count", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partition_count: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_count = partition_count


class ClusterView(Protocol):
    """What decisions ask of a state, be it the durable one or the one that is about to be."""

    broker_ids: list[int]
    producer_id_end: int

    def topic(self, name: str) -> TopicState | None:
        """The topic with this name."""

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        """The topic with this id."""

    def topic_like(self, name: str) -> str | None:
        """The topic with this name or one that clashes with it."""

    def configs_of_broker(self, broker_id: int) -> dict[str, str]:
        """What was changed of a broker's settings while it ran; or of `EVERY_BROKER`'s."""

    def is_being_deleted(self, name: str) -> bool:
        """Whether a topic of this name was deleted and its data still bears it."""


class ClusterState:
    """The state that the applied records give."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As before the first record."""
        self.cluster_id = ""
        self.broker_ids: list[int] = []
        self.topics: dict[str, TopicState] = {}
        self.topics_by_id: dict[bytes, TopicState] = {}
        self.deleted_topics: dict[bytes, DeletedTopic] = {}
        # The first producer id that nobody was ever given.
        self.producer_id_end = 0
        self.partition_count = 0
        self.broker_configs: dict[int, dict[str, str]] = {}
        self._names_by_collision_key: dict[str, str] = {}

    # -- what decisions ask

    def topic(self, name: str) -> TopicState | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        return self.topics_by_id.get(topic_id)

    def topic_like(self, name: str) -> str | None:
        return self._names_by_collision_key.get(collision_key(name))

    def configs_of_broker(self, broker_id: int) -> dict[str, str]:
        return self.broker_configs.get(broker_id, {})

    def is_being_deleted(self, name: str) -> bool:
        return any(deleted.name == name for deleted in self.deleted_topics.values())

    # -- change

    def apply(self, record: MetadataRecord) -> None:
        """The one way in which the state changes."""
        match record:
            case TopicCreated():
                self._create_topic(record)
            case ConfigChanged():
                self.topics_by_id[record.topic_id].configs = record.configs
            case PartitionsAdded():
                self.topics_by_id[record.topic_id].add_partitions(record.partitions)
                self.partition_count += len(record.partitions)
            case BrokerConfigChanged():
                self.broker_configs.pop(record.broker_id, None)
                if record.configs:
                    self.broker_configs[record.broker_id] = record.configs
            case TopicDeleted():
                self._delete_topic(record.topic_id)
            case TopicRemoved():
                del self.deleted_topics[record.topic_id]
            case ProducerIdsReserved():
                assert record.first_id >= self.producer_id_end
                assert record.count >= 0
                self.producer_id_end = record.first_id + record.count
            case BrokerStartedUncleanly():
                self._raise_leader_epochs()
            case BrokerRegistered():
                assert record.broker_id not in self.broker_ids
                self.broker_ids = sorted([*self.broker_ids, record.broker_id])
            case ClusterCreated():
                assert self.cluster_id == ""
                self.cluster_id = record.cluster_id
            case StateReset():
                self.reset()
            case _:
                raise AssertionError(f"{type(record).__name__} is not applied")

    def _create_topic(self, record: TopicCreated) -> None:
        key = collision_key(record.name)
        assert key not in self._names_by_collision_key
        assert record.topic_id not in self.topics_by_id
        topic = TopicState(record)
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._names_by_collision_key[key] = topic.name
        self.partition_count += len(topic.partitions)

    def _delete_topic(self, topic_id: bytes) -> None:
        topic = self.topics_by_id.pop(topic_id)
        del self.topics[topic.name]
        del self._names_by_collision_key[collision_key(topic.name)]
        self.partition_count -= len(topic.partitions)
        self.deleted_topics[topic_id] = DeletedTopic(topic.name, topic_id, len(topic.partitions))

    def _raise_leader_epochs(self) -> None:
        # With one broker it leads every partition; with more, only its own would be raised.
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.raise_leader_epoch()

    # -- a snapshot

    def snapshot(self) -> list[MetadataRecord]:
        """Records that give this state, whatever was applied before them."""
        records: list[MetadataRecord] = [
            StateReset(),
            ClusterCreated(cluster_id=self.cluster_id),
        ]
        records.extend(BrokerRegistered(broker_id=broker_id) for broker_id in self.broker_ids)
        records.extend(
            BrokerConfigChanged(broker_id=broker_id, configs=self.broker_configs[broker_id])
            for broker_id in sorted(self.broker_configs)
        )
        # What is deleted comes first: a topic of the same name may be there again.
        for deleted in self.deleted_topics.values():
            nowhere = PartitionRow(-1, 0, 0, [], [])
            records.append(
                TopicCreated(
                    topic_id=deleted.topic_id,
                    name=deleted.name,
                    partitions=[nowhere] * deleted.partition_count,
                    configs={},
                )
            )
            records.append(TopicDeleted(topic_id=deleted.topic_id))
        records.extend(topic.record() for topic in self.topics.values())
        records.append(ProducerIdsReserved(first_id=0, count=self.producer_id_end))
        return records

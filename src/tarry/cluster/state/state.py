"""The cluster's state: topics, partitions, brokers, producer ids.  Changed only by `apply`.

Life and recovery apply the same records in the same order, so a replay gives the same state.
A record that does not fit is our mistake and not a client's, because decisions refuse first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from tarry.base.partition_row import NOWHERE, PartitionRow
from tarry.cluster.state.overlay import Overlay
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    BrokerDescribed,
    BrokerRegistered,
    BrokerStartedUncleanly,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    DeletionPending,
    FeatureLevelChanged,
    GroupConfigChanged,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    StateReset,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state.topic_names import collision_key, is_internal

# Phases of a broker's life.  It claims its partitions while it starts, it leads and answers clients
# while it serves, and it hands its partitions over while it leaves.
STARTING: Final = "starting"
SERVING: Final = "serving"
LEAVING: Final = "leaving"


class TopicState(msgspec.Struct, frozen=True):
    """A topic: its partitions by index, and the settings that differ from the broker's, as text.

    A topic that changes becomes a new object, so that an overlay shares all others with the state
    below it.
    """

    name: str
    topic_id: bytes
    partitions: list[PartitionRow]
    configs: dict[str, str]

    @property
    def hosted_name(self) -> str:
        """Name of the topic that brokers host, which has the partitions and logs."""
        return self.name

    @property
    def is_internal(self) -> bool:
        """True if clients are told that the topic belongs to the cluster itself."""
        return is_internal(self.name)

    @property
    def is_frozen(self) -> bool:
        """True if a row of the topic in etcd is damaged: nobody changes any partition of the
        topic then.
        """
        return stands_still(self.partitions[0])

    def record(self) -> TopicCreated:
        """Return the record that makes this topic as it is now."""
        return TopicCreated(
            topic_id=self.topic_id,
            name=self.name,
            partitions=self.partitions,
            configs=self.configs,
        )


class DeletedTopic(msgspec.Struct, frozen=True):
    """A deleted topic whose data is not removed yet."""

    name: str
    topic_id: bytes
    partition_count: int
    # Brokers that still have data of the topic; empty in a store of one broker, which has all of
    # it.
    broker_ids: tuple[int, ...] = ()


class BrokerState(msgspec.Struct, frozen=True):
    """A broker of a cluster: its disk, its address for each listener, and its life if it has one.

    `broker_epoch` is -1 and `phase` "" if the broker has no life.  `levels` are the feature levels
    that its release knows.
    """

    directory_id: str
    rack: str
    endpoints: dict[str, tuple[str, int]]
    broker_epoch: int = -1
    phase: str = ""
    release: str = ""
    levels: Mapping[str, int] = {}


class ClusterState:
    """The state that the applied records give.  Only `apply` changes it."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        """Set the state to what it is before the first record."""
        self._cluster_id = ""
        self._broker_ids: list[int] = []
        # Brokers that share a store in etcd; empty if the store is one broker's own.
        self._brokers: MutableMapping[int, BrokerState] = {}
        self._topics: MutableMapping[str, TopicState] = {}
        self._topics_by_id: MutableMapping[bytes, TopicState] = {}
        self._deleted_topics: MutableMapping[bytes, DeletedTopic] = {}
        self._producer_id_end = 0
        self._partition_count = 0
        self._broker_configs: MutableMapping[int, dict[str, str]] = {}
        self._names_by_collision_key: MutableMapping[str, str] = {}
        self._feature_levels: MutableMapping[str, int] = {}
        self._group_configs: MutableMapping[str, dict[str, str]] = {}

    def overlay(self) -> ClusterState:
        """Return a copy of this state that can be changed and leaves this state as it is.

        The copy is valid until the next record is applied to this state.
        """
        above = ClusterState()
        above._cluster_id = self._cluster_id
        above._broker_ids = self._broker_ids
        above._brokers = Overlay(self._brokers)
        above._topics = Overlay(self._topics)
        above._topics_by_id = Overlay(self._topics_by_id)
        above._deleted_topics = Overlay(self._deleted_topics)
        above._producer_id_end = self._producer_id_end
        above._partition_count = self._partition_count
        above._broker_configs = Overlay(self._broker_configs)
        above._names_by_collision_key = Overlay(self._names_by_collision_key)
        above._feature_levels = Overlay(self._feature_levels)
        above._group_configs = Overlay(self._group_configs)
        return above

    # -- what all parts read

    @property
    def cluster_id(self) -> str:
        """The cluster's id; "" before the first record."""
        return self._cluster_id

    @property
    def broker_ids(self) -> list[int]:
        """The ids of all registered brokers, sorted."""
        return self._broker_ids

    @property
    def brokers(self) -> Mapping[int, BrokerState]:
        """The brokers that share the store, by id; empty if the store is one broker's own."""
        return self._brokers

    @property
    def placeable_ids(self) -> list[int]:
        """The ids of the brokers that can take a new partition, sorted: those that serve."""
        if not self._brokers:
            return self._broker_ids
        return sorted(
            broker_id for broker_id, broker in self._brokers.items() if broker.phase == SERVING
        )

    @property
    def topics(self) -> Mapping[str, TopicState]:
        """The topics by name."""
        return self._topics

    @property
    def topics_by_id(self) -> Mapping[bytes, TopicState]:
        """The topics by id."""
        return self._topics_by_id

    @property
    def deleted_topics(self) -> Mapping[bytes, DeletedTopic]:
        """The deleted topics whose data is not removed yet, by id."""
        return self._deleted_topics

    @property
    def producer_id_end(self) -> int:
        """The first producer id that was not reserved yet."""
        return self._producer_id_end

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics together."""
        return self._partition_count

    @property
    def broker_configs(self) -> Mapping[int, dict[str, str]]:
        """The settings that were changed while a broker ran, by broker id."""
        return self._broker_configs

    @property
    def feature_levels(self) -> Mapping[str, int]:
        """The feature levels in force, by feature."""
        return self._feature_levels

    @property
    def group_configs(self) -> Mapping[str, dict[str, str]]:
        """The settings of groups, by group id; groups without settings of their own are not
        among them.
        """
        return self._group_configs

    # -- what decisions ask

    def topic(self, name: str) -> TopicState | None:
        """Return the topic with this name, or None."""
        return self._topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        """Return the topic with this id, or None."""
        return self._topics_by_id.get(topic_id)

    def topic_like(self, name: str) -> str | None:
        """Return the name of the topic that has this name or clashes with it, or None."""
        return self._names_by_collision_key.get(collision_key(name))

    def configs_of_broker(self, broker_id: int) -> dict[str, str]:
        """Return the settings of a broker, or of `EVERY_BROKER`, that were changed while it ran."""
        return self._broker_configs.get(broker_id, {})

    def is_being_deleted(self, name: str) -> bool:
        """Return whether a deleted topic of this name still has data under that name."""
        return any(deleted.name == name for deleted in self._deleted_topics.values())

    # -- change

    def apply(self, record: MetadataRecord) -> None:
        """Change the state by one record.  The state changes in no other way."""
        match record:
            case TopicCreated():
                self._create_topic(record)
            case ConfigChanged():
                topic = self._topics_by_id[record.topic_id]
                self._put(replace(topic, configs=record.configs))
            case PartitionsAdded():
                self._add_partitions(record)
            case BrokerConfigChanged():
                _keep(self._broker_configs, record.broker_id, record.configs)
            case GroupConfigChanged():
                _keep(self._group_configs, record.group_id, record.configs)
            case FeatureLevelChanged():
                _keep(self._feature_levels, record.name, record.level)
            case TopicDeleted():
                self._delete_topic(record.topic_id)
            case TopicRemoved():
                del self._deleted_topics[record.topic_id]
            case DeletionPending():
                deleted = self._deleted_topics[record.topic_id]
                self._deleted_topics[record.topic_id] = replace(
                    deleted, broker_ids=tuple(record.broker_ids)
                )
            case PartitionChanged():
                self._change_partitions([record])
            case LifeChanged():
                self._brokers[record.broker_id] = replace(
                    self._brokers[record.broker_id],
                    broker_epoch=record.broker_epoch,
                    phase=record.phase,
                )
            case LifeEnded():
                broker = self._brokers[record.broker_id]
                self._brokers[record.broker_id] = replace(broker, broker_epoch=-1, phase="")
            case BrokerDescribed():
                self._describe_broker(record)
            case ProducerIdsReserved():
                assert record.first_id >= self._producer_id_end
                assert record.count >= 0
                self._producer_id_end = record.first_id + record.count
            case BrokerStartedUncleanly():
                self._raise_leader_epochs()
            case BrokerRegistered():
                assert record.broker_id not in self._broker_ids
                self._broker_ids = sorted([*self._broker_ids, record.broker_id])
            case BrokerUnregistered():
                self._brokers.pop(record.broker_id, None)
                self._broker_ids = [each for each in self._broker_ids if each != record.broker_id]
            case ClusterCreated():
                assert self._cluster_id == ""
                self._cluster_id = record.cluster_id
            case StateReset():
                self._reset()
            case _:
                raise AssertionError(f"{type(record).__name__} is not applied")

    def apply_all(self, records: Iterable[MetadataRecord]) -> None:
        """Change the state by records in their order.

        Neighbouring rows of one topic are applied together and cost one copy of the topic's list of
        partitions: one revision may have a hundred rows of a topic with ten thousand partitions.
        """
        rows: list[PartitionChanged] = []
        for record in records:
            row = record if isinstance(record, PartitionChanged) else None
            if rows and (row is None or row.topic_id != rows[0].topic_id):
                self._change_partitions(rows)
                rows = []
            if row is None:
                self.apply(record)
            else:
                rows.append(row)
        if rows:
            self._change_partitions(rows)

    def _put(self, topic: TopicState) -> None:
        self._topics[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic

    def _create_topic(self, record: TopicCreated) -> None:
        key = collision_key(record.name)
        assert key not in self._names_by_collision_key
        assert record.topic_id not in self._topics_by_id
        self._put(TopicState(record.name, record.topic_id, record.partitions, record.configs))
        self._names_by_collision_key[key] = record.name
        self._partition_count += len(record.partitions)

    def _add_partitions(self, record: PartitionsAdded) -> None:
        topic = self._topics_by_id[record.topic_id]
        self._put(replace(topic, partitions=topic.partitions + record.partitions))
        self._partition_count += len(record.partitions)

    def _delete_topic(self, topic_id: bytes) -> None:
        topic = self._topics_by_id.pop(topic_id)
        del self._topics[topic.name]
        del self._names_by_collision_key[collision_key(topic.name)]
        count = len(topic.partitions)
        self._partition_count -= count
        self._deleted_topics[topic_id] = DeletedTopic(topic.name, topic_id, count)

    def _change_partitions(self, records: list[PartitionChanged]) -> None:
        """Change partitions of one topic."""
        topic = self._topics_by_id[records[0].topic_id]
        partitions = list(topic.partitions)
        for record in records:
            partitions[record.index] = record.row
        self._put(replace(topic, partitions=partitions))

    def _describe_broker(self, record: BrokerDescribed) -> None:
        before = self._brokers.get(record.broker_id)
        self._brokers[record.broker_id] = BrokerState(
            record.directory_id,
            record.rack,
            record.endpoints,
            -1 if before is None else before.broker_epoch,
            "" if before is None else before.phase,
            record.release,
            record.levels,
        )

    def _raise_leader_epochs(self) -> None:
        # Only a broker with a store of its own writes this record, and it leads every partition.
        for topic in list(self._topics.values()):
            raised = [
                replace(
                    partition,
                    leader_epoch=partition.leader_epoch + 1,
                    partition_epoch=partition.partition_epoch + 1,
                )
                for partition in topic.partitions
            ]
            self._put(replace(topic, partitions=raised))

    # -- a snapshot

    def snapshot(self) -> list[MetadataRecord]:
        """Return records that give this state to any store that applies them."""
        records: list[MetadataRecord] = [
            StateReset(),
            ClusterCreated(cluster_id=self.cluster_id),
        ]
        records.extend(BrokerRegistered(broker_id=broker_id) for broker_id in self.broker_ids)
        records.extend(
            BrokerConfigChanged(broker_id=broker_id, configs=self.broker_configs[broker_id])
            for broker_id in sorted(self.broker_configs)
        )
        records.extend(
            FeatureLevelChanged(name=name, level=level)
            for name, level in sorted(self.feature_levels.items())
        )
        records.extend(
            GroupConfigChanged(group_id=group_id, configs=configs)
            for group_id, configs in sorted(self.group_configs.items())
        )
        # Deleted topics come first: a topic of the same name may exist again.
        for deleted in self.deleted_topics.values():
            records.append(
                TopicCreated(
                    topic_id=deleted.topic_id,
                    name=deleted.name,
                    partitions=[NOWHERE] * deleted.partition_count,
                    configs={},
                )
            )
            records.append(TopicDeleted(topic_id=deleted.topic_id))
        records.extend(topic.record() for topic in self.topics.values())
        records.append(ProducerIdsReserved(first_id=0, count=self.producer_id_end))
        return records


K = TypeVar("K")
V = TypeVar("V")


def _keep(kept: MutableMapping[K, V], key: K, value: V) -> None:
    """Put the value in place of the key's old one; an empty value or 0 removes the key."""
    kept.pop(key, None)
    if value:
        kept[key] = value


def is_led(view: ClusterState, row: PartitionRow) -> bool:
    """Return whether the partition's leader still has the life to which its leadership is bound."""
    leader = view.brokers.get(row.leader_id)
    return leader is not None and leader.broker_epoch == row.broker_epoch >= 0


def is_reassigned(row: PartitionRow) -> bool:
    """Return whether a reassignment of this partition is under way."""
    return bool(row.adding or row.removing)


def is_alive(view: ClusterState, broker_id: int) -> bool:
    """Return whether a broker has a life."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.broker_epoch >= 0


def stands_still(row: PartitionRow) -> bool:
    """Return whether nobody may change the partition, because a row of its topic is damaged.

    Such a partition is marked by an empty isr: a sound row has at least one replica in sync.
    """
    return not row.isr

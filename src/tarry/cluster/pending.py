"""The cluster as it will be once what is appended is durable.

Decisions are made on this view, so that of two requests that create the same topic in one turn
the second is refused.  What clients are told comes from the durable state alone.
"""

from __future__ import annotations

from tarry.cluster.records import (
    BrokerConfigChanged,
    ConfigChanged,
    MetadataRecord,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state import ClusterState, TopicState
from tarry.cluster.topic_names import collision_key


class PendingState:
    """A thin layer over the durable state: only what the pending records change."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.reset()

    def reset(self) -> None:
        """Nothing is pending."""
        self.broker_ids = self.state.broker_ids
        self.producer_id_end = self.state.producer_id_end
        # Topics that are created or changed.
        self._topics: dict[str, TopicState] = {}
        self._topics_by_id: dict[bytes, TopicState] = {}
        self._names_by_collision_key: dict[str, str] = {}
        self._broker_configs: dict[int, dict[str, str]] = {}
        # Topics that are deleted, by id, and their names until the data is removed.
        self._deleted: dict[bytes, str] = {}
        self._removed: dict[bytes, None] = {}

    def rebuild(self, records: list[MetadataRecord]) -> None:
        """The state below has moved on, or the tail was dropped: these records are pending."""
        self.reset()
        for record in records:
            self.add(record)

    def add(self, record: MetadataRecord) -> None:
        """One more record is appended."""
        if isinstance(record, TopicCreated):
            self._have(TopicState(record))
        elif isinstance(record, ConfigChanged):
            self._changed(record.topic_id).configs = record.configs
        elif isinstance(record, PartitionsAdded):
            self._changed(record.topic_id).add_partitions(record.partitions)
        elif isinstance(record, BrokerConfigChanged):
            self._broker_configs[record.broker_id] = record.configs
        elif isinstance(record, TopicDeleted):
            self._delete(record.topic_id)
        elif isinstance(record, TopicRemoved):
            # It is proposed when its deletion has been applied, not before.
            assert record.topic_id in self.state.deleted_topics
            self._removed[record.topic_id] = None
        elif isinstance(record, ProducerIdsReserved):
            self.producer_id_end = record.first_id + record.count

    def _have(self, topic: TopicState) -> None:
        self._topics[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic
        self._names_by_collision_key[collision_key(topic.name)] = topic.name

    def _changed(self, topic_id: bytes) -> TopicState:
        """The topic as it will be, an object of our own that may be changed."""
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            topic = TopicState(self.state.topics_by_id[topic_id].record())
            self._have(topic)
        return topic

    def _delete(self, topic_id: bytes) -> None:
        topic = self.topic_by_id(topic_id)
        assert topic is not None
        if self._topics_by_id.pop(topic_id, None) is not None:
            del self._topics[topic.name]
            del self._names_by_collision_key[collision_key(topic.name)]
        self._deleted[topic_id] = topic.name

    def topic(self, name: str) -> TopicState | None:
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        return self._unless_deleted(self.state.topics.get(name))

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        topic = self._topics_by_id.get(topic_id)
        if topic is not None:
            return topic
        return self._unless_deleted(self.state.topics_by_id.get(topic_id))

    def topic_like(self, name: str) -> str | None:
        like = self._names_by_collision_key.get(collision_key(name))
        if like is not None:
            return like
        like = self.state.topic_like(name)
        return like if like is not None and self.topic(like) is not None else None

    def configs_of_broker(self, broker_id: int) -> dict[str, str]:
        pending = self._broker_configs.get(broker_id)
        return self.state.configs_of_broker(broker_id) if pending is None else pending

    def is_being_deleted(self, name: str) -> bool:
        if name in self._deleted.values():
            return True
        return any(
            deleted.name == name and deleted.topic_id not in self._removed
            for deleted in self.state.deleted_topics.values()
        )

    def _unless_deleted(self, topic: TopicState | None) -> TopicState | None:
        if topic is None or topic.topic_id in self._deleted:
            return None
        return topic

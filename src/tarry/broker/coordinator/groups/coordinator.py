"""Group coordinator: consumer groups, kept in `__consumer_offsets`."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.broker.coordinator.coordinator import Coordinator
from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.groups.walks import ExpireOffsets, ForgetTopics
from tarry.cluster.decisions.topic_decisions import TopicWanted
from tarry.cluster.state.topic_names import OFFSETS_TOPIC
from tarry.group.decision import Moment
from tarry.partition.replicated_log import ReplicatedLog
from tarry.partition.topic import HostedTopic
from tarry.purgatory.purgatory import Purgatory

# FindCoordinator's key type of groups.
GROUP: Final = 0

FACTOR: Final = "offsets.topic.replication.factor"

# Least segment.bytes of a topic; the broker's setting may be smaller, as in Kafka.
SEGMENT_BYTES_MIN: Final = 1024 * 1024


class GroupCoordinator(Coordinator[GroupShard]):
    """Coordinator of consumer groups."""

    def __init__(self, context: GroupContext) -> None:
        super().__init__(OFFSETS_TOPIC, GROUP, context, context.cluster)
        self.shared = context
        self.history = context.history

    def new_shard(self, partition: ReplicatedLog) -> GroupShard:
        return GroupShard(partition, self.shared)

    def factor_wanted(self, settings: Settings, brokers: int) -> int:
        # A topic that is created too early would keep too few replicas.  But without the setting
        # the cluster may be meant to have only one or two brokers.
        factor = settings.offsets_topic_replication_factor
        return factor if settings.is_given(FACTOR) else min(factor, brokers)

    def topic_wanted(self, settings: Settings, brokers: int) -> TopicWanted:
        segment_bytes = max(settings.offsets_topic_segment_bytes, SEGMENT_BYTES_MIN)
        return TopicWanted(
            OFFSETS_TOPIC,
            settings.offsets_topic_num_partitions,
            min(settings.offsets_topic_replication_factor, brokers),
            [],
            [
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(segment_bytes)),
            ],
        )

    def purgatories(self) -> list[Purgatory]:
        shared = self.shared
        return [*shared.phases.values(), shared.heartbeats, shared.recorded]

    def moment(self) -> Moment:
        """Return the time of the turn, with the settings of groups."""
        return self.shared.moment()

    def find_named(self, group_id: str) -> tuple[GroupShard | None, int]:
        """Find the shard for a request that needs a group with a name; otherwise like `find`."""
        if not group_id:
            return None, errors.INVALID_GROUP_ID
        return self.find(group_id)

    def on_other_deleted(self, hosted: HostedTopic) -> None:
        """Begin to remove the offsets of a deleted topic."""
        if self.shards and not any(
            isinstance(chore, ForgetTopics) and not chore.has_begun for chore in self._chores
        ):
            self._chores.append(ForgetTopics(self.shards, self.shared))

    def expire_offsets(self) -> None:
        """Begin to remove offsets and groups whose retention is over."""
        if not any(isinstance(chore, ExpireOffsets) for chore in self._chores):
            self._chores.append(ExpireOffsets(self.shards, self.shared))

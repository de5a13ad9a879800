"""What this broker does when a metadata record was applied: host topics, give them up.

A deleted topic's directories are renamed first and removed outside the turn; when the renames
are durable a record says so, and until then a restart finishes the deletion.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.base.errors import FlushFailed, StorageError
from tarry.broker.metadata_writes import MetadataWrite
from tarry.cluster.dynamic_settings import take_over_changes
from tarry.cluster.records import (
    BrokerConfigChanged,
    ConfigChanged,
    MetadataRecord,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state import DeletedTopic, TopicState
from tarry.cluster.topic_names import is_internal
from tarry.cluster.topic_settings import log_config, topic_value
from tarry.log.config import LogConfig
from tarry.partition.producers import ProducerStates
from tarry.partition.state import Partition, ProducerListener
from tarry.partition.topic import HostedTopic
from tarry.timer.entry import TimerEntry

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

logger = logging.getLogger("tarry.broker")

REMOVAL_TIMEOUT_MS: Final = 60_000
REMOVAL_RETRY_MS: Final = 1_000
HOSTING_RETRY_MS: Final = 1_000
# A directory of this name was given up; nothing else gets it.
DELETED_SUFFIX: Final = "-delete"


def partition_directory(topic: str, index: int) -> str:
    """Kafka's name for the directory of a partition."""
    return f"{topic}-{index}"


def deleted_directory(topic: str, index: int, topic_id: bytes) -> str:
    """The name under which a deleted partition waits for its removal.

    The topic's name is cut so that the whole stays a file name; the id keeps it unique.
    """
    return f"{topic[:180]}-{index}.{topic_id.hex()}{DELETED_SUFFIX}"


class TopicRemovals:
    """Renames of deleted directories whose durability ends with a `TopicRemoved` record."""

    def __init__(self, broker: Broker, topic_id: bytes) -> None:
        self.broker = broker
        self.topic_id = topic_id

    def on_flushed(self, flush_id: int) -> None:
        """The renames are durable."""
        self.record()

    def record(self) -> None:
        """Say that the directories are gone, which frees the topic's name."""
        broker = self.broker
        write = RemovalWrite(self, broker.now_ms + REMOVAL_TIMEOUT_MS)
        broker.propose([TopicRemoved(topic_id=self.topic_id)], write)


class RemovalWrite(MetadataWrite):
    """The record of a removal.  If it cannot be written, it is tried again later."""

    def __init__(self, removals: TopicRemovals, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.removals = removals

    def on_complete(self) -> None:
        if self.error_code == errors.KAFKA_STORAGE_ERROR:
            RemovalRetry(self.removals)


class RemovalRetry(TimerEntry):
    """Waits before the record of a removal is tried again."""

    def __init__(self, removals: TopicRemovals) -> None:
        broker = removals.broker
        super().__init__(broker.now_ms + REMOVAL_RETRY_MS)
        self.removals = removals
        broker.timer.add(self)

    def expire(self) -> None:
        self.removals.record()


class HostingRetry(TimerEntry):
    """Waits before the rest of a new topic's logs is made, after the disk refused.

    What is open already stays: opened anew it would not be known as new, and its name would
    never be flushed.
    """

    def __init__(
        self, reactions: MetadataReactions, topic: TopicState, hosted: HostedTopic
    ) -> None:
        broker = reactions.broker
        super().__init__(broker.now_ms + HOSTING_RETRY_MS)
        self.reactions = reactions
        self.topic = topic
        self.hosted = hosted
        broker.timer.add(self)

    def expire(self) -> None:
        broker = self.reactions.broker
        if broker.cluster.topics.get(self.topic.name) is not self.topic:
            for partition in self.hosted.partitions:
                partition.is_closed = True
                broker.logs.forget(partition.log)
            return
        try:
            self.reactions.make(self.topic, self.hosted)
        except FlushFailed as error:
            broker.shutdown.fail(str(error))


class DirectoriesRetry(TimerEntry):
    """Waits before a deleted topic's directories are renamed again, after the disk refused."""

    def __init__(self, reactions: MetadataReactions, deleted: DeletedTopic) -> None:
        broker = reactions.broker
        super().__init__(broker.now_ms + REMOVAL_RETRY_MS)
        self.reactions = reactions
        self.deleted = deleted
        broker.timer.add(self)

    def expire(self) -> None:
        if self.deleted.topic_id in self.reactions.broker.cluster.deleted_topics:
            self.reactions.remove_directories(self.deleted)


class MetadataReactions:
    """Keeps `broker.topics` and the directories in step with the cluster's state."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def react(self, record: MetadataRecord) -> None:
        """One applied record."""
        if isinstance(record, TopicCreated):
            topic = self.broker.cluster.topics.get(record.name)
            if topic is not None and topic.topic_id == record.topic_id:
                self.make(topic, HostedTopic(topic.name, topic.topic_id))
        elif isinstance(record, TopicDeleted):
            deleted = self.broker.cluster.deleted_topics.get(record.topic_id)
            if deleted is not None:
                self.give_up(deleted)
        elif isinstance(record, PartitionsAdded):
            self.grow(record.topic_id)
        elif isinstance(record, ConfigChanged):
            self.reconfigure_topic(record.topic_id)
        elif isinstance(record, BrokerConfigChanged):
            self.reconfigure_broker()

    def make(self, topic: TopicState, hosted: HostedTopic) -> None:
        """Make the logs of a new topic; what the disk refuses is tried again."""
        try:
            self.host(topic, hosted)
            self.broker.coordinators.on_hosted(hosted)
        except FlushFailed:
            raise
        except StorageError as error:
            # The topic is there, only its directories are not: clients are told to try again.
            self.broker.logs.trouble.report(f"topic {topic.name} has no logs yet", error)
            HostingRetry(self, topic, hosted)

    def host(self, topic: TopicState, hosted: HostedTopic) -> None:
        """Open the logs of the topic's partitions that `hosted` has not yet.

        At start a `StorageError` refuses the start: opened later, a log would be taken for one
        that nothing is known of, and what was durable for what is not.
        """
        broker = self.broker
        hosted.is_internal = is_internal(topic.name)
        expiration_ms = broker.settings.producer_id_expiration_ms
        for state in topic.partitions[len(hosted.partitions) :]:
            producers = ProducerStates(expiration_ms)
            log = broker.logs.open(
                partition_directory(topic.name, state.index),
                topic.topic_id,
                log_config(topic.configs, broker.settings, broker.random),
                ProducerListener(producers),
            )
            partition = Partition(topic.name, topic.topic_id, state.index, log, producers)
            self._choose_flush(partition)
            partition.lead(state.leader_id, state.leader_epoch, state.replicas, state.isr)
            hosted.partitions.append(partition)
        broker.topics.add(hosted)

    def grow(self, topic_id: bytes) -> None:
        """A topic has more partitions: make the logs that it has not yet."""
        broker = self.broker
        topic = broker.cluster.topics_by_id.get(topic_id)
        hosted = broker.topics.with_id(topic_id)
        # Deleted since; or not hosted yet: who makes its logs makes these too.
        if topic is not None and hosted is not None:
            self.make(topic, hosted)

    def reconfigure_topic(self, topic_id: bytes) -> None:
        """Settings of a topic changed: its logs follow without a restart."""
        topic = self.broker.cluster.topics_by_id.get(topic_id)
        hosted = self.broker.topics.with_id(topic_id)
        if topic is not None and hosted is not None:
            self._reconfigure(topic, hosted, {})

    def reconfigure_broker(self) -> None:
        """Settings of the broker changed: so does what stands behind every topic's."""
        broker = self.broker
        take_over_changes(broker.settings, broker.cluster)
        expiration_ms = broker.settings.producer_id_expiration_ms
        made: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        for hosted in broker.topics.all():
            topic = broker.cluster.topics_by_id.get(hosted.topic_id)
            if topic is None:
                continue
            self._reconfigure(topic, hosted, made)
            for partition in hosted.partitions:
                partition.producers.expiration_ms = expiration_ms

    def _reconfigure(
        self,
        topic: TopicState,
        hosted: HostedTopic,
        made: dict[tuple[tuple[str, str], ...], LogConfig],
    ) -> None:
        """`made`: what settings came to already, so that ten thousand topics are soon done."""
        settings, configs = self.broker.settings, topic.configs
        has_jitter = topic_value("segment.jitter.ms", configs, settings) != 0
        key = tuple(configs.items())
        config = made.get(key)
        if config is None:
            config = log_config(configs, settings)
            made[key] = config
        for partition in hosted.partitions:
            if has_jitter:
                # Each log has its own, so that not all of them roll at once.
                config = log_config(configs, settings, self.broker.random)
            partition.reconfigure(config)
            self._choose_flush(partition)

    def _choose_flush(self, partition: Partition) -> None:
        broker = self.broker
        was_flushed_at_once = partition.is_flushed_at_once
        partition.is_flushed_at_once = (
            broker.settings.flush_policy == "commit" or partition.config.flush_messages == 1
        )
        if partition.is_flushed_at_once and not was_flushed_at_once:
            # What was written and not flushed may be waited for from now on.
            broker.flushes.dirty[partition] = None

    def give_up(self, deleted: DeletedTopic) -> None:
        """The topic is gone: wake who waits for it, rename its directories, remove them."""
        broker = self.broker
        hosted = broker.topics.remove(deleted.topic_id)
        if hosted is not None:
            for partition in hosted.partitions:
                partition.is_closed = True
                broker.logs.forget(partition.log)
                broker.record_deletions.on_start_moved(partition)
            broker.coordinators.on_given_up(hosted)
        self.remove_directories(deleted)

    def remove_leftovers(self) -> None:
        """At start: remove given-up directories whose removal a power loss undid."""
        for path in self.broker.disk.paths():
            if path.endswith(f"{DELETED_SUFFIX}/"):
                self.broker.disk.begin_remove(path[:-1])

    def remove_directories(self, deleted: DeletedTopic) -> None:
        """Rename and remove what is left of a deleted topic; harmless if nothing is."""
        try:
            self._remove_directories(deleted)
        except StorageError as error:
            # Its name stays taken until the directories are away.
            trouble = self.broker.logs.trouble
            trouble.report(f"topic {deleted.name} cannot be removed yet", error)
            DirectoriesRetry(self, deleted)

    def _remove_directories(self, deleted: DeletedTopic) -> None:
        broker = self.broker
        disk = broker.disk
        renamed: list[str] = []
        is_recreated = deleted.name in broker.topics
        for index in range(deleted.partition_count):
            directory = partition_directory(deleted.name, index)
            away = deleted_directory(deleted.name, index, deleted.topic_id)
            if not is_recreated and disk.exists(directory):
                disk.rename(directory, away)
            if disk.exists(away):
                renamed.append(away)
        flush_id = disk.begin_flush([], [""])
        broker.flushes.then(flush_id, TopicRemovals(broker, deleted.topic_id).on_flushed)
        for away in renamed:
            disk.begin_remove(away)
        logger.debug("topic %s: %d directories are being removed", deleted.name, len(renamed))

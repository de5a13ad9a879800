"""Hosting of topics by applied metadata: make their logs, change them, give them up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from tarry.base.doors import Random
from tarry.base.errors import FlushFailed, StorageError
from tarry.base.settings import Settings
from tarry.broker.flushes import Flushes
from tarry.broker.metadata.removals import Removals, partition_directory
from tarry.broker.metadata.retries import Retries
from tarry.broker.topics import Topics
from tarry.cluster.change import Change
from tarry.cluster.dynamic_settings import take_over_changes
from tarry.cluster.records import (
    BrokerConfigChanged,
    BrokerDescribed,
    ConfigChanged,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    PartitionRow,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.state import ClusterState, DeletedTopic, TopicState, stands_still
from tarry.cluster.topic_names import is_internal
from tarry.cluster.topic_settings import log_config, log_configs, topic_value
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.logs import EarlierLog, Logs
from tarry.partition.producers import ProducerStates
from tarry.partition.role import Role
from tarry.partition.state import Partition, ProducerListener
from tarry.partition.topic import HostedTopic

# Partitions of new topics that a member of a cluster looks at in one turn: a log takes half a
# millisecond to make, and a life is over when the loop stands still for some seconds.
HOSTED_PER_TURN: Final = 250


class HostingListener(Protocol):
    """Listener to topics that come and go here."""

    def on_hosted(self, hosted: HostedTopic) -> None:
        """Hear that the topic has its logs, or more of them than before."""

    def on_given_up(self, hosted: HostedTopic) -> None:
        """Hear that the topic was deleted, and its logs are closed."""


class RoleListener(Protocol):
    """Listener to the roles of the replicas here: leader, epoch, replicas in sync."""

    def on_role(self, partition: Partition, before: Role | None, after: Role) -> None:
        """Hear that a replica, which has `after` already, came with it or had `before`."""


def _no_life() -> int:
    return -1


class Hosting:
    """Keeps the hosted topics and their directories in step with the cluster's state."""

    def __init__(
        self,
        state: ClusterState,
        settings: Settings,
        topics: Topics,
        logs: Logs,
        flushes: Flushes,
        *,
        removals: Removals,
        retries: Retries,
        random: Random,
        listener: HostingListener,
        on_closed: Callable[[Partition], None],
        fail: Callable[[str], None],
    ) -> None:
        self._state = state
        self._settings = settings
        self._topics = topics
        self._logs = logs
        self._flushes = flushes
        self._removals = removals
        self.retries = retries
        self._random = random
        self._listener = listener
        self._on_closed = on_closed
        self._fail = fail
        # Told of each role in this order.
        self.role_listeners: list[RoleListener] = []
        # Told of lives and addresses of brokers.
        self.when_lives_change: list[Callable[[MetadataRecord], None]] = []
        # Told of each replica that is given up, with its topic or by a row.
        self.when_closed: list[Callable[[Partition], None]] = []
        # In a cluster: the life of this broker in which it may lead, or -1.  A broker that is alone
        # leads without one.
        self.is_member = False
        self.hosted_per_turn = HOSTED_PER_TURN
        # In a cluster: topics of which partitions are to be looked at, each from an index on, and
        # whether that goes on in the next turn; how many more there are to be in the turn of a
        # time.
        self._unmade: dict[HostedTopic, int] = {}
        self._is_going_on = False
        self._left = 0
        self._left_ms = -1
        self.own_epoch: Callable[[], int] = _no_life
        self._roles: dict[Partition, Role] = {}
        # Replicas of which nobody was told: the disk refused others of a topic that is new.
        self._untold: dict[Partition, None] = {}
        # The directories that were there at the start, until their topics are hosted.
        self._found: set[str] = set()
        self._has_begun = False

    def react(self, record: MetadataRecord) -> None:
        """Do what an applied record asks of this broker; the state may be further already."""
        if isinstance(record, TopicCreated):
            topic = self._state.topic_by_id(record.topic_id)
            if topic is not None:
                self._make_all(topic, HostedTopic(topic.name, topic.topic_id))
        elif isinstance(record, TopicDeleted):
            deleted = self._state.deleted_topics.get(record.topic_id)
            if deleted is not None:
                self._give_up(deleted)
        elif isinstance(record, PartitionsAdded):
            topic = self._state.topic_by_id(record.topic_id)
            hosted = self._topics.with_id(record.topic_id)
            # Deleted since; or not hosted yet: then its logs are all made together.
            if topic is not None and hosted is not None:
                self._make_all(topic, hosted)
        elif isinstance(record, PartitionChanged):
            self._change_role(record)
        elif isinstance(record, ConfigChanged):
            self._reconfigure_topic(record.topic_id)
        elif isinstance(record, BrokerConfigChanged):
            self.reconfigure_broker()
        elif isinstance(record, LifeChanged | LifeEnded | BrokerDescribed):
            for hear in self.when_lives_change:
                hear(record)

    def on_refused(self, change: Change) -> None:
        """Try again what this broker itself wanted to change."""
        self._removals.on_refused(change)

    # -- topics that come

    def begin(self) -> None:
        """Host the topics of the state, at start; and finish the deletions that a crash ended.

        A `StorageError` refuses the start: opened later, a log would be taken for one that nothing
        is known of, and what was durable for what is not.
        """
        # Deletions come first, so that no directory has two owners.
        for deleted in list(self._state.deleted_topics.values()):
            self._removals.remove(deleted)
        self._removals.remove_leftovers()
        self._found = {path[:-1] for path in self._logs.disk.paths() if path.endswith("/")}
        for topic in self._state.topics.values():
            hosted = HostedTopic(topic.name, topic.topic_id)
            self._host(topic, hosted, range(len(topic.partitions)))
            self._topics.add(hosted)
        self._has_begun = True
        self._found = set()
        self._logs.settle()
        for partition in self._topics.replicas():
            partition.begin_after_recovery()
        for hosted in self._topics.all():
            self._tell_hosted(hosted, hosted.replicas())

    def _make_all(self, topic: TopicState, hosted: HostedTopic) -> None:
        """Make the logs of a topic that it has not yet.  Of many some are made in this turn and the
        rest in the next ones; clients try those again meanwhile.
        """
        if not self.is_member:
            self._make(topic, hosted, range(len(topic.partitions)))
            return
        self._unmade.setdefault(hosted, 0)
        self._make_some()

    def _make_some(self) -> None:
        """Make as many logs as this turn has room for."""
        if self._left_ms != self.retries.now_ms:
            self._left_ms, self._left = self.retries.now_ms, self.hosted_per_turn
        while self._unmade and self._left > 0:
            hosted = next(iter(self._unmade))
            first = self._unmade.pop(hosted)
            topic = self._state.topic_by_id(hosted.topic_id)
            if topic is None:
                self._close_untold(hosted)
                continue
            count = len(topic.partitions)
            end = min(first + self._left, count)
            self._left -= end - first
            if end < count:
                self._unmade[hosted] = end
            self._make(topic, hosted, range(first, end))
        if self._unmade and not self._is_going_on:
            self._is_going_on = True
            self.retries.soon(self._go_on)

    def _go_on(self) -> None:
        self._is_going_on = False
        try:
            self._make_some()
        except FlushFailed as error:
            self._fail(str(error))

    def _make(self, topic: TopicState, hosted: HostedTopic, indexes: Sequence[int]) -> None:
        """Make the logs of these partitions of a topic, which is hosted from then on if it was not;
        what the disk refuses is tried again.
        """
        try:
            self._host(topic, hosted, indexes)
        except FlushFailed:
            raise
        except StorageError as error:
            # The topic is there, only its directories are not: clients are told to try again.
            if not isinstance(error, EarlierLog):
                self._logs.trouble.report(f"topic {topic.name} has no logs yet", error)
            # What is open already stays: opened anew it would not be known as new, and its name
            # would never be flushed.
            self.retries.later(partial(self._make_again, hosted, indexes))
            if self._topics.with_id(topic.topic_id) is hosted:
                # What came before it can be reached already.
                self._tell_untold(topic, hosted)
            return
        self._topics.add(hosted)
        self._tell_untold(topic, hosted)

    def _tell_untold(self, topic: TopicState, hosted: HostedTopic) -> None:
        came = [each for each in self._untold if each.topic_id == topic.topic_id]
        for partition in came:
            self._follow_untold(hosted, partition, topic.partitions[partition.index])
        self._tell_hosted(hosted, [each for each in came if each in self._untold])

    def _tell_hosted(self, hosted: HostedTopic, came: list[Partition]) -> None:
        for partition in came:
            self._untold.pop(partition, None)
            role = self._roles[partition]
            for listener in self.role_listeners:
                listener.on_role(partition, None, role)
        self._listener.on_hosted(hosted)

    def _make_again(self, hosted: HostedTopic, indexes: Sequence[int]) -> None:
        topic = self._state.topic_by_id(hosted.topic_id)
        if topic is None:
            self._close_untold(hosted)
            return
        try:
            self._make(topic, hosted, indexes)
        except FlushFailed as error:
            self._fail(str(error))

    def _close_untold(self, hosted: HostedTopic) -> None:
        """Close what nobody was told of, of a deleted topic; all else is closed already."""
        for partition in [each for each in self._untold if each.topic_id == hosted.topic_id]:
            self._close_one(partition)

    def _host(self, topic: TopicState, hosted: HostedTopic, indexes: Iterable[int]) -> None:
        """Open the logs of the replicas of these partitions that are this broker's and that
        `hosted` has not yet.
        """
        hosted.is_internal = is_internal(topic.name)
        new_config = log_configs(topic.configs, self._settings, self._random)
        for index in indexes:
            row = topic.partitions[index]
            if hosted.replica(index) is not None:
                continue
            if self._settings.node_id not in row.replicas and not self._is_kept(topic, index):
                hosted.elsewhere[index] = None
                if not self._has_begun and partition_directory(topic.name, index) in self._found:
                    # It was taken from this broker while it was away.
                    self._removals.give_up_replica(topic.name, index, topic.topic_id)
                continue
            self._make_room(topic, index)
            producers = ProducerStates(self._settings.producer_id_expiration_ms)
            log = self._logs.open(
                partition_directory(topic.name, index),
                topic.topic_id,
                new_config(),
                ProducerListener(producers),
            )
            own_id = self._settings.node_id
            partition = Partition(topic.name, topic.topic_id, index, log, producers, own_id)
            self._choose_flush(partition)
            role = self._role(row)
            self._roles[partition] = role
            partition.take_role(role)
            partition.begin_after_recovery()
            hosted.place(partition)
            if self._has_begun:
                self._untold[partition] = None

    def _follow_untold(self, hosted: HostedTopic, partition: Partition, row: PartitionRow) -> None:
        """Bring a replica of which nobody was told yet up to its row, which may have changed while
        the topic was not hosted for want of the others.
        """
        if self._settings.node_id not in row.replicas:
            self._give_up_replica(hosted, partition)
        elif self._role(row) != self._roles[partition]:
            self._take_role(hosted, partition, self._role(row))

    def _is_kept(self, topic: TopicState, index: int) -> bool:
        """Return whether this broker keeps data though it is not among the replicas known: those of
        a row that cannot be read may be old ones, and who has data of a partition that is as it was
        made got it by a row that is gone.
        """
        directory = partition_directory(topic.name, index)
        if directory not in self._found:
            return False
        row = topic.partitions[index]
        return stands_still(row) or (row.partition_epoch == 0 and self._is_of(topic, directory))

    def _is_of(self, topic: TopicState, directory: str) -> bool:
        identity = LogIdentity(directory, topic.topic_id)
        return identity.read(self._logs.disk) == identity.text

    # -- roles

    def _role(self, row: PartitionRow) -> Role:
        own_epoch = self.own_epoch()
        is_own = row.leader_id == self._settings.node_id
        return Role(
            row.leader_id,
            row.leader_epoch,
            row.broker_epoch,
            row.partition_epoch,
            row.replicas,
            row.isr,
            row.unclean_epoch,
            is_own and (not self.is_member or row.broker_epoch == own_epoch >= 0),
        )

    def _change_role(self, record: PartitionChanged) -> None:
        """Follow a partition's row: another leader, epoch or isr, or a replica that is new here."""
        hosted = self._topics.with_id(record.topic_id)
        if hosted is None:
            return
        partition = hosted.replica(record.index)
        if partition is not None:
            self._take_role(hosted, partition, self._role(record.row))
            if self._settings.node_id not in record.row.replicas:
                self._give_up_replica(hosted, partition)
        elif self._settings.node_id in record.row.replicas:
            topic = self._state.topic_by_id(record.topic_id)
            if topic is not None:
                self._make(topic, hosted, [record.index])

    def on_own_life(self) -> None:
        """Look at all roles anew: this broker has begun another life, or has lost its own."""
        for topic in self._state.topics.values():
            hosted = self._topics.with_id(topic.topic_id)
            if hosted is None:
                continue
            for partition in hosted.replicas():
                role = self._role(topic.partitions[partition.index])
                if role != self._roles[partition]:
                    self._take_role(hosted, partition, role)

    def _take_role(self, hosted: HostedTopic, partition: Partition, role: Role) -> None:
        before = self._roles[partition]
        self._roles[partition] = role
        partition.take_role(role)
        hosted.place(partition)
        if partition in self._untold:
            # It is told with its topic, in the role that it has by then.
            return
        for listener in self.role_listeners:
            listener.on_role(partition, before, role)
        # What was flushed while this broker led nothing counts from now on; not before the leader's
        # side knows who is in sync besides.
        partition.maybe_advance_high_watermark()
        if before.is_leader or role.is_leader:
            # Whoever waits looks again: it may have to go elsewhere, or have what it waits for.
            self._on_closed(partition)

    def _give_up_replica(self, hosted: HostedTopic, partition: Partition) -> None:
        """Close the log of a replica that its row has taken from this broker, and remove it."""
        hosted.drop(partition)
        self._close_one(partition)
        self._on_closed(partition)
        self._removals.give_up_replica(partition.topic, partition.index, partition.topic_id)

    def _make_room(self, topic: TopicState, index: int) -> None:
        """Put away what an earlier replica has left where a log is to be made.

        What this broker has was opened at its start: to read it in a turn could take long, and the
        row that has taken the replica away gave it up.
        """
        if self._has_begun and self.is_member:
            self._removals.move_replica_away(topic.name, index, topic.topic_id)

    # -- settings

    def _reconfigure_topic(self, topic_id: bytes) -> None:
        """Let a topic's logs follow its settings without a restart."""
        topic = self._state.topic_by_id(topic_id)
        hosted = self._topics.with_id(topic_id)
        if topic is not None and hosted is not None:
            self._reconfigure(topic, hosted, {})

    def reconfigure_broker(self) -> None:
        """Let every topic follow the broker's settings, which stand behind its own."""
        take_over_changes(self._settings, self._state)
        expiration_ms = self._settings.producer_id_expiration_ms
        made: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        for hosted in self._topics.all():
            topic = self._state.topic_by_id(hosted.topic_id)
            if topic is None:
                continue
            self._reconfigure(topic, hosted, made)
            for partition in hosted.replicas():
                partition.producers.expiration_ms = expiration_ms

    def _reconfigure(
        self,
        topic: TopicState,
        hosted: HostedTopic,
        made: dict[tuple[tuple[str, str], ...], LogConfig],
    ) -> None:
        """`made`: what settings came to already, so that ten thousand topics are soon done."""
        settings, configs = self._settings, topic.configs
        has_jitter = topic_value("segment.jitter.ms", configs, settings) != 0
        key = tuple(configs.items())
        config = made.get(key)
        if config is None:
            config = log_config(configs, settings)
            made[key] = config
        for partition in hosted.replicas():
            if has_jitter:
                # Each log has its own, so that not all of them roll at once.
                config = log_config(configs, settings, self._random)
            partition.reconfigure(config)
            self._choose_flush(partition)
            if partition.followers is not None and partition.maybe_advance_high_watermark():
                # min.insync.replicas was lowered, or less is flushed before it counts.
                self._on_closed(partition)

    def _choose_flush(self, partition: Partition) -> None:
        was_flushed_at_once = partition.is_flushed_at_once
        partition.is_flushed_at_once = (
            self._settings.flush_policy == "commit" or partition.config.flush_messages == 1
        )
        if partition.is_flushed_at_once and not was_flushed_at_once:
            # What was written and not flushed may be waited for from now on.
            self._flushes.dirty[partition] = None

    # -- topics that go

    def _give_up(self, deleted: DeletedTopic) -> None:
        """Close the logs of a deleted topic, wake whoever waits for it, remove its directories."""
        hosted = self._topics.remove(deleted.topic_id)
        if hosted is not None:
            self._close(hosted)
            for partition in hosted.replicas():
                self._on_closed(partition)
            self._listener.on_given_up(hosted)
        self._removals.remove(deleted)

    def _close(self, hosted: HostedTopic) -> None:
        for partition in hosted.replicas():
            self._close_one(partition)

    def _close_one(self, partition: Partition) -> None:
        partition.close()
        self._roles.pop(partition, None)
        self._untold.pop(partition, None)
        self._flushes.refused.pop(partition, None)
        for forget in self.when_closed:
            forget(partition)
        self._logs.forget(partition.log)

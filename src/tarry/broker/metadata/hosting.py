"""Hosting of topics as the metadata say: create their logs, change their roles, give them up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from tarry.base.doors import Random
from tarry.base.errors import FlushFailed, StorageError
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.broker.flushes import Flushes
from tarry.broker.membership.doubts import stand_still
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.metadata.closings import Closings
from tarry.broker.metadata.companions import Companions
from tarry.broker.metadata.reconfigurations import Reconfigurations
from tarry.broker.metadata.removals import Removals, partition_directory
from tarry.broker.metadata.retries import Retries
from tarry.broker.part import Part, Parts
from tarry.broker.topics import Topics
from tarry.cluster.configs.dynamic_settings import take_over_changes
from tarry.cluster.configs.topic_settings import log_configs
from tarry.cluster.state.records import (
    BrokerConfigChanged,
    BrokerDescribed,
    ConfigChanged,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.state.state import DeletedTopic, TopicState, stands_still
from tarry.cluster.state.topic_names import is_internal
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore
from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.logs import EarlierLog, Logs
from tarry.partition.leadership import Leadership
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener, ReplicatedLog
from tarry.partition.topic import HostedTopic

# Number of partitions of new topics for one turn: creating a log takes half a millisecond.
HOSTED_PER_TURN: Final = 80
# Number of a topic's refused logs that are tried again together.
RETRIED_PER_TURN: Final = 50


class Hosting(Part):
    """Part that keeps the hosted topics and their directories in step with the cluster's state."""

    def __init__(
        self,
        store: MetadataStore,
        settings: Settings,
        topics: Topics,
        logs: Logs,
        flushes: Flushes,
        *,
        removals: Removals,
        retries: Retries,
        random: Random,
        neighbours: Neighbours,
        parts: Parts,
        on_closed: Callable[[ReplicatedLog], None],
        on_companion: Callable[[ReplicatedLog], None],
        fail: Callable[[str], None],
    ) -> None:
        self._state = store.state
        self._settings = settings
        self._topics = topics
        self._logs = logs
        self._companions = Companions(settings, logs)
        self._removals = removals
        self._closings = Closings(removals, logs, flushes, neighbours, on_closed)
        self.retries = retries
        self._reconfigurations = Reconfigurations(
            store.state,
            settings,
            topics,
            self._companions,
            flushes=flushes,
            random=random,
            on_counted=on_closed,
        )
        self._random = random
        self._on_closed = on_closed
        self._on_companion = on_companion
        self._fail = fail
        self._neighbours = neighbours
        self._parts = parts
        self.hosted_per_turn = HOSTED_PER_TURN
        # Topics with logs still to be created, each with the index of the next partition; and how
        # many logs this turn may still create.
        self._unmade: dict[HostedTopic, int] = {}
        self._left = HOSTED_PER_TURN
        # Topics with logs that the disk has refused, which are tried again.
        self._refused: dict[HostedTopic, None] = {}
        # Directories that the start has found; empty once the topics are hosted.
        self._found: set[str] = set()
        self._has_begun = False
        store.listen(self)

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Follow applied records."""
        for record in records:
            self.react(record)

    def react(self, record: MetadataRecord) -> None:
        """Follow an applied record; the state may be newer than the record."""
        if isinstance(record, TopicCreated):
            topic = self._state.topic_by_id(record.topic_id)
            if topic is not None:
                self._make_all(HostedTopic(topic.name, topic.topic_id))
        elif isinstance(record, TopicDeleted):
            deleted = self._state.deleted_topics.get(record.topic_id)
            hosted = self._topics.with_id(record.topic_id)
            if deleted is None and hosted is not None:
                # The other brokers have finished the deletion; this broker had no replica of the
                # topic.
                deleted = DeletedTopic(hosted.name, record.topic_id, 0)
            if deleted is not None:
                self._give_up(deleted)
        elif isinstance(record, PartitionsAdded):
            topic = self._state.topic_by_id(record.topic_id)
            hosted = self._topics.with_id(record.topic_id)
            # The topic may be deleted since.  If it is not hosted yet, its logs are created all
            # together.
            if topic is not None and hosted is not None:
                self._make_all(hosted)
        elif isinstance(record, PartitionChanged):
            self._change_role(record)
        elif isinstance(record, ConfigChanged):
            self._reconfigure_topic(record.topic_id)
        elif isinstance(record, BrokerConfigChanged):
            self.reconfigure_broker()
        elif isinstance(record, LifeChanged | LifeEnded | BrokerDescribed):
            self._neighbours.on_lives(record)

    def on_refused(self, change: Change) -> None:
        """Try again a refused change that this broker itself has asked for."""
        self._removals.on_refused(change)

    # -- new topics

    def begin(self) -> None:
        """Host the topics of the state at a start, after finishing the deletions that a crash
        ended.

        A `StorageError` refuses the start: a log that is opened later would count as one without a
        recovery point, and its durable records as not durable.
        """
        # Deletions come first, so that no directory has two owners.
        for deleted in list(self._state.deleted_topics.values()):
            self._removals.remove(deleted)
        while self._removals.has_work_left():
            self._removals.step()
        self._removals.remove_leftovers()
        self._found = {path[:-1] for path in self._logs.disk.paths() if path.endswith("/")}
        for topic in self._state.topics.values():
            hosted = HostedTopic(topic.name, topic.topic_id)
            hosted.is_internal = is_internal(topic.name)
            self._companions.describe(topic.configs, hosted)
            new_config = log_configs(topic.configs, self._settings, self._random)
            for index in range(len(topic.partitions)):
                if self._forgets_lost(topic, index):
                    hosted.refuse(index)
                    continue
                self._host(topic, hosted, index, new_config)
                self._add_companion(topic, hosted, index)
            self._topics.add(hosted)
            if hosted.refused:
                # The log is created once the recovery points no longer name it.
                self._try_again(hosted, self.retries.later)
        self._has_begun = True
        self._found = set()
        self._logs.settle()
        for log in self._topics.logs():
            log.begin_after_recovery()
        for hosted in self._topics.all():
            self._tell_hosted(hosted, hosted.replicas())

    def _make_all(self, hosted: HostedTopic) -> None:
        """Create the logs that a topic lacks: of many, some in this turn and the others in the next
        ones, while clients try those again.
        """
        self._unmade.setdefault(hosted, 0)
        self._make_some()

    def step(self) -> None:
        """Close and rename some logs of deleted topics, create some logs of new ones, and
        reconfigure some logs.
        """
        self._closings.step()
        try:
            self._make_some()
        except FlushFailed as error:
            self._fail(str(error))
        self._left = self.hosted_per_turn
        self._reconfigurations.step()

    def has_work_left(self) -> bool:
        return (
            len(self._unmade) > 0
            or self._closings.has_work_left()
            or self._reconfigurations.has_work_left()
        )

    def _make_some(self) -> None:
        """Create as many logs as this turn has room for."""
        while self._unmade and self._left > 0:
            hosted = next(iter(self._unmade))
            first = self._unmade.pop(hosted)
            topic = self._state.topic_by_id(hosted.topic_id)
            if topic is None:
                continue
            unmade = filter(hosted.is_unmade, range(first, len(topic.partitions)))
            indexes = list(islice(unmade, self._left))
            self._left -= len(indexes)
            if self._left == 0:
                self._unmade[hosted] = indexes[-1] + 1
            self._make(topic, hosted, indexes)

    def _make(self, topic: TopicState, hosted: HostedTopic, indexes: Sequence[int]) -> None:
        """Create the logs of these partitions of a topic, which is hosted from then on.

        A log that the disk refuses is tried again; the others are served meanwhile.
        """
        hosted.is_internal = is_internal(topic.name)
        self._companions.describe(topic.configs, hosted)
        new_config = log_configs(topic.configs, self._settings, self._random)
        came: list[ReplicatedLog] = []
        companions: list[ReplicatedLog] = []
        refusals: list[StorageError] = []
        must_wait = False
        for index in indexes:
            try:
                partition = self._host(topic, hosted, index, new_config)
                if partition is not None:
                    came.append(partition)
                companion = self._add_companion(topic, hosted, index)
                if companion is not None:
                    companions.append(companion)
            except FlushFailed:
                raise
            except StorageError as error:
                hosted.refuse(index)
                must_wait = True
                if not isinstance(error, EarlierLog):
                    refusals.append(error)
        if refusals:
            what = f"topic {topic.name} has {len(refusals)} of its logs not yet"
            self._logs.trouble.report(what, refusals[0])
        self._topics.add(hosted)
        if hosted.refused and hosted not in self._refused:
            # A disk that takes logs again gets the others without a pause.
            self._try_again(hosted, self.retries.later if must_wait else self.retries.soon)
        self._tell_hosted(hosted, came)
        for companion in companions:
            self._on_companion(companion)

    def _tell_hosted(self, hosted: HostedTopic, came: list[ReplicatedLog]) -> None:
        for partition in came:
            self._report_role(partition.leadership, None, False)
        self._parts.on_hosted(hosted)

    def _report_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        # Copying into a coordinator's log has to stop before the coordinator loads the log.
        self._neighbours.switch_role(leadership, before, was_leader)
        self._parts.on_role(leadership, before, was_leader)

    def _try_again(self, hosted: HostedTopic, when: Callable[[Callable[[], None]], None]) -> None:
        self._refused[hosted] = None
        when(partial(self._make_refused, hosted))

    def _make_refused(self, hosted: HostedTopic) -> None:
        """Try some of the logs that the disk has refused; later calls try the others."""
        del self._refused[hosted]
        topic = self._state.topic_by_id(hosted.topic_id)
        if topic is None:
            return
        try:
            self._make(topic, hosted, list(hosted.refused)[:RETRIED_PER_TURN])
        except FlushFailed as error:
            self._fail(str(error))

    def refused_places(self) -> list[tuple[bytes, int]]:
        """Return the partitions of which this broker has a replica whose log could not be
        created yet.
        """
        return [(hosted.topic_id, index) for hosted in self._refused for index in hosted.refused]

    def _host(
        self,
        topic: TopicState,
        hosted: HostedTopic,
        index: int,
        new_config: Callable[[], LogConfig],
    ) -> ReplicatedLog | None:
        """Open the log of a replica if it is this broker's and `hosted` lacks it."""
        row = topic.partitions[index]
        if hosted.replica(index) is not None:
            return None
        if self._settings.node_id not in row.replicas and not self._is_kept(topic, index):
            hosted.leave(index)
            if not self._has_begun and partition_directory(topic.name, index) in self._found:
                # The replica was taken from this broker while it was away.
                self._removals.give_up_replica(topic.name, index, topic.topic_id)
            return None
        self._make_room(topic, index)
        producers = ProducerStates(self._settings.producer_id_expiration_ms)
        log = self._logs.open(
            partition_directory(topic.name, index),
            topic.topic_id,
            new_config(),
            ProducerListener(producers),
        )
        leadership = Leadership(topic.name, topic.topic_id, index, self._settings.node_id)
        partition = ReplicatedLog(leadership, log, producers)
        self._reconfigurations.choose_flush(partition)
        leadership.take_row(row, self._is_led_here(row))
        partition.begin_after_recovery()
        hosted.place(leadership)
        return partition

    def _add_companion(
        self, topic: TopicState, hosted: HostedTopic, index: int
    ) -> ReplicatedLog | None:
        companion = self._companions.open(topic, hosted, index, self._found)
        if companion is not None:
            self._reconfigurations.choose_flush(companion)
            companion.begin_after_recovery()
            hosted.place(companion.leadership)
        return companion

    def _is_kept(self, topic: TopicState, index: int) -> bool:
        """Return whether this broker has data of a partition whose replicas lack it.  The row is
        gone then: of a partition without a row it has data only because a lost row named it.
        """
        directory = partition_directory(topic.name, index)
        if directory not in self._found or topic.partitions[index].partition_epoch > 0:
            return False
        identity = LogIdentity(directory, topic.topic_id)
        return identity.read(self._logs.disk) == identity.text

    # -- roles

    def _is_led_here(self, row: PartitionRow) -> bool:
        is_own = row.leader_id == self._settings.node_id
        return is_own and self._neighbours.may_lead(row.broker_epoch)

    def _change_role(self, record: PartitionChanged) -> None:
        """Follow a partition's row: a new leader, epoch or isr, or a replica that is new or gone
        here.
        """
        hosted = self._topics.with_id(record.topic_id)
        if hosted is None:
            return
        partition = hosted.replica(record.index)
        if partition is not None:
            leadership, row = partition.leadership, record.row
            if leadership.is_ahead_of(row) and not stands_still(row):
                # The other brokers follow a row that is older than the data here.
                record = stand_still(leadership, row)
                self._state.apply(record)
            self._take_row(hosted, leadership, record.row)
            if self._settings.node_id not in row.replicas and not stands_still(record.row):
                self._give_up_replica(hosted, leadership)
        elif self._settings.node_id in record.row.replicas:
            topic = self._state.topic_by_id(record.topic_id)
            if topic is not None:
                self._make(topic, hosted, [record.index])
        elif record.index in hosted.refused:
            hosted.leave(record.index)
            self._removals.give_up_replica(hosted.name, record.index, hosted.topic_id)

    def on_own_life(self) -> None:
        """Set all roles again, because this broker has begun another life or lost one."""
        for topic in self._state.topics.values():
            hosted = self._topics.with_id(topic.topic_id)
            if hosted is None:
                continue
            for partition in hosted.replicas():
                leadership = partition.leadership
                row = topic.partitions[leadership.index]
                if row != leadership.row or self._is_led_here(row) != leadership.is_leader:
                    self._take_row(hosted, leadership, row)

    def _take_row(self, hosted: HostedTopic, leadership: Leadership, row: PartitionRow) -> None:
        before, was_leader = leadership.row, leadership.is_leader
        leadership.take_row(row, self._is_led_here(row))
        hosted.place(leadership)
        self._report_role(leadership, before, was_leader)
        for log in leadership.logs:
            # The leader knows which replicas are in sync.  Records count now that were flushed
            # while this broker did not lead.
            log.maybe_advance_high_watermark()
            if was_leader or leadership.is_leader:
                # Try waiting operations again: their records may be there, or another broker leads.
                self._on_closed(log)

    def _give_up_replica(self, hosted: HostedTopic, leadership: Leadership) -> None:
        """Close and remove the logs of a replica whose row no longer names this broker."""
        hosted.leave(leadership.index)
        leadership.close()
        for log in leadership.logs:
            self._closings.close(log)
        self._removals.give_up_replica(leadership.topic, leadership.index, leadership.topic_id)

    def _make_room(self, topic: TopicState, index: int) -> None:
        """Move away what an earlier replica has left in the place of a new log.

        This broker has opened its own data at its start.  Other data was given up by the row that
        took the replica away, and recovering it in a turn could take long.
        """
        if self._has_begun and self._neighbours.is_member:
            self._removals.move_replica_away(topic.name, index, topic.topic_id)

    def _forgets_lost(self, topic: TopicState, index: int) -> bool:
        """Forget a replica whose directory is lost and that is not in sync, so that it begins
        empty.

        Power may fail between the renaming of a given-up directory and the next round of recovery
        points, which then still name it.  A replica in sync must report what it has lost.
        """
        row = topic.partitions[index]
        if self._settings.node_id in row.isr or self._settings.node_id not in row.replicas:
            return False
        directory = partition_directory(topic.name, index)
        return directory not in self._found and self._logs.forget_directory(directory)

    # -- settings

    def _reconfigure_topic(self, topic_id: bytes) -> None:
        """Apply a topic's changed settings to its logs."""
        topic = self._state.topic_by_id(topic_id)
        hosted = self._topics.with_id(topic_id)
        if topic is not None and hosted is not None:
            self._reconfigurations.begin(hosted)
            self._companions.describe(topic.configs, hosted)
            if hosted.has_companions:
                self._make_all(hosted)

    def reconfigure_broker(self) -> None:
        """Apply the broker's changed settings to every topic that does not override them."""
        take_over_changes(self._settings, self._state)
        self._reconfigurations.begin_all()

    # -- deleted topics

    def _give_up(self, deleted: DeletedTopic) -> None:
        """Give up a deleted topic: from now on it is neither read nor written.

        Its logs are closed, requests that wait for them are woken, and their directories are
        renamed, some in each turn.
        """
        hosted = self._topics.remove(deleted.topic_id)
        logs: list[ReplicatedLog] = []
        if hosted is not None:
            logs = hosted.logs()
            for log in logs:
                log.leadership.close()
            self._parts.on_given_up(hosted)
        self._closings.begin(deleted, logs)

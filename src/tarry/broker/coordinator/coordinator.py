"""Coordinator: the shards of one internal topic, one for each partition that this broker leads."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.placement import partition_of_key
from tarry.base.settings import Settings
from tarry.broker.coordinator.loader import Chore, Loader
from tarry.broker.coordinator.runtime import ShardContext, ShardRuntime, ShardState
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.part import Part
from tarry.cluster.decisions.topic_decisions import TopicWanted
from tarry.cluster.state.state import ClusterState
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.partition.topic import HostedTopic
from tarry.purgatory.purgatory import Purgatory

S = TypeVar("S", bound=ShardState[Any, Any])


@mypyc_attr(allow_interpreted_subclasses=True)
class Coordinator(Part, Generic[S]):
    """Coordinator of one kind.  A subclass makes its shards and calls them.

    `topic` is the internal topic that keeps its state, `key_type` FindCoordinator's number of the
    kind.
    """

    def __init__(
        self, topic: str, key_type: int, context: ShardContext, cluster: ClusterState
    ) -> None:
        self.topic = topic
        self.key_type = key_type
        self.context = context
        self.cluster = cluster
        self.tickets = context.tickets
        self.shards: dict[int, S] = {}
        self._advanced: dict[ShardRuntime, None] = {}
        # Shards that are loaded once the high watermark has reached the end of their logs.
        self._to_load: dict[ShardRuntime, None] = {}
        self._chores: deque[Chore] = deque()

    def new_shard(self, partition: ReplicatedLog) -> S:
        """Return an empty shard."""
        raise NotImplementedError

    def factor_wanted(self, settings: Settings, brokers: int) -> int:
        """Return how many brokers have to serve before the topic is created.

        `brokers` is the number of brokers that belong to the cluster.
        """
        return 1

    def topic_wanted(self, settings: Settings, brokers: int) -> TopicWanted:
        """Return the internal topic as it is to be created in a cluster of so many brokers."""
        raise NotImplementedError

    def purgatories(self) -> list[Purgatory]:
        return [self.context.recorded]

    # -- which shard

    def shard_of(self, key: str) -> S | None:
        """Return the shard of this key, loaded or not; None if this broker has none."""
        index = self.index_of(key)
        return None if index < 0 else self.shards.get(index)

    def index_of(self, key: str) -> int:
        """Return the index of the partition that keeps this key; -1 while the topic does not
        exist.
        """
        topic = self.cluster.topics.get(self.topic)
        return -1 if topic is None else partition_of_key(key, len(topic.partitions))

    def find(self, key: str) -> tuple[S | None, int]:
        """Return the shard that can decide about this key, or None with the error to answer."""
        shard = self.shard_of(key)
        if shard is None:
            return None, errors.NOT_COORDINATOR
        error_code = shard.runtime.code()
        return (shard, errors.NONE) if error_code == errors.NONE else (None, error_code)

    def is_loading(self) -> bool:
        """Return whether a shard is still being loaded, so that the state is incomplete."""
        return any(shard.runtime.is_loading() for shard in self.shards.values())

    # -- partitions come and go

    def on_hosted(self, hosted: HostedTopic) -> None:
        """Load the partitions of the coordinator's own topic that are new on this broker."""
        if hosted.name != self.topic:
            return
        for partition in hosted.partitions.values():
            if partition.leadership.index not in self.shards:
                self.load(partition)

    def on_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Load a partition that this broker leads from now on, or unload one.

        A shard belongs to one leader epoch.  In another epoch, even of the same broker, it is
        loaded again, since another leader may have written in between.  It stays loaded only in the
        very next epoch of the same broker, whose process has continued a lost life with another
        one.
        """
        # `on_hosted` loads a replica that is new on this broker.
        if leadership.topic != self.topic or before is None:
            return
        is_leader = leadership.is_leader
        if before.leader_epoch == leadership.leader_epoch and was_leader == is_leader:
            return
        if was_leader and is_leader and _is_next_epoch(before, leadership.row):
            return
        if was_leader:
            self.unload(leadership.records)
        if is_leader:
            self.load(leadership.records)

    def load(self, partition: ReplicatedLog) -> None:
        """Begin to load a partition that this broker leads from now on."""
        shard = self.new_shard(partition)
        self.shards[partition.leadership.index] = shard
        log = partition.log
        if log.flaw_offset < 0 and log.log_start_offset >= log.log_end_offset:
            shard.runtime.error_code = errors.NONE
        elif shard.runtime.can_be_loaded():
            self._chores.append(Loader(shard.runtime, self.shards))
        else:
            self._to_load[shard.runtime] = None

    def unload(self, partition: ReplicatedLog) -> None:
        """Unload a partition that another broker leads from now on, or that is deleted."""
        shard = self.shards.get(partition.leadership.index)
        if shard is not None and shard.runtime.partition is partition:
            del self.shards[partition.leadership.index]
            self._to_load.pop(shard.runtime, None)
            shard.runtime.unload()

    def on_given_up(self, hosted: HostedTopic) -> None:
        """React to the deletion of a topic: unload all shards if it is the coordinator's own
        topic.
        """
        if hosted.name != self.topic:
            self.on_other_deleted(hosted)
            return
        for partition in hosted.partitions.values():
            self.unload(partition)

    def on_other_deleted(self, hosted: HostedTopic) -> None:
        """React to the deletion of a topic that is not the coordinator's own."""

    # -- the turn

    def on_moved(self, partition: ReplicatedLog) -> None:
        leadership = partition.leadership
        if leadership.topic != self.topic:
            return
        shard = self.shards.get(leadership.index)
        if shard is not None and shard.runtime.partition is partition:
            self._advanced[shard.runtime] = None

    def settle(self) -> None:
        unsettled = self.context.unsettled
        if unsettled:
            self.context.unsettled = {}
            for runtime in unsettled:
                runtime.settle()
        if self._to_load:
            self._begin_loading()

    def complete(self, budget: int) -> int:
        """Apply and answer all that became durable, without regard to the budget; do a step of
        one chore.
        """
        if self._advanced:
            advanced = self._advanced
            self._advanced = {}
            for runtime in advanced:
                runtime.advance()
        if self._chores:
            chore = self._chores.popleft()
            if not chore.step():
                self._chores.append(chore)
        return budget

    def _begin_loading(self) -> None:
        for runtime in list(self._to_load):
            if runtime.can_be_loaded():
                del self._to_load[runtime]
                self._chores.append(Loader(runtime, self.shards))

    def has_work_left(self) -> bool:
        return len(self._chores) > 0 or len(self.context.unsettled) > 0 or len(self._advanced) > 0

    def on_stall(self) -> None:
        for shard in self.shards.values():
            shard.on_stall()

    def stop(self) -> None:
        self._chores.clear()
        for shard in self.shards.values():
            shard.on_stop()

    # -- answers

    def ticket(self, asked: Asked[Any]) -> int:
        """Return a number for a request that a shard is going to answer."""
        return self.tickets.issue(asked)

    @property
    def waiting(self) -> int:
        """Number of requests that wait for an answer."""
        return self.tickets.waiting


def _is_next_epoch(before: PartitionRow, after: PartitionRow) -> bool:
    """Return whether no other broker can have led between the two rows, and no unclean election
    was.
    """
    return (
        after.leader_epoch == before.leader_epoch + 1
        and after.unclean_epoch == before.unclean_epoch
    )

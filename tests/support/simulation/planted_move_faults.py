"""Faults planted into coordinators that move from broker to broker, one at a time.

As in `planted_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support.simulation.planted_cluster_faults import (
    act_while_another_may_lead,
    claim_from_outside_the_isr,
)

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.broker.broker import Broker
from tarry.broker.coordinator.coordinator import Coordinator
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.groups.walks import GroupWalk
from tarry.broker.coordinator.runtime import ShardRuntime
from tarry.broker.membership.cluster_member import ClusterMember
from tarry.broker.topics import Topics
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.cluster.state.topic_names import OFFSETS_TOPIC
from tarry.group.loading import Loading
from tarry.group.state import Groups
from tarry.partition.leadership import Leadership


def answer_from_a_shard_that_was_given_up() -> None:
    """It is there when the partition comes back, too."""

    def on_role(
        self: Coordinator,
        leadership: Leadership,
        before: PartitionRow | None,
        was_leader: bool,
    ) -> None:
        if leadership.topic != self.topic or before is None or not leadership.is_leader:
            return
        if leadership.index not in self.shards:
            self.load(leadership.records)

    Coordinator.on_role = on_role


def load_before_the_high_watermark_is_at_the_start_of_the_epoch() -> None:
    ShardRuntime.can_be_loaded = lambda self: True


def answer_from_half_loaded_state() -> None:
    honest = ShardRuntime.code

    def code(self: ShardRuntime) -> int:
        told = honest(self)
        return errors.NONE if told == errors.COORDINATOR_LOAD_IN_PROGRESS else told

    ShardRuntime.code = code


def forget_who_waits_when_a_shard_is_given_up() -> None:
    GroupShard.on_unload = lambda self: None


def let_commits_wait_when_a_shard_is_given_up() -> None:
    def unload(self: ShardRuntime) -> None:
        self.error_code = errors.NOT_COORDINATOR
        self.state.on_unload()

    ShardRuntime.unload = unload


def answer_a_commit_that_is_not_committed() -> None:
    """What the leader alone has counts."""

    def advance(self: ShardRuntime) -> None:
        pending = self._pending
        while pending and pending[0].required_offset <= self.partition.log.written_end_offset:
            each = pending.popleft()
            each.is_settled = True
            for offset, record in enumerate(each.records, each.base_offset):
                self.state.apply(record, offset)
            self.state.on_recorded(each.append)
        self._check_recorded()

    honest = ShardRuntime.settle

    def settle(self: ShardRuntime) -> None:
        honest(self)
        advance(self)

    ShardRuntime.settle = settle
    ShardRuntime.advance = advance


def begin_anew_with_the_first_generation() -> None:
    """A group that was moved has its members no more, nor the number of its generation."""
    honest = Loading.step

    def step(self: Loading, groups: Groups, budget: int) -> bool:
        is_done = honest(self, groups, budget)
        if is_done:
            for group in groups.by_id.values():
                group.recorded = None
        return is_done

    Loading.step = step


def ask_for_turns_until_every_shard_is_loaded() -> None:
    honest = GroupWalk.step

    def step(self: GroupWalk) -> bool:
        shards = self.shards.values()
        if not self.has_begun and any(each.runtime.is_loading() for each in shards):
            return False
        return honest(self)

    GroupWalk.step = step


def lead_nothing_before_the_next_life_has_claimed_it() -> None:
    ClusterMember.ending_epoch = property(lambda self: -1)


def let_wait_who_waits_for_a_leader_that_may_not_act() -> None:
    GroupShard.on_rest = lambda self: None


class _Hosted:
    """Metadata without the topics of which this broker has not all logs."""

    def __init__(self, cluster: ClusterState, topics: Topics) -> None:
        self._cluster = cluster
        self._topics = topics
        self.topics = cluster.topics

    def topic(self, name: str) -> TopicState | None:
        known = self._cluster.topic(name)
        if known is None or name == OFFSETS_TOPIC:
            return known
        hosted = self._topics.with_id(known.topic_id)
        indexes = range(len(known.partitions))
        if hosted is None or any(hosted.replica(index) is None for index in indexes):
            return None
        return known


def ask_hosting_which_topics_have_offsets() -> None:
    honest = Broker.__init__

    def init(self: Broker, *arguments: object, **terms: object) -> None:
        honest(self, *arguments, **terms)
        self.groups.cluster = _Hosted(self.cluster, self.topics)

    Broker.__init__ = init


# A seed that found each.
CLUSTER_GROUPS_DISKS: Final[dict[Callable[[], None], int]] = {
    ask_hosting_which_topics_have_offsets: 4,
}

# A seed that found each.
CLUSTER_GROUPS_ISOLATED: Final[dict[Callable[[], None], int]] = {
    act_while_another_may_lead: 1,
}

# A seed that found each.
CLUSTER_GROUPS: Final[dict[Callable[[], None], int]] = {
    answer_from_a_shard_that_was_given_up: 13,
    load_before_the_high_watermark_is_at_the_start_of_the_epoch: 5,
    answer_from_half_loaded_state: 5,
    forget_who_waits_when_a_shard_is_given_up: 13,
    let_commits_wait_when_a_shard_is_given_up: 13,
    answer_a_commit_that_is_not_committed: 1,
    begin_anew_with_the_first_generation: 1,
    claim_from_outside_the_isr: 1,
    ask_for_turns_until_every_shard_is_loaded: 8,
    lead_nothing_before_the_next_life_has_claimed_it: 3,
    let_wait_who_waits_for_a_leader_that_may_not_act: 2,
}

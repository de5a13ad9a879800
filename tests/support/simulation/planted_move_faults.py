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
from tarry.broker.coordinator.coordinators import Coordinators
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.runtime import ShardRuntime
from tarry.group.loading import Loading
from tarry.group.state import Groups
from tarry.partition.role import Role
from tarry.partition.state import Partition


def answer_from_a_shard_that_was_given_up() -> None:
    """It is there when the partition comes back, too."""

    def on_role(self: Coordinators, partition: Partition, before: Role | None, after: Role) -> None:
        coordinator = next((one for one in self.all if one.topic == partition.topic), None)
        if coordinator is None or before is None or not after.is_leader:
            return
        if partition.index not in coordinator.shards:
            coordinator.load(partition)

    Coordinators.on_role = on_role


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


# A seed that found each.
CLUSTER_GROUPS: Final[dict[Callable[[], None], int]] = {
    answer_from_a_shard_that_was_given_up: 4,
    load_before_the_high_watermark_is_at_the_start_of_the_epoch: 3,
    answer_from_half_loaded_state: 4,
    forget_who_waits_when_a_shard_is_given_up: 4,
    let_commits_wait_when_a_shard_is_given_up: 6,
    answer_a_commit_that_is_not_committed: 1,
    begin_anew_with_the_first_generation: 1,
    act_while_another_may_lead: 178,
    claim_from_outside_the_isr: 1,
}

"""Work on many groups, in steps of a few milliseconds, one step a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.group.offsets import decide_expire_offsets, decide_forget_topics

if TYPE_CHECKING:
    from tarry.broker.broker import Broker
    from tarry.broker.coordinator.coordinator import Coordinator
    from tarry.broker.coordinator.shard import Shard

# So many groups, or so many offsets of them, are looked at in a step.
GROUPS_PER_STEP: Final = 200
OFFSETS_PER_STEP: Final = 5_000


class Chore:
    """Something that is done in steps."""

    def step(self) -> bool:
        """Do a part; True when all is done."""
        raise NotImplementedError


class GroupWalk(Chore):
    """Does something to every group that is known when it begins.

    It begins when nothing is being loaded: a loader has only part of its groups in hand.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.has_begun = False
        self.topic_ids: dict[str, bytes] = {}
        self._left: list[tuple[Shard, str]] = []

    def step(self) -> bool:
        if not self.has_begun:
            if self.coordinator.is_loading():
                return False
            self._begin()
        self.topic_ids = topic_ids(self.coordinator.broker)
        offsets = 0
        for _ in range(GROUPS_PER_STEP):
            if not self._left:
                return True
            shard, group_id = self._left.pop()
            group = shard.groups.by_id.get(group_id)
            if group is None or shard.error_code != errors.NONE:
                continue
            offsets += sum(len(each) for each in group.offsets.values())
            self.visit(shard, group_id)
            if offsets > OFFSETS_PER_STEP:
                break
        return not self._left

    def _begin(self) -> None:
        self.has_begun = True
        self._left = [
            (shard, group_id)
            for shard in reversed(self.coordinator.shards)
            for group_id in reversed(shard.groups.by_id)
        ]

    def visit(self, shard: Shard, group_id: str) -> None:
        """Do it to one group."""
        raise NotImplementedError


class ExpireOffsets(GroupWalk):
    """Removes offsets whose time is over, and Empty groups that have none."""

    def visit(self, shard: Shard, group_id: str) -> None:
        group = shard.group(group_id)
        moment = self.coordinator.moment()
        # When the log did not take the tombstones of a deleted topic, they are written now.
        decision = decide_forget_topics(group, self.topic_ids, moment)
        if decision.append is None:
            decision = decide_expire_offsets(group, moment)
        shard.carry_out(group, decision)


class ForgetTopics(GroupWalk):
    """Removes the offsets of topics that were deleted, however many those are."""

    def visit(self, shard: Shard, group_id: str) -> None:
        group = shard.group(group_id)
        moment = self.coordinator.moment()
        shard.carry_out(group, decide_forget_topics(group, self.topic_ids, moment))


def topic_ids(broker: Broker) -> dict[str, bytes]:
    """The topics that there are."""
    return {name: topic.topic_id for name, topic in broker.cluster.topics.items()}

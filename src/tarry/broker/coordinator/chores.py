"""Work on many groups, in steps of a few milliseconds, one step a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.group.offsets import decide_expire_offsets, decide_forget_topic

if TYPE_CHECKING:
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
    """Does something to every group that is known when it begins."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self._left: list[tuple[Shard, str]] = [
            (shard, group_id)
            for shard in coordinator.shards
            for group_id in reversed(list(shard.groups.by_id))
        ]
        self._left.reverse()

    def step(self) -> bool:
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

    def visit(self, shard: Shard, group_id: str) -> None:
        """Do it to one group."""
        raise NotImplementedError


class ExpireOffsets(GroupWalk):
    """Removes offsets whose time is over, and Empty groups that have none."""

    def visit(self, shard: Shard, group_id: str) -> None:
        group = shard.group(group_id)
        shard.carry_out(group, decide_expire_offsets(group, self.coordinator.moment()))


class ForgetTopic(GroupWalk):
    """Removes the offsets of a topic that was deleted."""

    def __init__(self, coordinator: Coordinator, topic: str) -> None:
        super().__init__(coordinator)
        self.topic = topic
        self.deleted_ms = coordinator.broker.now_wall_ms

    def visit(self, shard: Shard, group_id: str) -> None:
        group = shard.group(group_id)
        if self.topic in group.offsets or group.appends:
            moment = self.coordinator.moment()
            decision = decide_forget_topic(group, self.topic, moment, self.deleted_ms)
            shard.carry_out(group, decision)

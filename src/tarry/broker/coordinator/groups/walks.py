"""Walks over all groups in steps: offsets that expire, offsets of deleted topics."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.loader import Chore
from tarry.group.offsets.decisions import decide_expire_offsets, decide_forget_topics

# Numbers of groups, and of their offsets, that one step examines.
GROUPS_PER_STEP: Final = 200
OFFSETS_PER_STEP: Final = 5_000


class GroupWalk(Chore):
    """Walk over every group that exists when the walk begins.

    It begins while no log is being read, since a loading shard has only some of its groups.  A
    shard that waits to be read has none yet.  It forgets deleted topics when it is loaded, and the
    next walk expires its offsets.
    """

    def __init__(self, shards: dict[int, GroupShard], context: GroupContext) -> None:
        self.shards = shards
        self.context = context
        self.has_begun = False
        self.topic_ids: dict[str, bytes] = {}
        self._left: list[tuple[GroupShard, str]] = []

    def step(self) -> bool:
        if not self.has_begun:
            if any(shard.runtime.is_being_read for shard in self.shards.values()):
                return False
            self._begin()
        self.topic_ids = self.context.topic_ids()
        offsets = 0
        for _ in range(GROUPS_PER_STEP):
            if not self._left:
                return True
            shard, group_id = self._left.pop()
            group = shard.groups.by_id.get(group_id)
            if group is None or shard.runtime.error_code != errors.NONE:
                continue
            offsets += sum(len(each) for each in group.offsets.values())
            self.visit(shard, group_id)
            if offsets > OFFSETS_PER_STEP:
                break
        return not self._left

    def _begin(self) -> None:
        self.has_begun = True
        self._left = [
            (shard, group_id) for shard in self.shards.values() for group_id in shard.groups.by_id
        ]
        self._left.reverse()

    def visit(self, shard: GroupShard, group_id: str) -> None:
        """Do the work of the walk on one group."""
        raise NotImplementedError


class ExpireOffsets(GroupWalk):
    """Removal of offsets whose time is over, and of Empty groups that have none."""

    def visit(self, shard: GroupShard, group_id: str) -> None:
        group = shard.group(group_id)
        moment = self.context.moment()
        # Tombstones of a deleted topic that the log refused before are written now.
        decision = decide_forget_topics(group, self.topic_ids, moment)
        if decision.append is None:
            decision = decide_expire_offsets(group, moment)
        shard.carry_out(group, decision)


class ForgetTopics(GroupWalk):
    """Removal of the offsets of deleted topics, however many those are."""

    def visit(self, shard: GroupShard, group_id: str) -> None:
        group = shard.group(group_id)
        moment = self.context.moment()
        shard.carry_out(group, decide_forget_topics(group, self.topic_ids, moment))

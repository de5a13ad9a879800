"""Loading of the groups of a shard: the last value of every key, then a decision for each group."""

from __future__ import annotations

from typing import Final

from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.waiting import DecisionCarrier
from tarry.broker.coordinator.runtime import ShardLoad
from tarry.group.loading import Loading
from tarry.group.offsets.decisions import decide_forget_topics
from tarry.group.state import Groups

# Numbers of records to decode and of groups to begin in one step: a few milliseconds each.
RECORDS_PER_STEP: Final = 1_000
GROUPS_PER_STEP: Final = 200


class GroupLoad(ShardLoad):
    """Loading of the groups of one shard; `groups` stays empty until all records are read."""

    def __init__(self, groups: Groups, context: GroupContext, carrier: DecisionCarrier) -> None:
        self._groups = groups
        self._context = context
        self._carrier = carrier
        self._loading = Loading()
        self._left: list[str] | None = None

    def add(self, key: bytes, value: bytes | None, offset: int) -> None:
        self._loading.add(key, value)

    def step(self) -> bool:
        left = self._left
        if left is None:
            if self._loading.step(self._groups, RECORDS_PER_STEP):
                self._left = list(reversed(self._groups.by_id))
            return False
        topic_ids = self._context.topic_ids()
        for _ in range(GROUPS_PER_STEP):
            if not left:
                return True
            self._begin(left.pop(), topic_ids)
        return False

    def _begin(self, group_id: str, topic_ids: dict[str, bytes]) -> None:
        carrier = self._carrier
        group = carrier.group(group_id)
        moment = self._context.moment()
        carrier.carry_out(group, group.kind.decide_load(group, moment))
        # If a topic was deleted just before a crash, its offsets must not come back.
        carrier.carry_out(group, decide_forget_topics(group, topic_ids, moment))

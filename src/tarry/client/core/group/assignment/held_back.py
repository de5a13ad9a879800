"""Partitions held back: a cooperative leader assigns a partition to nobody while another member
owns it, until that member has given it up.

The old owner gives the partition up and joins again, and the next round assigns it.  A static
member that dies in between comes back to its old assignment without a round (KIP-345), so the
partition stays unassigned.  Therefore the leader joins again after a while.  A static leader that
comes back does not know what it held back, so it checks whether each partition has a member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tarry.base import errors
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import (
    SubscribedMember,
    decode_assignment,
)
from tarry.link.tasks import Task, Tasks
from tarry.protocol.messages.describe_groups import DescribedGroup
from tarry.wire.reader import MalformedData

STABLE: Final = "Stable"


def holds_back(
    assignment: Mapping[str, Sequence[TopicPartition]],
    members: Sequence[SubscribedMember],
    counts: Mapping[str, int],
) -> bool:
    """Return true if a partition that a member owns was assigned to nobody."""
    given = {place: None for places in assignment.values() for place in places}
    for member in members:
        for place in member.subscription.owned:
            if place not in given and 0 <= place[1] < counts.get(place[0], 0):
                return True
    return False


def leaves_out(group: DescribedGroup, counts: Mapping[str, int]) -> bool:
    """Return true if a stable group has partitions that are assigned to none of its members."""
    if group.error_code != errors.NONE or group.group_state != STABLE:
        return False
    given: dict[TopicPartition, None] = {}
    try:
        for member in group.members:
            given.update(dict.fromkeys(decode_assignment(member.member_assignment)))
    except MalformedData:
        return False
    return any(
        (name, index) not in given for name, count in counts.items() for index in range(count)
    )


class HeldBack:
    """Timer of a leader that waits for the next round; `run` begins one if none came."""

    def __init__(self, tasks: Tasks, wait_ms: int, run: Callable[[], None]) -> None:
        self._tasks = tasks
        self._wait_ms = wait_ms
        self._run = run
        self._due = Task(self._on_due)

    def watch(self, now_ms: int) -> None:
        """Begin to wait: the session of a member that must rejoin, but is dead, ends in this
        time."""
        self._tasks.schedule(self._due, now_ms + self._wait_ms)

    def forget(self) -> None:
        """Stop waiting: a round has begun, or the membership has ended."""
        self._tasks.cancel(self._due)

    def _on_due(self, now_ms: int) -> None:
        self._run()

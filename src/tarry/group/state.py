"""A group's state: what its records say, and the round of its members that lives in memory.

Durable are `recorded` (the newest generation whose assignment is in the log, or that the group is
Empty) and `offsets`; only `apply` changes them, in life as in loading, and only with records that
are below the high watermark.  So what is fetched was never taken back, and replaying the log into
an empty state gives the durable part of the live one after every step.

Volatile is the `round`: who is a member, who waits for what, until when.  A decision never changes
it; it makes a new one, and `take` puts that in its place.  A group loaded from the log begins a
round from its record (`recovery.decide_load`).  Once a group is Stable and nothing of it is on its
way to the log, round and record say the same.

An unknown group and one that nothing is known of are the same thing: `GroupState.exists` is false.
"""

from __future__ import annotations

from tarry.group.appends import Append
from tarry.group.decision import Decision
from tarry.group.records import (
    GroupMetadata,
    GroupRecord,
    GroupTombstone,
    OffsetCommitted,
    OffsetTombstone,
)
from tarry.group.round import DEAD, EMPTY, GroupRound


class MemberSession:
    """Session of a member: when it ends (None: not watched while it waits), and when it was
    heard.
    """

    __slots__ = ("deadline_ms", "heard_ms")

    def __init__(self, deadline_ms: int | None, heard_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.heard_ms = heard_ms


class GroupState:
    """State of one group; see the module's text."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.recorded: GroupMetadata | None = None
        # Topic to partition to what was committed.
        self.offsets: dict[str, dict[int, OffsetCommitted]] = {}
        self.round = GroupRound()
        self.heartbeats: dict[str, MemberSession] = {}
        # What is on its way to the log, in its order.
        self.appends: list[Append] = []

    @property
    def exists(self) -> bool:
        """Return true if anything is known of the group."""
        return (
            self.recorded is not None
            or bool(self.offsets)
            or bool(self.appends)
            or bool(self.round.pending_members)
            or self.round.phase not in (EMPTY, DEAD)
        )

    @property
    def size(self) -> int:
        """Count the members; ids given out and not used are none."""
        return len(self.round.members)

    def offset(self, topic: str, partition: int) -> OffsetCommitted | None:
        """Return what was last committed for a partition and is durable."""
        partitions = self.offsets.get(topic)
        return None if partitions is None else partitions.get(partition)

    def apply(self, record: GroupRecord) -> None:
        """Apply a record: the one way in which the durable part changes."""
        assert record.group_id == self.group_id
        match record:
            case OffsetCommitted():
                self.offsets.setdefault(record.topic, {})[record.partition] = record
            case OffsetTombstone():
                partitions = self.offsets.get(record.topic)
                # Tombstones of what was never there are in any log that was compacted.
                if partitions is not None:
                    partitions.pop(record.partition, None)
                    if not partitions:
                        del self.offsets[record.topic]
            case GroupMetadata():
                self.recorded = record
            case GroupTombstone():
                self.recorded = None
            case _:
                raise AssertionError(f"{type(record).__name__} is not applied")

    def take(self, decision: Decision) -> None:
        """Put what was decided in the place of the volatile part; the records are still to come."""
        if decision.round is not None:
            self.round = decision.round
        for wait in decision.heartbeats:
            if wait.ends:
                self.heartbeats.pop(wait.member_id, None)
                continue
            known = self.heartbeats.get(wait.member_id)
            heard_ms = wait.heard_ms
            if heard_ms is None:
                heard_ms = known.heard_ms if known is not None else decision.now_ms
            self.heartbeats[wait.member_id] = MemberSession(wait.deadline_ms, heard_ms)
        if decision.settled is not None:
            self.appends.remove(decision.settled)
            decision.settled.has_failed = decision.has_failed
        if decision.append is not None:
            self.appends.append(decision.append)


class Groups:
    """The groups of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self.by_id: dict[str, GroupState] = {}

    def group(self, group_id: str) -> GroupState:
        """Return the group, or one that does not exist and is kept only by `take`."""
        return self.by_id.get(group_id) or GroupState(group_id)

    def take(self, group: GroupState, decision: Decision) -> None:
        """Put what was decided in place; a group that is nothing any more is forgotten."""
        group.take(decision)
        self._keep(group)

    def apply(self, record: GroupRecord) -> None:
        """Apply a record to its group, which begins or ends with it."""
        group = self.group(record.group_id)
        group.apply(record)
        self._keep(group)

    def _keep(self, group: GroupState) -> None:
        if group.exists:
            self.by_id[group.group_id] = group
        else:
            self.by_id.pop(group.group_id, None)

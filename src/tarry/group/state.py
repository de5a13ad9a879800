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

from typing import TYPE_CHECKING, Final

import msgspec

from tarry.group.records import (
    NO_TIMESTAMP,
    GroupMetadata,
    GroupRecord,
    GroupTombstone,
    OffsetCommitted,
    OffsetTombstone,
)

if TYPE_CHECKING:
    from tarry.group.appends import Append
    from tarry.group.decision import Decision

EMPTY: Final = 0
PREPARING_REBALANCE: Final = 1
COMPLETING_REBALANCE: Final = 2
STABLE: Final = 3
DEAD: Final = 4

# Kafka's names, as DescribeGroups and ListGroups spell them.
PHASE_NAMES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
)

# From which phases each may be entered.  Dead is left only when its record could not be written.
LEGAL_BEFORE: Final[dict[int, tuple[int, ...]]] = {
    EMPTY: (PREPARING_REBALANCE, DEAD),
    PREPARING_REBALANCE: (EMPTY, COMPLETING_REBALANCE, STABLE),
    COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
    STABLE: (COMPLETING_REBALANCE,),
    DEAD: (EMPTY,),
}

# The protocol type of Kafka's own consumers, the one whose subscriptions the broker understands.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"

# A protocol by its name, with what the member says for it: opaque but for consumers.
Protocol = tuple[str, bytes]


class Member(msgspec.Struct, frozen=True):
    """A member as it joined.  `is_new` until its first join is answered."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    is_new: bool = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it says for this protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


class Round:
    """The volatile part of a group; copied by a decision, and put in place by `take`.

    Invariants: `joins` and `syncs` (member id to ticket) and `unsynced` name members only; a
    member of the group is not pending; Stable and CompletingRebalance have at least one member,
    a leader and a protocol; there is a join deadline in PreparingRebalance and nowhere else.
    """

    def __init__(self) -> None:
        self.phase = EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        # Calendar time at which the phase was entered.
        self.state_timestamp_ms = NO_TIMESTAMP
        # In the order in which they joined.
        self.members: dict[str, Member] = {}
        # Instance id to member id.
        self.static_members: dict[str, str] = {}
        # How many members support a protocol.
        self.protocol_counts: dict[str, int] = {}
        # KIP-394: ids that were given out and not yet used, with their session time-outs.
        self.pending_members: dict[str, int] = {}
        self.joins: dict[str, int] = {}
        self.syncs: dict[str, int] = {}
        # Members that have not sent SyncGroup in this generation, as keys.
        self.unsynced: dict[str, None] = {}
        # What each member was given; filled while Stable.
        self.assignments: dict[str, bytes] = {}
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        # The first rebalance of an Empty group waits for others: see transitions.
        self.is_initial = False
        self.was_extended_by_join = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        # Monotonic time since which nobody may work.
        self.stands_since_ms = 0

    def copy(self) -> Round:
        """A round of its own with the same content."""
        copied = Round.__new__(Round)
        copied.__dict__.update(self.__dict__)
        copied.members = self.members.copy()
        copied.static_members = self.static_members.copy()
        copied.protocol_counts = self.protocol_counts.copy()
        copied.pending_members = self.pending_members.copy()
        copied.joins = self.joins.copy()
        copied.syncs = self.syncs.copy()
        copied.unsynced = self.unsynced.copy()
        copied.assignments = self.assignments.copy()
        return copied

    def has_everyone_joined(self) -> bool:
        """Whether all members wait for the round to begin and no id that was given out is open."""
        return len(self.joins) == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        """The largest of the members', and not below 0."""
        return max([0, *(each.rebalance_timeout_ms for each in self.members.values())])

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a member with these protocols has one in common with all the others."""
        if self.phase == EMPTY or not self.members:
            return protocol_type != "" and len(protocols) > 0
        if protocol_type != self.protocol_type:
            return False
        everyone = len(self.members)
        return any(self.protocol_counts.get(name, 0) == everyone for name, _ in protocols)

    def selected_protocol(self) -> str:
        """The protocol that most members like best among those that all support.

        Among equals the first by name, so that two runs agree; Kafka leaves it open.
        """
        assert self.members
        everyone = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            for name, _ in member.protocols:
                if self.protocol_counts[name] == everyone:
                    votes[name] = votes.get(name, 0) + 1
                    break
        assert votes
        return min(votes, key=lambda name: (-votes[name], name))


class Heartbeat:
    """When a member's session ends (None: not watched while it waits), and when it was heard."""

    __slots__ = ("deadline_ms", "heard_ms")

    def __init__(self, deadline_ms: int | None, heard_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.heard_ms = heard_ms


class GroupState:
    """One group; see the module's text."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.recorded: GroupMetadata | None = None
        # Topic to partition to what was committed.
        self.offsets: dict[str, dict[int, OffsetCommitted]] = {}
        self.round = Round()
        self.heartbeats: dict[str, Heartbeat] = {}
        # What is on its way to the log, in its order.
        self.appends: list[Append] = []

    @property
    def exists(self) -> bool:
        """Whether anything is known of it."""
        return (
            self.recorded is not None
            or bool(self.offsets)
            or bool(self.appends)
            or bool(self.round.pending_members)
            or self.round.phase not in (EMPTY, DEAD)
        )

    @property
    def size(self) -> int:
        """How many members it has; ids given out and not used are none."""
        return len(self.round.members)

    def offset(self, topic: str, partition: int) -> OffsetCommitted | None:
        """What was last committed for a partition and is durable."""
        partitions = self.offsets.get(topic)
        return None if partitions is None else partitions.get(partition)

    def apply(self, record: GroupRecord) -> None:
        """The one way in which the durable part changes."""
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
            self.heartbeats[wait.member_id] = Heartbeat(wait.deadline_ms, heard_ms)
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
        """The group, or one that does not exist and is kept only by `take`."""
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

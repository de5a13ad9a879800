"""Round: the volatile part of a group, with its members and their waiting requests.

A decision never changes a round; it makes a new one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.group.records import NO_TIMESTAMP

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

# Phases from which each phase may be entered.  DEAD returns to EMPTY only if its append failed.
LEGAL_BEFORE: Final[dict[int, tuple[int, ...]]] = {
    EMPTY: (PREPARING_REBALANCE, DEAD),
    PREPARING_REBALANCE: (EMPTY, COMPLETING_REBALANCE, STABLE),
    COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
    STABLE: (COMPLETING_REBALANCE,),
    DEAD: (EMPTY,),
}

# Protocol type of Kafka's own consumers; the broker can read the topics of their subscriptions.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"

# Ids given out and not used, in one group.  Beyond it the oldest is forgotten; its client, if it
# still exists, asks for another.  Guards against a client that joins in a loop.
PENDING_MEMBERS_MAX: Final = 10_000

# Name of a protocol, and the member's metadata for it: opaque unless the group has consumers.
Protocol = tuple[str, bytes]


class Member(msgspec.Struct, frozen=True):
    """A member as it joined; `is_new` until its first join is answered."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    is_new: bool = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for this protocol; empty if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    @property
    def size(self) -> int:
        """Bytes of the member's texts and metadata."""
        texts = len(self.member_id) + len(self.instance_id or "") + len(self.client_id)
        return texts + protocols_size(self.protocols)


def protocols_size(protocols: tuple[Protocol, ...]) -> int:
    """Return the bytes of a member's protocols."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


class GroupRound:
    """Volatile part of a group; a decision copies it, and `take` puts the copy in its place.

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
        # Member id to member, in the order in which they joined.
        self.members: dict[str, Member] = {}
        # Instance id to member id.
        self.static_members: dict[str, str] = {}
        # Number of members that support each protocol.
        self.protocol_counts: dict[str, int] = {}
        # Bytes of the members and of their assignments.
        self.members_size = 0
        self.assignments_size = 0
        # KIP-394: ids that were given out and not yet used, with their session time-outs.
        self.pending_members: dict[str, int] = {}
        self.joins: dict[str, int] = {}
        self.syncs: dict[str, int] = {}
        # Members that have not sent SyncGroup in this generation, as keys.
        self.unsynced: dict[str, None] = {}
        # Assignment of each member; filled while Stable.
        self.assignments: dict[str, bytes] = {}
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        # True in the first rebalance of an Empty group, which waits for more members (transitions).
        self.is_initial = False
        self.was_extended_by_join = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        # Monotonic time since which no member may work.
        self.stands_since_ms = 0

    def copy(self) -> GroupRound:
        """Copy the round with its content."""
        copied = GroupRound.__new__(GroupRound)
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

    @property
    def metadata_size(self) -> int:
        """Bytes of members and assignments together."""
        return self.members_size + self.assignments_size

    def has_everyone_joined(self) -> bool:
        """Return True if all members have joined and every id that was given out is used."""
        return len(self.joins) == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        """Return the largest rebalance time-out of the members, in ms, and not below 0."""
        return max([0, *(each.rebalance_timeout_ms for each in self.members.values())])

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return True if a member with these protocols has one in common with all others."""
        if self.phase == EMPTY or not self.members:
            return protocol_type != "" and len(protocols) > 0
        if protocol_type != self.protocol_type:
            return False
        everyone = len(self.members)
        return any(self.protocol_counts.get(name, 0) == everyone for name, _ in protocols)

    def selected_protocol(self) -> str:
        """Return the protocol that most members prefer among those that all support.

        Among equals it is the first by name, so that runs of a seed agree; Kafka leaves this open.
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

"""Round: the volatile part of a group, its members and who waits for what.

A decision never changes a round: it makes a new one.
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

# Ids given out and not used in one group; past it the oldest is forgotten, and its client, if it
# still is there, asks for another.  Guards against a client that joins in a loop.
PENDING_MEMBERS_MAX: Final = 10_000

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
        """Return what the member says for this protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    @property
    def size(self) -> int:
        """Return the bytes that the member's texts and metadata take."""
        texts = len(self.member_id) + len(self.instance_id or "") + len(self.client_id)
        return texts + protocols_size(self.protocols)


def protocols_size(protocols: tuple[Protocol, ...]) -> int:
    """Return the bytes that a member's protocols take."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


class GroupRound:
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
        # Bytes of the members and of their assignments.
        self.members_size = 0
        self.assignments_size = 0
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
        """Return the bytes that members and assignments take together."""
        return self.members_size + self.assignments_size

    def has_everyone_joined(self) -> bool:
        """Return true if all members wait for the round to begin and no id that was given out is
        open.
        """
        return len(self.joins) == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        """Return the largest rebalance time-out of the members, in ms, and not below 0."""
        return max([0, *(each.rebalance_timeout_ms for each in self.members.values())])

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return true if a member with these protocols has one in common with all the others."""
        if self.phase == EMPTY or not self.members:
            return protocol_type != "" and len(protocols) > 0
        if protocol_type != self.protocol_type:
            return False
        everyone = len(self.members)
        return any(self.protocol_counts.get(name, 0) == everyone for name, _ in protocols)

    def selected_protocol(self) -> str:
        """Return the protocol that most members like best among those that all support.

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

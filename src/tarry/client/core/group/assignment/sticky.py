"""Sticky assignors: balanced assignments that move as few partitions as balance allows.

The eager assignor assigns once: every member gives up all partitions before it joins, and sends its
last assignment as user data.  The cooperative one assigns twice: a partition that moves between
living members is left out of the first assignment, so that its old owner gives it up and rejoins;
the second assignment hands it out.  So a partition never has two owners.  The claim of a newer
generation wins; if two members claim a partition for the same generation, neither claim counts.  If
all members want the same topics and racks matter, members prefer partitions near them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.assignor import PreviousAssignment
from tarry.client.core.group.assignment.consumer_protocol import (
    GENERATION_UNKNOWN,
    SubscribedMember,
    Subscription,
    read_places,
    write_places,
)
from tarry.client.core.group.assignment.racks import NO_RACKS, PartitionRacks, Racks
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer

Owned = dict[str, list[TopicPartition]]


def cooperative_user_data(previous: PreviousAssignment) -> bytes:
    """Encode the generation, for leaders that read subscriptions only up to version 1."""
    writer = Writer()
    writer.i32(previous.generation_id)
    return writer.joined()


def sticky_user_data(previous: PreviousAssignment) -> bytes | None:
    """Encode the last assignment and its generation; None for a member without an earlier
    assignment."""
    if previous.generation_id == GENERATION_UNKNOWN:
        return None
    writer = Writer()
    write_places(writer, sorted(previous.places, key=_by_topic))
    writer.i32(previous.generation_id)
    return writer.joined()


def _by_topic(place: TopicPartition) -> str:
    return place[0]


def remembered(user_data: bytes | None) -> PreviousAssignment:
    """Decode the user data of an eager member; an empty assignment if the bytes cannot be
    decoded."""
    if not user_data:
        return PreviousAssignment()
    try:
        reader = Reader(user_data)
        places = read_places(reader)
        # The first version of the user data had no generation.
        generation_id = int(reader.i32()) if reader.remaining() else GENERATION_UNKNOWN
    except MalformedData:
        return PreviousAssignment()
    return PreviousAssignment(places, generation_id)


def assign_sticky(
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
    partition_racks: PartitionRacks = NO_RACKS,
) -> dict[str, list[TopicPartition]]:
    """Assign to each member its last assignment, as far as balance allows.  Members of an eager
    group own nothing during a rebalance, so the last assignment comes from the user data."""
    claiming: list[SubscribedMember] = []
    for member_id, instance_id, said in members:
        had = remembered(said.user_data)
        claim = Subscription(said.topics, None, had.places, had.generation_id, said.rack_id)
        claiming.append(SubscribedMember(member_id, instance_id, claim))
    claims = _Claims(claiming, partition_counts)
    return _assign(claims, claiming, partition_counts, Racks(claiming, partition_racks))


def claimed_generation(member: SubscribedMember) -> int:
    """Return the generation for which a member claims its owned partitions."""
    said = member.subscription
    if said.generation_id != GENERATION_UNKNOWN or said.user_data is None:
        return said.generation_id
    try:
        return int(Reader(said.user_data).i32())
    except MalformedData:
        return GENERATION_UNKNOWN


def assign_cooperatively(
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
    partition_racks: PartitionRacks = NO_RACKS,
) -> dict[str, list[TopicPartition]]:
    """Assign to each member the partitions that it may read at once; hold back those that must
    move."""
    claims = _Claims(members, partition_counts)
    racks = Racks(members, partition_racks)
    return claims.hold_back(_assign(claims, members, partition_counts, racks))


def hold_back(
    assignment: dict[str, list[TopicPartition]],
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
) -> dict[str, list[TopicPartition]]:
    """Remove partitions that another member may still be reading; the round after it has given them
    up assigns them."""
    return _Claims(members, partition_counts).hold_back(assignment)


def _assign(
    claims: _Claims,
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
    racks: Racks,
) -> dict[str, list[TopicPartition]]:
    wanted = [sorted(member.subscription.topics) for member in members]
    if all(topics == wanted[0] for topics in wanted):
        return _assign_alike(claims, partition_counts, racks)
    return _assign_mixed(claims, members, partition_counts)


class _Claims:
    """Claims of the members to own partitions, without impossible ones."""

    def __init__(self, members: Sequence[SubscribedMember], counts: Mapping[str, int]) -> None:
        # Sorted by member id, so that every leader computes the same assignment.
        self.owned: Owned = {
            member.member_id: [] for member in sorted(members, key=lambda one: one.member_id)
        }
        self._holders: dict[TopicPartition, tuple[int, str]] = {}
        self._disputed: dict[TopicPartition, None] = {}
        wanted = {member.member_id: member.subscription.topics for member in members}
        for member in members:
            self._hear(member)
        for place, (_, member_id) in self._holders.items():
            topic, index = place
            is_there = 0 <= index < counts.get(topic, 0) and topic in wanted[member_id]
            if is_there and place not in self._disputed:
                self.owned[member_id].append(place)
        for places in self.owned.values():
            places.sort(key=_by_partition)

    def _hear(self, member: SubscribedMember) -> None:
        generation_id = claimed_generation(member)
        for place in member.subscription.owned:
            best = self._holders.get(place)
            if best is None or generation_id > best[0]:
                self._holders[place] = (generation_id, member.member_id)
                self._disputed.pop(place, None)
            elif generation_id == best[0]:
                self._disputed[place] = None

    def hold_back(
        self, assignment: dict[str, list[TopicPartition]]
    ) -> dict[str, list[TopicPartition]]:
        """Remove partitions that are not free for the member to which they are assigned."""
        return {
            member_id: [place for place in places if self.is_free_for(member_id, place)]
            for member_id, places in assignment.items()
        }

    def is_free_for(self, member_id: str, place: TopicPartition) -> bool:
        """Return true if no other member may still be reading the partition."""
        holder = self._holders.get(place)
        return holder is None or (holder[1] == member_id and place not in self._disputed)


def _by_partition(place: TopicPartition) -> tuple[int, str]:
    return place[1], place[0]


def _all_places(counts: Mapping[str, int]) -> list[TopicPartition]:
    return [(topic, index) for topic in sorted(counts) for index in range(counts[topic])]


def _assign_alike(
    claims: _Claims, counts: Mapping[str, int], racks: Racks
) -> dict[str, list[TopicPartition]]:
    """Assign to members that all want the same topics: each gets the smaller share, and some get
    one more."""
    places = _all_places(counts)
    deal = _Deal(*divmod(len(places), len(claims.owned)))
    for member_id, owned in claims.owned.items():
        deal.keep(member_id, [place for place in owned if not racks.is_far(member_id, place)])
    taken = {place for kept in deal.assignment.values() for place in kept}
    free = racks.rarest_first([place for place in places if place not in taken])
    deal.deal(deal.deal_near(free, racks))
    return deal.assignment


class _Deal:
    """Deal of partitions to members that want the same topics: each gets the share, and some get
    one more."""

    def __init__(self, share: int, larger_count: int) -> None:
        self.assignment: dict[str, list[TopicPartition]] = {}
        self._share = share
        self._larger_left = larger_count
        self._below: list[str] = []
        # Members that have their share and may get one more partition.
        self._at_share: list[str] = []

    def keep(self, member_id: str, owned: list[TopicPartition]) -> None:
        """Let a member keep its owned partitions, up to its share."""
        kept = owned[: self._share]
        self.assignment[member_id] = kept
        if len(owned) < self._share:
            self._below.append(member_id)
        elif len(owned) > self._share and self._larger_left:
            kept.append(owned[self._share])
            self._count_larger()
        elif self._larger_left:
            self._at_share.append(member_id)

    def deal_near(self, free: Sequence[TopicPartition], racks: Racks) -> Sequence[TopicPartition]:
        """Deal partitions to members near them; return the partitions that no member was near."""
        if not racks.are_known:
            return free
        rest: list[TopicPartition] = []
        turn = 0
        for place in free:
            near = racks.next_near(place, self._below, turn)
            if near >= 0:
                turn = self._give_below(near, place)
                continue
            near = racks.next_near(place, self._at_share, 0)
            if near >= 0:
                self._give_at_share(near, place)
            else:
                rest.append(place)
        return rest

    def deal(self, free: Sequence[TopicPartition]) -> None:
        """Deal partitions in turn to members below the share; after that, one more to each member
        in order."""
        turn = 0
        for place in free:
            if self._below:
                turn = self._give_below(turn, place)
            else:
                self._give_at_share(0, place)

    def _give_below(self, index: int, place: TopicPartition) -> int:
        """Give a partition to a member below the share; return the index of the next member."""
        member_id = self._below[index]
        self.assignment[member_id].append(place)
        if len(self.assignment[member_id]) < self._share:
            index += 1
        else:
            del self._below[index]
            if self._larger_left:
                self._at_share.append(member_id)
        return index % len(self._below) if self._below else 0

    def _give_at_share(self, index: int, place: TopicPartition) -> None:
        self.assignment[self._at_share.pop(index)].append(place)
        self._count_larger()

    def _count_larger(self) -> None:
        self._larger_left -= 1
        if self._larger_left == 0:
            self._at_share.clear()


# Limit of balancing rounds.  Each move reduces the imbalance of two members, so no group needs more
# rounds than it has partitions; the limit bounds the cost of a bug.
ROUNDS_MAX: Final = 1_000


def _assign_mixed(
    claims: _Claims, members: Sequence[SubscribedMember], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Assign to members that want different topics.

    Each free partition goes to the least loaded member that wants it; partitions that the fewest
    members want come first.  Then single partitions move while that improves the balance.
    """
    topics = {member.member_id: member.subscription.topics for member in members}
    assignment = {member_id: list(owned) for member_id, owned in claims.owned.items()}
    wanting = {
        topic: [member_id for member_id in assignment if topic in topics[member_id]]
        for topic in counts
    }
    owner = {place: member_id for member_id, owned in assignment.items() for place in owned}
    places = _all_places(counts)
    places.sort(key=lambda place: (len(wanting[place[0]]), place))
    for place in places:
        if place not in owner and wanting[place[0]]:
            member_id = min(wanting[place[0]], key=lambda one: (len(assignment[one]), one))
            assignment[member_id].append(place)
            owner[place] = member_id
    for _ in range(ROUNDS_MAX):
        if not _balance_once(assignment, owner, wanting, places):
            break
    return assignment


def _balance_once(
    assignment: dict[str, list[TopicPartition]],
    owner: dict[TopicPartition, str],
    wanting: Mapping[str, list[str]],
    places: Sequence[TopicPartition],
) -> bool:
    """Move each partition that a member with at least two fewer wants; return true if any moved."""
    has_moved = False
    for place in places:
        holder = owner.get(place)
        if holder is None:
            continue
        least = min(wanting[place[0]], key=lambda one: (len(assignment[one]), one))
        if len(assignment[least]) + 1 < len(assignment[holder]):
            assignment[holder].remove(place)
            assignment[least].append(place)
            owner[place] = least
            has_moved = True
    return has_moved

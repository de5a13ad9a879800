"""Range assignor: each topic is split into equal ranges, and the first members take the surplus.

If racks matter, each member first gets partitions near it, up to its share.  Topics with the same
members and the same partition count are split alike, so that one member reads the same partition of
each: joins by key need that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.assignor import Assignment
from tarry.client.core.group.assignment.consumer_protocol import SubscribedMember
from tarry.client.core.group.assignment.racks import (
    NO_RACKS,
    PartitionRacks,
    makes_difference,
    rack_of,
)


def assign_range(
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
    partition_racks: PartitionRacks = NO_RACKS,
) -> Assignment:
    """Assign each topic separately in equal ranges; the first members take the surplus."""
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = sorted(members, key=member_order)
    topics: list[_TopicRanges] = []
    for topic in sorted(partition_counts):
        readers = [member for member in ordered if topic in member.subscription.topics]
        if readers:
            count = partition_counts[topic]
            topics.append(_TopicRanges(topic, count, readers, partition_racks, assignment))
    if any(topic.needs_racks for topic in topics):
        _assign_near(topics)
    for one in topics:
        one.assign(one.is_free)
    return {member_id: sorted(places) for member_id, places in assignment.items()}


def member_order(member: SubscribedMember) -> tuple[bool, str]:
    """Return a sort key: static members first, by instance id, then the others by member id."""
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member.member_id


class _TopicRanges:
    """Partitions of one topic, and how many of them each reader may still get."""

    def __init__(
        self,
        topic: str,
        count: int,
        readers: Sequence[SubscribedMember],
        partition_racks: PartitionRacks,
        assignment: Assignment,
    ) -> None:
        self.count = count
        self.readers = [(member.member_id, rack_of(member)) for member in readers]
        self._topic = topic
        self._assignment = assignment
        self._racks = [partition_racks.get((topic, index), ()) for index in range(count)]
        self._free = dict.fromkeys(range(count))
        self._share, self._surplus = divmod(count, len(readers))
        self._given = {member_id: 0 for member_id, _ in self.readers}
        self.has_racks = any(rack for _, rack in self.readers)
        self.needs_racks = makes_difference([rack for _, rack in self.readers], self._racks)

    def is_free(self, rack: str, index: int) -> bool:
        return index in self._free

    def is_near(self, rack: str, index: int) -> bool:
        """Return true for a free partition with a replica in the rack; without a rack, for any free
        one."""
        return index in self._free and (not rack or rack in self._racks[index])

    def room(self, member_id: str) -> int:
        """Return how many more partitions the member may get."""
        share = self._share + (1 if self._surplus > 0 else 0)
        return max(share - self._given[member_id], 0)

    def assign(self, may_read: Callable[[str, int], bool]) -> None:
        """Assign to each reader in turn the first partitions that it may read."""
        for member_id, rack in self.readers:
            indexes = [index for index in self._free if may_read(rack, index)]
            self.give(member_id, indexes[: self.room(member_id)])

    def give(self, member_id: str, indexes: Sequence[int]) -> None:
        for index in indexes:
            del self._free[index]
            place: TopicPartition = (self._topic, index)
            self._assignment[member_id].append(place)
        self._given[member_id] += len(indexes)
        if indexes and self._given[member_id] > self._share:
            self._surplus -= 1


def _assign_near(topics: Sequence[_TopicRanges]) -> None:
    """Assign near partitions; topics with the same readers and partition count are assigned
    alike."""
    alike: dict[tuple[int, tuple[tuple[str, str], ...]], list[_TopicRanges]] = {}
    for topic in topics:
        if topic.has_racks:
            alike.setdefault((topic.count, tuple(topic.readers)), []).append(topic)
    for group in alike.values():
        if len(group) > 1:
            _assign_alike(group)
        elif group[0].needs_racks:
            group[0].assign(group[0].is_near)


def _assign_alike(topics: Sequence[_TopicRanges]) -> None:
    """Assign the same partition of all topics to one reader that is near all of them."""
    readers = list(topics[0].readers)
    for index in range(topics[0].count):
        for member_id, rack in readers:
            if all(one.is_near(rack, index) and one.room(member_id) for one in topics):
                for one in topics:
                    one.give(member_id, [index])
                break

"""Racks: members and partitions that are near each other (KIP-881).

A partition is near a member if one of its replicas is in the member's rack, from which the member
can read it (KIP-392).  Racks matter only if some member is in the rack of a replica, and not every
partition has a replica in every rack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import SubscribedMember

# Racks of the replicas by partition; each rack occurs once, in sorted order.
PartitionRacks = Mapping[TopicPartition, tuple[str, ...]]

NO_RACKS: Final[PartitionRacks] = {}


def rack_of(member: SubscribedMember) -> str:
    """Return the rack of a member; empty if its subscription has none."""
    return member.subscription.rack_id or ""


def makes_difference(
    member_racks: Sequence[str], partition_racks: Sequence[tuple[str, ...]]
) -> bool:
    """Return true if racks matter for the assignment of these partitions to these members."""
    every = tuple(sorted(dict.fromkeys(rack for racks in partition_racks for rack in racks)))
    return any(rack in every for rack in member_racks) and any(
        racks != every for racks in partition_racks
    )


class Racks:
    """Racks of a group's members and of their partitions; treated as unknown if they do not
    matter."""

    def __init__(
        self, members: Sequence[SubscribedMember], partition_racks: PartitionRacks
    ) -> None:
        told = {one.member_id: rack_of(one) for one in members if rack_of(one)}
        self.are_known = makes_difference(list(told.values()), list(partition_racks.values()))
        self._of_members = told if self.are_known else {}
        self._of_partitions = partition_racks if self.are_known else NO_RACKS

    def is_far(self, member_id: str, place: TopicPartition) -> bool:
        """Return true if the member is in a rack without a replica of the partition."""
        rack = self._of_members.get(member_id)
        return rack is not None and rack not in self._of_partitions.get(place, ())

    def next_near(self, place: TopicPartition, members: Sequence[str], start: int) -> int:
        """Return the index of the first member near the partition, searching around from `start`;
        -1 if there is none."""
        racks = self._of_partitions.get(place, ())
        for turn in range(len(members)):
            index = (start + turn) % len(members)
            if self._of_members.get(members[index]) in racks:
                return index
        return -1

    def rarest_first(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions by the number of members near them; equal ones keep their order."""
        counts: dict[str, int] = {}
        for rack in self._of_members.values():
            counts[rack] = counts.get(rack, 0) + 1
        return sorted(
            places,
            key=lambda place: sum(
                counts.get(rack, 0) for rack in self._of_partitions.get(place, ())
            ),
        )

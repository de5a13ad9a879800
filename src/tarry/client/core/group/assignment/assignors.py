"""Assignors: which member reads which partition, decided by the leader of a group.

Plain functions `(members, partition_counts) -> {member id: partitions}`.  They give what Kafka's
own give for the same group, since any client may lead it: members are taken in the order of their
instance ids, then of their member ids, and topics by name.  Racks are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tarry.base.errors import InvalidSetting
from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import SubscribedMember, Subscription
from tarry.client.core.group.assignment.sticky import assign_cooperatively, cooperative_user_data

Assignment = dict[str, list[TopicPartition]]
AssignFunction = Callable[[Sequence[SubscribedMember], Mapping[str, int]], Assignment]


class Assignor(NamedTuple):
    """Assignor by name.  `is_cooperative`: members keep the partitions that do not move while they
    rejoin."""

    name: str
    assign: AssignFunction
    is_cooperative: bool
    # What members that use it tell the leader beside their topics, given their generation.
    user_data: Callable[[int], bytes | None]


def assign_range(
    members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]
) -> Assignment:
    """Assign each topic by itself in equal ranges; the first members take the surplus."""
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = sorted(members, key=member_order)
    for topic in sorted(partition_counts):
        readers = [member for member in ordered if topic in member.subscription.topics]
        if not readers:
            continue
        share, surplus = divmod(partition_counts[topic], len(readers))
        first = 0
        for place, member in enumerate(readers):
            after = first + share + (1 if place < surplus else 0)
            assignment[member.member_id] += [(topic, index) for index in range(first, after)]
            first = after
    return assignment


def assign_round_robin(
    members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]
) -> Assignment:
    """Assign all partitions of all topics in turn; a member that did not subscribe to a topic is
    passed over."""
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = sorted(members, key=member_order)
    turn = 0
    for topic in sorted(partition_counts):
        if not any(topic in member.subscription.topics for member in ordered):
            continue
        for index in range(partition_counts[topic]):
            while topic not in ordered[turn % len(ordered)].subscription.topics:
                turn += 1
            assignment[ordered[turn % len(ordered)].member_id].append((topic, index))
            turn += 1
    return assignment


def member_order(member: SubscribedMember) -> tuple[bool, str]:
    """Sort static members first, by their instance ids; the others by the member ids that the
    broker gave."""
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member.member_id


def _no_user_data(generation_id: int) -> bytes | None:
    return None


ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range, False, _no_user_data),
        Assignor("roundrobin", assign_round_robin, False, _no_user_data),
        Assignor("cooperative-sticky", assign_cooperatively, True, cooperative_user_data),
    )
}

# Java's settings name classes.
CLASS_NAMES: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def subscription_of(
    assignor: Assignor, topics: list[str], owned: list[TopicPartition], generation_id: int
) -> Subscription:
    """Return the subscription with which a member that uses this assignor joins."""
    return Subscription(topics, assignor.user_data(generation_id), owned, generation_id)


def parse_assignors(text: str) -> list[Assignor]:
    """Parse `range,cooperative-sticky`, or Java's class names."""
    names = [CLASS_NAMES.get(part.strip(), part.strip()) for part in text.split(",")]
    for name in names:
        if name not in ASSIGNORS:
            known = ", ".join(ASSIGNORS)
            raise InvalidSetting(f"partition.assignment.strategy={name} is not one of {known}")
    return [ASSIGNORS[name] for name in dict.fromkeys(names)]

"""Kafka's assignors, and the choice between them and a user's own.

They are plain functions `(members, partition_counts) -> {member id: partitions}`; rack-aware ones
also take the racks of partitions.  They return the same assignment as Kafka's own for the same
group, since any client may lead it: members are taken in the order of their instance ids, then of
their member ids, and topics by name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tarry.base.errors import InvalidSetting
from tarry.client.core.group.assignment.assignor import (
    Assignment,
    Assignor,
    checked_assignment,
)
from tarry.client.core.group.assignment.consumer_protocol import SubscribedMember
from tarry.client.core.group.assignment.racks import NO_RACKS, PartitionRacks
from tarry.client.core.group.assignment.ranges import assign_range, member_order
from tarry.client.core.group.assignment.sticky import (
    assign_cooperatively,
    assign_sticky,
    cooperative_user_data,
    hold_back,
    sticky_user_data,
)
from tarry.client.settings import CLIENT_SETTINGS

log = logging.getLogger("tarry.client")


def assign_round_robin(
    members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]
) -> Assignment:
    """Assign all partitions of all topics in turn; skip members that are not subscribed to a
    topic."""
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


ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("sticky", assign_sticky, user_data=sticky_user_data),
        Assignor(
            "cooperative-sticky",
            assign_cooperatively,
            is_cooperative=True,
            user_data=cooperative_user_data,
        ),
    )
}

# Kafka's assignors that are rack-aware.
RACK_AWARE: Final = {
    "range": assign_range,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperatively,
}

# Short names of the class names in Java's settings.
CLASS_NAMES: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def assign(
    assignor: Assignor,
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
    partition_racks: PartitionRacks = NO_RACKS,
) -> Assignment:
    """Assign partitions for the leader; log members without partitions.  Raises AssignorFailed."""
    if assignor.name in RACK_AWARE:
        assignment = RACK_AWARE[assignor.name](members, partition_counts, partition_racks)
    elif assignor.name in ASSIGNORS:
        given = assignor.assign(members, partition_counts)
        assignment = {member_id: list(places) for member_id, places in given.items()}
    else:
        assignment = checked_assignment(assignor, members, partition_counts)
        if assignor.is_cooperative:
            assignment = hold_back(assignment, members, partition_counts)
    idle = [member_id for member_id, places in assignment.items() if not places]
    if idle and len(members) > sum(partition_counts.values()):
        log.warning(
            "%d members share %d partitions: %s idle",
            len(members), sum(partition_counts.values()), ", ".join(sorted(idle)),
        )  # fmt: skip
    return assignment


def parse_assignors(text: str) -> list[Assignor]:
    """Parse `range,cooperative-sticky`, or Java's class names."""
    names = [CLASS_NAMES.get(part.strip(), part.strip()) for part in text.split(",")]
    for name in names:
        if name not in ASSIGNORS:
            known = ", ".join(ASSIGNORS)
            raise InvalidSetting(f"partition.assignment.strategy={name} is not one of {known}")
    return [ASSIGNORS[name] for name in dict.fromkeys(names)]


def choose_assignors(text: str, given: object = None) -> list[Assignor]:
    """Return the assignors of a member in order of preference: those of the setting, or the given
    ones, which are Assignors and names of Kafka's."""
    if given is None:
        return parse_assignors(text)
    if text != CLIENT_SETTINGS["partition.assignment.strategy"].default:
        raise InvalidSetting(
            "assignors are given twice, by partition.assignment.strategy and by assignors=; "
            "assignors= takes names too"
        )
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(
            f'assignors takes a list such as [Assignor("weighted", assign), "range"], not '
            f"{given!r:.60}"
        )
    chosen: dict[str, Assignor] = {}
    for one in given:
        for assignor in [one] if isinstance(one, Assignor) else _named(one):
            _check_name(assignor, chosen)
            chosen[assignor.name] = assignor
    if not chosen:
        raise InvalidSetting("assignors is empty: give at least one")
    return list(chosen.values())


def _named(name: object) -> list[Assignor]:
    if not isinstance(name, str):
        raise TypeError(f"assignors takes Assignors and names of Kafka's, not {name!r:.60}")
    return parse_assignors(name)


def _check_name(assignor: Assignor, chosen: Mapping[str, Assignor]) -> None:
    name = assignor.name
    if ASSIGNORS.get(name, assignor) is not assignor:
        raise InvalidSetting(
            f"Assignor {name} has the name of one of Kafka's, which other clients would take it "
            "for: give it another name"
        )
    if name in chosen:
        raise InvalidSetting(f"two assignors are named {name}")

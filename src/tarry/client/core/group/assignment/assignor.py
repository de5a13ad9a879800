"""Assignor: the function by which the leader of a group assigns partitions to members.

The result of a user's assignor is checked, because a wrong assignment would leave partitions unread
without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.consumer_protocol import (
    GENERATION_UNKNOWN,
    SubscribedMember,
)
from tarry.client.errors import AssignorFailed


class PreviousAssignment(NamedTuple):
    """Last assignment of a member, and the generation of that assignment."""

    places: list[TopicPartition] = []
    generation_id: int = GENERATION_UNKNOWN


Assignment = dict[str, list[TopicPartition]]
# Function of the members and of the partition count of each topic that a member wants; it returns
# the partitions of each member by member id.
AssignFunction = Callable[
    [Sequence[SubscribedMember], Mapping[str, int]], Mapping[str, Iterable[TopicPartition]]
]
UserDataFunction = Callable[[PreviousAssignment], bytes | None]


def no_user_data(previous: PreviousAssignment) -> bytes | None:
    """Return None, for an assignor that needs only the subscriptions of the members."""
    return None


class Assignor:
    """Assignor with a name; all members of a group use the assignor of the same name.

    `assign(members, partition_counts)` returns the partitions of each member by its member id.  It
    runs in the member that leads the group, while the client is locked: it must be a plain function
    of its arguments.  With `is_cooperative`, members keep the partitions that do not move while
    they rejoin; a partition that moves is held back until its old owner has given it up.
    `user_data(previous)` returns bytes that a member sends to the leader with its subscription.
    """

    def __init__(
        self,
        name: str,
        assign: AssignFunction,
        *,
        is_cooperative: bool = False,
        user_data: UserDataFunction = no_user_data,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"an Assignor takes its name as text, such as 'weighted', not {name!r:.60}"
            )
        for argument, function in (("assign", assign), ("user_data", user_data)):
            if not callable(function):
                raise TypeError(f"{argument} of Assignor {name} is no function: {function!r:.60}")
        self.name = name
        self.assign = assign
        self.is_cooperative = is_cooperative
        self.user_data = user_data

    def __repr__(self) -> str:
        return f"Assignor({self.name!r})"


def told_user_data(assignor: Assignor, previous: PreviousAssignment) -> bytes | None:
    """Return the user data that a member sends to the leader.  Raises AssignorFailed."""
    try:
        told = assignor.user_data(previous)
    except Exception as error:
        raise _raised(assignor, "user_data", error) from error
    if told is not None and not isinstance(told, bytes):
        raise AssignorFailed(
            f"user_data of assignor {assignor.name} returned {told!r:.60}: return bytes or None"
        )
    return told


def checked_assignment(
    assignor: Assignor, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]
) -> Assignment:
    """Return the assignor's assignment.  Raises AssignorFailed unless it names each member, and
    gives each partition once, to a member that wants its topic."""
    try:
        given: Any = assignor.assign(members, partition_counts)
    except Exception as error:
        raise _raised(assignor, "assign", error) from error
    try:
        assignment = {member_id: list(given[member_id]) for member_id in given}
    except (TypeError, KeyError):
        raise AssignorFailed(
            f"assignor {assignor.name} returned {given!r:.60}: return partitions by member id, "
            'such as {"member": [("orders", 0)]}'
        ) from None
    flaw = _flaw(assignment, members, partition_counts)
    if flaw:
        raise AssignorFailed(f"assignor {assignor.name} {flaw}")
    return assignment


def _raised(assignor: Assignor, what: str, error: Exception) -> AssignorFailed:
    return AssignorFailed(
        f"{what} of assignor {assignor.name} raised {type(error).__name__}: {error}"
    )


def _flaw(
    assignment: Assignment,
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
) -> str:
    """Return what is wrong with an assignment, with advice; empty if nothing is wrong."""
    wanted = {member.member_id: member.subscription.topics for member in members}
    for member_id in wanted:
        if member_id not in assignment:
            return f"forgot member {member_id}: give an empty list to a member without partitions"
    owners: dict[TopicPartition, str] = {}
    for member_id, places in assignment.items():
        if member_id not in wanted:
            return f"named {member_id!r:.60}, which is no member of the group"
        for place in places:
            flaw = _flaw_of(place, partition_counts)
            if flaw:
                return f"gave {flaw} to member {member_id}"
            name = f"{place[0]} [{place[1]}]"
            if place[0] not in wanted[member_id]:
                return f"gave {name} to member {member_id}, which is not subscribed to {place[0]}"
            if place in owners:
                return f"gave {name} to both {owners[place]} and {member_id}: give it to one"
            owners[place] = member_id
    return _forgotten(owners, members, partition_counts)


def _flaw_of(place: object, partition_counts: Mapping[str, int]) -> str:
    """Describe a place that is not an existing partition; empty if it is one."""
    if not isinstance(place, tuple) or len(place) != 2 or type(place[1]) is not int:
        return f"{place!r:.60}, which is no partition such as ('orders', 0),"
    topic, index = place
    count = partition_counts.get(topic, 0)
    if not 0 <= index < count:
        return f"{topic} [{index}], which is not there: {topic} has {count} partitions,"
    return ""


def _forgotten(
    owners: Mapping[TopicPartition, str],
    members: Sequence[SubscribedMember],
    partition_counts: Mapping[str, int],
) -> str:
    for topic, count in partition_counts.items():
        if not any(topic in member.subscription.topics for member in members):
            continue
        for index in range(count):
            if (topic, index) not in owners:
                return f"forgot partition {topic} [{index}]: give each to one member"
    return ""

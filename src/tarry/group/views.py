"""Groups as an operator sees them: DescribeGroups and ListGroups, read and not decided.

Members and phase are the live ones; ids that were given out and not used are no members.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.group.round import PHASE_NAMES, STABLE
from tarry.group.state import Groups, GroupState

# The one type of group there is here, as ListGroups names it (KIP-848 has others).
GROUP_TYPE: Final = "classic"


class DescribedMember(msgspec.Struct, frozen=True):
    """A member; metadata is what it said for the chosen protocol, and empty before one is."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(msgspec.Struct, frozen=True):
    """A group; the protocol is named while it is Stable, as Kafka does."""

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]


def described(group: GroupState) -> DescribedGroup:
    """Describe a group that exists, member by member in the order in which they joined."""
    now = group.round
    is_stable = now.phase == STABLE
    return DescribedGroup(
        group.group_id,
        PHASE_NAMES[now.phase],
        now.protocol_type or "",
        (now.protocol_name or "") if is_stable else "",
        tuple(
            DescribedMember(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host,
                each.metadata(now.protocol_name) if is_stable else b"",
                now.assignments.get(each.member_id, b""),
            )
            for each in now.members.values()
        ),
    )


class GroupListing(msgspec.Struct, frozen=True):
    """A group in a list."""

    group_id: str
    protocol_type: str
    state: str


def listed(groups: Groups, states: list[str], types: list[str]) -> list[GroupListing]:
    """List the groups in one of these states and of one of these types, by id; none named: all.

    Names are compared without regard to case, as Kafka does; unknown ones match nothing.
    """
    wanted_states = [each.lower() for each in states]
    if types and GROUP_TYPE not in [each.lower() for each in types]:
        return []
    found: list[GroupListing] = []
    for group_id in sorted(groups.by_id):
        now = groups.by_id[group_id].round
        state = PHASE_NAMES[now.phase]
        if not wanted_states or state.lower() in wanted_states:
            found.append(GroupListing(group_id, now.protocol_type or "", state))
    return found

"""Groups as an operator sees them: DescribeGroups and ListGroups, read and not decided.

Members and phase are the live ones; ids that were given out and not used are no members.
"""

from __future__ import annotations

import msgspec


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


class GroupListing(msgspec.Struct, frozen=True):
    """A group in a list; its type is the name of its kind."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


def without_case(names: list[str]) -> dict[str, None]:
    """Return the names once each and in lower case: Kafka compares without regard to it."""
    return dict.fromkeys(each.lower() for each in names)

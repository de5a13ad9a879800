"""Views of groups for an operator: DescribeGroups and ListGroups, read without a decision.

Members and phase are the live ones; an unused id that was given out is no member.
"""

from __future__ import annotations

import msgspec


class DescribedMember(msgspec.Struct, frozen=True):
    """A member; metadata is the one for the chosen protocol, and empty if none is chosen yet."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(msgspec.Struct, frozen=True):
    """A group; the protocol is set while the group is Stable, as in Kafka."""

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]


class GroupListing(msgspec.Struct, frozen=True):
    """A group in a list; `group_type` is the name of its kind."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


def without_case(names: list[str]) -> dict[str, None]:
    """Return the names in lower case, each once: Kafka compares them without case."""
    return dict.fromkeys(each.lower() for each in names)

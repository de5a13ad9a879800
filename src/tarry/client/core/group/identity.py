"""Identity of a group member in requests to its coordinator."""

from __future__ import annotations

from typing import NamedTuple


class GroupIdentity(NamedTuple):
    """Identity of a member in a generation."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int


class GroupView(NamedTuple):
    """View of a member's state in its group."""

    group_id: str
    member_id: str
    generation_id: int
    state: str
    protocol: str
    is_leader: bool
    # Why the coordinator cannot be reached; empty if no problem is known.
    trouble: str = ""

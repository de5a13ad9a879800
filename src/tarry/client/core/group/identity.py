"""Identity: the member, and its generation, in whose name a coordinator is asked."""

from __future__ import annotations

from typing import NamedTuple


class GroupIdentity(NamedTuple):
    """Identity of a member in a generation."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int

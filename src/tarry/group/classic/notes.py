"""Notes of what happens in classic groups."""

from __future__ import annotations

import logging
from typing import ClassVar, Final

from tarry.group.notes import Note

# Most characters of each id, and most members' ids, that a note keeps.
ID_CHARACTERS_MAX: Final = 200
IDS_MAX: Final = 10


class RebalanceBegan(Note, frozen=True):
    """Note of the begin of a rebalance: no member may work from now on."""

    generation_id: int
    reason: str

    def sentence(self) -> str:
        return f"rebalancing after generation {self.generation_id}: {self.reason}"


class RoundChanged(Note, frozen=True):
    """Note of a member that came, left or changed while the others were rejoining already."""

    generation_id: int
    reason: str

    def sentence(self) -> str:
        return f"rebalancing after generation {self.generation_id}: {self.reason}"


class GenerationBegan(Note, frozen=True):
    """Note of a new generation: the join phase has ended, and the leader assigns."""

    generation_id: int
    protocol_name: str
    leader_id: str
    member_count: int

    level: ClassVar[int] = logging.INFO

    def sentence(self) -> str:
        return (
            f"generation {self.generation_id}: {self.member_count} joined, "
            f"assignor {self.protocol_name}, leader {self.leader_id}"
        )


class BecameStable(Note, frozen=True):
    """Note of a durable assignment; for `stood_ms` no member could work."""

    generation_id: int
    stood_ms: int

    level: ClassVar[int] = logging.INFO

    def sentence(self) -> str:
        return f"generation {self.generation_id} is stable; the rebalance took {self.stood_ms} ms"


class BecameEmpty(Note, frozen=True):
    """Note that the last member has left the group."""

    generation_id: int

    def sentence(self) -> str:
        return f"generation {self.generation_id} has no members"


class AssignmentMissing(Note, frozen=True):
    """Note of members that the leader forgot; they have an empty assignment."""

    member_ids: tuple[str, ...]

    level: ClassVar[int] = logging.WARNING

    def sentence(self) -> str:
        ids = ", ".join(_shortened_ids(self.member_ids))
        return f"the leader assigned nothing to {len(self.member_ids)} members: {ids}"

    def shortened(self) -> Note:
        return AssignmentMissing(_shortened_ids(self.member_ids))


def _shortened_ids(member_ids: tuple[str, ...]) -> tuple[str, ...]:
    ids = tuple(each[:ID_CHARACTERS_MAX] for each in member_ids[:IDS_MAX])
    rest = len(member_ids) - len(ids)
    return (*ids, f"and {rest} others") if rest else ids

"""What must hold of members of our own, by what was told and handed out to their users."""

from __future__ import annotations

from typing import Any

from tests.support.simulation.group_client_world import Told, World

from tarry.client.core.group.assignment.consumer_protocol import Place
from tarry.client.core.group.events import ASSIGNED


def offences(world: World) -> list[str]:
    """What must not be, as sentences."""
    found = list(world.strange_commits)
    for place, end in world.written.items():
        found += _skipped(world, place, end)
        found += _taken_back(world, place)
    living = [member for member in world.members.values() if not member.is_dead]
    owned = sorted(place for member in living for place in member.core.membership.owned)
    if living and owned != sorted(world.written):
        found.append(f"at the end {owned} are read")
    return found


def _skipped(world: World, place: Place, end: int) -> list[str]:
    """Every record is handed out, and nobody begins behind what was."""
    reached = 0
    for one in world.handed_out:
        if one.place != place:
            continue
        if one.first > reached:
            return [f"{one} skips what lies behind {reached}"]
        reached = max(reached, one.last + 1)
    if reached < end and any(not member.is_dead for member in world.members.values()):
        return [f"{place} was handed out up to {reached}, not {end}"]
    return []


def _taken_back(world: World, place: Place) -> list[str]:
    """When another member has read on, the old one reads no more before it is assigned anew; and
    who is assigned a partition begins at or behind what was committed before."""
    reader = ""
    assigned: dict[str, int] = {}
    begun: dict[str, int] = {}
    fences: dict[str, int] = {}
    moments: list[tuple[int, int, Any]] = [(one.now_ms, 0, one) for one in world.told]
    moments += [(one.now_ms, 1, one) for one in world.handed_out if one.place == place]
    moments.sort(key=lambda moment: moment[:2])
    for number, (_, _, one) in enumerate(moments):
        if isinstance(one, Told):
            if one.kind == ASSIGNED and place in one.places:
                assigned[one.member] = number
                fences[one.member] = one.committed.get(place, 0)
            continue
        if one.member != reader and begun.get(one.member, -1) >= assigned.get(one.member, -1):
            return [f"{one} reads on although {reader} has it"]
        if begun.get(one.member, -1) < assigned[one.member] and one.first < fences[one.member]:
            return [f"{one} begins before the commit of {fences[one.member]}"]
        reader = one.member
        begun[one.member] = number
    return []

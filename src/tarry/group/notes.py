"""Notes: what happens in a group, to be logged and kept for `tarry groups why`."""

from __future__ import annotations

import msgspec


class Note(msgspec.Struct, frozen=True):
    """Note of what an operator may ask about."""


class MemberRemoved(Note, frozen=True):
    """A member, or an id that was given out, is gone."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    reason: str
    # Since when nothing was heard of it.
    silent_ms: int
    # What comes of it, as half a sentence.
    follows: str = ""


class RebalanceBegan(Note, frozen=True):
    """Note of the begin of a rebalance: no member may work from now on."""

    generation_id: int
    reason: str


class RoundChanged(Note, frozen=True):
    """Note of a member that came, went or changed while the others were rejoining already."""

    generation_id: int
    reason: str


class GenerationBegan(Note, frozen=True):
    """Note of a generation: all members that are there have joined, and the leader assigns."""

    generation_id: int
    protocol_name: str
    leader_id: str
    member_count: int


class BecameStable(Note, frozen=True):
    """The assignment is durable and given out; so long the group stood still."""

    generation_id: int
    stood_ms: int


class BecameEmpty(Note, frozen=True):
    """The last member is gone."""

    generation_id: int


class AssignmentMissing(Note, frozen=True):
    """The leader forgot these members; they have an empty assignment."""

    member_ids: tuple[str, ...]


class AppendFailed(Note, frozen=True):
    """Records did not get into the log; what came of it is in the answers."""

    what: str
    error_code: int

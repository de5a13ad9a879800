"""Story of one group: its notes become rebalances, and the times of its members.

A rebalance begins with the note that says so and ends when the group is stable or empty; removals
of the same moment stand before it and belong to it.  A note that names a member in its reason is
read by the words that the broker uses.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from tarry.broker.events.kinds import GroupNoteEvent

# How a rebalance ended.
STABLE: Final = "stable"
EMPTY: Final = "empty"
UNDER_WAY: Final = "under way"
# The broker ended first.
CUT_OFF: Final = "cut off"

# How a member ended.
DIED: Final = "died"
LEFT: Final = "left"
REMOVED: Final = "removed"

# Causes of a rebalance.
A_DEATH: Final = "a member died"
A_LEAVE: Final = "a member left"
NO_SYNC: Final = "a member did not sync"
OTHER: Final = "something else"
# By what a member is said to have done.
DONE: Final = {
    "joined": "a member joined",
    "came back": "a member came back",
    "joined again": "the leader joined again",
    "changed": "a member changed",
}
CAUSES: Final = (A_DEATH, A_LEAVE, NO_SYNC, *DONE.values(), OTHER)

NAMED: Final = re.compile(
    r"member (?P<id>\S.*?)(?: of instance (?P<instance>.+?))? "
    r"(?P<what>joined again|joined|came back|changed)(?:: .*|$)",
    re.DOTALL,
)


@dataclass(frozen=True)
class GroupRebalance:
    """Rebalance of a group: so long its members stood still."""

    group: str
    began_ms: int
    cause: str
    # The first thing that happened, in the broker's words.
    reason: str
    ended: str
    stood_ms: int
    generation_before: int | None
    generation: int | None
    # Members of the new generation.
    members: int | None
    # What happened in it, in the log's order.
    notes: Sequence[str]

    @property
    def ended_ms(self) -> int:
        return self.began_ms + self.stood_ms


@dataclass(frozen=True)
class MemberTime:
    """Time of one member in a group."""

    group: str
    member: str
    client: str
    # None: it was there before the log tells of it.
    joined_ms: int | None
    # None: it is still there.
    ended_ms: int | None
    end: str
    reason: str
    # For how long it stood still, and how often.
    stood_ms: int
    rebalances: int


class _Open:
    """Rebalance that is under way."""

    def __init__(self, began_ms: int, broker: int) -> None:
        self.began_ms = began_ms
        self.broker = broker
        self.reason = ""
        self.generation_before: int | None = None
        self.generation: int | None = None
        self.members: int | None = None
        self.notes: list[str] = []


class _Member:
    """Member that is there."""

    def __init__(self, joined_ms: int | None) -> None:
        self.joined_ms = joined_ms
        self.client = ""


class GroupStory:
    """Notes of a group, in the log's order, and what they come to."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.rebalances: list[GroupRebalance] = []
        self.members: list[MemberTime] = []
        self._open: _Open | None = None
        self._there: dict[str, _Member] = {}
        # Names by member id: that of an instance stays.
        self._names: dict[str, str] = {}
        # Removals that a rebalance of the same moment may follow.
        self._removals: list[tuple[int, str]] = []
        self._ended: list[tuple[str, _Member, int, str, str]] = []

    def add(self, event: GroupNoteEvent) -> None:
        """Go on with the next note."""
        kind = event.what
        if kind == "MemberRemoved":
            self._remove(event)
        elif kind in ("RebalanceBegan", "RoundChanged"):
            self._begin(event)
        elif kind == "GenerationBegan":
            under_way = self._under_way(event)
            under_way.generation = _number(event, "generation_id")
            under_way.members = _number(event, "member_count")
            leader_id = _text(event, "leader_id")
            self._see(self._names.get(leader_id, leader_id))
            under_way.notes.append(
                f"generation {under_way.generation} of {under_way.members} began, assignor "
                f"{_text(event, 'protocol_name')}"
            )
        elif kind == "BecameStable":
            self._stable(event)
        elif kind == "BecameEmpty":
            self._empty(event)
        elif self._open is not None:
            self._open.notes.append(f"{kind}: {event.note}")

    def cut_off(self, broker: int) -> None:
        """End what a broker had under way when it ended."""
        if self._open is not None and self._open.broker == broker:
            self._close(CUT_OFF, self._open.began_ms, 0)

    def finish(self, now_ms: int) -> None:
        """End with the log."""
        if self._open is not None:
            self._close(UNDER_WAY, now_ms, max(0, now_ms - self._open.began_ms))
        for name, member in self._there.items():
            self._ended.append((name, member, now_ms, "", ""))
        self.members = [self._member_time(*one) for one in self._ended]

    # -- notes

    def _remove(self, event: GroupNoteEvent) -> None:
        name = _text(event, "instance_id") or _text(event, "member_id")
        client, reason = _text(event, "client_id"), _text(event, "reason")
        told = f"{name} was removed: {reason}"
        if self._open is None:
            self._removals.append((event.at_ms, told))
        else:
            self._open.notes.append(told)
        # A leader of whose instance nothing was told is known by its id.
        member = self._there.pop(name, None) or self._there.pop(_text(event, "member_id"), None)
        if member is None:
            if not client:
                # An id that was given out, with which nobody came.
                return
            member = _Member(None)
        member.client = client
        self._ended.append((name, member, event.at_ms, _end_of(reason), reason))

    def _begin(self, event: GroupNoteEvent) -> None:
        reason = _text(event, "reason")
        under_way = self._under_way(event)
        if under_way.generation_before is None:
            under_way.generation_before = _number(event, "generation_id")
        if not under_way.reason:
            under_way.reason = reason
        under_way.notes.append(reason)
        named = NAMED.fullmatch(reason)
        if named is not None:
            is_new = named["what"] == "joined"
            name = self._names[named["id"]] = named["instance"] or named["id"]
            self._see(name, event.at_ms if is_new else None)

    def _stable(self, event: GroupNoteEvent) -> None:
        stood_ms = _number(event, "stood_ms") or 0
        if self._open is None:
            # The log begins within the rebalance.
            self._open = _Open(event.at_ms - stood_ms, event.broker)
        self._open.generation = _number(event, "generation_id")
        self._close(STABLE, event.at_ms, stood_ms)

    def _empty(self, event: GroupNoteEvent) -> None:
        if self._open is not None:
            self._open.generation = _number(event, "generation_id")
            self._close(EMPTY, event.at_ms, max(0, event.at_ms - self._open.began_ms))
        for name, member in self._there.items():
            self._ended.append((name, member, event.at_ms, REMOVED, "nobody is left"))
        self._there = {}

    def _under_way(self, event: GroupNoteEvent) -> _Open:
        if self._open is None:
            self._open = _Open(event.at_ms, event.broker)
            told = [text for at_ms, text in self._removals if at_ms == event.at_ms]
            self._open.notes.extend(told)
            self._removals = []
        return self._open

    def _see(self, name: str, joined_ms: int | None = None) -> None:
        if name and name not in self._there:
            self._there[name] = _Member(joined_ms)

    def _close(self, ended: str, ended_ms: int, stood_ms: int) -> None:
        under_way = self._open
        assert under_way is not None
        self._open = None
        # By the broker's own measure, which a step of the calendar does not change.
        began_ms = ended_ms - stood_ms
        self.rebalances.append(
            GroupRebalance(
                group=self.group,
                began_ms=began_ms,
                cause=cause_of(under_way.reason),
                reason=under_way.reason,
                ended=ended,
                stood_ms=stood_ms,
                generation_before=under_way.generation_before,
                generation=under_way.generation,
                members=under_way.members,
                notes=under_way.notes,
            )
        )

    def _beside(self, since_ms: int | None, ended_ms: int) -> list[GroupRebalance]:
        """Return the rebalances that began before a time and may reach into it: a group may have
        had as many members as rebalances, and none of them is looked at for all."""
        ordered, latest = self._ordered
        first = 0 if since_ms is None else bisect_left(latest, since_ms)
        return ordered[first : bisect_right(ordered, ended_ms, key=lambda one: one.began_ms)]

    @cached_property
    def _ordered(self) -> tuple[list[GroupRebalance], list[int]]:
        """Rebalances by their begins, and by when all up to each of them had ended."""
        ordered = sorted(self.rebalances, key=lambda one: one.began_ms)
        return ordered, list(accumulate((one.ended_ms for one in ordered), max))

    def _member_time(
        self, name: str, member: _Member, ended_ms: int, end: str, reason: str
    ) -> MemberTime:
        since_ms = member.joined_ms
        shares = [
            min(one.ended_ms, ended_ms) - max(one.began_ms, since_ms or 0)
            for one in self._beside(since_ms, ended_ms)
            if since_ms is None or one.ended_ms >= since_ms
        ]
        return MemberTime(
            group=self.group,
            member=name,
            client=member.client,
            joined_ms=since_ms,
            ended_ms=ended_ms if end else None,
            end=end,
            reason=reason,
            stood_ms=sum(max(0, each) for each in shares),
            rebalances=len(shares),
        )


def cause_of(reason: str) -> str:
    """Return the kind of cause that a reason tells of."""
    if reason.startswith("left: "):
        return A_LEAVE
    if reason.startswith("removed because they did not sync"):
        return NO_SYNC
    named = NAMED.fullmatch(reason)
    if named is not None:
        return DONE[named["what"]]
    return A_DEATH if " was removed: " in reason else OTHER


def _end_of(reason: str) -> str:
    """Return how a member ended, by the reason for its removal."""
    if reason.startswith("it left"):
        return LEFT
    is_death = reason in ("its session ended", "its first join was not answered in time")
    return DIED if is_death else REMOVED


def _text(event: GroupNoteEvent, name: str) -> str:
    value = event.note.get(name)
    return value if isinstance(value, str) else ""


def _number(event: GroupNoteEvent, name: str) -> int | None:
    value = event.note.get(name)
    return value if type(value) is int else None

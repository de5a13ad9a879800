"""History of a group for `tarry groups why`: a coordinator's notes, gathered into rebalances.

A rebalance begins with the note that says so, or with the removals just before it, and ends when
the group is stable or empty.  A note outside of a rebalance stands alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import click

from tarry.base.errors import error_name
from tarry.cli.tables import count_of, print_table, seconds_text
from tarry.client import GroupMemory, GroupNote

# Lines that are printed of one rebalance, at most; a large group has more, and JSON has all.
LINES_MAX: Final = 12

# Ends of a rebalance.
UNDER_WAY: Final = "under way"
STABLE: Final = "stable"
EMPTY: Final = "empty"
# State of notes outside of a rebalance: the members went on reading.
NONE: Final = "no rebalance"

REBALANCE_BEGAN: Final = "RebalanceBegan"
ROUND_CHANGED: Final = "RoundChanged"
GENERATION_BEGAN: Final = "GenerationBegan"
BECAME_STABLE: Final = "BecameStable"
BECAME_EMPTY: Final = "BecameEmpty"
MEMBER_REMOVED: Final = "MemberRemoved"


class Rebalance:
    """Rebalance from the note that it began to the note that it is over."""

    def __init__(self) -> None:
        self.notes: list[GroupNote] = []
        self.state = NONE
        self.generation_before: int | None = None
        self.generation: int | None = None
        self.stood_ms: int | None = None

    @property
    def began_ms(self) -> int:
        return self.notes[0].at_ms

    def add(self, note: GroupNote) -> None:
        self.notes.append(note)
        generation_id = note.fields.get("generation_id")
        if note.kind in (REBALANCE_BEGAN, ROUND_CHANGED):
            self.state = UNDER_WAY
            if self.generation_before is None:
                self.generation_before = generation_id
        elif note.kind in (GENERATION_BEGAN, BECAME_STABLE, BECAME_EMPTY):
            # The rebalance's first notes may be forgotten: begin with this one.
            self.state = UNDER_WAY
            self.generation = generation_id
        if note.kind == BECAME_STABLE:
            self.state = STABLE
            self.stood_ms = note.fields.get("stood_ms")
        elif note.kind == BECAME_EMPTY:
            self.state = EMPTY

    def as_json(self) -> dict[str, object]:
        return {
            "began_ms": self.began_ms,
            "state": self.state,
            "generation_before": self.generation_before,
            "generation": self.generation,
            "stood_ms": self.stood_ms,
            "notes": [
                {"kind": note.kind, "at_ms": note.at_ms, **note.fields} for note in self.notes
            ],
        }


def rebalances_of(memory: GroupMemory) -> list[Rebalance]:
    """Gather the rebalances and what else happened, oldest first."""
    found: list[Rebalance] = []
    for note in memory.notes:
        last = found[-1] if found else None
        if last is None or not _belongs(note, last):
            last = Rebalance()
            found.append(last)
        last.add(note)
    return found


def _belongs(note: GroupNote, last: Rebalance) -> bool:
    """Return whether a note belongs to the last rebalance.  Removals and the rebalance that they
    cause come from one decision, in this order.
    """
    if last.state == UNDER_WAY:
        return True
    if last.state == NONE:
        return note.at_ms == last.notes[-1].at_ms
    return note.kind == BECAME_EMPTY and note.at_ms == last.notes[-1].at_ms


def history_json(memory: GroupMemory, rebalances: list[Rebalance]) -> dict[str, object]:
    return {
        "group": memory.group_id,
        "since_ms": memory.since_ms,
        "rebalances": [one.as_json() for one in rebalances],
    }


def print_history(memory: GroupMemory, rebalances: list[Rebalance], count: int) -> None:
    """Print a line for each thing that happened, the newest at the end."""
    since = time_text(memory.since_ms)
    if not rebalances:
        click.echo(f"nothing happened in group {memory.group_id} since {since}", err=True)
        return
    rows: list[list[object]] = []
    for one in rebalances[-count:]:
        cells = _shortened(_lines(one)) or [("", one.state)]
        first = [time_text(one.began_ms), _generations(one), _stood(one)]
        rows.append([*first, *cells[0]])
        rows.extend(["", "", "", *more] for more in cells[1:])
    print_table(["when", "generation", "took", "silent", "what happened"], rows)
    known = sum(one.state != NONE for one in rebalances)
    click.echo(f"{count_of(known, 'rebalance')} remembered since {since}", err=True)


def time_text(at_ms: int) -> str:
    """Write a time in the user's own zone."""
    moment = datetime.fromtimestamp(at_ms / 1000)
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _generations(one: Rebalance) -> str:
    if one.generation_before is None and one.generation is None:
        return "-"
    before = "?" if one.generation_before is None else f"{one.generation_before}"
    after = "..." if one.generation is None else f"{one.generation}"
    return f"{before} to {after}"


def _stood(one: Rebalance) -> str:
    if one.stood_ms is not None:
        return seconds_text(one.stood_ms)
    return "since then" if one.state == UNDER_WAY else "-"


def _shortened(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Shorten the lines of a rebalance to the first ones and the last one."""
    if len(lines) <= LINES_MAX:
        return lines
    left_out = len(lines) - (LINES_MAX - 1)
    return [*lines[: LINES_MAX - 2], ("", f"... {left_out} more, with --json"), lines[-1]]


def _lines(one: Rebalance) -> list[tuple[str, str]]:
    """Return the silence of a member and what happened, for each note that tells something new."""
    lines: list[tuple[str, str]] = []
    before: GroupNote | None = None
    for note in one.notes:
        told = note.fields
        if note.kind != BECAME_STABLE and not _is_removal_again(note, before):
            silent = seconds_text(told["silent_ms"]) if "silent_ms" in told else ""
            lines.append((silent, _sentence(note.kind, told)))
        before = note
    return lines


def _is_removal_again(note: GroupNote, before: GroupNote | None) -> bool:
    """Return true if a note says only that the rebalance is about the member just removed."""
    if before is None or (before.kind, before.at_ms) != (MEMBER_REMOVED, note.at_ms):
        return False
    if note.kind == ROUND_CHANGED:
        # Compare reasons: another member may have joined in the same millisecond.
        reason = str(note.fields.get("reason", ""))
        return reason.startswith("left: ") or " was removed: " in reason
    return note.kind == REBALANCE_BEGAN


def _sentence(kind: str, told: dict[str, Any]) -> str:
    if kind == MEMBER_REMOVED:
        return _removal(told)
    if kind == GENERATION_BEGAN:
        members = count_of(told["member_count"], "member")
        return f"{members} joined, assignor {told['protocol_name']}, leader {told['leader_id']}"
    if kind == BECAME_EMPTY:
        return "nobody is left"
    if kind == "AssignmentMissing":
        return f"the leader forgot {', '.join(told['member_ids'])}: nothing to read for them"
    if kind == "AppendFailed":
        return f"{told['what']} could not be stored: {error_name(told['error_code'])}"
    # A newer broker may send kinds of notes that this client does not know.
    return str(told.get("reason") or kind)


def _removal(told: dict[str, Any]) -> str:
    name = told["instance_id"] or told["member_id"]
    place = ""
    if told["client_id"]:
        place = f" of client {told['client_id']} at {told['client_host'].removeprefix('/')}"
    follows = f"; {told['follows']}" if told["follows"] else ""
    return f"member {name}{place} was removed: {told['reason']}{follows}"

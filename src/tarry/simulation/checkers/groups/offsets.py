"""Checkers of committed offsets: each is a register, and a read sees its newest valid write.

A write is confirmed once it was acknowledged or read, since a fetched offset is durable.  Later
reads must not see a write that ended before the confirmed write was delivered.
"""

from __future__ import annotations

from tarry.simulation.groups.history import (
    ACKNOWLEDGED,
    ALL,
    REFUSED,
    GroupHistory,
    OffsetRead,
    OffsetWrite,
    Register,
    register_name,
)

_NOTHING = "no offset"


class _Register:
    """Writes of one partition of one group, and the turn since which each of them counts."""

    def __init__(self) -> None:
        self.writes: list[OffsetWrite] = []
        self.by_mark: dict[str, OffsetWrite] = {}
        # For each of `writes`, the turn since which it counts; None if it may not count at all.
        self.confirmed_turns: list[int | None] = []

    def add(self, write: OffsetWrite) -> None:
        """Add a write to the register."""
        self.writes.append(write)
        if not write.is_deletion:
            self.by_mark[write.mark] = write
        self.confirmed_turns.append(_acknowledged_turn(write))


def check_offsets(history: GroupHistory) -> list[str]:
    """Check that no committed offset is lost, comes back, or goes back without a commit."""
    registers: dict[Register, _Register] = {}
    for write in history.writes:
        if write.register[2] != ALL:
            registers.setdefault(write.register, _Register()).add(write)
    for write in history.writes:
        if write.register[2] == ALL:
            for name, register in registers.items():
                if write.is_of(name):
                    register.add(write)
    for read in history.reads:
        register = registers.setdefault(read.register, _Register())
        _confirm(register, read)
    for read in history.reads:
        sentence = _wrong_with(history, registers[read.register], read)
        if sentence:
            return [sentence]
    return []


def _acknowledged_turn(write: OffsetWrite) -> int | None:
    exchange = write.exchange
    return exchange.answered_turn if exchange and write.outcome == ACKNOWLEDGED else None


def _confirm(register: _Register, read: OffsetRead) -> None:
    """Note that the write that was read counts from the turn of the read on."""
    write = register.by_mark.get(read.mark)
    if write is None or not read.mark:
        return
    place = register.writes.index(write)
    known = register.confirmed_turns[place]
    turn = read.exchange.answered_turn
    register.confirmed_turns[place] = turn if known is None else min(known, turn)


def _wrong_with(history: GroupHistory, register: _Register, read: OffsetRead) -> str:
    name = register_name(read.register)
    if not read.mark:
        return _wrong_with_nothing(history, register, read, name)
    write = register.by_mark.get(read.mark)
    if write is None:
        return f"{name} has offset {read.offset} with {read.mark!r}, which nobody committed"
    if write.offset != read.offset or read.leader_epoch not in (None, write.leader_epoch):
        return (
            f"{name} has offset {read.offset} of leader epoch {read.leader_epoch} with "
            f"{read.mark!r}, and {write.offset} of {write.leader_epoch} was committed"
        )
    if write.outcome == REFUSED:
        return f"{name} has offset {read.offset} with {read.mark!r}, and that commit was refused"
    newer = _overwriter(register, history.end_of(write), read)
    if newer is None:
        return ""
    return (
        f"{name} has offset {read.offset} with {read.mark!r} in turn {read.exchange.answered_turn},"
        f" and {_what(newer)} came after it"
    )


def _wrong_with_nothing(
    history: GroupHistory, register: _Register, read: OffsetRead, name: str
) -> str:
    newer = _overwriter(register, -1, read)
    if newer is None or newer.is_deletion:
        return ""
    for write in register.writes:
        if not write.is_deletion or write.outcome == REFUSED:
            continue
        begin = _begin(write)
        if begin is None or begin > read.exchange.answered_turn:
            continue
        commit = _overwriter(register, history.end_of(write), read)
        if commit is None or commit.is_deletion:
            return ""
    return (
        f"{name} has {_NOTHING} in turn {read.exchange.answered_turn}, and {_what(newer)} is lost"
    )


def _overwriter(register: _Register, end_turn: int, read: OffsetRead) -> OffsetWrite | None:
    """Return the newest write that began after `end_turn` and counts since before the read."""
    newest: OffsetWrite | None = None
    newest_turn = -1
    for write, confirmed_turn in zip(register.writes, register.confirmed_turns, strict=True):
        if confirmed_turn is None or confirmed_turn >= read.exchange.delivered_turn:
            continue
        begin = _begin(write)
        if begin is None or begin <= max(end_turn, newest_turn):
            continue
        newest = write
        newest_turn = begin
    return newest


def _begin(write: OffsetWrite) -> int | None:
    """Return the first turn in which the write can have an effect; None if it was lost."""
    if write.exchange is None:
        return write.sent_turn
    turn = write.exchange.delivered_turn
    return turn if turn >= 0 else None


def _what(write: OffsetWrite) -> str:
    return "a deletion" if write.is_deletion else f"offset {write.offset} with {write.mark!r}"

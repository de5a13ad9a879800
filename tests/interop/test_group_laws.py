"""The laws of a group's readers find what is wrong: each is broken once on purpose."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.support.interop.group_laws import History, offences
from tests.support.interop.group_members import CommandMember, Event, Watch
from tests.support.interop.tarry_member import TarryMember


class WrittenMember:
    """A member whose events a test has written."""

    def __init__(self, name: str, *events: tuple[int, str, Any]) -> None:
        self.name = name
        self.events = [Event(*event) for event in events]

    def leave(self) -> None: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...


def history(*members: WrittenMember) -> History:
    history = History(partitions=1)
    history.written = 4
    history.members += members
    return history


def records(first: int, end: int) -> list[list[Any]]:
    return [[0, number, f"0/{number}"] for number in range(first, end)]


def reader(name: str, start: int, first: int, end: int) -> WrittenMember:
    """It gets the partition at `start`, reads, commits, and gives it back ten later."""
    return WrittenMember(
        name,
        (start, "assigned", [0]),
        (start + 1, "read", records(first, end)),
        (start + 2, "committed", [[0, end]]),
        (start + 10, "revoked", [0]),
    )


def test_readers_that_take_turns_break_no_law():
    assert offences(history(reader("a", 100, 0, 2), reader("b", 200, 2, 4))) == []


def test_what_was_read_but_not_committed_may_be_read_again():
    killed = WrittenMember(
        "a",
        (100, "assigned", [0]),
        (101, "read", records(0, 2)),
        (102, "committed", [[0, 2]]),
        (103, "read", records(2, 3)),
        (104, "killed", None),
    )

    assert offences(history(killed, reader("b", 200, 2, 4))) == []


def test_a_record_that_nobody_read_is_found():
    found = offences(history(reader("a", 100, 0, 2), reader("b", 200, 3, 4)))

    assert found == ["nobody read 0/2"]


def test_a_gap_in_what_one_member_read_is_found():
    torn = WrittenMember(
        "b", (200, "assigned", [0]), (201, "read", records(0, 1)), (202, "read", records(2, 4))
    )

    found = offences(history(reader("a", 100, 0, 2), torn))

    assert "b in partition 0 read [0, 2, 3]" in found


def test_a_start_before_the_commit_is_found():
    found = offences(history(reader("a", 100, 0, 3), reader("b", 200, 2, 4)))

    assert found == ["b in partition 0 began at 2, before the commit of 3"]


def test_a_commit_that_only_the_broker_told_counts():
    watched = history(reader("a", 100, 0, 2), reader("b", 200, 2, 4))
    watched.seen_commits.append(Event(150, "committed", [[0, 4]]))

    assert offences(watched) == ["b in partition 0 began at 2, before the commit of 4"]


def test_two_owners_at_once_are_found():
    found = offences(history(reader("a", 100, 0, 2), reader("b", 105, 2, 4)))

    assert found == ["partition 0 was given to b while a had it"]


def test_another_value_than_was_written_is_found():
    wrong = WrittenMember(
        "b", (200, "assigned", [0]), (201, "read", [[0, 2, "0/9"], [0, 3, "0/3"]])
    )

    found = offences(history(reader("a", 100, 0, 2), wrong))

    assert found == ["0/9 was read at offset 2 of partition 0"]


class ToldCommand(TarryMember):
    """`tarry consume` whose lines a test hands over, as late as it wants."""

    def __init__(self, name: str) -> None:
        CommandMember.__init__(self, name, Watch(), ["true"])


@pytest.mark.parametrize("reads_on", [False, True])
def test_a_command_that_is_heard_late_had_its_partition_until_its_last_read(*, reads_on: bool):
    """Another member has it before the line comes that the command has it no more."""
    command = ToldCommand("tarry consume")
    command.hear(b"g: reads t:0 (generation 1, range)")
    command.hear(b"0 0 0/0")
    now_ns = time.monotonic_ns()
    other = WrittenMember("other", (now_ns, "assigned", [0]), (now_ns + 1, "read", records(1, 4)))
    if reads_on:
        command.hear(b"0 1 0/1")
    command.hear(b"g: has nothing to read (generation 2, range)")
    command.close()

    found = offences(history(command, other))  # type: ignore[arg-type]

    told = "partition 0 was given to other while tarry consume had it"
    assert found == ([told] if reads_on else [])

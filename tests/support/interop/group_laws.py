"""What must hold of a group's readers, whatever their client and assignor.

By what the members themselves told:

* every record is read, and read as it was written;
* a member reads a partition without a gap from where it began;
* whoever is given a partition begins at or after the last commit acknowledged before, so that
  nothing is read twice beyond it;
* no partition has two owners.
"""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

from tests.support.interop.group_members import Event, Member


class History:
    """Members and what was written: a record of every partition has its number as offset."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.members: list[Member] = []
        self.written = 0
        # The broker's own answer; kcat does not report what it commits.
        self.seen_commits: list[Event] = []

    def all_read(self) -> dict[tuple[int, int], str]:
        """Partition and offset of everything that anybody read, and what it was."""
        return {
            (partition, offset): value
            for member in self.members
            for event in tuple(member.events)
            if event.what == "read"
            for partition, offset, value in event.data
        }

    def unread(self) -> list[str]:
        read = self.all_read()
        return [
            value_of(partition, number)
            for partition in range(self.partitions)
            for number in range(self.written)
            if (partition, number) not in read
        ]


def value_of(partition: int, number: int) -> str:
    """What a record holds."""
    return f"{partition}/{number}"


class Tenure(NamedTuple):
    """A partition in one member's hands: from when to when, and what it read there."""

    member: str
    partition: int
    begin_ns: int
    end_ns: int
    offsets: list[int]


NEVER: Final = 1 << 63


def tenures_of(member: Member) -> list[Tenure]:
    """From being given a partition until it was taken away, given up or lost with the member."""
    open_tenures: dict[int, Tenure] = {}
    found: list[Tenure] = []

    def close(partition: int, stamp_ns: int) -> None:
        tenure = open_tenures.pop(partition, None)
        if tenure is not None:
            found.append(tenure._replace(end_ns=stamp_ns))

    for event in in_order(member.events):
        if event.what == "assigned":
            for partition in event.data:
                close(partition, event.stamp_ns)
                open_tenures[partition] = Tenure(member.name, partition, event.stamp_ns, NEVER, [])
        elif event.what in ("revoked", "lost"):
            for partition in event.data:
                close(partition, event.stamp_ns)
        elif event.what in ("left", "killed"):
            for partition in sorted(open_tenures):
                close(partition, event.stamp_ns)
        elif event.what == "read":
            for partition, offset, _ in event.data:
                open_tenures[partition].offsets.append(offset)
    return found + list(open_tenures.values())


def in_order(events: list[Event]) -> list[Event]:
    """By the clock; the end of a process was noted by another clock's reader, and stays last."""
    return sorted(events, key=lambda event: (event.what in ("left", "killed"), event.stamp_ns))


def commits_before(history: History, partition: int, stamp_ns: int) -> int:
    """The last offset of the partition whose commit was acknowledged before the stamp."""
    return max(
        (
            offset
            for events in (history.seen_commits, *(member.events for member in history.members))
            for event in events
            if event.what == "committed" and event.stamp_ns < stamp_ns
            for each, offset in event.data
            if each == partition
        ),
        default=0,
    )


def offences(history: History) -> list[str]:
    """Every law that was broken, as a sentence."""
    found = [f"nobody read {value}" for value in history.unread()]
    found += [
        f"{value} was read at offset {offset} of partition {partition}"
        for (partition, offset), value in history.all_read().items()
        if value != value_of(partition, offset)
    ]
    tenures = [tenure for member in history.members for tenure in tenures_of(member)]
    for tenure in tenures:
        found += offences_of(tenure, history)
    for partition in range(history.partitions):
        of_partition = sorted(
            (tenure for tenure in tenures if tenure.partition == partition),
            key=lambda tenure: tenure.begin_ns,
        )
        found += [
            f"partition {partition} was given to {second.member} while {first.member} had it"
            for first, second in itertools.pairwise(of_partition)
            if second.begin_ns < first.end_ns
        ]
    return found


def offences_of(tenure: Tenure, history: History) -> list[str]:
    if not tenure.offsets:
        return []
    first, last = tenure.offsets[0], tenure.offsets[-1]
    where = f"{tenure.member} in partition {tenure.partition}"
    found: list[str] = []
    if tenure.offsets != [*range(first, last + 1)]:
        found.append(f"{where} read {tenure.offsets}")
    committed = commits_before(history, tenure.partition, tenure.begin_ns)
    if first < committed:
        found.append(f"{where} began at {first}, before the commit of {committed}")
    return found

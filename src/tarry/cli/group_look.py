"""Looks at groups for `tarry groups describe`: members, committed offsets, lag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import click

from tarry.base.errors import GROUP_ID_NOT_FOUND
from tarry.base.ids import TopicPartition
from tarry.cli.guesses import unknown_group
from tarry.cli.partitions import places_text
from tarry.cli.tables import count_of, print_table, printable
from tarry.client import (
    LATEST,
    Admin,
    ClientError,
    CommittedOffset,
    FoundOffset,
    GroupDescription,
    GroupMember,
    Topic,
)
from tarry.client.errors import BrokerError

# The protocol type of groups whose members are consumers.
CONSUMERS: Final = "consumer"

REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance")


class PartitionLook(NamedTuple):
    """Partition of a group: committed offset, end offset, reader.  None stands for a value that
    does not exist or is not known.
    """

    place: TopicPartition
    committed: CommittedOffset | None
    end_offset: int | None
    member: GroupMember | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end_offset is None:
            return None
        return self.end_offset - self.committed.offset


class GroupLook:
    """Group with its members and offsets."""

    def __init__(self, description: GroupDescription, partitions: list[PartitionLook]) -> None:
        self.description = description
        self.partitions = partitions

    @property
    def is_of_consumers(self) -> bool:
        """True if the members are consumers; a group that only commits has no protocol type."""
        return self.description.protocol_type in ("", CONSUMERS)

    @property
    def lag(self) -> int | None:
        """Sum of the lags of all partitions that have one."""
        lags = [one.lag for one in self.partitions if one.lag is not None]
        return sum(lags) if lags else None

    # --- For people

    def print_head(self) -> None:
        known = self.description
        protocol = ", ".join(one for one in (known.protocol_type, known.protocol_name) if one)
        coordinator = known.coordinator
        words = [
            known.group_id,
            known.state,
            protocol,
            count_of(len(known.members), "member"),
            "" if self.lag is None else f"lag {self.lag:,}",
            self._unknown_lag(),
            f"coordinator {coordinator.broker_id} at {coordinator.address}",
        ]
        click.echo("  ".join(printable(word) for word in words if word))
        if known.state in REBALANCING:
            click.echo(f"rebalancing; see: tarry groups why {printable(known.group_id)}", err=True)

    def _unknown_lag(self) -> str:
        """Return a text about partitions without a commit, which the sum leaves out."""
        count = sum(one.committed is None for one in self.partitions)
        return f"{count_of(count, 'partition')} without a commit" if count else ""

    def print_offsets(self) -> None:
        if not self.partitions:
            click.echo("nothing is committed, and nobody reads", err=True)
            return
        rows = [
            [
                *one.place,
                "-" if one.committed is None else one.committed.offset,
                "-" if one.end_offset is None else one.end_offset,
                "-" if one.lag is None else one.lag,
                *_who(one.member),
            ]
            for one in self.partitions
        ]
        rows.extend(
            ["-", "-", "-", "-", "-", *_who(member)]
            for member in self.description.members
            if member.places == []
        )
        titles = ["topic", "partition", "committed", "end", "lag", "member", "host"]
        print_table(titles, rows)

    def print_members(self) -> None:
        rows = [
            [*_who(member), member.client_id, _assignment_text(member)]
            for member in self.description.members
        ]
        if rows:
            print_table(["member", "host", "client", "has"], rows)
        else:
            click.echo("there are no members", err=True)

    def state_row(self) -> list[object]:
        known = self.description
        return [
            known.group_id,
            known.state,
            known.protocol_type or "-",
            known.protocol_name or "-",
            len(known.members),
            "-" if self.lag is None else self.lag,
            f"{known.coordinator.broker_id} at {known.coordinator.address}",
        ]

    # --- For programs

    def as_json(self) -> dict[str, object]:
        known = self.description
        return {
            "group": known.group_id,
            "state": known.state,
            "protocol_type": known.protocol_type,
            "assignor": known.protocol_name,
            "coordinator": {
                "broker_id": known.coordinator.broker_id,
                "host": known.coordinator.address.host,
                "port": known.coordinator.address.port,
            },
            "lag": self.lag,
            "members": [_member_json(member) for member in known.members],
            "offsets": [
                {
                    "topic": one.place[0],
                    "partition": one.place[1],
                    "committed_offset": None if one.committed is None else one.committed.offset,
                    "leader_epoch": None if one.committed is None else one.committed.leader_epoch,
                    "metadata": None if one.committed is None else one.committed.metadata,
                    "end_offset": one.end_offset,
                    "lag": one.lag,
                    "member_id": None if one.member is None else one.member.member_id,
                }
                for one in self.partitions
            ],
        }


def _who(member: GroupMember | None) -> tuple[str, str]:
    """Return name and address of a member: the name that a static member keeps, no slash of
    Java's.
    """
    if member is None:
        return "-", "-"
    return member.instance_id or member.member_id, member.client_host.removeprefix("/")


def _assignment_text(member: GroupMember) -> str:
    if member.places is None:
        return f"{len(member.assignment)} bytes that only its own kind reads"
    return places_text(member.places) or "-"


def _member_json(member: GroupMember) -> dict[str, object]:
    places = member.places
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.client_host.removeprefix("/"),
        "assignment": None
        if places is None
        else [{"topic": topic, "partition": partition} for topic, partition in places],
    }


def look_at_groups(
    admin: Admin, group_ids: Sequence[str], timeout: float
) -> tuple[list[GroupLook], dict[str, ClientError]]:
    """Look at the groups that are there; returns also why the others cannot be shown."""
    described = admin.describe_groups(group_ids, timeout)
    refused = {key: one for key, one in described.items() if isinstance(one, ClientError)}
    there = {key: one for key, one in described.items() if isinstance(one, GroupDescription)}
    committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    for group_id, offsets in admin.group_offsets(there, timeout=timeout).items():
        if isinstance(offsets, ClientError):
            refused[group_id] = offsets
            del there[group_id]
        else:
            committed[group_id] = offsets
    readers = {key: _readers(one) for key, one in there.items()}
    places = {key: sorted({**committed[key], **readers[key]}) for key in there}
    ends = end_offsets(admin, [place for each in places.values() for place in each], timeout)
    looks = [
        GroupLook(
            description,
            [
                PartitionLook(
                    place, committed[key].get(place), ends.get(place), readers[key].get(place)
                )
                for place in places[key]
            ],
        )
        for key, description in there.items()
    ]
    return looks, refused


class UnknownGroup(BrokerError):
    """A group that does not exist; the text says which one was probably meant."""

    def __init__(self, sentence: str) -> None:
        super().__init__(GROUP_ID_NOT_FOUND, sentence)
        # Print the sentence alone: the name of the error code adds nothing.
        self.args = (sentence,)


def explained_group(
    admin: Admin, error: ClientError | None, name: str, timeout: float
) -> ClientError | None:
    """Explain the error of a request about a group; one that is not there gets the name that was
    probably meant.
    """
    is_missing = isinstance(error, BrokerError) and error.code == GROUP_ID_NOT_FOUND
    # Brokers return this code also for groups of kinds that only newer requests show.
    if not is_missing or "does not exist" not in str(error):
        return error
    names = [one.group_id for one in admin.list_groups(timeout=timeout)]
    return error if name in names else UnknownGroup(unknown_group(name, names))


def _readers(description: GroupDescription) -> dict[TopicPartition, GroupMember]:
    return {place: member for member in description.members for place in member.places or ()}


def end_offsets(
    admin: Admin, places: Sequence[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    """Return where partitions end; those that are gone, or have no leader, are left out at once."""
    return offsets_at(admin, dict.fromkeys(places, LATEST), timeout)


def offsets_at(
    admin: Admin, wanted: dict[TopicPartition, int], timeout: float
) -> dict[TopicPartition, int]:
    """Offsets at times, of the partitions whose leaders tell them."""
    return _offsets_at(
        admin, admin.find_topics([topic for topic, _ in wanted], timeout), wanted, timeout
    )


def offsets_of_led(
    admin: Admin, topics: Sequence[Topic], time: int, timeout: float
) -> dict[TopicPartition, int]:
    """Offsets at one time, of all partitions of these topics that have a leader."""
    wanted = {(topic.name, index): time for topic in topics for index in topic.partitions}
    return _offsets_at(admin, {topic.name: topic for topic in topics}, wanted, timeout)


def _offsets_at(
    admin: Admin, topics: dict[str, Topic], wanted: dict[TopicPartition, int], timeout: float
) -> dict[TopicPartition, int]:
    led = {
        (topic, index): time
        for (topic, index), time in wanted.items()
        if topic in topics
        and index in topics[topic].partitions
        and topics[topic].partitions[index].leader_id >= 0
    }
    answers = admin.offsets(led, timeout) if led else {}
    return {
        place: answer.offset for place, answer in answers.items() if isinstance(answer, FoundOffset)
    }

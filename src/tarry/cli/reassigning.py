"""Reassignments that a command asks for: what was planned, what came of it, until all is done."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from tarry.base.ids import TopicPartition
from tarry.cli.cluster_look import wait_until
from tarry.cli.running import EXIT_FAILED
from tarry.cli.tables import complain, count_of, print_json, print_table

if TYPE_CHECKING:
    from tarry.client import Admin, ClientError

# Partitions of one request, at most.
PARTITIONS_PER_REQUEST: Final = 1_000


class Moves:
    """Moves of partitions to new replicas; None as a target cancels."""

    def __init__(
        self,
        before: Mapping[TopicPartition, Sequence[int]],
        targets: Mapping[TopicPartition, list[int] | None],
    ) -> None:
        self.before = before
        self.targets = targets
        self.errors: dict[TopicPartition, ClientError] = {}
        self.left: dict[TopicPartition, None] = {}

    def begin(self, admin: Admin, timeout: float) -> None:
        """Request all moves."""
        places = list(self.targets)
        for first in range(0, len(places), PARTITIONS_PER_REQUEST):
            asked = {
                place: self.targets[place]
                for place in places[first : first + PARTITIONS_PER_REQUEST]
            }
            outcomes = admin.alter_partition_reassignments(asked, timeout, outcomes=True)
            for place, error in outcomes.items():
                if error is not None:
                    self.errors[place] = error
        self.left = {place: None for place in places if place not in self.errors}

    def wait(self, admin: Admin, timeout: float, limit_s: float) -> None:
        """Wait until none of the moves is under way."""
        from tarry.client import ClientError

        def look() -> list[str]:
            try:
                under_way = admin.list_partition_reassignments(timeout=timeout)
            except ClientError as error:
                return [str(error)]
            self.left = {place: None for place in self.left if place in under_way}
            return [f"{place[0]} [{place[1]}]" for place in self.left]

        wait_until(look, limit_s)

    def print(self, *, as_json: bool, done: str) -> None:
        """Print what came of each; exit 1 if one was refused or is not done, where that was waited
        for.
        """
        for place, error in self.errors.items():
            complain(f"{place[0]} [{place[1]}]: {error}")
        if as_json:
            print_json([self._json(place) for place in self.targets])
        else:
            self._print_rows()
            moved = len(self.targets) - len(self.errors)
            if moved:
                click.echo(f"{count_of(moved, 'partition')} {done}", err=True)
        if self.errors:
            sys.exit(EXIT_FAILED)

    def check_done(self) -> None:
        """Exit 1 if a move is still under way."""
        if self.left:
            complain(
                f"{count_of(len(self.left), 'partition')} still under way; they go on by "
                "themselves: tarry topics reassign shows them"
            )
            sys.exit(EXIT_FAILED)

    def _print_rows(self) -> None:
        rows = [
            [place[0], place[1], ids_text(self.before[place]), ids_text(target)]
            for place, target in self.targets.items()
            if place not in self.errors and target is not None
        ]
        if rows:
            print_table(["topic", "partition", "replicas", "to be"], rows)

    def _json(self, place: TopicPartition) -> dict[str, object]:
        error = self.errors.get(place)
        return {
            "topic": place[0],
            "partition": place[1],
            "replicas_before": list(self.before[place]),
            "replicas": self.targets[place],
            "under_way": place in self.left,
            "error": None if error is None else str(error),
        }


def ids_text(broker_ids: Sequence[int]) -> str:
    """Write ids of brokers as `1,2,3`; `-` for none."""
    return ",".join(map(str, broker_ids)) or "-"


def ids_of(text: str) -> list[int]:
    """Read ids of brokers, written as `1,2,3`."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"invalid ids of brokers {text!r}: write them as 1,2,3") from None
    if any(broker_id < 0 for broker_id in found) or len(dict.fromkeys(found)) < len(found):
        raise click.UsageError(f"invalid ids of brokers {text!r}: each once, and not below 0")
    return found

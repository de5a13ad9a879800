"""`tarry groups reset-offsets`: commit other offsets in the place of a group that is stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tarry.cli.places import (
    BEGINNING,
    END,
    OFFSET,
    TIME,
    BadPlace,
    Place,
    parse_time_ms,
    parse_topic_partitions,
)
from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.tables import count_of, print_json, print_table

if TYPE_CHECKING:
    from tarry.client.core.admin_groups import GroupDescription
    from tarry.client.sync.admin import Admin

At = tuple[str, int]

EXAMPLES: Final = """
\b
Examples:
  tarry groups reset-offsets billing --topic orders --to-earliest
                                     shows what would change, and changes nothing
  tarry groups reset-offsets billing --topic orders --to-earliest --execute
                                     does it: the group reads everything again
  tarry groups reset-offsets billing --topic orders:0,2-4 --to-offset 1000
  tarry groups reset-offsets billing --all-topics --to-time 2026-11-21T08:00
  tarry groups reset-offsets billing --all-topics --to-time -2h
  tarry groups reset-offsets billing --topic orders --shift-by -100

\b
Stop the group's consumers before --execute; they begin at the new offsets when they start again.
An offset outside of what the partition has becomes its first or last one.
"""

# Not a place that can be written elsewhere: so many from what is committed.
SHIFT: Final = "shift"


@click.command("reset-offsets", epilog=EXAMPLES)
@click.argument("name", metavar="GROUP")
@cluster_options
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC[:N,N-N]", help="Of this topic; repeatable."
)
@click.option("--all-topics", is_flag=True, help="Of all topics that it has committed for.")
@click.option("--to-earliest", is_flag=True, help="To the first record that is there.")
@click.option("--to-latest", is_flag=True, help="To the end: what is there is not read.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--to-time", metavar="TIME", help="To the first record since then; -2h is ago.")
@click.option("--shift-by", type=int, metavar="N", help="On by N records, or back by -N.")
@click.option(
    "--execute/--dry-run", "execute", default=False, help="Do it; else only show it (default)."
)
@json_option
@quietly
def reset_command(
    name: str,
    *,
    cluster: Cluster,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_time: str | None,
    shift_by: int | None,
    execute: bool,
    as_json: bool,
) -> None:
    """Set what a group has committed, so that it reads again or leaves out."""
    if all_topics == bool(topics):
        raise click.UsageError("name topics with --topic, or say --all-topics")
    if not name:
        raise click.UsageError("name the group: its name is empty")
    target = _target(
        {
            "--to-earliest": Place(BEGINNING) if to_earliest else None,
            "--to-latest": Place(END) if to_latest else None,
            "--to-offset": None if to_offset is None else Place(OFFSET, to_offset),
            "--to-time": None if to_time is None else Place(TIME, _time_ms(to_time)),
            "--shift-by": None if shift_by is None else Place(SHIFT, shift_by),
        }
    )
    wanted = parse_topics(topics)
    with cluster.admin() as admin:
        group = _group(admin, name, cluster.timeout, may_be_new=not all_topics)
        reset = Reset(admin, name, cluster.timeout)
        moves = reset.plan(wanted, target)
        if group is not None and group.members:
            _warn_of_members(group, execute=execute)
        errors = reset.execute(moves) if execute else {}
    _print(name, moves, errors, execute=execute, as_json=as_json)
    if errors:
        sys.exit(EXIT_FAILED)


def _target(given: dict[str, Place | None]) -> Place:
    chosen_ones = [place for place in given.values() if place is not None]
    if len(chosen_ones) != 1:
        raise click.UsageError(f"say where to, with one of {', '.join(given)}")
    return chosen_ones[0]


def _time_ms(text: str) -> int:
    try:
        return parse_time_ms(text, time.time_ns() // 1_000_000)
    except BadPlace as error:
        raise click.UsageError(str(error)) from None


def parse_topics(texts: Sequence[str]) -> dict[str, list[int] | None]:
    """Topics with the partitions that were named, or None for all of them."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        try:
            topic, partitions = parse_topic_partitions(text)
        except BadPlace as error:
            raise click.UsageError(str(error)) from None
        known = found.get(topic, [])
        found[topic] = None if known is None or partitions is None else [*known, *partitions]
    return found


def chosen(wanted: dict[str, list[int] | None], places: Sequence[At]) -> list[At]:
    """Those of the places that were asked for; single partitions even if they are not there."""
    found: dict[At, None] = {}
    for topic, partitions in wanted.items():
        if partitions is None:
            found.update(dict.fromkeys(place for place in places if place[0] == topic))
        else:
            found.update(dict.fromkeys((topic, index) for index in partitions))
    return sorted(found)


def _group(admin: Admin, name: str, timeout: float, *, may_be_new: bool) -> GroupDescription | None:
    """The group; None for one that is not there yet and may be made."""
    from tarry.base.errors import GROUP_ID_NOT_FOUND
    from tarry.client.errors import BrokerError, ClientError

    answer = admin.describe_groups([name], timeout)[name]
    if not isinstance(answer, ClientError):
        return answer
    if isinstance(answer, BrokerError) and answer.code == GROUP_ID_NOT_FOUND and may_be_new:
        return None
    raise answer


def _warn_of_members(group: GroupDescription, *, execute: bool) -> None:
    hosts = sorted({member.client_host.removeprefix("/"): None for member in group.members})
    sentence = (
        f"group {group.group_id} has {count_of(len(group.members), 'member')} "
        f"({', '.join(hosts)}); stop them first, only they commit while they run"
    )
    if execute:
        fail(sentence)
    click.echo(f"tarry: {sentence}", err=True)


class Move(NamedTuple):
    """One partition's committed offset (None: there is none), and what it becomes."""

    place: At
    before: int | None
    after: int


class Reset:
    """The offsets of one group, looked up and committed."""

    def __init__(self, admin: Admin, name: str, timeout: float) -> None:
        self.admin = admin
        self.name = name
        self.timeout = timeout

    def plan(self, wanted: dict[str, list[int] | None], target: Place) -> list[Move]:
        """What becomes of each partition; of all that is committed if no topics are wanted."""
        from tarry.cli.group_look import offsets_at
        from tarry.client.core.lookup import EARLIEST, LATEST

        committed = self._committed()
        places = self._places(wanted, committed)
        begins = offsets_at(self.admin, dict.fromkeys(places, EARLIEST), self.timeout)
        ends = offsets_at(self.admin, dict.fromkeys(places, LATEST), self.timeout)
        found: dict[At, int] = {}
        if target.kind == TIME:
            times = dict.fromkeys(places, target.number)
            found = offsets_at(self.admin, times, self.timeout)
        moves: list[Move] = []
        for place in places:
            if place not in begins or place not in ends:
                fail(f"{place[0]} [{place[1]}] does not tell its offsets; is it there?")
            before = committed.get(place)
            if target.kind == SHIFT:
                wish = _shifted(place, before, target.number)
            else:
                wish = target.offset(begins[place], ends[place], found.get(place, -1))
            after = min(max(wish, begins[place]), ends[place])
            if after != wish:
                span = f"offsets {begins[place]} to {ends[place]}, not {wish}"
                click.echo(f"tarry: {place[0]} [{place[1]}] has {span}: taking {after}", err=True)
            moves.append(Move(place, before, after))
        return moves

    def _committed(self) -> dict[At, int]:
        from tarry.client.errors import ClientError

        answer = self.admin.group_offsets([self.name], timeout=self.timeout)[self.name]
        if isinstance(answer, ClientError):
            raise answer
        return {place: one.offset for place, one in answer.items()}

    def _places(self, wanted: dict[str, list[int] | None], committed: dict[At, int]) -> list[At]:
        if not wanted:
            if not committed:
                fail(f"group {self.name} has committed nothing; name a topic with --topic")
            return sorted(committed)
        topics = self.admin.find_topics(wanted, self.timeout)
        for topic, partitions in wanted.items():
            if topic not in topics:
                fail(f"topic {topic} does not exist")
            for index in partitions or ():
                if index not in topics[topic].partitions:
                    last = max(topics[topic].partitions)
                    fail(f"topic {topic} has partitions 0 to {last}, not {index}")
        known = [(name, index) for name, one in topics.items() for index in one.partitions]
        return chosen(wanted, known)

    def execute(self, moves: list[Move]) -> dict[At, str]:
        """Commit; the sentences about those that were refused."""
        offsets = {move.place: move.after for move in moves}
        outcomes = self.admin.commit_group_offsets(self.name, offsets, self.timeout)
        return {place: str(error) for place, error in outcomes.items() if error is not None}


def _shifted(place: At, before: int | None, number: int) -> int:
    if before is None:
        fail(
            f"nothing is committed for {place[0]} [{place[1]}], so it cannot be shifted; name "
            f"the partitions that have a commit, as in --topic {place[0]}:0,2"
        )
    return before + number


def _print(
    name: str, moves: list[Move], errors: dict[At, str], *, execute: bool, as_json: bool
) -> None:
    for sentence in dict.fromkeys(errors.values()):
        click.echo(f"tarry: {sentence}", err=True)
    if as_json:
        print_json(
            {
                "group": name,
                "executed": execute,
                "offsets": [
                    {
                        "topic": move.place[0],
                        "partition": move.place[1],
                        "before": move.before,
                        "after": move.after,
                        "error": errors.get(move.place),
                    }
                    for move in moves
                ],
            }
        )
        return
    rows = [
        [
            *move.place,
            "-" if move.before is None else move.before,
            move.after,
            "-" if move.before is None else f"{move.after - move.before:+d}",
        ]
        for move in moves
        if move.place not in errors
    ]
    if rows:
        print_table(["topic", "partition", "before", "after", "change"], rows)
    if not execute:
        click.echo("nothing was changed; say --execute to do it", err=True)

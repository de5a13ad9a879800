"""`tarry groups reset-offsets`: commit other offsets in the place of a group that is stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tarry.base.ids import TopicPartition
from tarry.cli.group_plan import CURRENT, SHIFT, OffsetMove, Reset, committed_offsets
from tarry.cli.guesses import unknown_group
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
    EXIT_USAGE,
    Cluster,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.tables import complain, count_of, print_json, print_table

if TYPE_CHECKING:
    from tarry.client import Admin, GroupDescription


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
From another group, and from another cluster, such as one of Apache Kafka:
  tarry groups reset-offsets billing-2 --from-group billing --create --execute
  tarry groups export billing -b kafka:9092 > billing.csv
  tarry groups reset-offsets billing --from-file billing.csv --create --execute

\b
Stop the group's consumers before --execute; they begin at the new offsets when they start again.
An offset outside of what the partition has becomes its first or last one.
"""


@click.command("reset-offsets", epilog=EXAMPLES)
@click.argument("name", metavar="GROUP")
@cluster_options
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC[:N,N-N]", help="Topic to reset; repeatable."
)
@click.option("--all-topics", is_flag=True, help="Reset all topics that it has committed for.")
@click.option("--to-earliest", is_flag=True, help="Reset to the first record that is there.")
@click.option(
    "--to-latest", is_flag=True, help="Reset to the end: all records that are there are skipped."
)
@click.option(
    "--to-current", is_flag=True, help="Keep what is committed; reset to the end where nothing is."
)
@click.option("--to-offset", type=click.IntRange(0), metavar="OFFSET", help="Reset to this offset.")
@click.option("--to-time", metavar="TIME", help="Reset to the first record since then; -2h is ago.")
@click.option("--shift-by", type=int, metavar="N", help="Move by N records; -N moves back.")
@click.option(
    "--from-file",
    type=click.Path(),
    metavar="FILE",
    help="Reset to offsets of a file: topic,partition,offset lines; - is stdin.",
)
@click.option("--from-group", metavar="GROUP", help="Reset to what this group has committed.")
@click.option("--create", is_flag=True, help="Make the group if it does not exist.")
@click.option(
    "--execute/--dry-run",
    "execute",
    default=False,
    help="Do it, or only show what would change (default).",
)
@click.option(
    "--export", "as_csv", is_flag=True, help="Print the new offsets in the form of --from-file."
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
    to_current: bool,
    to_offset: int | None,
    to_time: str | None,
    shift_by: int | None,
    from_file: str | None,
    from_group: str | None,
    create: bool,
    execute: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Set the committed offsets of a group, so that it reads records again or skips them."""
    if not name:
        raise click.UsageError("name the group: its name is empty")
    target = _target(
        {
            "--to-earliest": Place(BEGINNING) if to_earliest else None,
            "--to-latest": Place(END) if to_latest else None,
            "--to-current": Place(CURRENT) if to_current else None,
            "--to-offset": None if to_offset is None else Place(OFFSET, to_offset),
            "--to-time": None if to_time is None else Place(TIME, _time_ms(to_time)),
            "--shift-by": None if shift_by is None else Place(SHIFT, shift_by),
        },
        from_file,
        from_group,
    )
    if target is not None and all_topics == bool(topics):
        raise click.UsageError("name topics with --topic, or add --all-topics")
    source = _OffsetSource(name, target, from_file, from_group)
    wanted = parse_topics(topics)
    with cluster.admin() as admin:
        is_new_possible = target is None or not all_topics
        group = _group(admin, name, cluster.timeout, may_be_new=is_new_possible)
        reset = Reset(admin, name, cluster.timeout)
        moves = source.plan(reset, wanted)
        if group is None:
            _tell_of_new(admin, name, cluster.timeout, execute=execute, create=create)
        elif group.members:
            _warn_of_members(group, execute=execute)
        errors = reset.execute(moves) if execute else {}
    _print(name, moves, errors, execute=execute, layout=_layout(as_csv=as_csv, as_json=as_json))
    if errors:
        sys.exit(EXIT_FAILED)


def _target(
    given: dict[str, Place | None], from_file: str | None, from_group: str | None
) -> Place | None:
    """Return where all partitions go; None if a file or another group says it of each."""
    chosen_ones = [place for place in given.values() if place is not None]
    sources = [one for one in (from_file, from_group) if one is not None]
    if len(chosen_ones) + bool(sources) != 1:
        names = [*given, "--from-file", "--from-group"]
        raise click.UsageError(f"name where to, with one of {', '.join(names)}")
    return chosen_ones[0] if chosen_ones else None


class _OffsetSource(NamedTuple):
    """Source of the new offsets: a place for all, a file, or another group."""

    group: str
    target: Place | None
    file: str | None
    from_group: str | None

    def plan(self, reset: Reset, wanted: dict[str, list[int] | None]) -> list[OffsetMove]:
        from tarry.cli.group_files import read_offsets_file

        if self.target is not None:
            return reset.plan(wanted, self.target)
        if self.file is not None:
            # A file may have several groups: take the offsets of the one that was named.
            offsets = read_offsets_file(self.file, self.from_group or self.group)
        else:
            assert self.from_group is not None
            offsets = committed_offsets(reset.admin, self.from_group, reset.timeout)
            if not offsets:
                check_group_there(reset.admin, self.from_group, reset.timeout)
                fail(f"group {self.from_group!r} has committed nothing")
        return reset.plan_offsets(offsets, wanted)


def check_group_there(admin: Admin, name: str, timeout: float) -> None:
    """Fail for a group that is not there, with the name that was probably meant."""
    _group(admin, name, timeout, may_be_new=False)


def _tell_of_new(admin: Admin, name: str, timeout: float, *, execute: bool, create: bool) -> None:
    """Tell of a new group: a mistyped name must not make one that nobody reads with."""
    sentence = unknown_group(name, [one.group_id for one in admin.list_groups(timeout=timeout)])
    if not execute:
        complain(f"{sentence}; --execute --create makes it")
    elif create:
        return
    elif not is_at_terminal():
        fail(f"{sentence}; add --create to make it", EXIT_USAGE)
    elif not click.confirm(f"{sentence[0].upper()}{sentence[1:]}{_stop(sentence)} Make it?"):
        fail("nothing was changed")


def is_at_terminal() -> bool:
    """Return whether a person at a terminal can answer a question."""
    return sys.stdin.isatty()


def _stop(sentence: str) -> str:
    return "" if sentence.endswith("?") else "."


def _layout(*, as_csv: bool, as_json: bool) -> str:
    if as_csv and as_json:
        raise click.UsageError("--export and --json exclude each other")
    return "csv" if as_csv else "json" if as_json else "table"


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


def _group(admin: Admin, name: str, timeout: float, *, may_be_new: bool) -> GroupDescription | None:
    """Return the group; None for one that is not there yet and may be made."""
    from tarry.base.errors import GROUP_ID_NOT_FOUND
    from tarry.client import ClientError
    from tarry.client.errors import BrokerError

    answer = admin.describe_groups([name], timeout)[name]
    if not isinstance(answer, ClientError):
        return answer
    if isinstance(answer, BrokerError) and answer.code == GROUP_ID_NOT_FOUND:
        if may_be_new:
            return None
        fail(unknown_group(name, [one.group_id for one in admin.list_groups(timeout=timeout)]))
    raise answer


def _warn_of_members(group: GroupDescription, *, execute: bool) -> None:
    hosts = sorted({member.client_host.removeprefix("/"): None for member in group.members})
    sentence = (
        f"group {group.group_id} has {count_of(len(group.members), 'member')} "
        f"({', '.join(hosts)}); stop them first: only they commit while they run"
    )
    if execute:
        fail(sentence)
    complain(sentence)


def _print(
    name: str,
    moves: list[OffsetMove],
    errors: dict[TopicPartition, str],
    *,
    execute: bool,
    layout: str,
) -> None:
    for sentence in dict.fromkeys(errors.values()):
        complain(sentence)
    if layout == "csv":
        from tarry.cli.group_files import offsets_csv

        click.echo(offsets_csv({name: {move.place: move.after for move in moves}}), nl=False)
        return
    if layout == "json":
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
        click.echo("nothing was changed; add --execute to do it", err=True)

"""`tarry topics alter`, `add-partitions` and `delete-records`: what changes a topic."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from tarry.base.ids import TopicPartition
from tarry.cli.guesses import unknown_topic
from tarry.cli.outcomes import print_outcomes
from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    check_can_ask,
    cluster_options,
    confirm,
    fail,
    json_option,
    quietly,
    yes_option,
)
from tarry.cli.tables import complain, print_json, print_table
from tarry.cli.topic_choice import check_not_internal, explained, guard_internal, internal_option
from tarry.cli.units import PARTITION_MAX, Count

if TYPE_CHECKING:
    from tarry.cli.places import Place
    from tarry.client import Admin, ClientError, Topic


# --- alter

ALTER_EXAMPLES: Final = """
\b
Examples:
  tarry topics alter orders -c retention.ms=1d           keep records for a day
  tarry topics alter orders -c cleanup.policy+=compact   add to a list
  tarry topics alter orders --unset retention.ms         the broker's default again
  tarry topics alter orders -c retention.ms=1 --validate-only

\b
The settings of a topic, with what they mean:
  tarry configs get --topic orders --all --explain
"""


@click.command("alter", epilog=ALTER_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@cluster_options
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting to change; repeatable.",
)
@click.option(
    "--unset",
    multiple=True,
    metavar="KEY",
    help="Setting to remove, so that the broker's applies; repeatable.",
)
@internal_option
@click.option("--validate-only", is_flag=True, help="Only check whether it could be done.")
@json_option
@quietly
def alter_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    configs: tuple[str, ...],
    unset: tuple[str, ...],
    internal: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Change settings of topics; all of them or none for each topic."""
    from tarry.cli.configs import parse_changes
    from tarry.client.errors import BrokerError, UnknownTopic

    changes = parse_changes(configs, unset)
    if not changes:
        raise click.UsageError("name what to change: -c KEY=VALUE or --unset KEY")
    done = "could be changed" if validate_only else "changed"
    outcomes: list[tuple[str, ClientError | None, str]] = []
    with cluster.admin() as admin:
        guard_internal(admin, names, "change it", cluster.timeout, internal=internal)
        for name in names:
            try:
                admin.change_topic_configs(
                    name, changes, validate_only=validate_only, timeout=cluster.timeout
                )
            except (BrokerError, UnknownTopic) as error:
                outcomes.append((name, explained(admin, error, name, cluster.timeout), ""))
            else:
                outcomes.append((name, None, done))
    print_outcomes("topic", outcomes, as_json=as_json)


# --- add-partitions

ADD_EXAMPLES: Final = """
\b
Examples:
  tarry topics add-partitions orders -p 12              twelve in all
  tarry topics add-partitions orders -p 12 --validate-only

\b
On a cluster of three, where the two new ones are to be (leaders first):
  tarry topics add-partitions orders -p 6 --assignment 1:2,2:3

\b
Records with a key may go to another partition than before; partitions cannot be taken away.
"""


@click.command("add-partitions", epilog=ADD_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@cluster_options
@click.option(
    "-p",
    "--partitions",
    type=Count(1, PARTITION_MAX),
    required=True,
    help="Number of partitions in all.",
)
@click.option(
    "--assignment", metavar="ID:ID,...", help="Brokers of each new partition, leaders first."
)
@internal_option
@click.option("--validate-only", is_flag=True, help="Only check whether it could be done.")
@json_option
@quietly
def add_partitions_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    partitions: int,
    assignment: str | None,
    internal: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Add partitions to topics; the groups that read them share the new ones out."""
    brokers = None if assignment is None else parse_assignment(assignment)
    done = "could have" if validate_only else "has"
    outcomes: list[tuple[str, ClientError | None, str]] = []
    with cluster.admin() as admin:
        guard_internal(admin, names, "change it", cluster.timeout, internal=internal)
        for name in names:
            outcome = admin.create_partitions(
                name,
                partitions,
                assignment=brokers,
                validate_only=validate_only,
                outcomes=True,
                timeout=cluster.timeout,
            )
            error = outcome.error
            if error is not None:
                error = explained(admin, error, name, cluster.timeout)
            outcomes.append((name, error, f"{done} {partitions} partitions"))
    print_outcomes("topic", outcomes, as_json=as_json)


def parse_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3`: for each partition its brokers."""
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"invalid assignment {text!r}: write it as ID:ID,ID:ID") from None


# --- delete-records

DELETE_RECORDS_EXAMPLES: Final = """
\b
Examples:
  tarry topics delete-records orders --before end       all that is there
  tarry topics delete-records orders --before 1000      what has a smaller offset
  tarry topics delete-records orders --before -10       all but the last ten a partition
  tarry topics delete-records orders --before s@2026-11-21T08:00
  tarry topics delete-records orders --before 0=100,1=end

\b
The topic, its settings and its offsets stay: the next record has the offset that it would
have had.
"""


@click.command("delete-records", epilog=DELETE_RECORDS_EXAMPLES)
@click.argument("name", metavar="NAME")
@cluster_options
@click.option(
    "--before",
    required=True,
    metavar="OFFSET",
    help="Delete the records before this offset or time.",
)
@click.option("-p", "--partition", "partitions", metavar="N,N-N", help="Partitions (default: all).")
@yes_option
@internal_option
@json_option
@quietly
def delete_records_command(
    name: str,
    *,
    cluster: Cluster,
    before: str,
    partitions: str | None,
    yes: bool,
    internal: bool,
    as_json: bool,
) -> None:
    """Delete the oldest records of a topic for good, up to an offset or a time."""
    from tarry.cli.places import BadPlace, parse_partitions, parse_places

    try:
        start, single = parse_places(before, time.time_ns() // 1_000_000)
        only = None if partitions is None else parse_partitions(partitions)
    except BadPlace as error:
        raise click.UsageError(str(error)) from None
    question = f"Delete the records of {name} before {before}?"
    check_can_ask(question, yes=yes)
    with cluster.admin() as admin:
        topics = {one.name: one for one in admin.list_topics(cluster.timeout)}
        if name not in topics:
            fail(unknown_topic(name, topics))
        topic = topics[name]
        check_not_internal([topic], "delete its records", internal=internal)
        confirm(question, yes=yes)
        wanted = {index: single.get(index, start) for index in _indexes(topic, only, single)}
        deletion = _Deletion(admin, name, cluster.timeout)
        deletion.run(wanted)
    deletion.print(as_json=as_json)


def _indexes(topic: Topic, only: list[int] | None, single: dict[int, Place]) -> list[int]:
    """Return the partitions that were named in one way or the other, else all."""
    for index in [*(only or ()), *single]:
        if index not in topic.partitions:
            last = max(topic.partitions)
            fail(f"topic {topic.name!r} has partitions 0 to {last}, not {index}")
    return sorted(dict.fromkeys(only or single or topic.partitions))


class _Deletion:
    """Deletion of records: the first offsets before it, and the outcome of each partition."""

    def __init__(self, admin: Admin, topic: str, timeout: float) -> None:
        self.admin = admin
        self.topic = topic
        self.timeout = timeout
        self.begins: dict[TopicPartition, int] = {}
        self.outcomes: dict[TopicPartition, int | ClientError] = {}

    def run(self, wanted: dict[int, Place]) -> None:
        from tarry.cli.group_look import offsets_at
        from tarry.cli.places import TIME
        from tarry.client import EARLIEST, LATEST

        places = {(self.topic, index): place for index, place in wanted.items()}
        self.begins = offsets_at(self.admin, dict.fromkeys(places, EARLIEST), self.timeout)
        ends = offsets_at(self.admin, dict.fromkeys(places, LATEST), self.timeout)
        times = {at: place.number for at, place in places.items() if place.kind == TIME}
        found = offsets_at(self.admin, times, self.timeout)
        for topic, index in places:
            if (topic, index) not in ends:
                fail(f"the offsets of {topic} [{index}] are not known: it may be without a leader")
        offsets = {
            # Send the end as an offset: records that come meanwhile stay.
            at: place.offset(self.begins[at], ends[at], found.get(at, -1))
            for at, place in places.items()
        }
        self.outcomes = self.admin.delete_records(offsets, self.timeout, outcomes=True)

    def print(self, *, as_json: bool) -> None:
        done = {at: one for at, one in self.outcomes.items() if isinstance(one, int)}
        for one in self.outcomes.values():
            if not isinstance(one, int):
                complain(str(one))
        if as_json:
            print_json(
                [
                    {
                        "topic": at[0],
                        "partition": at[1],
                        "begin_offset_before": self.begins[at],
                        "begin_offset": done.get(at),
                        "error": None if at in done else str(one),
                    }
                    for at, one in self.outcomes.items()
                ]
            )
        elif done:
            rows = [[*at, self.begins[at], begin] for at, begin in done.items()]
            print_table(["topic", "partition", "first offset was", "is"], rows)
        if len(done) < len(self.outcomes):
            sys.exit(EXIT_FAILED)

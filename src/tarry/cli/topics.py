"""`tarry topics`: list, create, describe and delete topics; what changes them is in
`topic_changes`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tarry.cli.guesses import unknown_topic
from tarry.cli.outcomes import Outcome, print_outcomes
from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    GuessingGroup,
    check_can_ask,
    cluster_options,
    confirm,
    json_option,
    key_values,
    quietly,
    yes_option,
)
from tarry.cli.tables import bad, complain, count_of, print_json, print_table, printable
from tarry.cli.topic_changes import (
    add_partitions_command,
    alter_command,
    delete_records_command,
    parse_assignment,
)
from tarry.cli.topic_choice import (
    check_not_internal,
    check_patterns,
    chosen_topics,
    internal_option,
    known_topics,
)
from tarry.cli.topic_offsets import offsets_command
from tarry.cli.topic_replicas import elect_command, reassign_command
from tarry.cli.units import PARTITION_MAX, REPLICAS_MAX, Count, setting_text, size_text

if TYPE_CHECKING:
    from tarry.cli.topic_sizes import TopicSizes
    from tarry.client import Admin, Topic, TopicOutcome

EXAMPLES = """
\b
Examples:
  tarry topics list
  tarry topics create orders -p 6 -c retention.ms=7d
  tarry topics describe orders
  tarry topics offsets orders --at -2h
  tarry topics alter orders -c retention.ms=1d
  tarry topics add-partitions orders -p 12
  tarry topics delete orders --yes
  tarry topics reassign orders -r 3
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def topics() -> None:
    """List, create, describe, change and delete topics."""


for _command in (
    offsets_command,
    alter_command,
    add_partitions_command,
    delete_records_command,
    reassign_command,
    elect_command,
):
    topics.add_command(_command)


# --- list

LIST_EXAMPLES = """
\b
Examples:
  tarry topics list                  all topics of users, with records and sizes
  tarry topics list 'orders-*'       those with such a name; '^orders-[0-9]+$' works as well
  tarry topics list --internal       the broker's own topics as well
  tarry topics list -q               the names only, for scripts

\b
Records are counted by offsets: compaction may have taken some of them out.  The size is
that of one replica.
"""


@topics.command("list", epilog=LIST_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@cluster_options
@click.option("--internal", is_flag=True, help="Show the broker's own topics as well.")
@click.option("-q", "--quiet", is_flag=True, help="Print the names only.")
@json_option
@quietly
def list_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    internal: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """List topics with their partitions, replicas, records and sizes."""
    from tarry.cli.topic_sizes import TopicSizes, sizes_of

    check_patterns(names)
    with cluster.admin() as admin:
        topics = known_topics(admin, names, cluster.timeout)
        found, missing = chosen_topics(topics, names, internal=internal)
        sizes = TopicSizes() if quiet else sizes_of(admin, found, cluster.timeout)
    if as_json:
        print_json([_listed_json(topic, sizes) for topic in found])
    elif quiet:
        for topic in found:
            click.echo(printable(topic.name))
    elif found:
        _print_list(found, sizes)
    elif not missing:
        click.echo("there are no topics; create one with: tarry topics create NAME", err=True)
    fail_for_missing(missing)


def _listed_json(topic: Topic, sizes: TopicSizes) -> dict[str, object]:
    from tarry.cli.topic_description import topic_json

    return {
        **topic_json(topic),
        "records": sizes.topic_records(topic),
        "size_bytes": sizes.topic_bytes(topic),
    }


def _print_list(topics: list[Topic], sizes: TopicSizes) -> None:
    from tarry.cli.topic_description import replication_of
    from tarry.cli.topic_sizes import count_cell, size_cell, state_of

    states = [
        dict.fromkeys(
            state for one in topic.partitions.values() if (state := state_of(one)) != "ok"
        )
        for topic in topics
    ]
    rows = [
        [
            topic.name,
            len(topic.partitions),
            replication_of(topic),
            count_cell(sizes.topic_records(topic)),
            size_cell(sizes.topic_bytes(topic)),
            bad(", ".join(state)) if state else "",
        ]
        for topic, state in zip(topics, states, strict=True)
    ]
    titles = ["topic", "partitions", "replicas", "records", "size", "state"]
    width = len(titles) if any(states) else len(titles) - 1
    print_table(titles[:width], [row[:width] for row in rows])


def fail_for_missing(missing: list[str]) -> None:
    """Fail with a sentence for each name that is about nothing, after the others were shown."""
    for sentence in missing:
        complain(sentence)
    if missing:
        sys.exit(EXIT_FAILED)


# --- create

CREATE_EXAMPLES = """
\b
Examples:
  tarry topics create orders                             as the broker's settings say
  tarry topics create clicks -p 6                        six partitions
  tarry topics create logs -c retention.ms=-1 -c segment.bytes=100MB
  tarry topics create orders --if-not-exists             quiet if it is there

\b
On a cluster of three:
  tarry topics create payments -p 6 -r 3                 each partition on three brokers
  tarry topics create refunds --assignment 1:2,2:3       leaders first, one partition a comma
"""


@topics.command("create", epilog=CREATE_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@cluster_options
@click.option(
    "-p",
    "--partitions",
    type=Count(1, PARTITION_MAX),
    help="Number of partitions (default: the broker's).",
)
@click.option(
    "-r",
    "--replication-factor",
    type=Count(1, REPLICAS_MAX),
    metavar="NUMBER",
    help="Number of replicas of each partition (default: the broker's).",
)
@click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting of the topic; repeatable.",
)
@click.option("--assignment", metavar="ID:ID,...", help="Brokers of each partition, leaders first.")
@click.option("--if-not-exists", is_flag=True, help="Succeed for topics that exist already.")
@click.option("--validate-only", is_flag=True, help="Only check whether it could be done.")
@json_option
@quietly
def create_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    assignment: str | None,
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Create topics."""
    from tarry.base.errors import TOPIC_ALREADY_EXISTS
    from tarry.client import NewTopic

    brokers = None
    if assignment is not None:
        if partitions is not None or replication_factor is not None:
            raise click.UsageError("--assignment says partitions and replicas already")
        brokers = parse_assignment(assignment)
    given = key_values(configs, "setting")
    settings = {key: setting_text(key, value) for key, value in given.items()}
    wanted = [
        NewTopic(name, partitions or -1, replication_factor or -1, settings, brokers)
        for name in names
    ]
    with cluster.admin() as admin:
        outcomes = admin.create_topics(
            wanted, validate_only=validate_only, outcomes=True, timeout=cluster.timeout
        )
    done = "could be created" if validate_only else "created"
    print_outcomes(
        "topic",
        [(one.name, one.error, f"{done}{_size_of(one)}") for one in outcomes],
        forgiven={TOPIC_ALREADY_EXISTS: "exists already, nothing changed"} if if_not_exists else {},
        as_json=as_json,
    )


def _size_of(outcome: TopicOutcome) -> str:
    if outcome.partition_count < 0:
        return ""
    partitions = count_of(outcome.partition_count, "partition")
    replicas = "replica" if outcome.replication_factor == 1 else "replicas"
    return f" ({partitions}, {outcome.replication_factor} {replicas} each)"


# --- describe

DESCRIBE_EXAMPLES = """
\b
Examples:
  tarry topics describe                     all topics
  tarry topics describe orders              partitions, offsets, sizes, settings that were set
  tarry topics describe 'orders-*' '^log'   by pattern and by regular expression
  tarry topics describe orders --configs    all settings and where they come from
  tarry topics describe --problems          partitions that are damaged or lack a replica
  tarry topics describe orders --json

\b
Of a topic with delay.enable it tells what waits, and of each record that a broker has released
since it began to lead how late it came; tarry schedule histogram draws what comes when.

\b
States: ok; no leader (nobody serves it); damaged (the log cannot be read to its end and takes
no records: see the broker's log, then tarry log verify); replica offline; under-replicated.
"""


@topics.command("describe", epilog=DESCRIBE_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@cluster_options
@click.option(
    "--configs", "all_configs", is_flag=True, help="Show all settings, not only set ones."
)
@click.option("--problems", is_flag=True, help="Show only partitions whose state is not ok.")
@click.option("--internal", is_flag=True, help="Show the broker's own topics as well.")
@json_option
@quietly
def describe_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    all_configs: bool,
    problems: bool,
    internal: bool,
    as_json: bool,
) -> None:
    """Show topics: leaders, replicas, offsets, sizes and settings."""
    from tarry.cli.topic_description import describe_topics

    check_patterns(names)
    with cluster.admin() as admin:
        topics, missing = chosen_topics(
            known_topics(admin, names, cluster.timeout), names, internal=internal
        )
        found = describe_topics(admin, topics, cluster.timeout)
    if problems:
        found = [one for one in found if one.has_problems]
    if as_json:
        print_json([one.as_json(all_configs=all_configs) for one in found])
    else:
        for number, one in enumerate(found):
            if number:
                click.echo()
            one.print(all_configs=all_configs, problems=problems)
        if not found and not missing:
            none = "all partitions are ok" if problems else "there are no topics"
            click.echo(none, err=True)
    fail_for_missing(missing)


# --- delete

DELETE_EXAMPLES = """
\b
Examples:
  tarry topics delete orders            asks before it deletes
  tarry topics delete orders logs -y    does not ask
"""


@topics.command("delete", epilog=DELETE_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@cluster_options
@yes_option
@internal_option
@click.option("--if-exists", is_flag=True, help="Succeed for topics that do not exist.")
@json_option
@quietly
def delete_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    yes: bool,
    internal: bool,
    if_exists: bool,
    as_json: bool,
) -> None:
    """Delete topics with all their records."""
    from tarry.base.errors import UNKNOWN_TOPIC_OR_PARTITION
    from tarry.client.errors import UnknownTopic

    question = f"Delete {', '.join(names)} with all records?"
    check_can_ask(question, yes=yes)
    with cluster.admin() as admin:
        topics = admin.list_topics(cluster.timeout)
        known = {one.name: one for one in topics}
        there = [known[name] for name in names if name in known]
        check_not_internal(there, "delete it", internal=internal)
        if there:
            confirm(_with_sizes(admin, there, cluster.timeout) if not yes else question, yes=yes)
        found = [one.name for one in there]
        outcomes = admin.delete_topics(found, cluster.timeout, outcomes=True) if found else []
    told: list[Outcome] = [(one.name, one.error, "deleted") for one in outcomes]
    for name in names:
        if name not in known:
            told.append((name, UnknownTopic(unknown_topic(name, known)), ""))
    forgiven = {UNKNOWN_TOPIC_OR_PARTITION: "does not exist, nothing deleted"} if if_exists else {}
    print_outcomes("topic", told, forgiven=forgiven, as_json=as_json)


def _with_sizes(admin: Admin, topics: list[Topic], timeout: float) -> str:
    """Ask whether to delete these topics, with what would be lost."""
    from tarry.cli.topic_sizes import sizes_of

    sizes = sizes_of(admin, topics, timeout)
    told = []
    for topic in topics:
        records, size = sizes.topic_records(topic), sizes.topic_bytes(topic)
        facts = [
            "" if records is None else count_of(records, "record"),
            "" if size is None else size_text(size),
        ]
        known = ", ".join(fact for fact in facts if fact)
        told.append(f"{topic.name} ({known})" if known else topic.name)
    return f"Delete {', '.join(told)}?"

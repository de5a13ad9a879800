"""`tarry topics`: list, create, describe and delete topics; what changes them is in
`topic_changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tarry.cli.outcomes import print_outcomes
from tarry.cli.running import (
    Cluster,
    GuessingGroup,
    cluster_options,
    confirm,
    json_option,
    key_values,
    quietly,
    yes_option,
)
from tarry.cli.tables import count_of, print_json, print_table
from tarry.cli.topic_changes import (
    add_partitions_command,
    alter_command,
    delete_records_command,
    parse_assignment,
)

if TYPE_CHECKING:
    from tarry.client.core.admin_calls import TopicOutcome

EXAMPLES = """
\b
Examples:
  tarry topics list
  tarry topics create orders -p 6 -c retention.ms=604800000
  tarry topics describe orders
  tarry topics alter orders -c retention.ms=86400000
  tarry topics add-partitions orders -p 12
  tarry topics delete orders --yes
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def topics() -> None:
    """List, create, describe, change and delete topics."""


for _command in (alter_command, add_partitions_command, delete_records_command):
    topics.add_command(_command)


# --- list

LIST_EXAMPLES = """
\b
Examples:
  tarry topics list                  all topics of users
  tarry topics list --internal       those of the broker as well
  tarry topics list -q | xargs -n1 tarry topics describe
"""


@topics.command("list", epilog=LIST_EXAMPLES)
@cluster_options
@click.option("--internal", is_flag=True, help="Show the broker's own topics as well.")
@click.option("-q", "--quiet", is_flag=True, help="Only the names.")
@json_option
@quietly
def list_command(
    *,
    cluster: Cluster,
    internal: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """List the topics with their partitions and replicas."""
    from tarry.cli.topic_description import replication_of, topic_json

    with cluster.admin() as admin:
        found = [
            one for one in admin.list_topics(cluster.timeout) if internal or not one.is_internal
        ]
    if as_json:
        print_json([topic_json(topic) for topic in found])
    elif quiet:
        for topic in found:
            click.echo(topic.name)
    elif not found:
        click.echo("there are no topics; make one with: tarry topics create NAME", err=True)
    else:
        rows = [[one.name, len(one.partitions), replication_of(one)] for one in found]
        print_table(["topic", "partitions", "replicas"], rows)


# --- create

CREATE_EXAMPLES = """
\b
Examples:
  tarry topics create orders                             as the broker's settings say
  tarry topics create clicks -p 6                        six partitions
  tarry topics create logs -c retention.ms=-1 -c segment.bytes=100000000
  tarry topics create orders --if-not-exists             quiet if it is there

\b
On a cluster of three:
  tarry topics create payments -p 6 -r 3                 each partition on three brokers
  tarry topics create refunds --assignment 1:2,2:3       leaders first, one partition a comma
"""


@topics.command("create", epilog=CREATE_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@cluster_options
@click.option("-p", "--partitions", type=click.IntRange(1), help="How many; else the broker's.")
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1), help="Copies of each; else the broker's."
)
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting.")
@click.option("--assignment", metavar="ID:ID,...", help="Brokers of each partition, leader first.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing for topics that are there.")
@click.option("--validate-only", is_flag=True, help="Ask whether it could be done.")
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
    from tarry.client.core.admin_calls import NewTopic

    brokers = None
    if assignment is not None:
        if partitions is not None or replication_factor is not None:
            raise click.UsageError("--assignment says partitions and replicas already")
        brokers = parse_assignment(assignment)
    settings = key_values(configs, "setting")
    wanted = [
        NewTopic(name, partitions or -1, replication_factor or -1, settings, brokers)
        for name in names
    ]
    with cluster.admin() as admin:
        outcomes = admin.create_topics(wanted, validate_only=validate_only, timeout=cluster.timeout)
    done = "could be made" if validate_only else "made"
    print_outcomes(
        "topic",
        [(one.name, one.error, f"{done}{_size_of(one)}") for one in outcomes],
        forgiven={TOPIC_ALREADY_EXISTS: "exists already, left as it is"} if if_not_exists else {},
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
  tarry topics describe orders              partitions, offsets, settings that are not defaults
  tarry topics describe orders --configs    all settings and where they come from
  tarry topics describe orders --json
"""


@topics.command("describe", epilog=DESCRIBE_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@cluster_options
@click.option("--configs", "all_configs", is_flag=True, help="All settings, defaults as well.")
@json_option
@quietly
def describe_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    all_configs: bool,
    as_json: bool,
) -> None:
    """Show topics: leaders, replicas, offsets and settings."""
    from tarry.cli.topic_description import describe_topic

    with cluster.admin() as admin:
        found = [
            describe_topic(admin, topic, cluster.timeout)
            for topic in admin.describe_topics(names, cluster.timeout)
        ]
    if as_json:
        print_json([one.as_json(all_configs=all_configs) for one in found])
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        one.print(all_configs=all_configs)


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
@click.option("--if-exists", is_flag=True, help="Do nothing for topics that are not there.")
@json_option
@quietly
def delete_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    yes: bool,
    if_exists: bool,
    as_json: bool,
) -> None:
    """Delete topics with all their records."""
    from tarry.base.errors import UNKNOWN_TOPIC_OR_PARTITION

    confirm(f"Delete {', '.join(names)} with all records?", yes=yes)
    with cluster.admin() as admin:
        outcomes = admin.delete_topics(names, cluster.timeout)
    print_outcomes(
        "topic",
        [(one.name, one.error, "deleted") for one in outcomes],
        forgiven={UNKNOWN_TOPIC_OR_PARTITION: "is not there"} if if_exists else {},
        as_json=as_json,
    )

"""`tarry groups`: see consumer groups, and change what they have committed.

The larger commands have modules of their own: `group_describe`, `group_reset`.
"""

from __future__ import annotations

from typing import Final

import click

from tarry.cli.group_describe import NO_GROUPS, describe_command
from tarry.cli.group_reset import reset_command
from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    GuessingGroup,
    cluster_options,
    confirm,
    fail,
    json_option,
    quietly,
    yes_option,
)
from tarry.cli.tables import print_json, print_table

# Those of Kafka, of all its kinds of groups.
STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Assigning",
    "Reconciling",
    "NotReady",
)
TYPES: Final = ("classic", "consumer", "share", "streams")

EXAMPLES: Final = """
\b
A group is several consumers that share the partitions of topics; what it has
read is kept by the broker as a committed offset for each partition.

\b
Examples:
  tarry groups list
  tarry groups describe billing                    who reads what, and how far behind
  tarry groups why billing                         why it rebalanced lately
  tarry groups reset-offsets billing --topic orders --to-earliest
  tarry groups delete billing
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def groups() -> None:
    """List, describe, explain, reset and delete consumer groups."""


groups.add_command(describe_command)
groups.add_command(reset_command)

# --- list

LIST_EXAMPLES: Final = """
\b
Examples:
  tarry groups list
  tarry groups list --state Empty -q         names of groups that nobody is in
  tarry groups list --json | jq '.[].group'

\b
States: Empty (no members), PreparingRebalance (members join), CompletingRebalance
(partitions are being shared out), Stable (all work), Dead.
"""


@groups.command("list", epilog=LIST_EXAMPLES)
@cluster_options
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in it.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only of this type, such as classic."
)
@click.option("-q", "--quiet", is_flag=True, help="Only the names.")
@json_option
@quietly
def list_command(
    *,
    cluster: Cluster,
    states: tuple[str, ...],
    types: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """List the groups of all brokers with their states."""
    states = tuple(_known(one, STATES, "state") for one in states)
    types = tuple(_known(one, TYPES, "type") for one in types)

    with cluster.admin() as admin:
        found = admin.list_groups(states, types, cluster.timeout)
    if as_json:
        print_json(
            [
                {
                    "group": one.group_id,
                    "state": one.state,
                    "type": one.group_type,
                    "protocol_type": one.protocol_type,
                    "coordinator_id": one.coordinator_id,
                }
                for one in found
            ]
        )
    elif quiet:
        for one in found:
            click.echo(one.group_id)
    elif not found:
        click.echo("there are no such groups" if states or types else NO_GROUPS, err=True)
    else:
        rows = [
            [
                one.group_id,
                one.state or "?",
                one.group_type or "-",
                one.protocol_type or "-",
                one.coordinator_id,
            ]
            for one in found
        ]
        print_table(["group", "state", "type", "protocol", "coordinator"], rows)


def _known(word: str, words: tuple[str, ...], what: str) -> str:
    """A word as Kafka spells it: a broker finds no group for one that it does not know."""
    for known in words:
        if known.lower() == word.lower():
            return known
    raise click.UsageError(f"invalid {what} {word!r}: a group has one of {', '.join(words)}")


# --- why

WHY_EXAMPLES: Final = """
\b
Examples:
  tarry groups why billing            the last ten rebalances
  tarry groups why billing -n 1       the last one
  tarry groups why billing --json | jq '.rebalances[-1]'

\b
In a rebalance the members stand still while the partitions are shared out again.
The broker remembers them since it was started; Apache Kafka does not.
"""


@groups.command("why", epilog=WHY_EXAMPLES)
@click.argument("name", metavar="GROUP")
@cluster_options
@click.option(
    "-n",
    "--last",
    "count",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many rebalances.",
)
@json_option
@quietly
def why_command(
    name: str,
    *,
    cluster: Cluster,
    count: int,
    as_json: bool,
) -> None:
    """Tell why a group rebalanced: who came, died, left or changed, and how long it stood still."""
    from tarry.cli.group_history import history_json, print_history, rebalances_of

    with cluster.admin() as admin:
        memory = admin.group_memory(name, cluster.timeout)
        if memory is None:
            brokers = ", ".join(
                str(one.address) for one in admin.describe_cluster(cluster.timeout).brokers
            )
            fail(
                f"the broker that coordinates group {name} keeps no memory of rebalances, as only "
                f"Tarry's do; look for the group's name in the logs of the brokers ({brokers})"
            )
    rebalances = rebalances_of(memory)
    if as_json:
        print_json(history_json(memory, rebalances[-count:]))
    else:
        print_history(memory, rebalances, count)


# --- delete

DELETE_EXAMPLES: Final = """
\b
Examples:
  tarry groups delete billing          asks before it deletes
  tarry groups delete billing tests -y does not ask

\b
Only groups without members can be deleted: stop the consumers first.
"""


@groups.command("delete", epilog=DELETE_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@cluster_options
@yes_option
@click.option("--if-exists", is_flag=True, help="Do nothing for groups that are not there.")
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
    """Delete groups without members, with all that they have committed."""
    from tarry.base.errors import GROUP_ID_NOT_FOUND
    from tarry.cli.outcomes import print_outcomes

    confirm(f"Delete {', '.join(names)} with all committed offsets?", yes=yes)
    with cluster.admin() as admin:
        outcomes = admin.delete_groups(names, cluster.timeout)
    print_outcomes(
        "group",
        [(one.group_id, one.error, "deleted") for one in outcomes],
        forgiven={GROUP_ID_NOT_FOUND: "is not there"} if if_exists else {},
        as_json=as_json,
    )


# --- delete-offsets

DELETE_OFFSETS_EXAMPLES: Final = """
\b
Examples:
  tarry groups delete-offsets billing --topic orders         of all its partitions
  tarry groups delete-offsets billing --topic orders:0,2-4   of these

\b
A consumer that finds no committed offset begins where its auto.offset.reset says.
Offsets of a topic that the group's members read cannot be deleted.
"""


@groups.command("delete-offsets", epilog=DELETE_OFFSETS_EXAMPLES)
@click.argument("name", metavar="GROUP")
@cluster_options
@click.option(
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:N,N-N]",
    help="Of this topic; repeatable.",
)
@yes_option
@json_option
@quietly
def delete_offsets_command(
    name: str,
    *,
    cluster: Cluster,
    topics: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Forget what a group has committed for topics, or for some of their partitions."""
    from tarry.cli.group_reset import chosen, parse_topics
    from tarry.cli.outcomes import print_outcomes

    wanted = parse_topics(topics)
    confirm(f"Delete the offsets of group {name} for {', '.join(topics)}?", yes=yes)
    with cluster.admin() as admin:
        look = admin.group_offsets([name], timeout=cluster.timeout)[name]
        if isinstance(look, Exception):
            raise look
        places = chosen(wanted, list(look))
        if not places:
            fail(f"group {name} has committed nothing for {', '.join(topics)}", EXIT_FAILED)
        outcomes = admin.delete_group_offsets(name, places, cluster.timeout)
    print_outcomes(
        "partition",
        [(f"{topic} [{index}]", error, "deleted") for (topic, index), error in outcomes.items()],
        as_json=as_json,
    )

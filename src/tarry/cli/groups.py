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
    check_can_ask,
    cluster_options,
    confirm,
    fail,
    json_option,
    quietly,
    yes_option,
)
from tarry.cli.tables import print_json, print_table, printable

# States of groups in Kafka, of all kinds of groups.
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
  tarry groups export billing > billing.csv        its offsets, for another group or cluster
  tarry groups delete billing
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def groups() -> None:
    """List, describe, explain, reset, export and delete consumer groups."""


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
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    help="Show only groups in this state; repeatable.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="Show only groups of this type; repeatable.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the names only.")
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
            click.echo(printable(one.group_id))
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
    """Return a word as Kafka spells it: a broker finds no group for one that it does not know."""
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
    help="Number of rebalances to show.",
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
    """Tell why a group rebalanced: who came, died, left or changed, and how long it took."""
    from tarry.cli.group_history import history_json, print_history, rebalances_of
    from tarry.cli.group_look import explained_group
    from tarry.client import ClientError

    with cluster.admin() as admin:
        try:
            memory = admin.group_memory(name, cluster.timeout)
        except ClientError as error:
            raise explained_group(admin, error, name, cluster.timeout) or error from None
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


# --- export

EXPORT_EXAMPLES: Final = """
\b
Examples:
  tarry groups export billing > billing.csv     topic,partition,offset lines
  tarry groups export billing audit             group,topic,partition,offset lines
  tarry groups export --all -b kafka:9092 > groups.csv
  tarry groups reset-offsets billing --from-file groups.csv --create --execute

\b
The files are those of Kafka's kafka-consumer-groups --export.
"""


@groups.command("export", epilog=EXPORT_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@cluster_options
@click.option("--all", "all_groups", is_flag=True, help="Export all groups.")
@json_option
@quietly
def export_command(
    names: tuple[str, ...], *, cluster: Cluster, all_groups: bool, as_json: bool
) -> None:
    """Print the committed offsets of groups, to be set elsewhere."""
    from tarry.cli.group_files import offsets_csv
    from tarry.cli.group_plan import committed_offsets
    from tarry.cli.group_reset import check_group_there

    if all_groups == bool(names):
        raise click.UsageError("name groups, or add --all")
    with cluster.admin() as admin:
        wanted = names or [one.group_id for one in admin.list_groups(timeout=cluster.timeout)]
        found = {}
        for name in wanted:
            offsets = committed_offsets(admin, name, cluster.timeout)
            if not offsets and names:
                check_group_there(admin, name, cluster.timeout)
                fail(f"group {name!r} has committed nothing")
            if offsets:
                found[name] = offsets
    if as_json:
        print_json(
            [
                {"group": group, "topic": topic, "partition": partition, "offset": offset}
                for group, offsets in found.items()
                for (topic, partition), offset in offsets.items()
            ]
        )
    else:
        click.echo(offsets_csv(found), nl=False)


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
@click.option("--if-exists", is_flag=True, help="Succeed for groups that do not exist.")
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
    """Delete groups without members, with all their committed offsets."""
    from tarry.base.errors import GROUP_ID_NOT_FOUND
    from tarry.cli.group_look import explained_group
    from tarry.cli.outcomes import print_outcomes

    question = f"Delete {', '.join(names)} with all committed offsets?"
    check_can_ask(question, yes=yes)
    with cluster.admin() as admin:
        confirm(question, yes=yes)
        outcomes = [
            (
                one.group_id,
                explained_group(admin, one.error, one.group_id, cluster.timeout),
                "deleted",
            )
            for one in admin.delete_groups(names, cluster.timeout, outcomes=True)
        ]
    forgiven = {GROUP_ID_NOT_FOUND: "does not exist, nothing deleted"} if if_exists else {}
    print_outcomes("group", outcomes, forgiven=forgiven, as_json=as_json)


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
    help="Topic whose offsets are deleted; repeatable.",
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
    """Delete the committed offsets of a group for topics or partitions."""
    from tarry.cli.group_plan import chosen, committed_offsets
    from tarry.cli.group_reset import check_group_there, parse_topics
    from tarry.cli.outcomes import print_outcomes

    wanted = parse_topics(topics)
    question = f"Delete the offsets of group {name} for {', '.join(topics)}?"
    check_can_ask(question, yes=yes)
    with cluster.admin() as admin:
        places = chosen(wanted, list(committed_offsets(admin, name, cluster.timeout)))
        if not places:
            check_group_there(admin, name, cluster.timeout)
            fail(f"group {name!r} has committed nothing for {', '.join(topics)}", EXIT_FAILED)
        confirm(question, yes=yes)
        outcomes = admin.delete_group_offsets(name, places, cluster.timeout, outcomes=True)
    print_outcomes(
        "partition",
        [(f"{topic} [{index}]", error, "deleted") for (topic, index), error in outcomes.items()],
        as_json=as_json,
    )

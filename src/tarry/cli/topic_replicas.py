"""`tarry topics reassign` and `elect`: which brokers have partitions, and which of them lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tarry.base.ids import TopicPartition
from tarry.cli.outcomes import print_outcomes
from tarry.cli.running import (
    Cluster,
    check_can_ask,
    cluster_options,
    confirm,
    fail,
    json_option,
    quietly,
    yes_option,
)
from tarry.cli.tables import print_json, print_table
from tarry.cli.topic_changes import parse_assignment
from tarry.cli.topic_choice import check_patterns, chosen_topics
from tarry.cli.units import REPLICAS_MAX, Count, Seconds

if TYPE_CHECKING:
    from tarry.cli.cluster_look import ClusterLook
    from tarry.client import Admin, Topic

# --- reassign

REASSIGN_EXAMPLES: Final = """
\b
Examples:
  tarry topics reassign                            shows what is under way
  tarry topics reassign orders -r 3                three replicas of each partition
  tarry topics reassign '*' --brokers 1,2,3,4      spread evenly, over a new broker too
  tarry topics reassign orders --assignment 1:2,2:3
  tarry topics reassign orders --cancel            as it was before
  tarry topics reassign '*' -r 3 --dry-run         only shows what would move where

\b
A partition is read and written while it moves. The first of its brokers leads it in the end.
"""


@click.command("reassign", epilog=REASSIGN_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@cluster_options
@click.option("--brokers", metavar="ID,...", help="Spread the partitions over these brokers.")
@click.option(
    "-r",
    "--replication-factor",
    "factor",
    type=Count(1, REPLICAS_MAX),
    metavar="NUMBER",
    help="Number of replicas of each partition.",
)
@click.option("--assignment", metavar="ID:ID,...", help="Brokers of each partition, leaders first.")
@click.option("--cancel", is_flag=True, help="Go back to the replicas before.")
@click.option("--internal", is_flag=True, help="Take the broker's own topics as well.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--wait", is_flag=True, help="Wait until it is done.")
@click.option(
    "--for",
    "limit",
    type=Seconds(),
    default="1h",
    show_default=True,
    metavar="TIME",
    help="How long to wait.",
)
@json_option
@quietly
def reassign_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    brokers: str | None,
    factor: int | None,
    assignment: str | None,
    cancel: bool,
    internal: bool,
    dry_run: bool,
    wait: bool,
    limit: float,
    as_json: bool,
) -> None:
    """Move partitions to other brokers, or give them more or fewer replicas."""
    from tarry.cli.cluster_look import ClusterLook
    from tarry.cli.reassigning import Moves, ids_of

    check_patterns(names)
    ways = [assignment is not None, cancel, brokers is not None or factor is not None]
    if sum(ways) > 1:
        raise click.UsageError("give --assignment, --cancel, or --brokers and -r")
    if any(ways) and not names:
        raise click.UsageError("name the topics that are to be reassigned, '*' for all")
    only = None if brokers is None else ids_of(brokers)
    given = None if assignment is None else parse_assignment(assignment)
    with cluster.admin() as admin:
        look = ClusterLook(admin, cluster.timeout)
        topics = _chosen(admin, names, cluster.timeout, internal=internal)
        if not any(ways):
            _print_under_way(look, topics, as_json=as_json)
            return
        moves = Moves(look.replicas, _targets(look, topics, only, factor, given, cancel=cancel))
        if not dry_run:
            moves.begin(admin, cluster.timeout)
            if wait:
                moves.wait(admin, cluster.timeout, limit)
    if not moves.targets and not as_json:
        click.echo("nothing to move", err=True)
        return
    done = "back to what they were" if cancel else "on their way" if moves.left else "moved"
    moves.print(as_json=as_json, done="would move" if dry_run else done)
    if wait:
        moves.check_done()


def _chosen(admin: Admin, names: tuple[str, ...], timeout: float, *, internal: bool) -> list[Topic]:
    found, missing = chosen_topics(
        admin.list_topics(timeout), names, internal=internal or not names
    )
    if missing:
        fail(missing[0])
    return found


def _targets(
    look: ClusterLook,
    topics: list[Topic],
    only: list[int] | None,
    factor: int | None,
    given: list[list[int]] | None,
    *,
    cancel: bool,
) -> dict[TopicPartition, list[int] | None]:
    """Return the replicas that partitions are to have."""
    from tarry.cli.replica_plan import TooFewBrokers, spread

    places = [(topic.name, index) for topic in topics for index in topic.partitions]
    if cancel:
        return {place: None for place in places if place in look.reassigned}
    if given is not None:
        for topic in topics:
            if len(given) != len(topic.partitions):
                fail(
                    f"topic {topic.name!r} has {len(topic.partitions)} partitions, and "
                    f"{len(given)} are assigned"
                )
        return {
            place: given[place[1]] for place in places if look.replicas[place] != given[place[1]]
        }
    racks = look.racks
    for broker_id in only or ():
        if broker_id not in racks:
            fail(f"broker {broker_id} does not live; tarry brokers list shows who does")
    racks = {each: rack for each, rack in racks.items() if only is None or each in only}
    try:
        wanted = look.targets
        return dict(spread({place: wanted[place] for place in places}, racks, factor))
    except TooFewBrokers as error:
        fail(str(error))


def _print_under_way(look: ClusterLook, topics: list[Topic], *, as_json: bool) -> None:
    from tarry.cli.reassigning import ids_text

    names = dict.fromkeys(topic.name for topic in topics)
    found = {place: one for place, one in look.reassigned.items() if place[0] in names}
    if as_json:
        print_json(
            [
                {
                    "topic": place[0],
                    "partition": place[1],
                    "replicas": one.replicas,
                    "adding": one.adding,
                    "removing": one.removing,
                    "in_sync": look.in_sync.get(place, []),
                }
                for place, one in found.items()
            ]
        )
    elif found:
        print_table(
            ["topic", "partition", "replicas", "coming", "going", "in sync"],
            [
                [
                    *place,
                    ids_text(one.replicas),
                    ids_text(one.adding),
                    ids_text(one.removing),
                    ids_text(look.in_sync.get(place, [])),
                ]
                for place, one in found.items()
            ],
        )
    else:
        click.echo("no reassignment is under way", err=True)


# --- elect

ELECT_EXAMPLES: Final = """
\b
Examples:
  tarry topics elect                        all partitions go back to their first replicas
  tarry topics elect orders '^log'          those of these topics
  tarry topics elect orders -p 3 --unclean  lets a replica lead that may lack records

\b
--unclean is for a partition without a leader whose replicas in sync will not come back: the
records that only they had are lost.
"""


@click.command("elect", epilog=ELECT_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@cluster_options
@click.option("-p", "--partition", "partitions", metavar="N,N-N", help="Partitions (default: all).")
@click.option("--unclean", is_flag=True, help="Elect where nobody in sync lives; loses records.")
@yes_option
@json_option
@quietly
def elect_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    partitions: str | None,
    unclean: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Let the first replicas lead, or, with --unclean, any that lives."""
    from tarry.base.errors import ELECTION_NOT_NEEDED
    from tarry.cli.places import BadPlace, parse_partitions

    check_patterns(names)
    try:
        only = None if partitions is None else parse_partitions(partitions)
    except BadPlace as error:
        raise click.UsageError(str(error)) from None
    if (unclean or only is not None) and not names:
        raise click.UsageError("name the topic")
    question = f"Let replicas of {', '.join(names)} lead that may lack records?"
    if unclean:
        check_can_ask(question, yes=yes)
    with cluster.admin() as admin:
        if names:
            topics = _chosen(admin, names, cluster.timeout, internal=False)
            places = [
                (topic.name, index)
                for topic in topics
                for index in topic.partitions
                if only is None or index in only
            ]
            if unclean:
                confirm(question, yes=yes)
            outcomes = admin.elect_leaders(
                places, unclean=unclean, outcomes=True, timeout=cluster.timeout
            )
        else:
            outcomes = admin.elect_leaders(outcomes=True, timeout=cluster.timeout)
    kept = "is led already" if unclean else "is led by its first replica already"
    print_outcomes(
        "partition",
        [(f"{topic} [{index}]", error, "elected") for (topic, index), error in outcomes.items()],
        forgiven={ELECTION_NOT_NEEDED: kept},
        as_json=as_json,
    )
    if not outcomes and not as_json:
        click.echo("every partition is led by its first replica", err=True)

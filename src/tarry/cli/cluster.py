"""`tarry cluster`: what a cluster of brokers looks like, and waiting until it is whole."""

from __future__ import annotations

import sys
from typing import Final

import click

from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    GuessingGroup,
    cluster_options,
    json_option,
    quietly,
)
from tarry.cli.tables import bad, complain, count_of, good, print_json, print_table
from tarry.cli.units import Count, Seconds

EXAMPLES: Final = """
\b
Examples:
  tarry cluster status             brokers, and partitions that lack something
  tarry cluster wait               until every broker lives and every replica is in sync
  tarry cluster features           what all brokers agree on, and what this one knows
"""

# Largest number of brokers that --brokers takes.
_BROKERS_MAX: Final = 10_000


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def cluster() -> None:
    """Show how a cluster is, and wait until it is whole."""


# --- status

STATUS_EXAMPLES: Final = """
\b
Examples:
  tarry cluster status
  tarry cluster status -b broker-2:9092 --json

\b
Any broker tells the same. The exit code is 0 whatever it tells; tarry health has another one.
"""


@cluster.command("status", epilog=STATUS_EXAMPLES)
@cluster_options
@json_option
@quietly
def status_command(*, cluster: Cluster, as_json: bool) -> None:
    """Show brokers, leaders, replicas, and the partitions that lack something."""
    from tarry.cli.cluster_look import ClusterLook

    with cluster.admin() as admin:
        look = ClusterLook(admin, cluster.timeout)
    missing = look.obstacles(None)
    brokers = [look.broker_json(broker) for broker in look.brokers]
    if as_json:
        print_json(
            {
                "cluster_id": look.cluster_id,
                "controller_id": look.controller_id,
                "topics": look.topic_count,
                "partitions": len(look.replicas),
                "not_led_by_first_replica": len(look.unpreferred),
                "being_reassigned": len(look.reassigned),
                "brokers": brokers,
                "problems": missing,
            }
        )
        return
    counts = f"{count_of(look.topic_count, 'topic')}, {count_of(len(look.replicas), 'partition')}"
    click.echo(f"cluster     {look.cluster_id}")
    click.echo(f"controller  {look.controller_id}")
    click.echo(f"topics      {counts}")
    if look.unpreferred:
        lead = count_of(len(look.unpreferred), "partition")
        click.echo(f"leaders     {lead} not led by the first replica (tarry topics elect)")
    click.echo(f"state       {bad('not whole') if missing else good('whole')}\n")
    print_brokers(brokers)
    if missing:
        click.echo()
    for sentence in missing:
        click.echo(bad(sentence))


def print_brokers(brokers: list[dict[str, object]]) -> None:
    """Print a table of brokers, whose rows `ClusterLook.broker_json` returns."""
    print_table(
        ["broker", "address", "rack", "state", "leads", "replicas", "in sync"],
        [
            [
                one["broker_id"],
                f"{one['host']}:{one['port']}",
                one["rack"] or "-",
                "lives" if one["is_alive"] else bad("dead"),
                one["leads"],
                one["replicas"],
                one["in_sync"],
            ]
            for one in brokers
        ],
    )


# --- wait

WAIT_EXAMPLES: Final = """
\b
Examples:
  tarry cluster wait                    for two minutes at most; exit code 0 or 1
  tarry cluster wait --for 10m          between the steps of a rolling restart
  tarry cluster wait --brokers 3        until three brokers live, for a first start

\b
Whole is a cluster whose registered brokers all live, and all of whose partitions have a leader,
all replicas in sync, and no reassignment under way. A broker that will not come back is taken out
with tarry brokers remove.
"""


@cluster.command("wait", epilog=WAIT_EXAMPLES)
@cluster_options
@click.option(
    "--for",
    "limit",
    type=Seconds(),
    default="2m",
    show_default=True,
    metavar="TIME",
    help="How long to wait.",
)
@click.option(
    "--brokers",
    type=Count(1, _BROKERS_MAX),
    metavar="NUMBER",
    help="Number of brokers that must live at least.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing if all is well.")
@json_option
@quietly
def wait_command(
    *, cluster: Cluster, limit: float, brokers: int | None, quiet: bool, as_json: bool
) -> None:
    """Wait until every broker lives and every replica is in sync."""
    from tarry.cli.cluster_look import ClusterLook, wait_until
    from tarry.client import ClientError

    def look() -> list[str]:
        try:
            with cluster.admin() as admin:
                return ClusterLook(admin, cluster.timeout).obstacles(brokers)
        except ClientError as error:
            return [str(error)]

    missing = wait_until(look, limit)
    if as_json:
        print_json({"is_whole": not missing, "problems": missing})
    elif not missing and not quiet:
        click.echo("whole")
    for sentence in missing:
        complain(sentence)
    if missing:
        sys.exit(EXIT_FAILED)


# --- features

FEATURES_EXAMPLES: Final = """
\b
Examples:
  tarry cluster features
  tarry cluster features tarry.group.configs=1               once every broker is upgraded
  tarry cluster features --downgrade tarry.group.configs=0   before an older release is started

\b
A level comes into force with the first use of a feature, or by this command, and only while every
registered broker knows it; those that do not are named. An older release that does not know a level
in force is refused at its start. kafka-features of Apache Kafka does the same.
"""


class FeatureLevel(click.ParamType[tuple[str, int]]):
    """A feature and a level of it."""

    name = "NAME=LEVEL"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        name, _, level = str(value).partition("=")
        if not name or not (level.isascii() and level.isdigit() and len(level) < 6):
            self.fail(f"{value}: write a feature and a level, as tarry.group.configs=1", param, ctx)
        return name, int(level)


@cluster.command("features", epilog=FEATURES_EXAMPLES)
@click.argument("levels", nargs=-1, type=FeatureLevel(), metavar="[NAME=LEVEL]...")
@cluster_options
@click.option("--downgrade", is_flag=True, help="Allow lower levels than those in force.")
@click.option("--dry-run", is_flag=True, help="Only tell whether it could be done.")
@json_option
@quietly
def features_command(
    levels: tuple[tuple[str, int], ...],
    *,
    cluster: Cluster,
    downgrade: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Show the features that brokers agree on, or bring levels of them into force."""
    with cluster.admin() as admin:
        if levels:
            admin.update_features(
                dict(levels),
                cluster.timeout,
                may_downgrade=downgrade,
                validate_only=dry_run,
            )
        features = admin.describe_features(timeout=cluster.timeout)
    wanted = dict(levels)
    told = [one for one in features if not wanted or one.name in wanted]
    if as_json:
        print_json([one._asdict() for one in told])
    else:
        print_table(
            ["feature", "level", "known"],
            [[one.name, one.level or "-", f"{one.level_min} to {one.level_max}"] for one in told],
        )

"""`tarry brokers`: the brokers of a cluster, and how one leaves it."""

from __future__ import annotations

from typing import Final

import click

from tarry.cli.running import (
    Cluster,
    GuessingGroup,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.tables import print_json
from tarry.cli.units import Count, Seconds

EXAMPLES: Final = """
\b
Examples:
  tarry brokers list
  tarry brokers drain 3            moves all that broker 3 has to the others
  tarry brokers remove 3           takes it out of the cluster, once it is stopped
"""

_BROKER_ID_MAX: Final = 2**31 - 1


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def brokers() -> None:
    """List brokers, move what one has to the others, take one out of the cluster."""


# --- list

LIST_EXAMPLES: Final = """
\b
Examples:
  tarry brokers list
  tarry brokers list --json

\b
A dead broker is one that is registered and does not live: it was stopped, or cannot reach etcd.
"""


@brokers.command("list", epilog=LIST_EXAMPLES)
@cluster_options
@json_option
@quietly
def list_command(*, cluster: Cluster, as_json: bool) -> None:
    """List brokers with their addresses, racks, leaders and replicas."""
    from tarry.cli.cluster import print_brokers
    from tarry.cli.cluster_look import ClusterLook

    with cluster.admin() as admin:
        look = ClusterLook(admin, cluster.timeout)
    told = [look.broker_json(broker) for broker in look.brokers]
    if as_json:
        print_json(told)
    else:
        print_brokers(told)


# --- drain

DRAIN_EXAMPLES: Final = """
\b
Examples:
  tarry brokers drain 3                  waits until broker 3 has no replicas
  tarry brokers drain 3 --dry-run        only shows what would move where
  tarry brokers drain 3 --no-wait        begins it; tarry topics reassign shows how far it is
  tarry brokers drain 3 --shrink         fewer replicas where too few brokers are left

\b
Works for a dead broker too, as long as its partitions have others in sync. Partitions are read
and written meanwhile. New topics may still be placed on the broker: stop it soon afterwards, then
take it out with tarry brokers remove.
"""


@brokers.command("drain", epilog=DRAIN_EXAMPLES)
@click.argument(
    "broker_ids", nargs=-1, required=True, type=Count(0, _BROKER_ID_MAX), metavar="ID..."
)
@cluster_options
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@click.option("--shrink", is_flag=True, help="Allow fewer replicas if too few brokers are left.")
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
def drain_command(
    broker_ids: tuple[int, ...],
    *,
    cluster: Cluster,
    dry_run: bool,
    no_wait: bool,
    shrink: bool,
    limit: float,
    as_json: bool,
) -> None:
    """Move all replicas of brokers to the others."""
    from tarry.cli.cluster_look import ClusterLook
    from tarry.cli.reassigning import Moves
    from tarry.cli.replica_plan import TooFewBrokers, drained

    with cluster.admin() as admin:
        look = ClusterLook(admin, cluster.timeout)
        known = [broker.broker_id for broker in look.brokers]
        for broker_id in broker_ids:
            if broker_id not in known:
                fail(f"there is no broker {broker_id}; tarry brokers list shows them")
        try:
            plan = drained(look.targets, broker_ids, look.racks, may_shrink=shrink)
        except TooFewBrokers as error:
            fail(f"{error}: add a broker, or let partitions have fewer replicas with --shrink")
        for place, one in look.reassigned.items():
            # A drain that an earlier call began belongs to the plan: this call waits for it, too.
            if any(each in broker_ids for each in one.removing):
                plan.setdefault(place, look.targets[place])
        moves = Moves(look.replicas, dict(plan))
        if not dry_run:
            moves.begin(admin, cluster.timeout)
            if not no_wait:
                moves.wait(admin, cluster.timeout, limit)
    if not plan and not as_json:
        click.echo("nothing to move", err=True)
        return
    done = "moved"
    if dry_run or no_wait or moves.left:
        done = "would move" if dry_run else "on their way"
    moves.print(as_json=as_json, done=done)
    if not dry_run and not no_wait:
        moves.check_done()


# --- remove

REMOVE_EXAMPLES: Final = """
\b
Examples:
  tarry brokers remove 3

\b
The broker must be stopped and have no replicas: tarry brokers drain moves them away, of a dead
broker too. Its data stays on its disk. A broker that is started again registers anew.
"""


@brokers.command("remove", epilog=REMOVE_EXAMPLES)
@click.argument("broker_id", type=Count(0, _BROKER_ID_MAX), metavar="ID")
@cluster_options
@json_option
@quietly
def remove_command(broker_id: int, *, cluster: Cluster, as_json: bool) -> None:
    """Take a stopped broker out of the cluster for good."""
    with cluster.admin() as admin:
        admin.unregister_broker(broker_id, cluster.timeout)
    if as_json:
        print_json({"broker_id": broker_id, "done": True})
    else:
        click.echo(f"broker {broker_id} is taken out of the cluster")

"""`tarry groups describe`: who reads what and how far behind, once or again and again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.partitions import places_text
from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    Seconds,
    cluster_options,
    json_option,
    quietly,
)
from tarry.cli.tables import complain, print_json, print_json_line, print_table
from tarry.cli.units import Count

if TYPE_CHECKING:
    from tarry.cli.group_look import GroupLook
    from tarry.client import Admin, ClientError

# Only kind of group whose members DescribeGroups shows; ListGroups 5 tells the kind of a group.
CLASSIC: Final = "classic"

NO_GROUPS: Final = "there are no groups; join one with: tarry consume TOPIC --group NAME"

EXAMPLES: Final = """
\b
Examples:
  tarry groups describe billing              committed offsets, lag, who reads what
  tarry groups describe billing --members    a line a member
  tarry groups describe --all --state        a line a group
  tarry groups describe billing --watch      again and again; Ctrl-C ends
  tarry groups describe billing --state --fail-if-lag 10k    exit code 1 if it is behind
  tarry groups describe billing --watch 30 --json    a line of JSON every 30 s

\b
Lag is the number of offsets between what is committed and the end of the partition.
"""


@click.command("describe", epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@cluster_options
@click.option("--all", "all_groups", is_flag=True, help="Show all groups.")
@click.option("--state", "only_state", is_flag=True, help="Print a line a group.")
@click.option(
    "--members", "by_member", is_flag=True, help="Print a line a member, with its partitions."
)
@click.option(
    "--watch",
    type=Seconds(),
    is_flag=False,
    flag_value="2",
    metavar="[TIME]",
    help="Show it again after this time (2s), until Ctrl-C.",
)
@click.option(
    "--fail-if-lag",
    type=Count(),
    metavar="NUMBER",
    help="Exit with 1 if the lag of a group is above this, or is not known.",
)
@json_option
@quietly
def describe_command(
    names: tuple[str, ...],
    *,
    cluster: Cluster,
    all_groups: bool,
    only_state: bool,
    by_member: bool,
    watch: float | None,
    fail_if_lag: int | None,
    as_json: bool,
) -> None:
    """Show groups: members, committed offsets and lag."""
    if all_groups == bool(names):
        raise click.UsageError("name groups, or add --all")
    if watch is not None and fail_if_lag is not None:
        raise click.UsageError("--watch and --fail-if-lag exclude each other")
    if only_state and by_member:
        raise click.UsageError("--state and --members exclude each other")
    shape = "state" if only_state else "members" if by_member else "offsets"
    with cluster.admin() as admin:
        if watch is None:
            looks = _show(admin, names, cluster.timeout, shape, as_json=as_json)
            if looks is None or (fail_if_lag is not None and _is_behind(looks, fail_if_lag)):
                sys.exit(EXIT_FAILED)
            return
        _watch(admin, names, cluster.timeout, shape, seconds=watch, as_json=as_json)


def _show(
    admin: Admin, names: Iterable[str], timeout: float, shape: str, *, as_json: bool
) -> list[GroupLook] | None:
    """Print the groups once; None if one of them was not there."""
    looks, refused = _looks(admin, names, timeout)
    if as_json:
        print_json([look.as_json() for look in looks])
    elif looks:
        _print_looks(looks, shape)
    elif not refused:
        click.echo(NO_GROUPS, err=True)
    for error in refused:
        complain(str(error))
    return None if refused else looks


def _is_behind(looks: list[GroupLook], lag_max: int) -> bool:
    """Return whether a group's lag is larger than `lag_max`, and print a sentence if so."""
    is_behind = False
    for look in looks:
        group_id = look.description.group_id
        unknown = [
            one.place
            for one in look.partitions
            # Without a committed offset, the whole partition may be unread.
            if one.end_offset is None or (one.committed is None and one.end_offset > 0)
        ]
        if unknown:
            is_behind = True
            places = places_text(unknown)
            complain(f"the lag of group {group_id!r} is not known for {places}")
        if (look.lag or 0) > lag_max:
            is_behind = True
            lag = f"{look.lag:,}, more than {lag_max:,}"
            complain(f"group {group_id!r} has a lag of {lag}")
    return is_behind


def _looks(
    admin: Admin, names: Iterable[str], timeout: float
) -> tuple[list[GroupLook], list[ClientError]]:
    """Look at the named groups, or all; returns the looks, and why some cannot be shown."""
    from tarry.base.errors import GROUP_ID_NOT_FOUND
    from tarry.cli.group_look import explained_group, look_at_groups

    wanted = list(names)
    if wanted:
        looks, refused = look_at_groups(admin, wanted, timeout)
        told = [explained_group(admin, one, name, timeout) for name, one in refused.items()]
        return looks, [one for one in told if one is not None]
    listed = admin.list_groups(timeout=timeout)
    newer = [one.group_id for one in listed if one.group_type not in ("", CLASSIC)]
    if newer:
        click.echo(f"left out, being of newer kinds than classic: {', '.join(newer)}", err=True)
    wanted = [one.group_id for one in listed if one.group_id not in newer]
    looks, refused = look_at_groups(admin, wanted, timeout)
    # A group may be deleted between the list and its description: this is no error.
    left = [one for one in refused.values() if getattr(one, "code", 0) != GROUP_ID_NOT_FOUND]
    return looks, left


def _print_looks(looks: list[GroupLook], shape: str) -> None:
    if shape == "state":
        titles = ["group", "state", "protocol", "assignor", "members", "lag", "coordinator"]
        print_table(titles, [look.state_row() for look in looks])
        return
    for number, look in enumerate(looks):
        if number:
            click.echo()
        look.print_head()
        if shape == "members" or not look.is_of_consumers:
            look.print_members()
        else:
            look.print_offsets()


# Escape sequence that moves the cursor to the top left corner and clears everything below it.
CLEAR: Final = "\x1b[H\x1b[2J"


def _watch(
    admin: Admin,
    names: tuple[str, ...],
    timeout: float,
    shape: str,
    *,
    seconds: float,
    as_json: bool,
) -> None:
    """Print the groups again and again; report an error that may pass, and go on."""
    from tarry.client import ClientError

    while True:
        try:
            if as_json:
                looks, refused = _looks(admin, names, timeout)
                print_json_line(
                    {
                        "at_ms": time.time_ns() // 1_000_000,
                        "groups": [look.as_json() for look in looks],
                        "errors": [str(error) for error in refused],
                    }
                )
            else:
                click.echo(CLEAR if sys.stdout.isatty() else "", nl=False)
                click.echo(time.strftime("%Y-%m-%d %H:%M:%S"))
                _show(admin, names, timeout, shape, as_json=False)
        except ClientError as error:
            if not error.is_retriable:
                raise
            complain(f"waiting: {error}")
        sys.stdout.flush()
        time.sleep(seconds)

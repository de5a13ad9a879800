"""Command `tarry spark rebalances`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.group_history import time_text
from tarry.cli.running import fail, quietly
from tarry.cli.spark.event_options import event_options, tell_remarks, write_page
from tarry.cli.tables import count_of, print_json, print_table, seconds_text

if TYPE_CHECKING:
    from tarry.spark.events.reading import EventSource

REBALANCES_EXAMPLES: Final = """
\b
Examples:
  tarry spark rebalances                     all groups, oldest first
  tarry spark rebalances --group billing --since -1d
  tarry spark rebalances --json
  tarry spark rebalances --html rebalances.html

\b
The broker needs events.enable=true.  tarry groups why GROUP tells of one group what its broker
remembers, without an event log.
"""


@click.command("rebalances", epilog=REBALANCES_EXAMPLES)
@event_options
@click.option(
    "--group", "groups", multiple=True, metavar="GROUP", help="Only this group; repeatable."
)
@quietly
def rebalances_command(
    source: EventSource, as_json: bool, html_path: str | None, groups: tuple[str, ...]
) -> None:
    """Tell why groups rebalanced, for how long they stood still, and which members died."""
    from tarry.spark.events.reading import EventsMissing
    from tarry.spark.jobs.rebalances import RebalancesOptions, rebalances
    from tarry.spark.reports.rebalances_report import rebalances_page

    try:
        found = rebalances(source, RebalancesOptions(groups))
    except EventsMissing as error:
        fail(str(error))
    if html_path is not None:
        write_page(html_path, lambda: rebalances_page(found))
    if as_json:
        print_json(asdict(found))
        return
    tell_remarks(found.tally)
    if not found.groups:
        click.echo("the event log tells of no rebalance in this time", err=True)
        return
    rows = [
        [
            time_text(one.began_ms),
            one.group,
            seconds_text(one.stood_ms),
            one.ended,
            "-" if one.generation is None else one.generation,
            "-" if one.members is None else one.members,
            one.reason or "not known",
        ]
        for one in sorted(found.rebalances, key=lambda one: (one.began_ms, one.group))
    ]
    titles = ["when", "group", "stood still", "then", "generation", "members", "why"]
    print_table(titles, rows)
    died = sum(row.died for row in found.groups)
    counted = count_of(len(rows), "rebalance")
    click.echo(
        f"{counted} in {count_of(len(found.groups), 'group')}, {died} members died", err=True
    )

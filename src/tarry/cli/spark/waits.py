"""Command `tarry spark waits`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import fail, quietly
from tarry.cli.spark.event_options import (
    LengthOption,
    event_options,
    tell_remarks,
    write_page,
)
from tarry.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from tarry.spark.events.reading import EventSource

WAITS_EXAMPLES: Final = """
\b
Examples:
  tarry spark waits                          each purgatory, topic and group
  tarry spark waits --since -1h --purgatory Produce
  tarry spark waits --of orders --interval 1m --json
  tarry spark waits --html waits.html        a report with plots, for a browser

\b
The broker needs events.enable=true.  Waits are counted in steps of the square root of 2, so a
percentile is told by its bounds.  No Spark and no Java are needed.
"""


@click.command("waits", epilog=WAITS_EXAMPLES)
@event_options
@click.option(
    "--purgatory",
    "purgatories",
    multiple=True,
    metavar="NAME",
    help="Only this purgatory, such as Produce or Fetch; repeatable.",
)
@click.option(
    "--of",
    "subjects",
    multiple=True,
    metavar="NAME",
    help="Only this topic or group; repeatable.",
)
@click.option(
    "--interval",
    type=LengthOption(),
    help="Length of an interval of the report and of --json (default: as fits the time).",
)
@quietly
def waits_command(source: EventSource, as_json: bool, html_path: str | None, **given: Any) -> None:
    """Tell how long operations waited in the broker, and how many expired."""
    from tarry.spark.events.reading import EventsMissing
    from tarry.spark.jobs.waits import WaitsOptions, waits
    from tarry.spark.reports.waits_report import between_text, waits_page

    options = WaitsOptions(given["purgatories"], given["subjects"], given["interval"])
    try:
        found = waits(source, options)
    except EventsMissing as error:
        fail(str(error))
    if html_path is not None:
        write_page(html_path, lambda: waits_page(found))
    if as_json:
        print_json(asdict(found))
        return
    tell_remarks(found.tally)
    if not found.subjects:
        click.echo("the event log tells of no wait in this time", err=True)
        return
    rows = [
        [
            row.purgatory,
            row.subject or "(several)",
            row.completed,
            row.expired,
            *(between_text(each) for each in (row.p50, row.p90, row.p99)),
            f"{row.longest_ms:,} ms",
        ]
        for row in found.subjects
    ]
    titles = ["purgatory", "of", "operations", "expired", "p50", "p90", "p99", "longest"]
    print_table(titles, rows)

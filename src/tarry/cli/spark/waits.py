"""Commands `tarry spark waits` and `tarry spark lateness`: how long what has to wait waited."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import fail, quietly
from tarry.cli.spark.event_options import (
    LengthOption,
    event_options,
    table_options,
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


LATENESS_EXAMPLES: Final = """
\b
Examples:
  tarry spark lateness                          each topic with scheduled records
  tarry spark lateness --since -1h --of tasks
  tarry spark lateness --interval 10m --json    also each topic in each interval

\b
A record is late by the time from when it was due until consumers could see it.  The broker needs
events.enable=true.  Times are counted in steps of the square root of 2, so a percentile is told by
its bounds.  No Spark and no Java are needed.
"""


@click.command("lateness", epilog=LATENESS_EXAMPLES)
@table_options
@click.option("--of", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
@click.option(
    "--interval", type=LengthOption(), help="Length of an interval of --json (default: 1m)."
)
@quietly
def lateness_command(source: EventSource, as_json: bool, **given: Any) -> None:
    """Tell how late scheduled records came."""
    from tarry.spark.events.reading import EventsMissing
    from tarry.spark.jobs.lateness import MINUTE_MS, LatenessOptions, lateness
    from tarry.spark.reports.waits_report import between_text

    options = LatenessOptions(given["topics"], given["interval"] or MINUTE_MS)
    try:
        found = lateness(source, options)
    except EventsMissing as error:
        fail(str(error))
    if as_json:
        print_json(asdict(found))
        return
    tell_remarks(found.tally)
    if not found.topics:
        click.echo("the event log tells of no scheduled record in this time", err=True)
        return
    rows = [
        [
            row.topic,
            row.parked,
            row.released,
            row.cancelled,
            row.refused,
            *(between_text(each) for each in (row.p50, row.p99, row.p99_9)),
            f"{row.longest_ms:,} ms",
        ]
        for row in found.topics
    ]
    titles = ["topic", "parked", "released", "cancelled", "refused"]
    print_table([*titles, "p50", "p99", "p99.9", "longest"], rows)

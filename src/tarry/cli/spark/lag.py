"""Command `tarry spark lag`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.group_history import time_text
from tarry.cli.running import fail, quietly
from tarry.cli.spark.event_options import (
    LengthOption,
    event_options,
    tell_remarks,
    write_page,
)
from tarry.cli.tables import print_json, print_table, seconds_text

if TYPE_CHECKING:
    from tarry.spark.events.reading import EventSource
    from tarry.spark.jobs.lag import LagOptions, LagSample

LAG_EXAMPLES: Final = """
\b
Examples:
  tarry spark lag                            as the event log of Tarry tells it
  tarry spark lag --group billing --since -1h --html lag.html
  tarry spark lag --sample 10s --for 5m      any cluster, Apache Kafka too
  tarry spark lag --json

\b
An event log tells of a partition when a group has committed for it.  --sample asks for the offsets
of all groups instead, also of those that stand still; Ctrl-C ends it early and keeps what it has.
"""


@click.command("lag", epilog=LAG_EXAMPLES)
@event_options
@click.option(
    "--group", "groups", multiple=True, metavar="GROUP", help="Only this group; repeatable."
)
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable."
)
@click.option(
    "--interval",
    type=LengthOption(),
    help="Length of an interval of the report and of --json (default: as fits the time).",
)
@click.option(
    "--sample", "sample_ms", type=LengthOption(), help="Ask the cluster, with so long between."
)
@click.option(
    "--for",
    "for_ms",
    type=LengthOption(),
    help="For how long --sample asks (default: one sample).",
)
@quietly
def lag_command(source: EventSource, as_json: bool, html_path: str | None, **given: Any) -> None:
    """Tell how far groups are behind, by topic and partition, over time."""
    from tarry.spark.events.reading import EventsMissing
    from tarry.spark.jobs.lag import LagOptions, lag, sum_samples
    from tarry.spark.reports.lag_report import lag_page

    if given["for_ms"] is not None and given["sample_ms"] is None:
        raise click.UsageError("--for needs --sample: say how long to wait between two samples")
    if given["sample_ms"] is not None and (source.archive is not None or source.span.is_bounded):
        raise click.UsageError(
            "--sample asks the cluster how it is now: leave out --since, --until and --archive, "
            "which choose what is read of an event log"
        )
    options = LagOptions(given["groups"], given["topics"], given["interval"])
    try:
        if given["sample_ms"] is None:
            found = lag(source, options)
        else:
            samples = _samples(source.settings, options, given["sample_ms"], given["for_ms"])
            found = sum_samples(samples, options)
    except EventsMissing as error:
        fail(f"{error}; or ask the cluster with --sample 10s --for 5m")
    if html_path is not None:
        write_page(html_path, lambda: lag_page(found))
    if as_json:
        print_json(asdict(found))
        return
    tell_remarks(found.tally)
    if not found.partitions:
        click.echo("nothing is told of a group that has committed", err=True)
        return
    rows = [
        [
            one.group,
            one.topic,
            one.partition,
            one.committed,
            one.end,
            one.lag,
            one.highest,
            time_text(one.at_ms),
        ]
        for one in found.partitions
    ]
    titles = ["group", "topic", "partition", "committed", "end", "lag", "highest", "told"]
    print_table(titles, rows)


def _samples(
    settings: Mapping[str, str], options: LagOptions, every_ms: int, for_ms: int | None
) -> Iterator[LagSample]:
    """Yield samples until the time is over or the user ends it."""
    from tarry.spark.jobs.lag import sample_lag

    if for_ms is not None:
        told = f"a sample every {seconds_text(every_ms)} for {seconds_text(for_ms)}"
        click.echo(f"{told}; Ctrl-C ends it early", err=True)
    try:
        yield from sample_lag(settings, options, every_ms / 1000, (for_ms or 0) / 1000)
    except KeyboardInterrupt:
        click.echo("ended early", err=True)

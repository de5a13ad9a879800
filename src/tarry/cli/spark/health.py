"""Command `tarry spark health`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from tarry.cli.running import json_option, quietly
from tarry.cli.spark.event_options import html_option, write_page
from tarry.cli.tables import complain, count_of, print_json, print_table

HEALTH_EXAMPLES: Final = """
\b
Examples:
  tarry spark health progress.jsonl
  tarry spark health progress.jsonl.1 progress.jsonl --html health.html

\b
A pipeline writes a line for each micro-batch; this reads them and asks no broker.
"""


@click.command("health", epilog=HEALTH_EXAMPLES)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@html_option
@json_option
@quietly
def health_command(paths: tuple[str, ...], html_path: str | None, as_json: bool) -> None:
    """Tell how a pipeline did, by the lines that it wrote: pace, rejected records, late rows."""
    from tarry.spark.reports.health_report import health_page, read_health

    lines = [line for path in paths for line in Path(path).read_bytes().splitlines() if line]
    found = read_health(lines)
    if html_path is not None:
        write_page(html_path, lambda: health_page(found))
    sums = found.stages()
    if as_json:
        print_json({"stages": sums, "passed_over": found.passed_over})
        return
    if found.passed_over:
        told = f"lines that were passed over, since they are no progress: {found.passed_over:,}"
        complain(told)
    if not sums:
        click.echo("no micro-batch is told", err=True)
        return
    names = found.names()
    rows = [
        [
            names[one.pipeline, one.stage],
            one.batches,
            one.records,
            f"{one.records_per_second:,.0f}",
            sum(one.rejected.values()),
            one.late,
            "-" if one.lag is None else one.lag,
        ]
        for one in sums
    ]
    titles = ["stage", "micro-batches", "records", "a second", "rejected", "late", "lag"]
    print_table(titles, rows)
    lost = sum(one.lost for one in sums)
    if lost:
        click.echo(
            f"{count_of(lost, 'range')} of offsets left out; the lines of progress name them"
        )

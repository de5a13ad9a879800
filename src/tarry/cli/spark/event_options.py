"""Options that the commands about the event log share: where it is, and which time of it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tarry.cli.places import BadPlace, parse_time_ms
from tarry.cli.running import Cluster, cluster_options, fail, json_option
from tarry.cli.spark.directories import DirectoryPath
from tarry.cli.spark.session import reach, settings_of
from tarry.cli.tables import complain
from tarry.cli.units import BadUnit, parse_time_length_ms

if TYPE_CHECKING:
    from tarry.spark.events.decoding import Tally
    from tarry.spark.reports.page import Page


class TimeOption(click.ParamType[int]):
    """Time in calendar ms: `2026-11-21T08:00`, milliseconds since 1970, or `-10m` (ago)."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_time_ms(str(value), time.time_ns() // 1_000_000)
        except BadPlace as error:
            self.fail(str(error), param, ctx)


class LengthOption(click.ParamType[int]):
    """Length of time in ms, more than nothing: `10s`, `5m`."""

    name = "LENGTH"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            length_ms = parse_time_length_ms(str(value), 1_000)
        except BadUnit as error:
            self.fail(str(error), param, ctx)
        if length_ms < 1:
            self.fail(f"invalid length {str(value)!r}: it must be more than nothing", param, ctx)
        return length_ms


html_option = click.option(
    "--html", "html_path", metavar="FILE", help="Write the report to this file, for a browser."
)


def event_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of an event log; the command gets `source`, `as_json` and `html_path`."""
    return _options(command, html_option)


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of an event log for a command without a report: `source` and `as_json`."""
    return _options(command, lambda run: run)


def _options(
    command: Callable[..., None],
    report_option: Callable[[Callable[..., None]], Callable[..., None]],
) -> Callable[..., None]:

    @cluster_options
    @click.option(
        "--since",
        type=TimeOption(),
        help="Begin of the time: -1h, 2026-11-21T08:00 (default: all).",
    )
    @click.option("--until", type=TimeOption(), help="End of the time.")
    @click.option(
        "--archive",
        "archive_path",
        type=DirectoryPath(),
        metavar="PATH",
        help="Read the events from an archive of __tarry_events instead of the broker.",
    )
    @report_option
    @json_option
    @functools.wraps(command)
    def run(
        *,
        cluster: Cluster,
        since: int | None,
        until: int | None,
        archive_path: Path | None,
        **options: Any,
    ) -> None:
        from tarry.spark.events.decoding import TimeSpan
        from tarry.spark.events.reading import EventSource

        if since is not None and until is not None and since >= until:
            raise click.UsageError("--since is not before --until: there is no time between them")
        if archive_path is None:
            reach(cluster)
        source = EventSource(
            settings_of(cluster),
            archive_path,
            TimeSpan(since, until),
        )
        command(source=source, **options)

    return run


def write_page(path: str, make: Callable[[], Page]) -> None:
    """Write a report and say where it is."""
    try:
        text = make().html()
    except ImportError as error:
        fail(str(error))
    Path(path).write_text(text, encoding="utf-8")
    click.echo(f"the report is in {path}", err=True)


def tell_remarks(tally: Tally) -> None:
    """Tell on stderr what a reader of the result has to know."""
    for remark in tally.remarks():
        complain(remark)

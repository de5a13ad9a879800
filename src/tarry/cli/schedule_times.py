"""Ranges of due times, ids and sums, as the commands of `tarry schedule` take and print them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tarry.cli.formats import ISO, time_text
from tarry.cli.places import BadPlace, parse_time_ms
from tarry.cli.tables import count_of, printable
from tarry.cli.units import size_text

if TYPE_CHECKING:
    from tarry.client import ScheduleTotals


def due_time_ms(option: str, text: str) -> int:
    """Return the time that an option names; a wrong one is wrong usage."""
    try:
        return parse_time_ms(text, time.time_ns() // 1_000_000)
    except BadPlace as error:
        raise click.UsageError(f"{option}: {error}") from None


def range_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --from and --to; the command gets `due_from` and `due_until`, milliseconds or None."""

    @click.option(
        "--from", "from_text", metavar="TIME", help="Due at this time or later; +1h is in an hour."
    )
    @click.option("--to", "to_text", metavar="TIME", help="Due before this time.")
    @functools.wraps(command)
    def run(*, from_text: str | None, to_text: str | None, **options: Any) -> None:
        command(
            due_from=None if from_text is None else due_time_ms("--from", from_text),
            due_until=None if to_text is None else due_time_ms("--to", to_text),
            **options,
        )

    return run


def id_text(schedule_id: bytes) -> str:
    """Return an id as text; it may be any bytes."""
    return schedule_id.decode("utf-8", "backslashreplace")


def sums_text(totals: ScheduleTotals) -> str:
    """`12 entries, 1,200 records, 1.5 MB, due until 2026-12-24T18:00:00.000+01:00`."""
    entries = "1 entry" if totals.entry_count == 1 else f"{totals.entry_count:,} entries"
    return (
        f"{entries}, {count_of(totals.record_count, 'record')}, {size_text(totals.size)}; the last "
        f"one is due {time_text(totals.furthest_due_ms, ISO)}"
    )


def tell_flaws(totals: ScheduleTotals) -> None:
    """Report damaged logs of scheduled records on stderr: what they hide is not in the sums."""
    for flaw in totals.flaws:
        click.echo(f"tarry: {printable(flaw)}", err=True)

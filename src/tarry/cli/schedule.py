"""`tarry schedule`: see what waits in a topic, and cancel, move and load it.

The larger commands have modules of their own: `schedule_changes`, `schedule_histogram`,
`schedule_load`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.formats import ISO, time_text
from tarry.cli.running import (
    Cluster,
    GuessingGroup,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.schedule_changes import (
    ScheduleName,
    cancel_command,
    move_command,
    naming,
)
from tarry.cli.schedule_histogram import histogram_command
from tarry.cli.schedule_load import load_command
from tarry.cli.schedule_times import id_text, range_options, sums_text, tell_flaws
from tarry.cli.tables import print_json_line, print_table, printable, strong
from tarry.cli.units import PARTITION_MAX, Count

if TYPE_CHECKING:
    from tarry.client import ScheduledRecords, SchedulePage

# Entries of one request, and rows of one table.
PAGE_ENTRIES: Final = 1_000

EXAMPLES: Final = """
\b
A record that is due later waits in a topic with delay.enable=true, and appears
when it is due.

\b
Examples:
  tarry schedule list reminders                     what comes next
  tarry schedule histogram reminders                how much comes when
  tarry schedule show reminders call-7              one of them, with its records
  tarry schedule cancel reminders call-7            it never comes
  tarry schedule move reminders call-7 --to +2h     it comes in two hours
  tarry schedule load reminders calls.csv           many of them, from a file
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def schedule() -> None:
    """List, show, cancel, move, count and load records that wait until they are due."""


schedule.add_command(cancel_command)
schedule.add_command(move_command)
schedule.add_command(histogram_command)
schedule.add_command(load_command)

# --- list

LIST_EXAMPLES: Final = """
\b
Examples:
  tarry schedule list reminders                        the next 100
  tarry schedule list reminders --to +1h               what is due within an hour
  tarry schedule list reminders --from 2026-12-24T18:00Z --limit 1k
  tarry schedule list reminders --limit all --json     all of it, an object a line

\b
An entry is what is due together: one record, or a whole batch of them.  ID is the
record's x-sched-id; AT names an entry without one, for show, cancel and move.  A
record that recurs is listed with its next time and its cron expression.
"""


class Limit(Count):
    """A number of entries, or `all`."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        return None if value is None or value == "all" else super().convert(value, param, ctx)


@schedule.command("list", epilog=LIST_EXAMPLES)
@click.argument("topic")
@range_options
@click.option(
    "--limit", type=Limit(1), default="100", show_default=True, help="Entries at most, or all."
)
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0, PARTITION_MAX),
    multiple=True,
    help="List only this partition; repeatable.",
)
@cluster_options
@json_option
@quietly
def list_command(
    topic: str,
    *,
    cluster: Cluster,
    due_from: int | None,
    due_until: int | None,
    limit: int | None,
    partitions: tuple[int, ...],
    as_json: bool,
) -> None:
    """List what waits in TOPIC, in the order in which it is due."""
    with cluster.admin() as admin:

        def ask(after: Any, count: int) -> SchedulePage:
            return admin.scheduled(
                topic,
                due_from,
                due_until,
                limit=count,
                after=after,
                partitions=partitions or None,
                timeout=cluster.timeout,
            )

        told = 0
        page: SchedulePage | None = None
        for page in _pages(ask, limit):
            told += len(page.entries)
            if as_json:
                for entry in page.entries:
                    print_json_line(_fields(entry))
            elif page.entries:
                _print_entries(page.entries)
    if page is not None:
        tell_flaws(page.totals)
        if not as_json:
            click.echo(_summary(topic, page, told), err=True)


def _pages(ask: Callable[[Any, int], SchedulePage], limit: int | None) -> Iterator[SchedulePage]:
    """Request page after page, until there are `limit` entries."""
    after = None
    left = limit
    while left is None or left > 0:
        page = ask(after, PAGE_ENTRIES if left is None else min(left, PAGE_ENTRIES))
        yield page
        after = page.next
        if after is None:
            return
        left = None if left is None else left - len(page.entries)


def _print_entries(entries: list[ScheduledRecords]) -> None:
    """Print a table, with a column of cron expressions if one of them recurs."""
    names = ["due", "at", "records", "bytes", "id"]
    rows = [_row(entry) for entry in entries]
    if any(entry.cron is not None for entry in entries):
        names.append("cron")
        for row, entry in zip(rows, entries, strict=True):
            row.append(_cron_text(entry))
    print_table(names, rows)


def _row(entry: ScheduledRecords) -> list[object]:
    return [
        time_text(entry.due_ms, ISO),
        f"{entry.partition}:{entry.s_offset}",
        entry.record_count,
        entry.size,
        "" if entry.schedule_id is None else id_text(entry.schedule_id),
    ]


def _cron_text(entry: ScheduledRecords) -> str:
    return "" if entry.cron is None else f"{entry.cron} {entry.time_zone}"


def _fields(entry: ScheduledRecords) -> dict[str, object]:
    return {
        "topic": entry.topic,
        "partition": entry.partition,
        "s_offset": entry.s_offset,
        "due_ms": entry.due_ms,
        "id": None if entry.schedule_id is None else id_text(entry.schedule_id),
        "records": entry.record_count,
        "bytes": entry.size,
        "cron": entry.cron,
        "time_zone": entry.time_zone,
    }


def _summary(topic: str, page: SchedulePage, told: int) -> str:
    totals = page.totals
    if not totals.entry_count:
        text = f"nothing waits in {printable(topic)}"
        if totals.furthest_due_ms >= 0:
            text += f" in this range; the last one is due {time_text(totals.furthest_due_ms, ISO)}"
    else:
        text = f"{told:,} of {sums_text(totals)}"
    if totals.damaged_count:
        text += f"; {totals.damaged_count:,} damaged, which do not come: see the broker's log"
    return text


# --- show

SHOW_EXAMPLES: Final = """
\b
Examples:
  tarry schedule show reminders call-7
  tarry schedule show reminders --at 0:1234      by partition and s-offset, as list tells it
"""


@schedule.command("show", epilog=SHOW_EXAMPLES)
@naming
@cluster_options
@json_option
@quietly
def show_command(topic: str, *, cluster: Cluster, names: list[ScheduleName], as_json: bool) -> None:
    """Show what waits with its records: keys, headers and values."""
    missing: list[str] = []
    with cluster.admin() as admin:
        for number, name in enumerate(names):
            found = admin.find_scheduled(topic, **name._asdict(), timeout=cluster.timeout)
            if not found:
                missing.append(str(name))
            for entry in found:
                if as_json:
                    print_json_line({**_fields(entry), "contents": _contents(entry)})
                else:
                    if number:
                        click.echo()
                    _show(entry)
    if missing:
        fail(f"nothing waits in {printable(topic)} as {', '.join(missing)}")


def _show(entry: ScheduledRecords) -> None:
    click.echo(f"{strong('due')}        {time_text(entry.due_ms, ISO)}")
    click.echo(f"{strong('at')}         {entry.partition}:{entry.s_offset}")
    if entry.schedule_id is not None:
        click.echo(f"{strong('id')}         {printable(id_text(entry.schedule_id))}")
    if entry.cron is not None:
        click.echo(f"{strong('cron')}       {printable(_cron_text(entry))}")
    if entry.records is None:
        click.echo("its records cannot be read now")
        return
    for record in entry.records:
        click.echo(f"{strong('timestamp')}  {time_text(record.timestamp, ISO)}")
        click.echo(f"{strong('key')}        {_content(record.key)}")
        for name, value in record.headers:
            click.echo(f"{strong('header')}     {printable(name)}={_content(value)}")
        click.echo(f"{strong('value')}      {_content(record.value)}")


def _content(content: bytes | None) -> str:
    return "null" if content is None else printable(content.decode("utf-8", "backslashreplace"))


def _contents(entry: ScheduledRecords) -> list[object]:
    """Return the records as objects, as `tarry consume --json` prints them but for their place."""
    import msgspec

    from tarry.cli.formats import json_renderer

    found = []
    for record in entry.records or []:
        fields = msgspec.json.decode(json_renderer(entry.topic, entry.partition, record))
        for place in ("topic", "partition", "offset"):
            del fields[place]
        found.append(fields)
    return found

"""`tarry schedule histogram`: how much comes when, drawn in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tarry.cli.formats import ISO, time_text
from tarry.cli.running import Cluster, cluster_options, json_option, quietly
from tarry.cli.schedule_times import range_options, sums_text, tell_flaws
from tarry.cli.tables import print_json, printable, room_columns
from tarry.cli.units import size_text

if TYPE_CHECKING:
    from tarry.client import Admin, ScheduleBucket, ScheduleTotals

# Columns of a line that goes into a pipe, and least columns of the longest bar.
PIPE_COLUMNS: Final = 100
BAR_COLUMNS_MIN: Final = 10

BUCKETS_MAX: Final = 1_000

# Round widths of buckets, from which one is chosen.
STEPS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(seconds * 1_000 for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * 60_000 for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * 3_600_000 for hours in (1, 2, 3, 6, 12)),
    *(days * 86_400_000 for days in (1, 2, 7, 14, 30, 60, 90, 180, 365, 730, 3650, 36500)),
)

EXAMPLES: Final = """
\b
Examples:
  tarry schedule histogram reminders                  all that waits
  tarry schedule histogram reminders --to +1h -n 60   the next hour, minute by minute
"""

# Bars of 0 to 8 eighths of a column.
EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


@click.command("histogram", epilog=EXAMPLES)
@click.argument("topic")
@range_options
@click.option(
    "-n",
    "--buckets",
    "count",
    type=click.IntRange(1, BUCKETS_MAX),
    default=20,
    show_default=True,
    help="Spans of time at most.",
)
@cluster_options
@json_option
@quietly
def histogram_command(
    topic: str,
    *,
    cluster: Cluster,
    due_from: int | None,
    due_until: int | None,
    count: int,
    as_json: bool,
) -> None:
    """Draw how many records of TOPIC come when."""
    with cluster.admin() as admin:
        totals = _totals(admin, topic, due_from, due_until, count, cluster.timeout)
    tell_flaws(totals)
    if as_json:
        print_json([_fields(bucket) for bucket in totals.buckets])
        return
    if not totals.entry_count:
        click.echo(f"nothing waits in {printable(topic)} in this range", err=True)
        return
    for line in lines_of(totals.buckets, room_columns() or PIPE_COLUMNS):
        click.echo(line)
    click.echo(sums_text(totals), err=True)


def _totals(
    admin: Admin,
    topic: str,
    due_from: int | None,
    due_until: int | None,
    count: int,
    timeout: float,
) -> ScheduleTotals:
    """Ask first what the range holds, and then for its buckets."""
    first = admin.scheduled(topic, due_from, due_until, limit=1, timeout=timeout)
    if not first.entries:
        return first.totals
    begin = first.entries[0].due_ms
    end = first.totals.furthest_due_ms + 1
    if due_until is not None:
        end = min(end, due_until)
    edges = edges_of(begin, max(end, begin + 1), count)
    return admin.schedule_totals(topic, due_from, due_until, edges=edges, timeout=timeout)


def edges_of(begin_ms: int, end_ms: int, count: int) -> list[int]:
    """Return edges of at most `count` spans of a length that reads well, over the whole range."""
    step = next(
        (each for each in STEPS_MS if _spans(begin_ms, end_ms, each) <= count),
        -(-(end_ms - begin_ms) // count),
    )
    is_round = step in STEPS_MS
    edge = begin_ms - begin_ms % step if is_round else begin_ms
    edges = [edge]
    while edges[-1] < end_ms:
        edges.append(edges[-1] + step)
    return edges


def _spans(begin_ms: int, end_ms: int, step: int) -> int:
    return -(-end_ms // step) - begin_ms // step


def lines_of(buckets: list[ScheduleBucket], columns: int) -> list[str]:
    """Draw a line for each bucket, no wider than the columns."""
    times = [time_text(bucket.from_ms, ISO) for bucket in buckets]
    counts = [f"{bucket.record_count:,}" for bucket in buckets]
    sizes = [size_text(bucket.size) if bucket.record_count else "" for bucket in buckets]
    widths = [max(map(len, texts), default=0) for texts in (times, counts, sizes)]
    room = max(columns - sum(widths) - 6, BAR_COLUMNS_MIN)
    most = max((bucket.record_count for bucket in buckets), default=0)
    return [
        "  ".join(
            [
                time.ljust(widths[0]),
                count.rjust(widths[1]),
                size.rjust(widths[2]),
                bar_of(bucket.record_count, most, room),
            ]
        ).rstrip()
        for time, count, size, bucket in zip(times, counts, sizes, buckets, strict=True)
    ]


def bar_of(count: int, most: int, columns: int) -> str:
    """Draw a bar, which is visible for any count but 0."""
    if not count:
        return ""
    eighths = max(count * columns * 8 // most, 1)
    return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _fields(bucket: ScheduleBucket) -> dict[str, object]:
    return {
        "from_ms": bucket.from_ms,
        "until_ms": bucket.until_ms,
        "records": bucket.record_count,
        "bytes": bucket.size,
    }

"""`tarry topics offsets`: which offset each partition has at a time, without any group."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from tarry.base.ids import TopicPartition
from tarry.cli.running import EXIT_FAILED, Cluster, cluster_options, json_option, quietly
from tarry.cli.tables import complain, print_json, print_table
from tarry.cli.topic_choice import check_patterns

if TYPE_CHECKING:
    from tarry.client import ClientError, FoundOffset

EXAMPLES: Final = """
\b
Examples:
  tarry topics offsets orders                          the end of each partition
  tarry topics offsets orders --at beginning           the first record that is there
  tarry topics offsets orders:0,2-4 --at -2h           the first record since two hours ago
  tarry topics offsets orders --at 2026-11-21T08:00    the first record since then
  tarry topics offsets orders --at largest-time        the record with the largest timestamp
  tarry topics offsets 'orders-*' -q                   TOPIC:PARTITION:OFFSET, for scripts

\b
Times: 2026-11-21T08:00 (with Z or +02:00 if it is not local), milliseconds since 1970, or
-2h (ago).  A partition whose records are all older has no offset at that time.
"""

LARGEST_TIME: Final = "largest-time"


@click.command("offsets", epilog=EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC[:N,N-N]...")
@cluster_options
@click.option(
    "--at",
    default="end",
    show_default=True,
    metavar="PLACE",
    help="beginning, end, largest-time, or a time; see below.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print lines of TOPIC:PARTITION:OFFSET only.")
@json_option
@quietly
def offsets_command(
    names: tuple[str, ...], *, cluster: Cluster, at: str, quiet: bool, as_json: bool
) -> None:
    """Show the offsets of partitions at a time."""
    from tarry.cli.group_reset import parse_topics

    wanted = parse_topics(names)
    check_patterns(wanted)
    time_ms = _time_ms(at)
    with cluster.admin() as admin:
        from tarry.cli.topic_choice import chosen_topics, known_topics

        topics, failures = chosen_topics(
            known_topics(admin, wanted, cluster.timeout), list(wanted), internal=False
        )
        places: list[TopicPartition] = []
        for topic in topics:
            for index in wanted.get(topic.name) or topic.partitions:
                if index in topic.partitions:
                    places.append((topic.name, index))
                else:
                    last = max(topic.partitions)
                    failures.append(f"topic {topic.name!r} has partitions 0 to {last}, not {index}")
        found = admin.offsets(dict.fromkeys(places, time_ms), cluster.timeout) if places else {}
    failures += dict.fromkeys(str(one) for one in found.values() if isinstance(one, Exception))
    _print(found, quiet=quiet, as_json=as_json)
    for sentence in failures:
        complain(sentence)
    if failures:
        sys.exit(EXIT_FAILED)


def _time_ms(text: str) -> int:
    """Return what ListOffsets takes: a time, or one of its words in numbers."""
    from tarry.cli.places import BadPlace, parse_time_ms
    from tarry.client import EARLIEST, LATEST, MAX_TIMESTAMP

    words = {
        "beginning": EARLIEST,
        "earliest": EARLIEST,
        "end": LATEST,
        "latest": LATEST,
        LARGEST_TIME: MAX_TIMESTAMP,
    }
    if text in words:
        return words[text]
    try:
        return parse_time_ms(text.removeprefix("s@").removeprefix("@"), time.time_ns() // 1_000_000)
    except BadPlace:
        raise click.UsageError(
            f"invalid place {text!r}: write beginning, end, largest-time, or a time such as "
            "2026-11-21T08:00, milliseconds since 1970, or -2h for two hours ago"
        ) from None


def _print(
    found: dict[TopicPartition, FoundOffset | ClientError], *, quiet: bool, as_json: bool
) -> None:
    rows = [
        (topic, index, one.offset, one.timestamp)
        for (topic, index), one in found.items()
        if not isinstance(one, Exception)
    ]
    if as_json:
        print_json(
            [
                {
                    "topic": topic,
                    "partition": index,
                    "offset": offset if offset >= 0 else None,
                    "timestamp": timestamp if timestamp >= 0 else None,
                }
                for topic, index, offset, timestamp in rows
            ]
        )
    elif quiet:
        for topic, index, offset, _ in rows:
            click.echo(f"{topic}:{index}:{offset if offset >= 0 else ''}")
    elif rows:
        has_times = any(timestamp >= 0 for *_, timestamp in rows)
        titles = ["topic", "partition", "offset", "time"]
        cells = [
            [topic, index, offset if offset >= 0 else "-", time_text(timestamp)]
            for topic, index, offset, timestamp in rows
        ]
        width = 4 if has_times else 3
        print_table(titles[:width], [row[:width] for row in cells])


def time_text(timestamp_ms: int) -> str:
    """Write a time as ISO 8601 in the user's zone, to the millisecond; `-` for none."""
    from datetime import datetime

    if timestamp_ms < 0:
        return "-"
    try:
        local = datetime.fromtimestamp(timestamp_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        # A client may send any number as a timestamp: it may be no date.
        return str(timestamp_ms)
    return local.isoformat(sep=" ", timespec="milliseconds")

"""Command `tarry spark replay`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from tarry.cli.places import BadPlace, parse_fixed_time_ms
from tarry.cli.running import PRODUCER, Cluster, cluster_options, json_option, quietly
from tarry.cli.spark.directories import DirectoryPath
from tarry.cli.spark.session import reach, settings_of, spark_options, spark_session
from tarry.cli.tables import count_of, print_json
from tarry.cli.units import OFFSET_MAX, PARTITION_MAX, Count, whole_number

REPLAY_EXAMPLES: Final = """
\b
Examples:
  tarry spark replay lake --topic orders --to orders.again --local
  tarry spark replay lake --topic orders --to orders.again \\
      --from 2026-11-22T08:00Z --until 2026-11-22T09:30Z --rate 5000
  tarry spark replay lake --topic orders --to orders.again --from 0=100,1=250

\b
Each record is written once, also if the command is killed: start it again, and it goes on.  The
same command means the same replay; one that is finished says so and does nothing.
"""


@click.command("replay", epilog=REPLAY_EXAMPLES)
@click.argument("path", type=DirectoryPath(), metavar="PATH")
@cluster_options
@click.option("--topic", required=True, metavar="TOPIC", help="Archived topic.")
@click.option("--to", required=True, metavar="TOPIC", help="Topic that the records go to.")
@click.option(
    "--from",
    "begin",
    metavar="PLACE",
    help="First time, such as 2026-11-22T08:00Z, or offsets: PARTITION=OFFSET,...",
)
@click.option(
    "--until", metavar="PLACE", help="Time or offsets behind the last record, written alike."
)
@click.option("--rate", type=Count(1), metavar="COUNT", help="Records a second at most.")
@click.option(
    "--keep-partitions/--by-key",
    default=True,
    show_default=True,
    help="Where records go: their partition, or that of their key as Java's producer has it.",
)
@click.option(
    "--round-records",
    type=Count(1),
    default="1M",
    show_default=True,
    metavar="COUNT",
    help="Offsets that one round reads at most.",
)
@click.option(
    "--state",
    type=DirectoryPath(),
    metavar="PATH",
    help="Directory of the replay's state, which means it.",
)
@click.option("--local", "is_local", is_flag=True, help="Do it in this process, without Spark.")
@spark_options
@json_option
@quietly
def replay_command(path: Path, *, cluster: Cluster, as_json: bool, **given: Any) -> None:
    """Write archived records to a topic again, each exactly once."""
    from tarry.spark.replay.replay import ReplayOptions, ReplaySummary, replay

    from_ms, from_offsets = _bound("--from", given["begin"])
    until_ms, until_offsets = _bound("--until", given["until"])
    options = ReplayOptions(
        settings=settings_of(cluster, PRODUCER),
        topic=given["topic"],
        to=given["to"],
        from_ms=from_ms,
        until_ms=until_ms,
        from_offsets=from_offsets,
        until_offsets=until_offsets,
        keep_partitions=given["keep_partitions"],
        rate=given["rate"],
        round_records_max=given["round_records"],
        state=given["state"],
    )
    reach(cluster)
    summary = ReplaySummary()
    with spark_session(given["master"], is_local=given["is_local"], conf=given["conf"]) as session:
        for summary in replay(session, path, options):
            if not as_json and not summary.is_finished:
                percent = 100 * summary.offsets // max(1, summary.offsets_total)
                click.echo(
                    f"round {summary.rounds}: {count_of(summary.records, 'record')}, {percent} %",
                    err=True,
                )
    if as_json:
        print_json(asdict(summary))
    elif summary.was_finished:
        click.echo(
            f"this replay is finished: {count_of(summary.records, 'record')} in {options.to}. To "
            "write them again, give another --state"
        )
    else:
        click.echo(f"{count_of(summary.records, 'record')} in {options.to}")


def _bound(option: str, text: str | None) -> tuple[int | None, dict[int, int]]:
    """Return a time, or offsets by partition."""
    if text is None:
        return None, {}
    if "=" in text:
        return None, dict(_offset(option, part) for part in text.split(","))
    try:
        return parse_fixed_time_ms(option, text), {}
    except BadPlace as error:
        raise click.UsageError(str(error)) from None


def _offset(option: str, part: str) -> tuple[int, int]:
    partition, _, offset = part.partition("=")
    numbers = whole_number(partition.strip(), PARTITION_MAX), whole_number(offset, OFFSET_MAX)
    if numbers[0] is None or numbers[1] is None:
        raise click.UsageError(f"invalid {option} {part!r}: write PARTITION=OFFSET,...")
    return numbers[0], numbers[1]

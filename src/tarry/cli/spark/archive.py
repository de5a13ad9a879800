"""Command `tarry spark archive`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import Cluster, cluster_options, fail, json_option, quietly
from tarry.cli.spark.directories import DirectoryPath
from tarry.cli.spark.session import reach, settings_of, spark_options, spark_session
from tarry.cli.tables import count_of, print_json
from tarry.cli.units import Count, size_text

if TYPE_CHECKING:
    from tarry.spark.archive.archive import ArchiveSummary

ARCHIVE_EXAMPLES: Final = """
\b
Examples:
  tarry spark archive orders --to lake           again: from where the last run ended
  tarry spark archive orders payments --to lake --by day
  tarry spark archive --pattern '^orders' --to lake
  tarry spark archive orders --to lake --local   in this process, without Spark and Java
  tarry spark archive orders --to lake --master spark://host:7077

\b
Files lie in lake/topic=orders/date=2026-11-22/hour=13/, by the time of their records; pyarrow,
DuckDB and Spark read them as one table.  A run that is killed leaves nothing that they see.
"""


@click.command("archive", epilog=ARCHIVE_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@cluster_options
@click.option(
    "--to",
    "path",
    required=True,
    type=DirectoryPath(),
    metavar="PATH",
    help="Directory of the archive.",
)
@click.option("--pattern", metavar="REGEX", help="All topics in whose name this is found.")
@click.option(
    "--by",
    type=click.Choice(["hour", "day", "none"]),
    default="hour",
    show_default=True,
    help="Layout of the files by the time of their records.",
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]),
    default="zstd",
    show_default=True,
    help="Codec of the files.",
)
@click.option(
    "--table",
    type=click.Choice(["parquet", "delta"]),
    default="parquet",
    show_default=True,
    help="Plain files, or a Delta table over them.",
)
@click.option(
    "--round-records",
    type=Count(1),
    default="50M",
    show_default=True,
    metavar="COUNT",
    help="Records of one round at most.",
)
@click.option(
    "--skip-lost",
    is_flag=True,
    help="Go on where records were deleted before they were archived, and count them.",
)
@click.option("--local", "is_local", is_flag=True, help="Do it in this process, without Spark.")
@spark_options
@json_option
@quietly
def archive_command(
    names: tuple[str, ...], *, cluster: Cluster, path: Path, as_json: bool, **given: Any
) -> None:
    """Archive what topics hold as Parquet files, from where the last run ended."""
    from tarry.spark.archive.archive import ArchiveOptions, ArchiveSummary, archive
    from tarry.spark.options import OptionRefused
    from tarry.spark.reading.bounds import TopicChoice
    from tarry.spark.reading.loss import DataLost

    if bool(names) == bool(given["pattern"]):
        raise click.UsageError("name topics, or give a --pattern")
    options = ArchiveOptions(
        settings=settings_of(cluster),
        by=given["by"],
        compression=given["compression"],
        table=given["table"],
        round_records_max=given["round_records"],
        fail_on_data_loss=not given["skip_lost"],
    )
    reach(cluster)
    choice = TopicChoice(names=names, pattern=given["pattern"] or "")
    summary = ArchiveSummary()
    try:
        with spark_session(
            given["master"], is_local=given["is_local"], conf=given["conf"]
        ) as session:
            for summary in archive(session, choice, path, options):
                if not as_json:
                    click.echo(f"round {summary.rounds}: {_archived(summary)}", err=True)
    except (OptionRefused, DataLost) as error:
        fail(str(error))
    if as_json:
        print_json(asdict(summary))
    else:
        click.echo(_archived(summary) if summary.rounds else "nothing new to archive")


def _archived(summary: ArchiveSummary) -> str:
    told = (
        f"{count_of(summary.records, 'record')} in {count_of(summary.files, 'file')}, "
        f"{size_text(summary.bytes)}"
    )
    return f"{told}, {summary.lost} offsets lost before" if summary.lost else told

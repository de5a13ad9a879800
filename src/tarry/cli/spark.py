"""`tarry spark`: jobs on Spark, which keep topics as tables."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import (
    CONSUMER,
    EXIT_FAILED,
    Cluster,
    GuessingGroup,
    client_arguments,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.tables import bad, count_of, good, print_json
from tarry.cli.units import Count, size_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tarry.spark.archive.archive import ArchiveSummary
    from tarry.spark.archive.verify import VerifiedArchive

EXAMPLES: Final = """
\b
Examples:
  tarry spark archive orders --to lake     what the topic holds, as Parquet files
  tarry spark verify lake                  is the archive whole?

\b
Spark needs Java 17 or newer and PySpark: pip install "tarry[spark]"
"""

# Faults that are told one by one.
TOLD_MAX: Final = 20


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def spark() -> None:
    """Archive topics as Parquet files on Spark, and recount an archive."""


# --- archive

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


@spark.command("archive", epilog=ARCHIVE_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@cluster_options
@click.option("--to", "path", required=True, metavar="PATH", help="Directory of the archive.")
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
@click.option("--master", metavar="URL", help="Spark's master (default: local[*]).")
@json_option
@quietly
def archive_command(
    names: tuple[str, ...], *, cluster: Cluster, path: str, as_json: bool, **given: Any
) -> None:
    """Archive what topics hold as Parquet files, from where the last run ended."""
    from tarry.spark.archive.archive import ArchiveOptions, ArchiveSummary, archive
    from tarry.spark.options import OptionRefused
    from tarry.spark.reading.bounds import TopicChoice
    from tarry.spark.reading.loss import DataLost

    if bool(names) == bool(given["pattern"]):
        raise click.UsageError("name topics, or give a --pattern")
    options = ArchiveOptions(
        settings=_settings(cluster),
        by=given["by"],
        compression=given["compression"],
        round_records_max=given["round_records"],
        fail_on_data_loss=not given["skip_lost"],
    )
    choice = TopicChoice(names=names, pattern=given["pattern"] or "")
    summary = ArchiveSummary()
    try:
        with _session(given["master"], is_local=given["is_local"]) as session:
            for summary in archive(session, choice, Path(path).absolute(), options):
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


# --- verify

VERIFY_EXAMPLES: Final = """
\b
Examples:
  tarry spark verify lake                files, checksums, offsets; and beside the broker
  tarry spark verify lake --offline      without asking a broker
  tarry spark verify lake --json

\b
Every offset of every range must be in one file, or be one that the log has no record for.  What
the broker still has is read again and compared.
"""


@spark.command("verify", epilog=VERIFY_EXAMPLES)
@click.argument("path", metavar="PATH")
@cluster_options
@click.option("--offline", is_flag=True, help="Do not compare with the broker.")
@click.option("--no-checksums", is_flag=True, help="Do not read whole files for their SHA-256.")
@json_option
@quietly
def verify_command(
    path: str, *, cluster: Cluster, offline: bool, no_checksums: bool, as_json: bool
) -> None:
    """Recount an archive: no gap, no overlap, every file whole, nothing missing."""
    from tarry.spark.archive.verify import verify

    settings = None if offline else _settings(cluster)
    found = verify(Path(path).absolute(), settings, checksums=not no_checksums)
    if as_json:
        print_json({"is_whole": not found.faults, **asdict(found)})
    else:
        _print_verified(found)
    if found.faults:
        sys.exit(EXIT_FAILED)


def _print_verified(found: VerifiedArchive) -> None:
    for fault in found.faults[:TOLD_MAX]:
        click.echo(f"tarry: {fault}", err=True)
    if len(found.faults) > TOLD_MAX:
        more = count_of(len(found.faults) - TOLD_MAX, "more fault")
        click.echo(f"tarry: {more}; --json tells all of them", err=True)
    counted = (
        f"{count_of(found.rounds, 'round')}, {count_of(found.files, 'file')}, "
        f"{size_text(found.bytes)}: {found.rows} rows + {found.gaps} gaps = {found.offsets} "
        f"offsets; {found.compared} compared with the broker, {found.lost} lost before"
    )
    click.echo(f"{bad('not whole') if found.faults else good('whole')}  {counted}")


# --- Clients and sessions


def _settings(cluster: Cluster) -> dict[str, str]:
    given = client_arguments(cluster.bootstrap, cluster.client_settings, owner=CONSUMER)
    return {key: str(value) for key, value in given.items()}


@contextmanager
def _session(master: str | None, *, is_local: bool) -> Iterator[SparkSession | None]:
    """Yield a session that ends with the command; None without Spark."""
    if is_local:
        yield None
        return
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        fail('PySpark is not installed: pip install "tarry[spark]", or use --local')
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        fail("Spark needs Java 17 or newer, and there is no java: install it, or use --local")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.appName("tarry spark")
    # Under spark-submit the master is given already.
    if master is not None or "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(master or "local[*]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()

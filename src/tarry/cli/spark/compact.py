"""Command `tarry spark compact`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import json_option, quietly
from tarry.cli.spark.directories import DirectoryPath
from tarry.cli.spark.session import spark_options, spark_session
from tarry.cli.tables import count_of, print_json
from tarry.cli.units import TIMES_TEXT, BadUnit, Size, parse_time_length_ms, size_text

if TYPE_CHECKING:
    from tarry.spark.archive.compact import CompactSummary

COMPACT_EXAMPLES: Final = """
\b
Examples:
  tarry spark compact lake                  small files become files of up to 128 MiB
  tarry spark compact lake --target 512MiB
  tarry spark compact lake --local          in this process, without Spark and Java

\b
Readers see each record once before, while and after it runs; a run that is killed leaves the
archive whole.  Replaced files are kept out of sight for an hour, for readers that had listed them;
in a Delta table, for readers of its older versions.
"""


class SecondsOrNone(click.ParamType[float]):
    """A time in seconds, which may be 0."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            length_ms = parse_time_length_ms(str(value), 1_000)
        except BadUnit:
            length_ms = -1
        if length_ms < 0:
            self.fail(f"invalid time {str(value)!r}: write 0, {TIMES_TEXT}", param, ctx)
        return length_ms / 1000


@click.command("compact", epilog=COMPACT_EXAMPLES)
@click.argument("path", type=DirectoryPath(), metavar="PATH")
@click.option(
    "--target",
    type=Size(1),
    default="128MiB",
    show_default=True,
    metavar="SIZE",
    help="Largest size of merged files; those of less than half of it are merged.",
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]),
    default="zstd",
    show_default=True,
    help="Codec of the merged files.",
)
@click.option(
    "--keep-replaced",
    type=SecondsOrNone(),
    default="1h",
    show_default=True,
    metavar="TIME",
    help="How long replaced files are kept out of sight; a later run removes them.",
)
@click.option("--local", "is_local", is_flag=True, help="Do it in this process, without Spark.")
@spark_options
@json_option
@quietly
def compact_command(path: Path, *, as_json: bool, **given: Any) -> None:
    """Merge small files of an archive; what readers see stays the same."""
    from tarry.spark.archive.compact import CompactOptions, CompactSummary, compact

    options = CompactOptions(
        target_bytes=given["target"],
        compression=given["compression"],
        replaced_kept_seconds=given["keep_replaced"],
    )
    summary = CompactSummary()
    with spark_session(given["master"], is_local=given["is_local"], conf=given["conf"]) as session:
        for summary in compact(session, path, options):
            if not as_json:
                click.echo(f"directory {summary.directories}: {_merged(summary)}", err=True)
    if as_json:
        print_json(asdict(summary))
    else:
        click.echo(_merged(summary) if summary.directories else "nothing to merge")


def _merged(summary: CompactSummary) -> str:
    return (
        f"{count_of(summary.files_before, 'file')} of {size_text(summary.bytes_before)} became "
        f"{count_of(summary.files_after, 'file')} of {size_text(summary.bytes_after)}"
    )

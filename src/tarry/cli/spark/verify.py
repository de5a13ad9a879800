"""Command `tarry spark verify`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.running import (
    EXIT_FAILED,
    EXIT_USAGE,
    Cluster,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.spark.directories import DirectoryPath
from tarry.cli.spark.pipeline_files import load_pipeline
from tarry.cli.spark.session import TELL_SECONDS, given_settings, reach, settings_of
from tarry.cli.tables import bad, complain, count_of, good, print_json
from tarry.cli.units import size_text

if TYPE_CHECKING:
    from tarry.spark.archive.verify import VerifiedArchive

# What is named so is no archive, but the file of a pipeline that has one.
PIPELINE_SUFFIX: Final = ".toml"

# Faults that are told one by one.
TOLD_MAX: Final = 20

VERIFY_EXAMPLES: Final = """
\b
Examples:
  tarry spark verify lake                files, checksums, offsets; and beside the broker
  tarry spark verify lake --offline      without asking a broker
  tarry spark verify lake --json
  tarry spark verify orders.toml         the archive of a pipeline

\b
Every offset of every range must be in one file, or be one that the log has no record for.  What
the broker still has is read again, and each offset must be there.
"""


class RoundTeller:
    """Teller of a long recount: a line on stderr every ten seconds."""

    def __init__(self, *, is_silent: bool, clock: Callable[[], float] = monotonic) -> None:
        self._is_silent = is_silent
        self._clock = clock
        self._told_s = clock()

    def tell(self, done: int, count: int) -> None:
        """Tell how many rounds are recounted, if it is time to."""
        now_s = self._clock()
        if not self._is_silent and now_s - self._told_s >= TELL_SECONDS:
            self._told_s = now_s
            click.echo(f"{done} of {count_of(count, 'round')} recounted", err=True)


@click.command("verify", epilog=VERIFY_EXAMPLES)
@click.argument("path", type=DirectoryPath(), metavar="PATH")
@cluster_options
@click.option("--offline", is_flag=True, help="Do not compare with the broker.")
@click.option("--no-checksums", is_flag=True, help="Do not read whole files for their SHA-256.")
@json_option
@quietly
def verify_command(
    path: Path, *, cluster: Cluster, offline: bool, no_checksums: bool, as_json: bool
) -> None:
    """Recount an archive: no gap, no overlap, every file whole, nothing missing."""
    from tarry.spark.archive.verify import verify

    directory, settings = path, settings_of(cluster)
    if directory.suffix == PIPELINE_SUFFIX:
        pipeline = load_pipeline(directory)
        if pipeline.archive is None:
            fail(f"{path} has no [archive], so there is nothing to recount", EXIT_USAGE)
        directory = pipeline.archive.path
        # The file names its cluster, unless the command line does.
        settings = {**pipeline.reading(), **given_settings(cluster)}
    elif not offline:
        reach(cluster)
    given = None if offline else settings
    told = RoundTeller(is_silent=as_json)
    found = verify(directory, given, checksums=not no_checksums, tell=told.tell)
    if as_json:
        print_json({"is_whole": not found.faults, **asdict(found)})
    else:
        _print_verified(found)
    if found.faults:
        sys.exit(EXIT_FAILED)


def _print_verified(found: VerifiedArchive) -> None:
    for fault in found.faults[:TOLD_MAX]:
        complain(fault)
    if len(found.faults) > TOLD_MAX:
        more = count_of(len(found.faults) - TOLD_MAX, "more fault")
        complain(f"{more}; --json tells all of them")
    counted = (
        f"{count_of(found.rounds, 'round')}, {count_of(found.files, 'file')}, "
        f"{size_text(found.bytes)}: {found.rows} rows + {found.gaps} gaps = {found.offsets} "
        f"offsets; {found.compared} compared with the broker, {found.lost} lost before"
    )
    for topic, rows in found.uncompared.items():
        complain(
            f"{count_of(rows, 'row')} of {topic} cannot be compared: the broker has the topic, or "
            "a partition of it, no more or anew"
        )
    click.echo(f"{bad('not whole') if found.faults else good('whole')}  {counted}")

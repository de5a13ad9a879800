"""Command `tarry spark backfill`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.places import BadPlace, parse_fixed_time_ms
from tarry.cli.running import fail, json_option, quietly
from tarry.cli.spark.pipeline_files import load_pipeline, tell_mistakes
from tarry.cli.spark.session import check_pyspark_there, spark_options, spark_session, telling_tasks
from tarry.cli.tables import count_of, print_json

if TYPE_CHECKING:
    from tarry.spark.backfill.backfill import BackfillSummary

BACKFILL_EXAMPLES: Final = """
\b
Examples:
  tarry spark backfill orders.toml revenue
  tarry spark backfill orders.toml revenue --from 2026-11-22T00:00Z --until 2026-11-23T00:00Z
  tarry spark backfill orders.toml --archive /old/lake

\b
A result that the topic has already is not written again.  A backfill that is killed goes on when
the same command is started again.
"""


@click.command("backfill", epilog=BACKFILL_EXAMPLES)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("aggregate", metavar="[AGGREGATE]", required=False)
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    help="Event time, such as 2026-11-22T08:00Z: windows that end later count.",
)
@click.option("--until", metavar="TIME", help="Event time: windows that begin earlier count.")
@click.option(
    "--archive",
    "archive_path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Directory of the archive, if it is not that of the file.",
)
@click.option(
    "--skip-lost",
    is_flag=True,
    help="Go on where neither archive nor topic have all records, with those that are there.",
)
@spark_options
@json_option
@quietly
def backfill_command(path: Path, *, as_json: bool, **given: Any) -> None:
    """Compute windows of a pipeline's aggregate again, from an archive, with all late events."""
    check_pyspark_there()
    from tarry.spark.backfill.backfill import BackfillOptions, backfill
    from tarry.spark.backfill.plan import archive_of, choose_aggregate
    from tarry.spark.pipeline.faults import StageFailed
    from tarry.spark.pipeline.file.mistakes import PipelineRefused

    pipeline = load_pipeline(path)
    options = BackfillOptions(
        aggregate=given["aggregate"],
        from_ms=_time("--from", given["begin"]),
        until_ms=_time("--until", given["until"]),
        archive=given["archive_path"],
        fail_on_data_loss=not given["skip_lost"],
    )
    choose_aggregate(pipeline, options.aggregate)
    archive_of(pipeline, options.archive)
    try:
        with spark_session(
            given["master"], is_local=False, conf=given["conf"], settings=pipeline.spark
        ) as session:
            assert session is not None
            session.sparkContext.setLogLevel("OFF")
            with telling_tasks(session, is_silent=as_json):
                summary = backfill(session, pipeline, options)
    except PipelineRefused as refused:
        tell_mistakes(refused)
    except StageFailed as error:
        fail(str(error))
    if as_json:
        print_json(asdict(summary))
    else:
        click.echo(_done(summary))


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_fixed_time_ms(option, text)
    except BadPlace as error:
        raise click.UsageError(str(error)) from None


def _done(summary: BackfillSummary) -> str:
    if not summary.windows:
        return f"{summary.aggregate}: no window of this time is over"
    written = summary.new + summary.changed
    parts = [f"{summary.new} new", f"{summary.changed} changed"]
    parts += [f"{summary.removed} removed"] if summary.removed else []
    until = datetime.fromtimestamp(summary.closed_ms / 1000, UTC)
    told = (
        f"{summary.aggregate}: {count_of(summary.windows, 'result')} of "
        f"{count_of(summary.records, 'record')}, up to {until:%Y-%m-%dT%H:%M:%SZ}; "
    )
    if not written and not summary.removed:
        return f"{told}all of them are in {summary.topic} already"
    return f"{told}{', '.join(parts)} in {summary.topic}"

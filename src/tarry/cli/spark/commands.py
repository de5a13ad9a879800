"""Group of the commands below `tarry spark`, each in a module of its own."""

from __future__ import annotations

from typing import Final

import click

from tarry.cli.running import GuessingGroup
from tarry.cli.spark.archive import archive_command
from tarry.cli.spark.backfill import backfill_command
from tarry.cli.spark.compact import compact_command
from tarry.cli.spark.health import health_command
from tarry.cli.spark.lag import lag_command
from tarry.cli.spark.rebalances import rebalances_command
from tarry.cli.spark.replay import replay_command
from tarry.cli.spark.run import run_command
from tarry.cli.spark.verify import verify_command
from tarry.cli.spark.waits import lateness_command, waits_command

EXAMPLES: Final = """
\b
Examples:
  tarry spark run orders.toml              the pipeline that the file describes
  tarry spark archive orders --to lake     what the topic holds, as Parquet files
  tarry spark verify lake                  is the archive whole?
  tarry spark compact lake                 small files of it become larger ones
  tarry spark replay lake --topic orders --to orders.again
  tarry spark backfill orders.toml         results again, with the events that came late
  tarry spark waits --html waits.html      how long operations waited in the broker
  tarry spark rebalances --since -1d       why groups stood still
  tarry spark lateness --since -1h         how late scheduled records came
  tarry spark lag --sample 10s --for 5m    how far groups are behind

\b
Spark needs Java 17 or newer and PySpark: pip install "tarry[spark]"
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def spark() -> None:
    """Run pipelines; archive, recount, compact and replay topics; tell what a broker did."""


for _command in (
    archive_command,
    backfill_command,
    compact_command,
    health_command,
    lag_command,
    lateness_command,
    rebalances_command,
    replay_command,
    run_command,
    verify_command,
    waits_command,
):
    spark.add_command(_command)

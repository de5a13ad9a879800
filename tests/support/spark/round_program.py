"""A run of a pipeline that dies at one step of the sink or of the archive: what a round starts.

    python -m tests.support.spark.round_program FILE FOLDER STEP

The process group is killed before or behind the step, once: FOLDER/trap-0 says that it was.  STEP
is JSON: the name of an effect of the sink or of a step of the archive, whether behind it, and which
one of a process it is.  `null` is a run that nothing kills from within.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.support.spark.trap import Trap, trapped_source

# Steps of the archive, and what they are called in its directory.
ARCHIVE_STEPS = {"CommitRound": "commit", "PublishRound": "publish", "DropRound": "drop"}


def trap_archive(method: str, *, is_behind: bool, nth: int, flag: Path) -> None:
    """Let the process group die at a step of the archive."""
    from tarry.spark.archive.directory import ArchiveDirectory

    plain: Any = getattr(ArchiveDirectory, method)
    count = 0

    def trapped(self: ArchiveDirectory, *arguments: Any) -> object:
        nonlocal count
        count += 1
        is_here = count == nth and not flag.exists()
        if is_here and not is_behind:
            die(flag)
        told = plain(self, *arguments)
        if is_here:
            die(flag)
        return told

    setattr(ArchiveDirectory, method, trapped)


def die(flag: Path) -> None:
    flag.write_text(str(os.getpid()))
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    file, folder, told = arguments
    step = json.loads(told)
    from pyspark.sql import SparkSession

    from tarry.spark.pipeline import queries, run
    from tarry.spark.pipeline.file.reader import read_pipeline

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.streaming.stateStore.providerClass": run.STATE_STORE,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # A source that is registered is known to its session only.
    run.session_of = lambda session: session
    if step is not None:
        name, is_behind, nth = step
        if name in ARCHIVE_STEPS:
            flag = Path(folder) / "trap-0"
            trap_archive(ARCHIVE_STEPS[name], is_behind=is_behind, nth=nth, flag=flag)
        else:
            trap = Trap(None, name, is_behind, nth, os.getpgid(0))
            spark.dataSource.register(trapped_source([trap], folder))
            queries.SINK = "tarry-trapped"  # type: ignore[misc]
    pipeline = read_pipeline(Path(file), os.environ)
    options = run.RunOptions(once=True, restarts_max=20, tell=tell)
    for stage, sums in run.run_pipeline(spark, pipeline, options).items():
        tell(f"{stage}: {sums.records} records, {sums.restarts} restarts")
    spark.stop()


def tell(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

"""Driver of a pipeline that runs it again and again, and dies or stops where it is told.

    python -m tests.support.spark.round_program FILE FOLDER MASTER

Each line of its input is one run, as JSON: `step` is null, or the name of an effect of the sink
or of a step of the archive, whether behind it, and which one of the run it is; `what` is `kill`
(the process group dies there), `stop` (it sleeps there) or `tell` (it goes on); `is_alone` is
false for a run that does not keep others from the checkpoint, as on another machine.
FOLDER/trap-0 says that the step was met.  Behind each run that came to its end it prints `done`.
One Spark serves all runs, because its start is what takes longest.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.support.spark.trap import Trap, trapped_source

# Steps of the archive, and what they are called in its directory.
ARCHIVE_STEPS = {"CommitRound": "commit", "PublishRound": "publish", "DropRound": "drop"}

DONE = "done"

# The name that the source of a run with a trap has.
TRAPPED = "tarry-trapped"


def trap_archive(method: str, *, is_behind: bool, nth: int, die: Callable[[], None]) -> None:
    """Let the process group die, or sleep, at a step of the archive."""
    from tarry.spark.archive.directory import ArchiveDirectory

    plain: Any = getattr(ArchiveDirectory, method)
    count = 0

    def trapped(self: ArchiveDirectory, *arguments: Any) -> object:
        nonlocal count
        count += 1
        is_here = count == nth
        if is_here and not is_behind:
            die()
        told = plain(self, *arguments)
        if is_here and is_behind:
            die()
        return told

    trapped.plain = plain  # type: ignore[attr-defined]
    setattr(ArchiveDirectory, method, trapped)


def clear_archive_traps() -> None:
    from tarry.spark.archive.directory import ArchiveDirectory

    for method in ARCHIVE_STEPS.values():
        current: Any = getattr(ArchiveDirectory, method)
        setattr(ArchiveDirectory, method, getattr(current, "plain", current))


class Driver:
    """Driver with one session."""

    def __init__(self, file: str, folder: str, master: str) -> None:
        from tarry.spark.pipeline import queries, run

        self.file = Path(file)
        self.flag = Path(folder) / "trap-0"
        self.folder = folder
        self.queries: Any = queries
        self.program: Any = run
        self.spark = _session(folder, master)
        self.sink = queries.SINK
        self.locked = run.locked
        # A source that is registered is known to its session only.
        self.program.session_of = lambda session: session

    def run(self, step: Any, what: str, *, is_alone: bool) -> None:
        from tarry.spark.pipeline.file.reader import read_pipeline

        self._set(step, what)
        self.program.locked = self.locked if is_alone else lambda *_: nullcontext()
        pipeline = read_pipeline(self.file, os.environ)
        options = self.program.RunOptions(once=True, restarts_max=20, tell=tell)
        for stage, sums in self.program.run_pipeline(self.spark, pipeline, options).items():
            tell(f"{stage}: {sums.records} records, {sums.restarts} restarts")

    def _set(self, step: Any, what: str) -> None:
        """Set the trap of a run, in place of the one before."""
        clear_archive_traps()
        self.queries.SINK = self.sink
        if step is None:
            return
        name, is_behind, nth = step
        if name in ARCHIVE_STEPS:

            def die() -> None:
                if self.flag.exists():
                    return
                self.flag.write_text(str(os.getpid()))
                if what != "tell":
                    number = signal.SIGKILL if what == "kill" else signal.SIGSTOP
                    os.killpg(os.getpgid(0), number)

            trap_archive(ARCHIVE_STEPS[name], is_behind=is_behind, nth=nth, die=die)
            return
        trap = Trap(None, name, is_behind, nth, os.getpgid(0) if what == "kill" else what)
        self.spark.dataSource.register(trapped_source([trap], self.folder))
        self.queries.SINK = TRAPPED


def _session(folder: str, master: str) -> Any:
    from pyspark.sql import SparkSession

    from tarry.spark.pipeline import run

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master(master)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.memory": "512m",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.streaming.stateStore.providerClass": run.STATE_STORE,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def tell(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def main(arguments: list[str]) -> None:
    # Of this process alone: what Spark's processes print goes to where errors go.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    driver = Driver(*arguments)
    for line in sys.stdin:
        given = json.loads(line)
        driver.run(given["step"], given["what"], is_alone=given["is_alone"])
        told.write(f"{DONE}\n")
        told.flush()
    driver.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])

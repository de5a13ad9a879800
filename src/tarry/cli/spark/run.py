"""Command `tarry spark run`."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import EXIT_USAGE, fail, json_option, quietly
from tarry.cli.spark.pipeline_files import load_pipeline, tell_mistakes
from tarry.cli.spark.session import (
    check_pyspark_there,
    reach_pipeline,
    spark_options,
    spark_session,
)
from tarry.cli.tables import complain, count_of, print_json

if TYPE_CHECKING:
    from tarry.spark.pipeline.file.sections import Pipeline
    from tarry.spark.pipeline.progress import BatchProgress, StageSums
    from tarry.spark.pipeline.topics import PipelineTopics

RUN_EXAMPLES: Final = """
\b
Examples:
  tarry spark run orders.toml --check        mistakes in the file, and what would be done
  tarry spark run orders.toml --once         all that is there now, stage by stage
  tarry spark run orders.toml                on and on; Ctrl-C stops it
  tarry spark run orders.toml --only clean

\b
A run that is killed goes on where it was, and nothing is written twice.  The file is described in
docs/reference/pipeline-file.md.
"""

PORT_MAX: Final = 65_535

# Ranges in the summary of a stage; the rest is counted.
LEFT_OUT_MAX: Final = 10

# A check ends before Java's second compiler has paid for itself: a third less CPU without it.
SHORT_LIVED: Final = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}

# How long --check waits for the cluster.
CHECK_LIMITS: Final = {"default.api.timeout.ms": "5000", "request.timeout.ms": "5000"}


@click.command("run", epilog=RUN_EXAMPLES)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--check", "is_check", is_flag=True, help="Print the plan and start nothing.")
@click.option("--once", is_flag=True, help="Take what is there now, stage by stage, and end.")
@click.option("--only", metavar="STAGE", help="Run one stage of the file.")
@click.option(
    "--restarts",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="COUNT",
    help="Faults of a stage in a row after which it is started again.",
)
@click.option(
    "--skip-lost",
    is_flag=True,
    help="Go on with what is there where records are gone before they were read.",
)
@click.option(
    "--progress",
    "progress_path",
    metavar="PATH",
    help="File that gets a line of JSON for each micro-batch; - is stdout.",
)
@click.option(
    "--metrics",
    "address",
    metavar="HOST:PORT",
    help="Address that serves metrics for Prometheus; port 0: the system chooses.",
)
@spark_options
@click.option("--spark-log", is_flag=True, help="Let Spark log its own warnings and errors.")
@json_option
@quietly
def run_command(path: Path, *, as_json: bool, **given: Any) -> None:
    """Run the pipeline that a file describes."""
    from tarry.spark.pipeline.file.mistakes import PipelineRefused
    from tarry.spark.pipeline.stages import UnknownStage, choose, stages_of

    pipeline = load_pipeline(path)
    try:
        choose(stages_of(pipeline), given["only"])
        if given["is_check"]:
            _check(pipeline, given, as_json=as_json)
        else:
            _run(pipeline, given, as_json=as_json)
    except PipelineRefused as refused:
        tell_mistakes(refused)
    except UnknownStage as error:
        fail(str(error), EXIT_USAGE)


def _check(pipeline: Pipeline, given: dict[str, Any], *, as_json: bool) -> None:
    """Print what a run would do; all mistakes are told before."""
    from tarry.spark.pipeline.expressions import expression_mistakes
    from tarry.spark.pipeline.file.mistakes import PipelineRefused
    from tarry.spark.pipeline.stages import choose, stages_of
    from tarry.spark.pipeline.told_plan import plan_lines

    with spark_session(
        given["master"] or "local[1]",
        is_local=False,
        conf=given["conf"],
        settings={**SHORT_LIVED, **pipeline.spark},
    ) as spark:
        assert spark is not None
        mistakes = expression_mistakes(spark, pipeline)
    topics, away = _look_at_topics(pipeline)
    mistakes += topics.mistakes if topics is not None else ()
    if mistakes:
        raise PipelineRefused(pipeline.path, mistakes)
    stages = choose(stages_of(pipeline), given["only"])
    if as_json:
        print_json(
            {
                "pipeline": pipeline.name,
                "bootstrap": pipeline.source.bootstrap,
                "checkpoint": str(pipeline.checkpoint),
                "stages": [
                    {
                        "stage": stage.name,
                        "reads": stage.reads,
                        "writes": stage.writes or [str(stage.path)],
                    }
                    for stage in stages
                ],
                "missing_topics": None
                if topics is None
                else {topic.name: topic.partition_count for topic in topics.missing},
            }
        )
        return
    for line in plan_lines(pipeline, stages, topics):
        click.echo(line)
    if away:
        complain(f"the topics were not looked at: {away}")


def _look_at_topics(pipeline: Pipeline) -> tuple[PipelineTopics | None, str]:
    """Return what is known of the topics, or why nothing is."""
    from tarry.client import ClientError
    from tarry.spark.pipeline.stages import stages_of
    from tarry.spark.pipeline.topics import admin_of, find_topics

    try:
        with closing(admin_of(pipeline, CHECK_LIMITS)) as admin:
            return find_topics(admin, pipeline, stages_of(pipeline)), ""
    except ClientError as error:
        return None, str(error)


def _run(pipeline: Pipeline, given: dict[str, Any], *, as_json: bool) -> None:
    from tarry.spark.pipeline.faults import StageFailed
    from tarry.spark.pipeline.stages import choose, stages_of

    check_pyspark_there()
    # Behind the check, which tells what is not installed.
    from tarry.spark.pipeline.driver_lock import check_free

    reach_pipeline(pipeline)
    try:
        check_free(pipeline, choose(stages_of(pipeline), given["only"]))
    except StageFailed as error:
        fail(str(error))
    stopping = threading.Event()
    with (
        _listeners(given, as_json=as_json) as listeners,
        spark_session(
            given["master"], is_local=False, conf=given["conf"], settings=pipeline.spark
        ) as spark,
    ):
        # Behind the session, which tells what is not installed.
        from tarry.spark.pipeline.run import RunOptions, run_pipeline

        assert spark is not None
        spark.sparkContext.setLogLevel("WARN" if given["spark_log"] else "OFF")
        options = RunOptions(
            once=given["once"],
            only=given["only"],
            restarts_max=given["restarts"],
            skips_lost=given["skip_lost"],
            listeners=listeners,
            tell=complain,
            stopping=stopping,
        )
        try:
            with _stopped_by_signals(stopping):
                sums = run_pipeline(spark, pipeline, options)
        except StageFailed as error:
            fail(str(error))
    if as_json:
        print_json({"pipeline": pipeline.name, "stages": sums})
        return
    # Whoever reads lines of JSON there reads nothing else.
    is_stdout_taken = given["progress_path"] == "-"
    if not sums:
        click.echo("nothing new", err=is_stdout_taken)
    for stage, one in sums.items():
        click.echo(f"{stage}: {_summed(one)}", err=is_stdout_taken)


@contextmanager
def _listeners(
    given: dict[str, Any], *, as_json: bool
) -> Iterator[tuple[Callable[[BatchProgress], None], ...]]:
    """Yield what hears of each micro-batch."""
    from tarry.spark.pipeline.progress import ProgressFile

    target = given["progress_path"]
    listeners: list[Callable[[BatchProgress], None]] = []
    if target == "-":
        listeners.append(_print_line)
    elif not as_json:
        listeners.append(_tell_person)
    with ExitStack() as held:
        if target not in (None, "-"):
            listeners.append(held.enter_context(closing(ProgressFile(Path(target)))).add)
        if given["address"] is not None:
            listeners.append(held.enter_context(_metrics(given["address"])))
        yield tuple(listeners)


@contextmanager
def _metrics(address: str) -> Iterator[Callable[[BatchProgress], None]]:
    """Serve metrics at an address while the command runs."""
    try:
        from tarry.spark.pipeline.metrics import PipelineMetrics, served
    except ImportError:
        fail('prometheus-client is not installed: pip install "tarry[spark]"')
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint="--metrics")
    metrics = PipelineMetrics()
    with served(metrics, host.strip("[]"), int(port)) as chosen:
        click.echo(f"metrics: http://{host}:{chosen}/metrics", err=True)
        yield metrics.add


def _print_line(one: BatchProgress) -> None:
    from tarry.spark.pipeline.progress import progress_line

    sys.stdout.write(progress_line(one).decode() + "\n")
    sys.stdout.flush()


def _tell_person(one: BatchProgress) -> None:
    rejected = sum(one.rejected.values())
    told = f"{one.stage} {one.batch}: {count_of(one.records, 'record')} in {one.seconds:.1f} s"
    more = [f"{rejected} rejected"] if rejected else []
    more += [f"{one.late} late"] if one.late else []
    more += [f"{count_of(len(one.lost), 'range')} left out"] if one.lost else []
    more += [f"lag {one.lag}"] if one.lag else []
    click.echo(", ".join([told, *more]), err=True)


def _summed(one: StageSums) -> str:
    rejected = [f"{count} {rule}" for rule, count in sorted(one.rejected.items())]
    parts = [count_of(one.records, "record")]
    parts += [f"{sum(one.rejected.values())} rejected ({', '.join(rejected)})"] if rejected else []
    parts += [f"{one.late} late"] if one.late else []
    parts += [count_of(one.restarts, "restart")] if one.restarts else []
    lost = [f"\n  left out: {each}" for each in one.lost[:LEFT_OUT_MAX]]
    if len(one.lost) > LEFT_OUT_MAX:
        lost.append(f"\n  and {len(one.lost) - LEFT_OUT_MAX} more, which --json has")
    return ", ".join(parts) + "".join(lost)


@contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the stages; a second one ends the process at once."""

    numbers = (signal.SIGINT, signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_DFL)
        stopping.set()

    # Spark's own handler cancels what runs.
    before = [signal.signal(one, stop) for one in numbers]
    try:
        yield
    finally:
        for one, former in zip(numbers, before, strict=True):
            signal.signal(one, former)

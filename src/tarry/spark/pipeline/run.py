"""Run of a pipeline: from its file to stages that Spark runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tarry.spark.pipeline.driver_lock import PROGRESS, bind, bind_state, locked, own_directory
from tarry.spark.pipeline.expressions import expression_mistakes
from tarry.spark.pipeline.file.mistakes import PipelineRefused
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.left_out import LeftOut, loss_path
from tarry.spark.pipeline.listener import StageListener
from tarry.spark.pipeline.progress import (
    BatchProgress,
    Progress,
    ProgressFile,
    StageSums,
    UndecodedTeller,
)
from tarry.spark.pipeline.queries import frame_of, query_name, read_decoded, start_query
from tarry.spark.pipeline.stage_runs import ArchiveRun, QueryRun, StageRun
from tarry.spark.pipeline.stages import ARCHIVE, Stage, choose, stages_of
from tarry.spark.pipeline.supervisor import Supervisor
from tarry.spark.pipeline.topics import admin_of, find_topics, make_topics
from tarry.spark.pipeline.worker_watch import watch_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("tarry.spark")

RESTARTS_MAX: Final = 5

# Of the session: the store that holds more than memory, and days that begin alike everywhere.
STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


# Of rows that Java hands to a Python process at a time: 10,000 rows, as Spark would have it, may be
# of 20 MB each.
HANDED_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(frozen=True)
class RunOptions:
    """Options of a run."""

    # True: all stages in order, each up to where its topics end now.
    once: bool = False
    # Name of the only stage that runs.
    only: str | None = None
    # Faults of a stage in a row after which it is started again.
    restarts_max: int = RESTARTS_MAX
    # True: records that are gone before they were read are told and left out, instead of a fault.
    skips_lost: bool = False
    # What hears of each micro-batch.
    listeners: tuple[Callable[[BatchProgress], None], ...] = ()
    # Sentences for people.
    tell: Callable[[str], None] = log.warning
    # Set by somebody else: the run stops.
    stopping: threading.Event = field(default_factory=threading.Event)


def run_pipeline(
    spark: SparkSession, pipeline: Pipeline, options: RunOptions | None = None
) -> dict[str, StageSums]:
    """Run a pipeline; return the sums of its stages.

    Raises PipelineRefused for mistakes in the file, StageFailed for a stage that cannot go on, and
    ClientError if the cluster is away at the start.
    """
    options = options or RunOptions()
    stages = choose(stages_of(pipeline), options.only)
    session = session_of(spark)
    mistakes = expression_mistakes(session, pipeline)
    if mistakes:
        raise PipelineRefused(pipeline.path, mistakes)
    with closing(admin_of(pipeline)) as admin:
        plan = find_topics(admin, pipeline, stages_of(pipeline))
        if plan.mistakes:
            raise PipelineRefused(pipeline.path, plan.mistakes)
        bind(pipeline, plan.cluster_id)
        make_topics(admin, plan.missing)
    with ExitStack() as held:
        held.enter_context(locked(pipeline, stages))
        bind_state(pipeline, stages)
        file = held.enter_context(closing(ProgressFile(own_directory(pipeline) / PROGRESS)))
        rejected = "" if pipeline.clean is None else pipeline.clean.rejected
        undecoded = UndecodedTeller(options.tell, rejected)
        progress = Progress((file.add, undecoded.add, *options.listeners))
        left_out = {stage.name: LeftOut(loss_path(pipeline, stage.name)) for stage in stages}
        listener = held.enter_context(_listening(session, pipeline, stages, progress, left_out))
        make = _Runs(session, pipeline, options, listener, progress, left_out)
        runs = [make.run_of(stage) for stage in stages]
        supervisor = Supervisor(
            progress,
            options.stopping,
            options.restarts_max,
            options.tell,
            watch=watch_of(session, options.tell).look,
        )
        if options.once:
            supervisor.run_once(runs)
        else:
            supervisor.run_on(runs)
        for stage, one in left_out.items():
            progress.left_out(stage, one.take())
        return progress.sums()


def session_of(spark: SparkSession) -> SparkSession:
    """Make a session of the same Spark with the settings that stages need."""
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(HANDED_BYTES_MAX))
    # As many as tasks run at a time; a checkpoint keeps its first number.
    session.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    return session


@contextmanager
def _listening(
    session: SparkSession,
    pipeline: Pipeline,
    stages: Sequence[Stage],
    progress: Progress,
    left_out: Mapping[str, LeftOut],
) -> Iterator[StageListener]:
    names = {query_name(pipeline, stage): stage.name for stage in stages}
    listener = StageListener(pipeline.name, names, progress, left_out)
    session.streams.addListener(listener)
    try:
        yield listener
    finally:
        # A Spark whose process is gone takes its listeners along.
        with suppress(Exception):
            session.streams.removeListener(listener)


@dataclass(frozen=True)
class _Runs:
    """Maker of the runs of stages."""

    session: SparkSession
    pipeline: Pipeline
    options: RunOptions
    listener: StageListener
    progress: Progress
    left_out: Mapping[str, LeftOut]

    def run_of(self, stage: Stage) -> StageRun:
        session, pipeline, skips_lost = self.session, self.pipeline, self.options.skips_lost
        if stage.kind == ARCHIVE:
            left_out = self.left_out[stage.name] if skips_lost else None
            return ArchiveRun(session, pipeline, stage, self.progress, left_out)

        def start(once: bool) -> StreamingQuery:
            decoded = read_decoded(session, pipeline, stage, skips_lost=skips_lost)
            return start_query(pipeline, stage, frame_of(pipeline, stage, decoded), once=once)

        return QueryRun(stage.name, start, self.listener)

"""Job `backfill`: windows of an aggregate out of an archive, written where they differ."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarry.base.ids import TopicPartition
from tarry.spark.archive.contents import ArchiveContents, read_contents
from tarry.spark.archive.round_plan import check_cuts, check_topics, noted_ends
from tarry.spark.backfill.closed import watermark_ms
from tarry.spark.backfill.plan import (
    AskedBackfill,
    BackfillRefused,
    FrozenBackfill,
    WindowSpan,
    archive_of,
    choose_aggregate,
    files_of,
    lacking,
    rest_of,
    share_out,
    spans_of,
)
from tarry.spark.backfill.records import RecordTask, records_frame
from tarry.spark.backfill.results import (
    WrittenResults,
    compared,
    newest_results,
    within,
    write_results,
)
from tarry.spark.backfill.state import (
    BackfillState,
    ResultCounts,
    numbers_of,
    remove_old,
    state_path,
)
from tarry.spark.durable_files import make_directories
from tarry.spark.file_locks import LockHeld, held
from tarry.spark.histories.looks import Looks, partings_of
from tarry.spark.pipeline.driver_lock import bind, own_directory
from tarry.spark.pipeline.expressions import expression_mistakes
from tarry.spark.pipeline.faults import fault_of
from tarry.spark.pipeline.file.mistakes import PipelineRefused
from tarry.spark.pipeline.file.sections import AggregateSection, Pipeline
from tarry.spark.pipeline.file.values import duration_ms
from tarry.spark.pipeline.queries import decoded_records, derived_columns
from tarry.spark.pipeline.run import session_of
from tarry.spark.pipeline.stages import stages_of
from tarry.spark.pipeline.topics import admin_of, find_topics, make_topics
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.plan import TaskLimits, plan_tasks
from tarry.spark.steps.aggregation import windows_of
from tarry.spark.steps.columns import RULE, TIME
from tarry.spark.writing.advice import stop_sentence
from tarry.spark.writing.commit import BATCH_ID, commit
from tarry.spark.writing.plan import SinkRefused, TaskOutput
from tarry.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("tarry.spark")

BACKFILLS: Final = "backfills"

# Beside the runs of what is asked.
LOCK: Final = "lock"

TASK_BYTES: Final = 64 * 1024 * 1024

# Of a topic without any event: nothing is closed.
NEVER_MS: Final = -(2**62)


@dataclass(frozen=True)
class BackfillOptions:
    """Options of a backfill.  Times are milliseconds since 1970."""

    # Name of the aggregate; None: the only one of the file.
    aggregate: str | None = None
    # Windows that have a part of this time; None: no bound.
    from_ms: int | None = None
    until_ms: int | None = None
    # Directory of the archive; None: that of the file.
    archive: Path | None = None
    # False: records that neither archive nor log have are told, not refused.
    fail_on_data_loss: bool = True

    def __post_init__(self) -> None:
        begin_ms, end_ms = self.from_ms, self.until_ms
        if begin_ms is not None and end_ms is not None and begin_ms >= end_ms:
            raise BackfillRefused("the time from which windows count is not before its end")


@dataclass
class BackfillSummary:
    """Sums of a backfill."""

    aggregate: str
    topic: str
    # Windows that end here or earlier are computed, in ms since 1970.
    closed_ms: int
    # Records that were read, and results by what became of them.
    records: int = 0
    windows: int = 0
    new: int = 0
    changed: int = 0
    # Results of sessions that became parts of others.
    removed: int = 0
    # True: an earlier start was killed, and this one went on.
    went_on: bool = False


def backfill(
    spark: SparkSession, pipeline: Pipeline, options: BackfillOptions | None = None
) -> BackfillSummary:
    """Compute windows of an aggregate again, and write what differs.

    A backfill that is killed goes on when it is started again with the same options.  Raises
    BackfillRefused or ArchiveRefused, PipelineRefused for mistakes in the file, StageFailed for a
    checkpoint of another pipeline, and ClientError if the cluster is away.
    """
    options = options or BackfillOptions()
    one = choose_aggregate(pipeline, options.aggregate)
    archive_of(pipeline, options.archive)
    session = session_of(spark)
    mistakes = expression_mistakes(session, pipeline)
    if mistakes:
        raise PipelineRefused(pipeline.path, mistakes)
    return Backfiller(session, pipeline, one, options).run()


class Backfiller:
    """Run of the job."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        one: AggregateSection,
        options: BackfillOptions,
    ) -> None:
        assert pipeline.clean is not None
        self._spark = spark
        self._pipeline = pipeline
        self._one = one
        self._options = options
        self._archive = archive_of(pipeline, options.archive)
        self._topic = pipeline.clean.topic

    def run(self) -> BackfillSummary:
        """Bring the run that was killed to its end, or a new one."""
        self._prepare()
        asked = self._asked()
        path = state_path(own_directory(self._pipeline) / BACKFILLS, asked)
        make_directories(path)
        try:
            # A run without a plan is given up, which is right only if nobody is at it.
            with held(path / LOCK):
                return self._run(asked, path)
        except LockHeld as other:
            raise BackfillRefused(
                f"process {other.owner} is at the same backfill: leave it to it, or end that one "
                "and start the command again"
            ) from None

    def _run(self, asked: AskedBackfill, path: Path) -> BackfillSummary:
        newest = max(numbers_of(path), default=0)
        state = BackfillState(path, max(1, newest))
        frozen = state.frozen()
        if frozen is not None and state.finished() is None and not state.has_records():
            self._give_up(state, frozen)
        if frozen is not None and state.finished() is not None:
            state, frozen = BackfillState(path, newest + 1), None
        went_on = frozen is not None
        if frozen is None:
            frozen = self._freeze(state, asked)
        self._write(state, frozen)
        counts = state.counts()
        if counts.written and not state.has_records():
            raise BackfillRefused(
                "the same backfill was started again meanwhile, on a file system without locks, "
                "and that start writes the results: run one at a time, and start the command again "
                "if the other one was killed"
            )
        state.finish(counts)
        remove_old(path)
        return BackfillSummary(
            self._one.name,
            self._one.topic,
            frozen.closed_ms,
            went_on=went_on,
            **{name: getattr(counts, name) for name in counts.__struct_fields__},
        )

    def _asked(self) -> AskedBackfill:
        decode = self._pipeline.decode
        assert decode is not None
        schema = None
        if decode.schema is not None:
            schema = hashlib.sha256(decode.schema.read_bytes()).hexdigest()
        return AskedBackfill(
            self._pipeline.name,
            asdict(self._one),
            {**asdict(decode), "schema": schema, "time": self._pipeline.source.time},
            self._topic,
            str(self._archive.path),
            self._options.from_ms,
            self._options.until_ms,
        )

    def _prepare(self) -> None:
        """Make the topic of the results; refuse an archive or a checkpoint of another cluster."""
        with closing(admin_of(self._pipeline)) as admin:
            plan = find_topics(admin, self._pipeline, stages_of(self._pipeline))
            if plan.mistakes:
                raise PipelineRefused(self._pipeline.path, plan.mistakes)
            bound = self._archive.bound()
            if bound.cluster_id != plan.cluster_id:
                raise BackfillRefused(
                    f"{self._archive.path} archives the cluster {bound.cluster_id}, and "
                    f"{self._pipeline.source.bootstrap} leads to the cluster {plan.cluster_id}"
                )
            if self._topic not in plan.partitions:
                raise BackfillRefused(
                    f"the topic {self._topic} does not exist: run the pipeline first, "
                    f"`tarry spark run {self._pipeline.path.name} --once`"
                )
            bind(self._pipeline, plan.cluster_id)
            make_topics(admin, [topic for topic in plan.missing if topic.name == self._one.topic])

    # --- Freeze

    def _freeze(self, state: BackfillState, asked: AskedBackfill) -> FrozenBackfill:
        # Before the ends of the logs: the stage goes on meanwhile, and what it had read when it
        # closed these windows lies below ends that are noted later.
        stage = next(one for one in stages_of(self._pipeline) if one.name == self._one.name)
        closed_ms = watermark_ms(stage.path)
        contents = read_contents(self._archive)
        with closing(LiveCluster(self._pipeline.reading())) as cluster:
            topics = cluster.topics(TopicChoice(names=(self._topic,)))
            newest = self._archive.newest()
            check_topics(newest, topics)
            places = [(self._topic, number) for number in topics[self._topic].partitions]
            starts, ends = cluster.starts(places), cluster.ends(places)
            check_cuts(newest, partings_of(Looks(cluster).look(noted_ends(newest, topics))))
        spans = spans_of(self._topic, contents, starts, ends)
        told = lacking(self._topic, spans, contents, starts, self._lost())
        if told:
            sentence = (
                f"{self._archive.path} does not hold all records of the topic, so that windows may "
                f"be computed without some of theirs: {'; '.join(told)}"
            )
            if self._options.fail_on_data_loss:
                raise BackfillRefused(
                    f"{sentence}. fail_on_data_loss=False (--skip-lost) goes on with what is there"
                )
            log.warning("%s", sentence)
        if closed_ms is None:
            closed_ms = self._newest_ms(contents, FrozenBackfill("", asked, spans, 0))
        return state.freeze(asked, spans, closed_ms)

    def _lost(self) -> Mapping[TopicPartition, int]:
        """Count the offsets that rounds of the archive came too late for."""
        lost: dict[TopicPartition, int] = {}
        for number in self._archive.numbers():
            for one in self._archive.manifest(number).ranges:
                place = one.topic, one.partition
                lost[place] = lost.get(place, 0) + one.lost
        return lost

    def _newest_ms(self, contents: ArchiveContents, frozen: FrozenBackfill) -> int:
        """Return the newest event time less `late`: where the stream would come to."""
        from pyspark.sql import functions as of

        everything = WindowSpan(None, None, 0)
        decoded = self._decoded(self._tasks(contents, frozen, everything))
        well = decoded.filter(of.col(RULE).isNull())
        (row,) = well.select(of.unix_millis(of.max(TIME)).alias("newest")).collect()
        if row.newest is None:
            return NEVER_MS
        return int(row.newest) - duration_ms(self._one.late)

    # --- Results

    def _give_up(self, state: BackfillState, frozen: FrozenBackfill) -> None:
        """End a run that wrote nothing: what it stands for is old, and others may have written
        newer results since.

        Its plan is an empty one, so a process that is still at it writes nothing either.  Where
        that has come to its plan meanwhile, it is finished.
        """
        options = WriteOptions(
            self._one.topic, True, str(state.path), None, self._pipeline.writing()
        )
        try:
            commit(options, frozen.backfill_id, BATCH_ID, [])
        except SinkRefused as error:
            what = "the run that was killed before could not be ended"
            raise BackfillRefused(stop_sentence(what, error, _anew(state))) from error
        state.finish(state.counts() if state.has_records() else ResultCounts())

    def _write(self, state: BackfillState, frozen: FrozenBackfill) -> None:
        """Bring the results into their topic, once."""
        options = WriteOptions(
            self._one.topic, True, str(state.path), None, self._pipeline.writing()
        )
        outputs: list[TaskOutput] = []
        try:
            if state.sink.read_plan(BATCH_ID) is None:
                outputs = self._computed(state, frozen, options)
            commit(options, frozen.backfill_id, BATCH_ID, outputs)
        except SinkRefused as error:
            what = "the backfill stopped while it wrote"
            raise BackfillRefused(stop_sentence(what, error, _anew(state))) from error

    def _computed(
        self, state: BackfillState, frozen: FrozenBackfill, options: WriteOptions
    ) -> list[TaskOutput]:
        """Compute the results, and note their counts; return the files of their batches."""
        asked = frozen.asked
        windows = WindowSpan(asked.from_ms, asked.until_ms, frozen.closed_ms)
        contents = read_contents(self._archive)
        while True:
            tasks = self._tasks(contents, frozen, windows)
            try:
                written = self._written(tasks, windows, options)
                break
            except Exception as error:
                newer = read_contents(self._archive)
                if newer == contents:
                    raise BackfillRefused(
                        f"the windows could not be computed: {fault_of(error).sentence}"
                    ) from error
                # Files were merged while they were read.
                contents = newer
        counts = ResultCounts(records=records_of(tasks))
        for one in written:
            counts = counts.plus(one.counts)
        state.note(counts)
        return [one.output for one in written]

    def _written(
        self, tasks: list[RecordTask], windows: WindowSpan, options: WriteOptions
    ) -> list[WrittenResults]:
        """Let workers compute results, and write those that differ to files."""
        one = self._one
        made = windows_of(
            self._decoded(tasks),
            window=one.window,
            slide=one.slide,
            session=one.session,
            late=one.late,
            by=one.by,
            values=one.values,
        )
        if one.session is not None:
            # Spark would filter events by the bounds of sessions before it has put these together.
            made = made.persist()
        old = newest_results(self._spark, one.topic, self._pipeline.reading())
        try:
            return write_results(compared(within(made, windows), one, old), options)
        finally:
            made.unpersist()

    def _decoded(self, tasks: list[RecordTask]) -> DataFrame:
        records = records_frame(self._spark, tasks, self._pipeline.reading())
        return derived_columns(self._pipeline, decoded_records(self._pipeline, records))

    def _tasks(
        self, contents: ArchiveContents, frozen: FrozenBackfill, windows: WindowSpan
    ) -> list[RecordTask]:
        """Share out what is read for some windows."""
        path = str(self._archive.path)
        files = share_out(files_of(frozen, contents, windows), TASK_BYTES)
        cores = self._spark.sparkContext.defaultParallelism
        ranges = plan_tasks(rest_of(frozen, contents), TaskLimits(cores=cores))
        newest = self._archive.newest()
        topic_id = "" if newest is None else newest.topic_ids.get(self._topic, "")
        return [
            *(RecordTask(path, self._topic, files=task) for task in files),
            *(RecordTask(path, self._topic, ranges=task, topic_id=topic_id) for task in ranges),
        ]


def _anew(state: BackfillState) -> str:
    """Return how a user begins a run anew."""
    return (
        f"remove the directory {state.path} and start the same command again, which computes all "
        "of it anew"
    )


def records_of(tasks: Iterable[RecordTask]) -> int:
    """Count the records of tasks: rows of files, and offsets of the log."""
    return sum(
        sum(file.rows for file, _ in task.files) + sum(one.size for one in task.ranges)
        for task in tasks
    )

"""Job `replay`: records of an archive to a topic, each exactly once, in rounds."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tarry.client import Admin
from tarry.client.errors import BrokerError, UnknownTopic
from tarry.client.settings import CLIENT_SETTINGS, COMMON
from tarry.client.sync.publisher import Publisher
from tarry.spark.archive.contents import ArchiveContents, read_contents
from tarry.spark.archive.directory import OWN, ArchiveDirectory
from tarry.spark.archive.manifest import OffsetSpan
from tarry.spark.archive.workers import OwnWorker, SparkWorkers, Workers
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.plan import ReadRange, TaskLimits, plan_tasks
from tarry.spark.replay.plan import (
    AskedReplay,
    FrozenReplay,
    ReplayRefused,
    ReplayRound,
    TargetTimes,
    check_partitions,
    files_of,
    next_round,
    spans_of,
    too_old,
)
from tarry.spark.replay.state import FinishedReplay, ReplayState
from tarry.spark.replay.tasks import ReplayPart, ReplayTask, write_batches
from tarry.spark.writing.advice import stop_sentence
from tarry.spark.writing.commit import commit
from tarry.spark.writing.plan import SinkRefused, TaskOutput
from tarry.spark.writing.target import other_cluster, topics_made_anew
from tarry.spark.writing.topic_limits import BEFORE_MAX, time_limit_ms
from tarry.spark.writing.write_options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tarry.spark")

REPLAYS: Final = f"{OWN}/replays"

# Offsets that a round reads at most, unless the user says otherwise.
ROUND_RECORDS_MAX: Final = 1_000_000

# Letters of each topic in the name of a state directory.
NAME_LETTERS_MAX: Final = 100


@dataclass(frozen=True)
class ReplayOptions:
    """Options of a replay.  `settings` are a producer's, under Kafka's keys.

    Times are milliseconds since 1970; a record is taken whose time is `from_ms` or later and before
    `until_ms`.  Offsets are by partition; if there are any, other partitions are left out.
    """

    settings: Mapping[str, str]
    topic: str
    to: str
    from_ms: int | None = None
    until_ms: int | None = None
    from_offsets: Mapping[int, int] = field(default_factory=dict)
    until_offsets: Mapping[int, int] = field(default_factory=dict)
    # False: keys decide the partitions, as a Java producer's would.
    keep_partitions: bool = True
    # Records a second at most.
    rate: int | None = None
    round_records_max: int = ROUND_RECORDS_MAX
    # Directory of the replay's state, which means the replay; None: one below the archive's.
    state: Path | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and self.rate < 1:
            raise ReplayRefused("a rate is one record a second at the least")
        if self.round_records_max < 1:
            raise ReplayRefused("a round has one record at the least")

    def asked(self) -> AskedReplay:
        """Return what makes this replay another one than others."""
        return AskedReplay(
            self.topic,
            self.to,
            self.keep_partitions,
            self.from_ms,
            self.until_ms,
            dict(sorted(self.from_offsets.items())),
            dict(sorted(self.until_offsets.items())),
        )

    def state_path(self, path: Path) -> Path:
        """Return the directory of the state, for an archive at `path`."""
        if self.state is not None:
            return self.state.absolute()
        digest = hashlib.sha256(msgspec.json.encode(self.asked())).hexdigest()[:12]
        # The digest tells replays apart; names of topics are cut to what a name of a file holds.
        names = f"{self.topic[:NAME_LETTERS_MAX]}-to-{self.to[:NAME_LETTERS_MAX]}"
        return path.absolute() / REPLAYS / f"{names}-{digest}"


@dataclass
class ReplaySummary:
    """Sums of a replay over all its runs."""

    rounds: int = 0
    records: int = 0
    # Offsets that are done, and all of them.
    offsets: int = 0
    offsets_total: int = 0
    is_finished: bool = False
    # True: an earlier run came to the end, and this one did nothing.
    was_finished: bool = False


def replay(
    spark: SparkSession | None, path: Path, options: ReplayOptions
) -> Iterator[ReplaySummary]:
    """Write records of the archive at `path` to a topic, in rounds; yield the sums after each.

    The replay that is started again with the same options goes on where it stopped, and one that
    is finished does nothing: its last sums say so.
    """
    with closing(LiveCluster(options.settings)) as cluster:
        choice = TopicChoice(names=(options.to,))
        target = {name: topic.partitions for name, topic in cluster.topics(choice).items()}
    workers = OwnWorker() if spark is None else SparkWorkers(spark)
    times = _target_times(options) if target else None
    yield from Replayer(workers, path, options).run(target, times)


def _target_times(options: ReplayOptions) -> TargetTimes:
    """Return before which times the target keeps and takes no records."""
    common = {
        key: text for key, text in options.settings.items() if CLIENT_SETTINGS[key].scope == COMMON
    }
    try:
        with Admin(common) as admin:
            entries = admin.describe_topic_configs(options.to)
    except BrokerError:
        # Not every user may ask.
        return TargetTimes()
    values = {entry.name: entry.value or "" for entry in entries}
    now_ms = int(time.time() * 1000)
    retention = values.get("retention.ms", "")
    deletes = retention.isdigit() and "delete" in values.get("cleanup.policy", "delete")
    behind_ms = time_limit_ms(values, BEFORE_MAX)
    return TargetTimes(
        now_ms - int(retention) if deletes else None,
        None if behind_ms is None else now_ms - behind_ms,
    )


class Replayer:
    """Run of the job; `pause` waits so many seconds."""

    def __init__(
        self,
        workers: Workers,
        path: Path,
        options: ReplayOptions,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers = workers
        self._archive = ArchiveDirectory(path)
        self._options = options
        self._state = ReplayState(options.state_path(path))
        self._pause = pause
        self._clock = clock

    def run(
        self, target: Mapping[str, tuple[int, ...]], times: TargetTimes | None = None
    ) -> Iterator[ReplaySummary]:
        """Take rounds up to the end.

        `target` has the partitions of the topic, if it is there; `times` says how old its records
        may be.
        """
        asked = self._options.asked()
        contents = read_contents(self._archive)
        frozen = self._state.frozen()
        if frozen is None:
            spans = spans_of(asked, contents)
            check_partitions(asked, spans, target)
            sentence = too_old(asked, spans, contents, times or TargetTimes())
            if sentence is not None:
                log.warning("%s", sentence)
            frozen = self._state.freeze(asked, spans)
        self._state.check(frozen, asked)
        self._check_target(frozen)
        finished = self._state.finished()
        if finished is not None:
            yield _summary(frozen, None, finished, was_finished=True)
            return
        yield from self._rounds(frozen, contents)

    def _check_target(self, frozen: FrozenReplay) -> None:
        """Refuse to go on, or to be done, where the rounds before did not write to."""
        stored = self._state.sink.read_newest()
        if stored is None:
            return
        another = self._anew()
        with Publisher(self._write_options(frozen).client_settings) as publisher:
            cluster_id = other_cluster(publisher, stored.plan)
            if cluster_id is not None:
                raise ReplayRefused(
                    f"this was begun as a replay to cluster {stored.plan.cluster_id}, and the "
                    f"servers lead to cluster {cluster_id}: give those of the former, or {another}"
                )
            try:
                made_anew = topics_made_anew(publisher, stored.plan, stored.plan.topic_ids)
            except UnknownTopic as error:
                raise ReplayRefused(
                    f"{error}, and this replay has written to it. Try again when brokers know it; "
                    f"if it was deleted, {another}"
                ) from error
        if made_anew:
            raise ReplayRefused(
                f"the topic {made_anew[0]} was deleted and made anew since this replay wrote to "
                f"it, so what it wrote is gone: {another}"
            )

    def _anew(self) -> str:
        """Return how a user replays all of it again."""
        return (
            "begin another replay, of all of it, with a state directory of its own (--state DIR, "
            f"in Python state=); that of this one is {self._state.path}"
        )

    def _stopped(
        self, frozen: FrozenReplay, current: ReplayRound, error: SinkRefused
    ) -> ReplayRefused:
        """Make the error of a replay that stopped in a round.

        All of it, into the same topic, would write the rounds before a second time, unless they are
        gone with it.
        """
        what = f"the replay stopped in round {current.number + 1}"
        if error.is_target_gone:
            return ReplayRefused(stop_sentence(what, error, self._anew()))
        asked, ends = frozen.asked, {span.partition: span.end for span in frozen.spans}
        begins = ",".join(f"{one.partition}={one.first}" for one in current.spans)
        until = ",".join(f"{one.partition}={ends[one.partition]}" for one in current.spans)
        ways = "of all of it into a new topic"
        if asked.from_ms is None and asked.until_ms is None:
            ways = f"of the rest (--from {begins} --until {until}) or {ways}"
        rest = (
            f"begin another replay, {ways}, with a state directory of its own (--state DIR, in "
            f"Python state=; that of this one is {self._state.path})"
        )
        return ReplayRefused(
            f"{stop_sentence(what, error, rest)}. The {current.records_before} records of the "
            f"rounds before are in {asked.to}; of this round, from {begins} on, some may be"
        )

    def _write_options(self, frozen: FrozenReplay) -> WriteOptions:
        return WriteOptions(
            frozen.asked.to, True, str(self._state.path), None, dict(self._options.settings)
        )

    def _rounds(self, frozen: FrozenReplay, contents: ArchiveContents) -> Iterator[ReplaySummary]:
        state, options = self._state, self._options
        size = options.round_records_max
        if options.rate is not None:
            # A round is about a second's records.
            size = min(size, options.rate)
        begun, sent = self._clock(), 0
        current = state.newest_round()
        while True:
            if current is not None:
                self._write(frozen, current, contents)
                records = state.records_of(current.number)
                sent += records
                done = FinishedReplay(current.number + 1, current.records_before + records)
                following = next_round(frozen, current, done.records, size)
                if following is None:
                    state.finish(done)
                    yield _summary(frozen, current, done, is_finished=True)
                    return
                yield _summary(frozen, current, done)
            else:
                following = next_round(frozen, None, 0, size)
                assert following is not None
            if options.rate is not None:
                self._pause(max(0.0, sent / options.rate - (self._clock() - begun)))
            current = state.write_round(following)

    def _write(self, frozen: FrozenReplay, current: ReplayRound, contents: ArchiveContents) -> None:
        """Bring one round into the topic, once."""
        state = self._state
        options = self._write_options(frozen)
        try:
            outputs: list[TaskOutput] = []
            if state.sink.read_plan(current.number) is None:
                try:
                    outputs = self._read(frozen, current, contents, options)
                except Exception:
                    newer = read_contents(self._archive)
                    if newer == contents:
                        raise
                    # Files were merged while they were read.
                    outputs = self._read(frozen, current, newer, options)
            commit(options, frozen.replay_id, current.number, outputs)
        except SinkRefused as error:
            raise self._stopped(frozen, current, error) from error

    def _read(
        self,
        frozen: FrozenReplay,
        current: ReplayRound,
        contents: ArchiveContents,
        options: WriteOptions,
    ) -> list[TaskOutput]:
        """Let workers write the batches of a round, in the order of the tasks."""
        asked = frozen.asked
        ranges = [
            ReadRange(asked.topic, one.partition, one.first, one.end) for one in current.spans
        ]
        tasks = [
            ReplayTask(
                str(self._archive.path),
                asked,
                options,
                number,
                [
                    ReplayPart(
                        one,
                        files_of(asked, contents, OffsetSpan(one.partition, one.first, one.end)),
                    )
                    for one in task
                ],
            )
            for number, task in enumerate(
                plan_tasks(ranges, TaskLimits(cores=self._workers.count()))
            )
        ]
        told = self._workers.each(
            lambda number: msgspec.json.encode(write_batches(tasks[number])), len(tasks)
        )
        return [msgspec.json.decode(one, type=TaskOutput) for one in told]


def _summary(
    frozen: FrozenReplay,
    current: ReplayRound | None,
    done: FinishedReplay,
    *,
    is_finished: bool = False,
    was_finished: bool = False,
) -> ReplaySummary:
    total = sum(span.end - span.first for span in frozen.spans)
    left = 0
    if current is not None:
        left = sum(span.end - current.positions[span.partition] for span in frozen.spans)
    return ReplaySummary(
        done.rounds, done.records, total - left, total, is_finished or was_finished, was_finished
    )

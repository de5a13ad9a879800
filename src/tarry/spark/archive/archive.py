"""Job `archive`: topics to Parquet files, in rounds that count as a whole."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarry.base.ids import TopicPartition
from tarry.spark.archive.delta import load_deltalake
from tarry.spark.archive.directory import DELTA, PARQUET, TABLES, ArchiveDirectory
from tarry.spark.archive.manifest import ArchiveRefused, Manifest, make_manifest
from tarry.spark.archive.parquet_files import SLOT_MS, ArchiveTask
from tarry.spark.archive.round_plan import (
    check_cuts,
    check_topics,
    lost_offsets,
    next_ranges,
    noted_ends,
    passed_by,
    within_limit,
)
from tarry.spark.archive.workers import OwnWorker, SparkWorkers, Workers, archive_files
from tarry.spark.histories.lines import Line
from tarry.spark.histories.looks import Looks, partings_of
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster
from tarry.spark.reading.loss import LostRange, raise_or_tell
from tarry.spark.reading.plan import ReadRange, TaskLimits, plan_tasks
from tarry.spark.reading.resolve import find_chosen, places_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tarry.spark")

# What a user of the job can do about records that are gone.
GO_ON: Final = (
    "Archive more often than that; fail_on_data_loss=False (--skip-lost) goes on with what is there"
)

COMPRESSIONS: Final = ("zstd", "snappy", "gzip", "lz4", "none")
# What a round reads at most unless the user says otherwise.
ROUND_RECORDS_MAX: Final = 50_000_000


@dataclass(frozen=True)
class ArchiveOptions:
    """Options of an archive.  `settings` are a consumer's, under Kafka's keys."""

    settings: Mapping[str, str]
    # hour, day or none: how files are laid out by the time of their records.
    by: str = "hour"
    compression: str = "zstd"
    # parquet: plain files; delta: a Delta table over them.
    table: str = PARQUET
    # Records of one round at most.
    round_records_max: int = ROUND_RECORDS_MAX
    # False: records that the log has lost before they were archived are counted, not refused.
    fail_on_data_loss: bool = True
    # What gets a line for each range of those; "": nothing.
    loss_file: str = ""

    def reading(self) -> dict[str, str]:
        """Return the settings of what reads: records of transactions that are open wait."""
        return {"isolation.level": "read_committed", **self.settings}

    def __post_init__(self) -> None:
        if self.by not in SLOT_MS:
            raise ArchiveRefused(f"by={self.by!r} is none of {', '.join(SLOT_MS)}")
        if self.table not in TABLES:
            raise ArchiveRefused(f"table={self.table!r} is none of {', '.join(TABLES)}")
        if self.table == DELTA:
            # Before anything is written.
            load_deltalake()
        if self.compression not in COMPRESSIONS:
            raise ArchiveRefused(
                f"compression={self.compression!r} is none of {', '.join(COMPRESSIONS)}"
            )
        if self.round_records_max < 1:
            raise ArchiveRefused("a round has one record at the least")


@dataclass
class ArchiveSummary:
    """Sums of what an archive has taken in."""

    rounds: int = 0
    records: int = 0
    files: int = 0
    bytes: int = 0
    lost: int = 0

    def add(self, manifest: Manifest) -> None:
        """Count a round."""
        self.rounds += 1
        self.records += sum(file.rows for file in manifest.files)
        self.files += len(manifest.files)
        self.bytes += sum(file.bytes for file in manifest.files)
        self.lost += sum(one.lost for one in manifest.ranges)


def archive(
    spark: SparkSession | None, choice: TopicChoice, path: Path, options: ArchiveOptions
) -> Iterator[ArchiveSummary]:
    """Archive what the topics hold now, in rounds; yield the sum after each.

    Spark's workers read and write; without Spark this process does.

    A run that is killed goes on where its last round ended, and leaves nothing that readers see.
    Of two runs on one archive each round is that of one of them.
    """
    with closing(LiveCluster(options.reading())) as cluster:
        workers = OwnWorker() if spark is None else SparkWorkers(spark)
        yield from Archiver(workers, cluster, ArchiveDirectory(path), options).run(choice)


class Archiver:
    """Run of the job, in a directory."""

    def __init__(
        self,
        workers: Workers,
        cluster: LiveCluster,
        directory: ArchiveDirectory,
        options: ArchiveOptions,
    ) -> None:
        self._workers = workers
        self._cluster = cluster
        self._directory = directory
        self._options = options
        self._topic_ids: dict[str, str] = {}
        self._looks = Looks(cluster)

    def run(self, choice: TopicChoice) -> Iterator[ArchiveSummary]:
        """Take rounds up to the ends that the topics have at first."""
        cluster = self._cluster
        self._directory.bind(cluster.cluster_id(), self._options.by, self._options.table)
        topics = find_chosen(cluster, choice)
        self._directory.check_shown(topics)
        self._topic_ids = {name: topic.topic_id for name, topic in topics.items()}
        places = places_of(topics)
        targets = cluster.ends(places)
        summary = ArchiveSummary()
        while True:
            newest = self._directory.newest()
            check_topics(newest, topics)
            noted = noted_ends(newest, topics)
            seen = self._looks.look(noted) if noted else {}
            check_cuts(newest, partings_of(seen))
            starts = cluster.starts(places)
            self._check_lost(lost_offsets(newest, starts))
            passed = passed_by(newest, targets)
            if passed:
                # Another run, which began later, has archived more: only this run's ends are old.
                targets.update(cluster.ends(passed))
            ranges = next_ranges(newest, starts, targets)
            if not ranges:
                return
            ranges = within_limit(ranges, self._options.round_records_max)
            reached = {place: one.offset for place, one in noted.items()}
            reached.update({(one.topic, one.partition): one.end for one in ranges})
            # Past the end that was looked at, where a log's start may be by now, another leader may
            # have written: that place has no line that is known.
            known = {place: at for place, at in reached.items() if at <= seen[place].end.offset}
            lines = self._looks.lines_at(seen, known)
            manifest = self._round(newest, ranges, starts, lines)
            if manifest is not None:
                summary.add(manifest)
                yield summary

    def _check_lost(self, lost: Sequence[ReadRange]) -> None:
        told = [
            LostRange(one.topic, one.partition, one.first, one.end, f"the log starts at {one.end}")
            for one in lost
        ]
        options = self._options
        raise_or_tell(
            told, options.fail_on_data_loss, GO_ON, "not archived", file=options.loss_file
        )

    def _round(
        self,
        newest: Manifest | None,
        ranges: list[ReadRange],
        starts: Mapping[TopicPartition, int],
        lines: Mapping[TopicPartition, Line],
    ) -> Manifest | None:
        """Read and write one round; None if another run has written it."""
        directory, options = self._directory, self._options
        run = directory.new_run()
        try:
            task = ArchiveTask(
                options.reading(),
                str(directory.path),
                run,
                options.by,
                options.compression,
                self._topic_ids,
                _newest_epochs(ranges, lines),
            )
            tasks = plan_tasks(ranges, TaskLimits(cores=self._workers.count()))
            files = archive_files(self._workers, task, tasks)
            now_ms = int(time.time() * 1000)
            manifest = make_manifest(
                newest, self._topic_ids, ranges, files, starts, now_ms, lines=lines
            )
            directory.check_staged(manifest)
            if not directory.commit(manifest):
                log.warning("round %d was written by another run", manifest.number)
                return None
            directory.publish(manifest)
            return manifest
        finally:
            directory.drop(run)


def _newest_epochs(
    ranges: Sequence[ReadRange], lines: Mapping[TopicPartition, Line]
) -> dict[TopicPartition, int]:
    """Return the leader epochs of the last records of these ranges, as far as they are known."""
    found: dict[TopicPartition, int] = {}
    for one in ranges:
        line = lines.get((one.topic, one.partition))
        if line:
            found[one.topic, one.partition] = line[-1][0]
    return found

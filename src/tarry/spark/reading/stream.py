"""Stream: what `spark.readStream` reads, micro-batch by micro-batch.

Spark keeps the offsets; the reader finds how far the next micro-batch may go.  `latestOffset` is
called with the end of what was processed, also after the last micro-batch: so it is there that a
group's offsets are committed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tarry.base.ids import TopicPartition
from tarry.client import ClientError
from tarry.spark.histories.looks import Looks, SeenLog, partings_of
from tarry.spark.options import OptionRefused
from tarry.spark.reading.advance import (
    advance,
    losses_of_cuts,
    losses_of_ends,
    losses_of_ranges,
    losses_of_topics,
    noted_places,
    ranges_between,
    why_gone,
)
from tarry.spark.reading.batch import task_limits
from tarry.spark.reading.cluster import FoundTopic, LiveCluster
from tarry.spark.reading.loss import LostRange, raise_or_tell, within_cuts, within_logs
from tarry.spark.reading.offsets import QueryOffsets
from tarry.spark.reading.plan import ReadRange, plan_tasks
from tarry.spark.reading.read_options import ReadOptions
from tarry.spark.reading.resolve import (
    find_chosen,
    find_topics,
    places_of,
    resolve_start,
    what_is_missing,
)
from tarry.spark.reading.tasks import TaskPartition, TaskReader

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("tarry.spark")

# A group's offsets are for people who look at lag: a query does not wait longer for them.
COMMIT_SECONDS_MAX: Final = 5

Json = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class FoundLogs:
    """Logs as `latestOffset` found them: topics, ends, and what leaders told of their epochs."""

    topics: Mapping[str, FoundTopic]
    ends: Mapping[TopicPartition, int]
    seen: Mapping[TopicPartition, SeenLog]
    # Where logs part from what was read of them.
    partings: Mapping[TopicPartition, int] = field(default_factory=dict)
    has_losses: bool = False
    # First records of logs, where a query goes on without what is lost before them.
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)

    def advance(self, begun: QueryOffsets, limit: int | None) -> QueryOffsets:
        """Return where a micro-batch ends that begins there."""
        return advance(begun, self.topics, self.ends, limit, self.partings, self.starts)

    def count_between(self, begun: QueryOffsets, reached: QueryOffsets) -> int:
        """Count what a micro-batch reads, without what is known to be gone."""
        count = 0
        for one in ranges_between(begun, reached):
            start = self.starts.get((one.topic, one.partition), 0)
            count += max(0, one.end - max(one.first, start))
        return count


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of one stream."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.tasks = TaskReader(options)
        self._cluster = LiveCluster(options.settings)
        self._is_available_now = False
        self._looks = Looks(self._cluster)
        # Under AvailableNow: what is read up to.
        self._targets: FoundLogs | None = None
        self._latest: QueryOffsets | None = None
        self._committed: QueryOffsets | None = None
        self._is_commit_failing = False
        self._triggered_s: float | None = None
        # What is chosen and not there was looked for; the sentence that told it.
        self._is_choice_checked = False
        self._told_missing = ""

    # --- Offsets

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        topics = find_chosen(self._cluster, self.options.choice)
        places = places_of(topics)
        offsets = QueryOffsets()
        if places:
            found = resolve_start(self.options, places, self._cluster)
            starts, ends = self._cluster.starts(places), self._cluster.ends(places)
            wanted = [ReadRange(*place, offset, offset) for place, offset in found.items()]
            self._check_starts(wanted, starts, ends)
            for place in places:
                offset = min(max(found[place], starts[place]), ends[place])
                offsets.set(place, offset, topics[place[0]].topic_id)
            seen = self._looks.look(noted_places(offsets, topics))
            offsets.note(self._looks.lines_at(seen, offsets.bare_places()))
        return offsets.to_json()

    def _check_starts(
        self,
        wanted: list[ReadRange],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        lost: list[LostRange] = []
        for one in wanted:
            start, end = starts[one.topic, one.partition], ends[one.topic, one.partition]
            if not start <= one.first <= end:
                reason = f"the log has the offsets {start} to {end}"
                lost.append(LostRange(one.topic, one.partition, one.first, None, reason))
        self._tell_lost(lost)

    def _tell_lost(self, lost: list[LostRange]) -> None:
        raise_or_tell(lost, self.options.fail_on_data_loss, file=self.options.loss_file)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what the options say of a micro-batch's size."""
        if self.options.trigger_offsets_max is not None:
            return ReadMaxRows(self.options.trigger_offsets_max)
        if self.options.trigger_offsets_min is not None:
            return ReadMinRows(self.options.trigger_offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Note that the query ends where the logs end now.

        Their ends are fetched by the first `latestOffset`: before it Spark may repeat a micro-batch
        of an earlier run, which is behind them.
        """
        self._is_available_now = True
        self._targets = None

    def latestOffset(self, start: Json, limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends; `start` if it is to wait."""
        begun = QueryOffsets.from_json(start)
        self._commit_group(begun)
        found = self._found(begun)
        # All there is; what has not begun lies within the limit.
        latest = found.advance(begun, None)
        self._latest = latest
        is_limited = not isinstance(limit, ReadAllAvailable)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if is_limited and self._is_gone_to_count(found.count_between(begun, latest), most):
            found = replace(found, starts=self._starts_of(found))
        if is_limited and not found.has_losses and self._is_to_wait(found, begun, latest):
            return begun.to_json()
        reached = latest if most is None else found.advance(begun, most)
        if reached.is_at(begun):
            # As Spark has it: what is known of the logs now is no reason for a micro-batch.
            return begun.to_json()
        self._triggered_s = time.monotonic()
        reached.note(self._looks.lines_at(found.seen, reached.bare_places()))
        return reached.to_json()

    def _found(self, begun: QueryOffsets) -> FoundLogs:
        """Find topics, the ends of their logs and where these part from what was read; raise what
        is lost."""
        if self._is_available_now and self._targets is not None:
            return self._targets
        topics = self._topics_of(begun, is_all_wanted=not self._is_choice_checked)
        self._check_missing(begun, topics)
        noted = noted_places(begun, topics)
        seen = self._looks.look(noted) if noted else {}
        ends = {place: one.end.offset for place, one in seen.items()}
        partings = partings_of(seen)
        whole = {place: end for place, end in ends.items() if place not in partings}
        lost = losses_of_topics(begun, topics, self.options.choice)
        lost += losses_of_cuts(begun, partings)
        lost += losses_of_ends(begun, topics, whole)
        self._tell_lost(lost)
        if self._is_available_now:
            # The first micro-batch brings the query to where the logs part.
            self._targets = FoundLogs(topics, ends, seen)
        return FoundLogs(topics, ends, seen, partings, has_losses=bool(lost))

    def _check_missing(self, begun: QueryOffsets, topics: Mapping[str, FoundTopic]) -> None:
        """Refuse what is chosen and neither there nor begun when a query starts; tell it once where
        going on without what is gone is allowed, or while the query runs."""
        missing = what_is_missing(self.options.choice, topics, dict(begun.places()))
        if missing and self.options.fail_on_data_loss and not self._is_choice_checked:
            raise OptionRefused(missing)
        self._is_choice_checked = True
        if missing and missing != self._told_missing:
            log.warning("%s. The query goes on, and reads it as soon as it is there", missing)
        self._told_missing = missing

    def _topics_of(
        self, offsets: QueryOffsets, *, is_all_wanted: bool = False
    ) -> dict[str, FoundTopic]:
        """Find the topics; ask again before a place that has offsets, or any that is chosen, counts
        as gone: a broker may know an older list of partitions, or the topic of before."""
        choice = self.options.choice

        def is_one_gone(topics: dict[str, FoundTopic]) -> bool:
            gone = losses_of_topics(offsets, topics)
            return any(choice.takes(one.topic, one.partition) for one in gone) or (
                is_all_wanted and bool(what_is_missing(choice, topics))
            )

        return find_topics(self._cluster, choice, is_one_gone)

    def _is_gone_to_count(self, count: int, most: int | None) -> bool:
        """Return true if records that are gone would take of a limit among so many offsets."""
        least = self.options.trigger_offsets_min
        if self.options.fail_on_data_loss:
            return False
        return (most is not None and count > most) or (least is not None and count >= least)

    def _starts_of(self, found: FoundLogs) -> dict[TopicPartition, int]:
        """Find the first records of logs, where they are the ones that were found before."""
        topics = found.topics
        if found is self._targets:
            # The topics were found when the query began to end, and may be gone by now.
            topics = self._cluster.topics(self.options.choice)
        there = [
            place
            for place in found.ends
            if not why_gone(*place, found.topics[place[0]].topic_id, topics)
        ]
        return self._cluster.starts(there) if there else {}

    def _is_to_wait(self, found: FoundLogs, begun: QueryOffsets, latest: QueryOffsets) -> bool:
        """Return true if there are fewer records than `minOffsetsPerTrigger`, not for too long."""
        least = self.options.trigger_offsets_min
        if least is None or self._is_available_now or self._triggered_s is None:
            return False
        if found.count_between(begun, latest) >= least:
            return False
        return time.monotonic() < self._triggered_s + self.options.trigger_delay_ms_max / 1_000

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return where the logs ended when they were last asked."""
        return None if self._latest is None else self._latest.to_json()

    # --- Reading

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Plan the tasks of a micro-batch."""
        begun, reached = QueryOffsets.from_json(start), QueryOffsets.from_json(end)
        ranges = ranges_between(begun, reached)
        if not ranges:
            return []
        topics = self._topics_of(reached)
        lost = losses_of_ranges(ranges, reached, topics, self.options.choice)
        gone = dict.fromkeys((one.topic, one.partition) for one in lost)
        there = [one for one in ranges if (one.topic, one.partition) not in gone]
        places = [(one.topic, one.partition) for one in there]
        noted = noted_places(reached, topics)
        seen = self._looks.look({place: noted[place] for place in places})
        ends = {place: one.end.offset for place, one in seen.items()}
        there, cut = within_cuts(there, partings_of(seen))
        readable, missing = within_logs(there, self._cluster.starts(places), ends)
        self._tell_lost([*lost, *cut, *missing])
        tasks = plan_tasks(readable, task_limits(self.options))
        ids = {name: topic.topic_id for name, topic in topics.items()}
        epochs = {place: one.line[-1][0] for place, one in noted.items() if one.line}
        return [TaskPartition(task, ids, epochs) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return self.tasks.read(partition)

    # --- The group

    def commit(self, end: Json) -> None:
        """Hear that Spark will not ask again for what lies before `end`."""
        self._commit_group(QueryOffsets.from_json(end))

    def _commit_group(self, offsets: QueryOffsets) -> None:
        """Commit to the group that shows how far the query is, if one is named."""
        group_id = self.options.group_id
        if not group_id or offsets == self._committed:
            return
        try:
            self._cluster.commit(group_id, dict(offsets.places()), COMMIT_SECONDS_MAX)
        except ClientError as error:
            if not self._is_commit_failing:
                log.warning("group %s was not told how far the query is: %s", group_id, error)
            self._is_commit_failing = True
            return
        self._is_commit_failing = False
        self._committed = offsets

    def stop(self) -> None:
        """Close the connections."""
        self._cluster.close()

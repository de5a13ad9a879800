"""Reading: the values of `__tarry_events`, from a broker or from an archive of the topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.broker.events.kinds import Event
from tarry.client.arrow import scan
from tarry.cluster.state.topic_names import EVENTS_TOPIC
from tarry.spark.archive.contents import read_contents
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchiveRefused
from tarry.spark.archive.ordered_rows import ordered_rows
from tarry.spark.events.decoding import Tally, TimeSpan, decode_events
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import LiveCluster

# No transactions are in this topic, and its end is what a consumer sees.
COLUMNS: Final = ("value",)


class EventsMissing(ValueError):
    """Absence of an event log where it was looked for."""


@dataclass(frozen=True)
class EventSource:
    """Source of events: a broker, by a consumer's settings under Kafka's keys, or the path of an
    archive that has the topic.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    archive: Path | None = None
    span: TimeSpan = field(default_factory=TimeSpan)

    def events(self, tally: Tally) -> Iterator[Event]:
        """Yield what is told now; raises EventsMissing where no event log is."""
        values = (
            self._of_broker()
            if self.archive is None
            else archived_values(self.archive, EVENTS_TOPIC)
        )
        yield from decode_events(values, self.span, tally)

    def _of_broker(self) -> Iterator[bytes | None]:
        ranges = self._ranges()
        if not ranges:
            return
        for batch in scan(ranges, self.settings, columns=COLUMNS):
            yield from batch.column("value").to_pylist()

    def _ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        with closing(LiveCluster(self.settings)) as cluster:
            topics = cluster.topics(TopicChoice(names=(EVENTS_TOPIC,)))
            if EVENTS_TOPIC not in topics:
                raise EventsMissing(
                    f"the cluster has no topic {EVENTS_TOPIC}: start Tarry with "
                    "events.enable=true, and wait for the first interval of events.interval.ms"
                )
            places = [(EVENTS_TOPIC, one) for one in topics[EVENTS_TOPIC].partitions]
            starts, ends = cluster.starts(places), cluster.ends(places)
            if self.span.since_ms is not None:
                since = dict.fromkeys(places, self.span.since_ms)
                for place, offset in cluster.at_times(since).items():
                    starts[place] = ends[place] if offset < 0 else max(offset, starts[place])
            return {
                place: (starts[place], ends[place])
                for place in places
                if starts[place] < ends[place]
            }


def archived_values(path: Path, topic: str) -> Iterator[bytes | None]:
    """Yield the values of an archived topic; raises EventsMissing where the archive has none."""
    if not (path / f"topic={topic}").is_dir():
        raise EventsMissing(
            f"{path} has no archive of {topic}: tarry spark archive {topic} --to {path} makes one"
        )
    # Manifests say which files have the rows: in a Delta table replaced ones stay for a while.
    directory = ArchiveDirectory(path)
    contents = read_contents(directory)
    for place in [place for place in sorted(contents.files) if place[0] == topic]:
        first, end = contents.ranges[place]
        is_read = False
        while not is_read:
            try:
                # In bounded memory: an archive may hold years.
                for rows in ordered_rows(path, contents.files[place], first, end):
                    first = rows.column("offset")[rows.num_rows - 1].as_py() + 1
                    yield from rows.column("value").to_pylist()
                is_read = True
            except (ArchiveRefused, OSError):
                newer = read_contents(directory)
                if newer == contents:
                    raise
                # Files were merged while they were read.
                contents = newer

"""Plan of a backfill: what it stands for, and which windows and files belong to it, as pure
functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tarry.base.errors import TarryError
from tarry.base.ids import TopicPartition
from tarry.base.spelling import Spelling
from tarry.spark.archive.contents import ArchiveContents, times_of
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchivedFile, OffsetSpan
from tarry.spark.pipeline.file.sections import AggregateSection, Pipeline
from tarry.spark.pipeline.file.values import duration_ms
from tarry.spark.reading.plan import ReadRange

VERSION: Final = 1

# An event may be this far ahead of its record; `steps.decode` rejects what is further.
AHEAD_MS: Final = 24 * 3_600_000


class BackfillRefused(TarryError):
    """Backfill that cannot begin, or cannot go on."""


class AskedBackfill(msgspec.Struct, frozen=True):
    """Question that a user asked: which results, of which windows, out of which archive."""

    pipeline: str
    aggregate: dict[str, object]
    # How values are decoded, the schema by its SHA-256.
    decode: dict[str, object]
    topic: str
    archive: str
    # Windows that have a part of this time, in ms since 1970; None: no bound.
    from_ms: int | None = None
    until_ms: int | None = None


class FrozenBackfill(msgspec.Struct, frozen=True):
    """Content of `backfill.json`: what a run stands for, from its start on."""

    backfill_id: str
    asked: AskedBackfill
    spans: list[OffsetSpan]
    # The stream is done with windows that end here or earlier, in ms since 1970.
    closed_ms: int
    version: int = VERSION


class WindowSpan(msgspec.Struct, frozen=True):
    """Windows that are computed: those that share time with this span and end by `closed_ms`."""

    from_ms: int | None
    until_ms: int | None
    closed_ms: int


def choose_aggregate(pipeline: Pipeline, name: str | None) -> AggregateSection:
    """Return the aggregate of a name, or the only one.  Raises BackfillRefused."""
    names = [one.name for one in pipeline.aggregates]
    if not names:
        raise BackfillRefused(
            f"{pipeline.path} has no [[aggregate]], so there are no windows to compute again"
        )
    if name is None and len(names) > 1:
        raise BackfillRefused(f"name one of the aggregates of {pipeline.path}: {', '.join(names)}")
    for one in pipeline.aggregates:
        if name in (None, one.name):
            return one
    near = Spelling(names).near(name or "")
    hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
    raise BackfillRefused(f"{pipeline.path} has no aggregate {name!r:.60}; {hint}")


def archive_of(pipeline: Pipeline, given: Path | None) -> ArchiveDirectory:
    """Return the archive that is given, or that of the file.  Raises BackfillRefused for none, and
    ArchiveRefused for a directory that is none."""
    path = given or (pipeline.archive.path if pipeline.archive is not None else None)
    if path is None:
        raise BackfillRefused(
            f"{pipeline.path} has no [archive]: name the directory of one that has the topic which "
            "the aggregate reads, as archive (--archive)"
        )
    directory = ArchiveDirectory(path.absolute())
    directory.bound()
    return directory


def spans_of(
    topic: str,
    contents: ArchiveContents,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[OffsetSpan]:
    """Return the offsets that are to be read: those of the archive, and what the log has behind.

    `starts` and `ends` are the log's.
    """
    if topic not in contents.topics():
        topics = ", ".join(contents.topics()) or "none"
        raise BackfillRefused(
            f"the archive has no topic {topic!r}, which the aggregate reads; it has {topics}. Name "
            "it among the topics of [archive], or archive it by `tarry spark archive`"
        )
    spans: list[OffsetSpan] = []
    for place in sorted(ends):
        first, archived_end = contents.ranges.get(place, (starts[place], starts[place]))
        if archived_end > ends[place]:
            raise BackfillRefused(
                f"the archive holds {topic} [{place[1]}] up to offset {archived_end}, and the log "
                f"ends at {ends[place]}: it was truncated, or this is another cluster"
            )
        spans.append(OffsetSpan(place[1], first, ends[place]))
    return spans


def lacking(
    topic: str,
    spans: Iterable[OffsetSpan],
    contents: ArchiveContents,
    starts: Mapping[TopicPartition, int],
    lost: Mapping[TopicPartition, int],
) -> list[str]:
    """Return what records neither archive nor log have, in words; `lost` counts what rounds of the
    archive came too late for."""
    told: list[str] = []
    for span in spans:
        place = topic, span.partition
        where = f"{topic} [{span.partition}]"
        first, archived_end = contents.ranges.get(place, (span.first, span.first))
        if first > 0:
            told.append(f"{where} begins at offset {first}")
        if lost.get(place, 0):
            told.append(f"{where} lacks {lost[place]} offsets that were lost before")
        if archived_end < starts[place] and archived_end < span.end:
            told.append(f"{where} lacks offsets {archived_end} to {starts[place]}")
    return told


def files_of(
    frozen: FrozenBackfill, contents: ArchiveContents, windows: WindowSpan
) -> list[tuple[ArchivedFile, OffsetSpan]]:
    """Return the files that may have events of these windows, each with the offsets that count."""
    begin_ms, end_ms = record_times(frozen.asked, windows)
    found: list[tuple[ArchivedFile, OffsetSpan]] = []
    for span in frozen.spans:
        for file in contents.files.get((frozen.asked.topic, span.partition), []):
            if file.first >= span.end or file.end <= span.first:
                continue
            times = times_of(file, contents.by)
            if times is not None:
                is_before = begin_ms is not None and times[1] <= begin_ms
                is_behind = end_ms is not None and times[0] >= end_ms
                if is_before or is_behind:
                    continue
            found.append((file, span))
    return found


def record_times(asked: AskedBackfill, windows: WindowSpan) -> tuple[int | None, int | None]:
    """Return from when to before when the records of these windows' events may lie; None: ever.

    An event that is late has a record of any later time.  A session may begin long before the part
    of it that is asked for.
    """
    length = asked.aggregate["window"]
    if length is None:
        return None, None
    assert isinstance(length, str)
    length_ms = duration_ms(length)
    has_own_time = asked.decode["time"] is not None
    begin_ms = None
    if windows.from_ms is not None:
        begin_ms = windows.from_ms - length_ms - (AHEAD_MS if has_own_time else 0)
    if has_own_time:
        return begin_ms, None
    end_ms = windows.closed_ms
    if windows.until_ms is not None:
        end_ms = min(end_ms, windows.until_ms + length_ms)
    return begin_ms, end_ms


def rest_of(frozen: FrozenBackfill, contents: ArchiveContents) -> list[ReadRange]:
    """Return the offsets that the archive does not hold."""
    topic = frozen.asked.topic
    ranges: list[ReadRange] = []
    for span in frozen.spans:
        _, end = contents.ranges.get((topic, span.partition), (span.first, span.first))
        if end < span.end:
            ranges.append(ReadRange(topic, span.partition, end, span.end))
    return ranges


def share_out(
    files: Sequence[tuple[ArchivedFile, OffsetSpan]], bytes_max: int
) -> list[list[tuple[ArchivedFile, OffsetSpan]]]:
    """Share files out among tasks, of about so many bytes each."""
    tasks: list[list[tuple[ArchivedFile, OffsetSpan]]] = []
    size = bytes_max
    for file, span in files:
        if size >= bytes_max:
            tasks.append([])
            size = 0
        tasks[-1].append((file, span))
        size += file.bytes
    return tasks

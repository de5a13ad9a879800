"""Plan of a replay: what it stands for and what each round holds, as pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tarry.base.errors import TarryError
from tarry.spark.archive.contents import TIME_MS_MAX, ArchiveContents, times_of
from tarry.spark.archive.manifest import ArchivedFile, OffsetSpan
from tarry.spark.archive.round_plan import within_limit
from tarry.spark.reading.plan import ReadRange
from tarry.spark.writing.topic_limits import BEFORE_MAX, UNLIMITED

VERSION: Final = 1


class ReplayRefused(TarryError):
    """Replay that cannot begin, or cannot go on."""


class AskedReplay(msgspec.Struct, frozen=True):
    """Question that a user asked: what to replay, and to where.

    Times are milliseconds since 1970; a record is taken whose time is `from_ms` or later and before
    `until_ms`.  Offsets are by partition; if there are any, other partitions are left out.
    """

    topic: str
    to: str
    keep_partitions: bool = True
    from_ms: int | None = None
    until_ms: int | None = None
    from_offsets: dict[int, int] = {}
    until_offsets: dict[int, int] = {}


class FrozenReplay(msgspec.Struct, frozen=True):
    """Content of `replay.json`: what a replay stands for, from its first start on."""

    replay_id: str
    asked: AskedReplay
    spans: list[OffsetSpan]
    version: int = VERSION


class ReplayRound(msgspec.Struct, frozen=True):
    """Content of `round-NUMBER.json`: what one round reads, and where the next one begins."""

    number: int
    spans: list[OffsetSpan]
    positions: dict[int, int]
    # Records that the rounds before have written.
    records_before: int = 0
    version: int = VERSION


def spans_of(asked: AskedReplay, contents: ArchiveContents) -> list[OffsetSpan]:
    """Return the offsets that a replay stands for.  Raises ReplayRefused if there are none."""
    known = {
        partition: bounds
        for (topic, partition), bounds in sorted(contents.ranges.items())
        if topic == asked.topic
    }
    if not known:
        topics = ", ".join(contents.topics()) or "none"
        raise ReplayRefused(f"the archive has no topic {asked.topic!r}; it has {topics}")
    named = {**asked.from_offsets, **asked.until_offsets}
    spans: list[OffsetSpan] = []
    for partition in sorted(named or known):
        if partition not in known:
            raise ReplayRefused(
                f"the archive has no partition {partition} of {asked.topic}; it has "
                f"{', '.join(str(one) for one in known)}"
            )
        first, end = known[partition]
        first = max(first, asked.from_offsets.get(partition, first))
        end = min(end, asked.until_offsets.get(partition, end))
        files = files_of(asked, contents, OffsetSpan(partition, first, end))
        if files and first < end:
            # Times of files leave out most of what is not asked for.
            first = max(first, min(file.first for file in files))
            end = min(end, max(file.end for file in files))
            spans.append(OffsetSpan(partition, first, end))
    if not spans:
        raise ReplayRefused(
            f"the archive has no records of {asked.topic} in this range: `tarry spark verify` "
            "counts what it has"
        )
    return spans


def files_of(asked: AskedReplay, contents: ArchiveContents, span: OffsetSpan) -> list[ArchivedFile]:
    """Return the files that may have records of a span, in the order of their first offsets."""
    return [
        file
        for file in contents.files.get((asked.topic, span.partition), [])
        if file.first < span.end and file.end > span.first and _is_near(asked, file, contents.by)
    ]


def _is_near(asked: AskedReplay, file: ArchivedFile, by: str) -> bool:
    """Return whether a file may have records of the times that are asked for."""
    times = times_of(file, by)
    if times is None:
        return True
    begin_ms, end_ms = times
    return (asked.until_ms is None or begin_ms < asked.until_ms) and (
        asked.from_ms is None or end_ms > asked.from_ms
    )


class TargetTimes(msgspec.Struct, frozen=True):
    """Times before which the target keeps no records, and takes none; None: any time will do.

    In milliseconds since 1970.
    """

    kept_from_ms: int | None = None
    taken_from_ms: int | None = None


def too_old(
    asked: AskedReplay,
    spans: Sequence[OffsetSpan],
    contents: ArchiveContents,
    target: TargetTimes,
) -> str | None:
    """Return a sentence if the target deletes some of the records, which keep their times.

    Raises ReplayRefused if it does not take some of them.
    """
    times = [
        times_of(file, contents.by) for span in spans for file in files_of(asked, contents, span)
    ]
    ends_ms = [end_ms for begin_ms, end_ms in (one for one in times if one is not None)]
    oldest_ms = min(ends_ms, default=TIME_MS_MAX)
    if target.taken_from_ms is not None and oldest_ms <= target.taken_from_ms:
        raise ReplayRefused(
            f"the topic {asked.to} takes no records as old as some of these; raise its setting "
            f"first, `tarry configs set --topic {asked.to} {BEFORE_MAX}={UNLIMITED}`"
        )
    if target.kept_from_ms is None or oldest_ms > target.kept_from_ms:
        return None
    return (
        f"the topic {asked.to} soon deletes records as old as some of these (retention.ms): set "
        f"it first, such as with `tarry configs set --topic {asked.to} retention.ms=-1`"
    )


def next_round(
    frozen: FrozenReplay, before: ReplayRound | None, records_before: int, records_max: int
) -> ReplayRound | None:
    """Return the round behind another one; None where all is done.

    Partitions go on at the pace of what each has left, so that all of them come to their ends
    together.
    """
    positions = {span.partition: span.first for span in frozen.spans}
    if before is not None:
        positions = dict(before.positions)
    left = [
        ReadRange(frozen.asked.topic, span.partition, positions[span.partition], span.end)
        for span in frozen.spans
        if positions[span.partition] < span.end
    ]
    if not left:
        return None
    taken = within_limit(left, records_max)
    positions.update((one.partition, one.end) for one in taken)
    number = 0 if before is None else before.number + 1
    spans = [OffsetSpan(one.partition, one.first, one.end) for one in taken]
    return ReplayRound(number, spans, positions, records_before)


def check_partitions(
    asked: AskedReplay, spans: Sequence[OffsetSpan], target: Mapping[str, Sequence[int]]
) -> None:
    """Refuse a target that has not the partitions that are to be kept.

    `target` has the partitions of the topics that are there.
    """
    if asked.to not in target:
        raise ReplayRefused(
            f"the topic {asked.to} does not exist: make it first, such as with "
            f"`tarry topics create {asked.to}`"
        )
    lacking = [span.partition for span in spans if span.partition not in target[asked.to]]
    if asked.keep_partitions and lacking:
        raise ReplayRefused(
            f"the topic {asked.to} has {len(target[asked.to])} partitions, and records of "
            f"partition {lacking[-1]} are to keep theirs: add partitions to it, or let keys decide "
            "(keep_partitions=False, --by-key)"
        )

"""Manifest: what one round of an archive has read, and the files that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tarry.base.errors import TarryError
from tarry.base.ids import TopicPartition
from tarry.spark.histories.lines import Line, NotedPlace
from tarry.spark.reading.plan import ReadRange

VERSION: Final = 1


class ArchiveRefused(TarryError):
    """Archive that cannot be used, or cannot go on."""


class ArchivedFile(msgspec.Struct, frozen=True):
    """File of rows of one partition.  Paths count from the archive's."""

    path: str
    # Where the file lies until its round counts.
    staged: str
    topic: str
    partition: int
    # Offset of the first row, and the one behind the last.
    first: int
    end: int
    rows: int
    bytes: int
    sha256: str


class OffsetSpan(msgspec.Struct, frozen=True):
    """Offsets of one partition of an archived topic, from `first` to before `end`."""

    partition: int
    first: int
    end: int


class ArchivedRange(msgspec.Struct, frozen=True):
    """Offsets of one partition that a round has read, from `first` to before `end`; none of them
    where all that the log had was lost."""

    topic: str
    partition: int
    first: int
    end: int
    # Fewer than offsets where the log has none: transactions, compaction.
    rows: int
    # Offsets before `first` that the log did not have any more.
    lost: int = 0


class Manifest(msgspec.Struct, frozen=True):
    """Round of an archive.  `ends`: by topic and partition, where the next round begins; `epochs`:
    the leader epochs of the log there, as far as they are known (older versions noted none)."""

    number: int
    made_ms: int
    topic_ids: dict[str, str]
    ranges: list[ArchivedRange]
    files: list[ArchivedFile]
    ends: dict[str, dict[int, int]]
    version: int = VERSION
    epochs: dict[str, dict[int, Line]] = {}

    def noted(self, place: TopicPartition) -> NotedPlace | None:
        """Return where a partition is archived up to; None: it is not."""
        topic, partition = place
        end = self.ends.get(topic, {}).get(partition)
        if end is None:
            return None
        line = self.epochs.get(topic, {}).get(partition, ())
        return NotedPlace(end, line, self.topic_ids.get(topic, ""))


class Archived(msgspec.Struct, frozen=True):
    """Contents of `archive.json`."""

    cluster_id: str
    by: str
    version: int = VERSION
    # parquet: plain files; delta: a Delta table over them.
    table: str = "parquet"


def decode_manifest(text: bytes, name: str) -> Manifest:
    """Read a manifest.  Raises ArchiveRefused if it is damaged or of a newer Tarry."""
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as error:
        raise ArchiveRefused(
            f"{name} cannot be read: {error}. Bring it back from a backup; without it nobody knows "
            "what the archive holds"
        ) from None
    check_version(manifest.version, name)
    return manifest


def check_version(version: int, name: str) -> None:
    """Refuse a file of a newer Tarry: it may say what this one would pass over."""
    if version > VERSION:
        raise ArchiveRefused(
            f"{name} has the format {version}, and this Tarry knows formats up to {VERSION}: go on "
            "with the Tarry that wrote it, or a newer one"
        )


def make_manifest(
    previous: Manifest | None,
    topic_ids: Mapping[str, str],
    ranges: Iterable[ReadRange],
    files: Iterable[ArchivedFile],
    starts: Mapping[TopicPartition, int],
    now_ms: int,
    *,
    lines: Mapping[TopicPartition, Line] | None = None,
) -> Manifest:
    """Return the manifest of the round behind `previous`; `lines` are those of the logs at its
    ends.

    A partition without a record yet has its log's start noted: what retention takes before the
    next round is missed.
    """
    kept = sorted(files, key=lambda file: (file.topic, file.partition, file.first))
    rows: dict[TopicPartition, int] = {}
    for file in kept:
        place = file.topic, file.partition
        rows[place] = rows.get(place, 0) + file.rows
    ends = {} if previous is None else {topic: dict(one) for topic, one in previous.ends.items()}
    told: list[ArchivedRange] = []
    for one in sorted(ranges, key=lambda one: (one.topic, one.partition)):
        place = one.topic, one.partition
        before = ends.setdefault(one.topic, {})
        begin = before.get(one.partition, one.first)
        told.append(
            ArchivedRange(*place, one.first, one.end, rows.get(place, 0), one.first - begin)
        )
        before[one.partition] = one.end
    for (topic, partition), start in sorted(starts.items()):
        ends.setdefault(topic, {}).setdefault(partition, start)
    ids = {**({} if previous is None else previous.topic_ids), **topic_ids}
    number = 1 if previous is None else previous.number + 1
    epochs = _epochs(previous, ends, lines or {})
    return Manifest(number, now_ms, ids, told, kept, ends, epochs=epochs)


def _epochs(
    previous: Manifest | None,
    ends: Mapping[str, Mapping[int, int]],
    lines: Mapping[TopicPartition, Line],
) -> dict[str, dict[int, Line]]:
    """Return the leader epochs before these ends: those that were noted where the end is the same,
    else those that leaders told."""
    epochs: dict[str, dict[int, Line]] = {}
    for topic, by_partition in ends.items():
        for partition, end in by_partition.items():
            place = topic, partition
            noted = None if previous is None else previous.noted(place)
            line: Line = noted.line if noted is not None and noted.offset == end else ()
            line = line or lines.get(place, ())
            if line:
                epochs.setdefault(topic, {})[partition] = line
    return epochs

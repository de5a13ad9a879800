"""Contents of an archive: the files that hold its rows now, by what the manifests say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchivedFile
from tarry.spark.archive.parquet_files import SLOT_MS

DATE: Final = "date="
HOUR: Final = "hour="


@dataclass
class ArchiveContents:
    """Files by topic and partition, in the order of their first offsets, and what ranges say."""

    by: str
    files: dict[TopicPartition, list[ArchivedFile]] = field(default_factory=dict)
    # Offsets of each partition that the archive stands for: the first one, and the one behind.
    ranges: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    def topics(self) -> list[str]:
        """Return the topics that the archive has."""
        return sorted({topic for topic, _ in self.ranges})


def read_contents(directory: ArchiveDirectory) -> ArchiveContents:
    """Read all manifests.  Raises ArchiveRefused where no archive is, or one is damaged."""
    contents = ArchiveContents(directory.bound().by)
    # Files of a round whose run was killed come to their place.
    directory.newest()
    files: dict[str, ArchivedFile] = {}
    for number in directory.numbers():
        manifest = directory.manifest(number)
        files.update((file.path, file) for file in manifest.files)
        for one in manifest.ranges:
            place = one.topic, one.partition
            first, _ = contents.ranges.get(place, (one.first, one.end))
            contents.ranges[place] = first, one.end
    for compaction in directory.compactions.since(0):
        for file in compaction.replaced:
            del files[file.path]
        files.update((file.path, file) for file in compaction.files)
    for file in sorted(files.values(), key=lambda file: (file.topic, file.partition, file.first)):
        contents.files.setdefault((file.topic, file.partition), []).append(file)
    return contents


def times_of(file: ArchivedFile, by: str) -> tuple[int, int] | None:
    """Return from when to before when the times of a file's rows lie, in ms; None: not known."""
    if SLOT_MS[by] == 0:
        return None
    parts = file.path.split("/")
    date = next(part.removeprefix(DATE) for part in parts if part.startswith(DATE))
    hour = next((part.removeprefix(HOUR) for part in parts if part.startswith(HOUR)), "00")
    begin = datetime.fromisoformat(f"{date}T{hour}:00:00").replace(tzinfo=UTC)
    begin_ms = round((begin - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
    return begin_ms, begin_ms + SLOT_MS[by]

"""Contents of an archive: the files that hold its rows now, by what the manifests say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.spark.archive.directory import ArchiveDirectory
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused
from tarry.spark.archive.parquet_files import FIRST_MS, LAST_MS, SLOT_MS

DATE: Final = "date="
HOUR: Final = "hour="

# Of a record's timestamp.
TIME_MS_MIN: Final = -(2**63)
TIME_MS_MAX: Final = 2**63 - 1


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
    # Before the rounds: one that is compacted meanwhile is known then.
    compactions = directory.compactions.since(0)
    numbers = directory.numbers()
    if numbers and len(numbers) < numbers[-1]:
        missing = min(set(range(1, numbers[-1])).difference(numbers))
        raise ArchiveRefused(
            f"{directory.path} has no manifest of round {missing}, so nobody knows which rows are "
            "of it: bring it back from a backup; `tarry spark verify` tells what else is wrong"
        )
    files: dict[str, ArchivedFile] = {}
    for number in numbers:
        manifest = directory.manifest(number)
        if number == numbers[-1]:
            # Files of a round whose run was killed, or is at it just now, come to their place.
            directory.publish(manifest)
        files.update((file.path, file) for file in manifest.files)
        for one in manifest.ranges:
            place = one.topic, one.partition
            first, _ = contents.ranges.get(place, (one.first, one.end))
            contents.ranges[place] = first, one.end
    for compaction in compactions:
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
    end_ms = begin_ms + SLOT_MS[by]
    # The first and the last slot have all times before and behind them too.
    return (
        TIME_MS_MIN if begin_ms <= FIRST_MS else begin_ms,
        TIME_MS_MAX + 1 if end_ms > LAST_MS else end_ms,
    )

"""Merging: small files of one directory and one partition become one file, by a worker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused
from tarry.spark.archive.ordered_rows import check_size, ordered_rows
from tarry.spark.archive.parquet_files import SlotFile, new_name
from tarry.spark.durable_files import flush_directory

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class MergeTask:
    """Task of a worker: groups of files of one directory; Spark pickles it."""

    path: str
    run: str
    compression: str
    number: int
    directory: str
    groups: list[list[ArchivedFile]]


def directory_of(file: ArchivedFile) -> str:
    """Return the directory in which readers find a file, counted from the archive's path."""
    return file.path.rpartition("/")[0]


def mergeable(files: Iterable[ArchivedFile], target_bytes: int) -> list[list[ArchivedFile]]:
    """Return groups of small files that lie side by side, each of `target_bytes` at most.

    A file is small below half of that, so what was merged is left alone once it is large.
    """
    by_place: dict[tuple[str, int], list[ArchivedFile]] = {}
    for file in files:
        by_place.setdefault((directory_of(file), file.partition), []).append(file)
    groups: list[list[ArchivedFile]] = []
    for _, placed in sorted(by_place.items()):
        group: list[ArchivedFile] = []
        for file in sorted(placed, key=lambda file: file.first):
            size = sum(one.bytes for one in group) + file.bytes
            is_behind = not group or group[-1].end <= file.first
            if file.bytes * 2 < target_bytes and size <= target_bytes and is_behind:
                group.append(file)
                continue
            groups.append(group)
            group = [file] if file.bytes * 2 < target_bytes else []
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def merge_files(task: MergeTask) -> list[ArchivedFile]:
    """Write one file for each group, and tell what it holds."""
    files = [_merge(task, index, group) for index, group in enumerate(task.groups)]
    flush_directory(Path(task.path) / task.run)
    return files


def _merge(task: MergeTask, index: int, group: Sequence[ArchivedFile]) -> ArchivedFile:
    path = Path(task.path)
    for file in group:
        _check_content(path / file.path, file)
    place = path / task.run / new_name(task.number, index)
    merged: SlotFile | None = None
    schema: pa.Schema | None = None
    for rows in ordered_rows(path, group, group[0].first, group[-1].end):
        if merged is None or schema is None:
            schema = rows.schema.remove_metadata()
            merged = SlotFile(place, schema, task.compression)
        merged.add(rows.replace_schema_metadata(None).cast(schema))
    count = sum(file.rows for file in group)
    if merged is None or merged.rows != count:
        raise ArchiveRefused(
            f"{task.directory} has {0 if merged is None else merged.rows} rows in {len(group)} "
            f"files, and the manifests count {count}: `tarry spark verify` tells what is wrong"
        )
    return merged.finish((group[0].topic, group[0].partition), task.directory, task.run)


def _check_content(path: Path, file: ArchivedFile) -> None:
    """Refuse a damaged file, which would be whole again by the checksum of the merged one."""
    check_size(path, file)
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != file.sha256:
        raise ArchiveRefused(
            f"{path} is damaged: its SHA-256 is not {file.sha256}. Bring it back from a backup"
        )

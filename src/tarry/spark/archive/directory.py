"""Directory of an archive: manifests, files on their way, and the visible files."""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.archive.compactions import COMPACTIONS, FileCompactions, holders_of
from tarry.spark.archive.delta import ArchiveTable
from tarry.spark.archive.manifest import (
    Archived,
    ArchivedFile,
    ArchiveRefused,
    Manifest,
    check_version,
    decode_manifest,
)
from tarry.spark.archive.parquet_files import HIDDEN, NAME_LETTERS_MAX
from tarry.spark.archive.table_compactions import TableCompactions
from tarry.spark.durable_files import (
    create_if_absent,
    encode,
    flush_directory,
    make_directories,
    remove_left_over,
)

OWN: Final = "_tarry"
BINDING: Final = f"{OWN}/archive.json"
MANIFESTS: Final = f"{OWN}/manifests"
STAGED: Final = f"{OWN}/staged"

PARQUET: Final = "parquet"
DELTA: Final = "delta"
TABLES: Final = (PARQUET, DELTA)

# Begin of a URL, as a path has it.
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

# What a driver left behind that was killed; no round takes a day.
LEFT_OVER_SECONDS: Final = 24 * 3600


class ArchiveDirectory:
    """Directory at `path`."""

    def __init__(self, path: Path) -> None:
        if path.parts and SCHEME.fullmatch(path.parts[0]):
            # Such a path would be a directory with this name, below the working one.
            raise ArchiveRefused(
                f"{path} is no directory of a file system: give the path of one that driver and "
                "workers share (local, NFS, a mounted volume)"
            )
        self.path = path
        self.compactions = FileCompactions(path)
        with suppress(ArchiveRefused):
            # There is no archive yet, or it cannot be read: whoever needs it is told.
            self._take_table()

    def bind(self, cluster_id: str, by: str, table: str = PARQUET) -> None:
        """Make the directory for a cluster and a layout; ArchiveRefused if it has others."""
        make_directories(self.path / MANIFESTS)
        create_if_absent(self.path / BINDING, encode(Archived(cluster_id, by, table=table)))
        bound = self.bound()
        if bound.cluster_id != cluster_id:
            raise ArchiveRefused(
                f"{self.path} archives the cluster {bound.cluster_id}, and this is the cluster "
                f"{cluster_id}: give another path"
            )
        if bound.by != by:
            raise ArchiveRefused(
                f"{self.path} is laid out by {bound.by}, not by {by}: go on with that, or give "
                "another path"
            )

        if bound.table != table:
            raise ArchiveRefused(
                f"{self.path} is an archive with table={bound.table}, not {table}: go on with "
                "that, or give another path"
            )
        self._take_table()

    def _take_table(self) -> None:
        bound = self.bound()
        if bound.table == DELTA:
            self.compactions = TableCompactions(self.path, bound.by)

    def check_shown(self, topics: Iterable[str]) -> None:
        """Refuse to go on beside files that readers pass over, as early archives have them."""
        for topic in topics:
            if topic.startswith(HIDDEN):
                for file in (self.path / f"topic={topic}").rglob(
                    f"{topic[:NAME_LETTERS_MAX]}-*.parquet"
                ):
                    raise ArchiveRefused(
                        f"{self.path} was begun by a Tarry that gave files names which pyarrow and "
                        f"Spark pass over, such as {file.name}: archive {topic} to another path"
                    )

    def bound(self) -> Archived:
        """Return the cluster and layout.  Raises ArchiveRefused where no archive is."""
        try:
            text = (self.path / BINDING).read_bytes()
        except FileNotFoundError:
            raise ArchiveRefused(f"{self.path} is no archive: there is no {BINDING}") from None
        try:
            bound = msgspec.json.decode(text, type=Archived)
        except msgspec.MsgspecError as error:
            raise ArchiveRefused(f"{self.path / BINDING} cannot be read: {error}") from None
        check_version(bound.version, str(self.path / BINDING))
        return bound

    # --- Manifests

    def numbers(self) -> list[int]:
        """Return the numbers of the rounds that count, in order."""
        with suppress(FileNotFoundError):
            names = os.listdir(self.path / MANIFESTS)
            return sorted(int(name[:-5]) for name in names if name[:-5].isdigit())
        return []

    def manifest(self, number: int) -> Manifest:
        """Read the manifest of a round."""
        path = self.path / MANIFESTS / _name(number)
        return decode_manifest(path.read_bytes(), str(path))

    def newest(self) -> Manifest | None:
        """Return the newest manifest, its files in their place; None before the first round."""
        numbers = self.numbers()
        if not numbers:
            return None
        manifest = self.manifest(numbers[-1])
        # Whoever wrote it may have been killed before it moved the files.
        self.publish(manifest)
        return manifest

    def check_staged(self, manifest: Manifest) -> None:
        """Refuse a round whose files are gone: others remove what lies there for so long."""
        for file in manifest.files:
            if not (self.path / file.staged).exists():
                raise ArchiveRefused(
                    f"{self.path / file.staged} is gone, which round {manifest.number} would "
                    "count: the run stood still for a day, or somebody has removed it. Nothing "
                    "of the round was archived; run the same command again"
                )

    def commit(self, manifest: Manifest) -> bool:
        """Make a round count; False if somebody else has written this round."""
        return create_if_absent(self.path / MANIFESTS / _name(manifest.number), encode(manifest))

    def publish(self, manifest: Manifest) -> None:
        """Let readers see the files of a round, in the Delta table too if there is one."""
        self.place(manifest)
        table = self.table()
        if table is not None:
            table.bring_up_to(manifest.number, self.manifest)

    def place(self, manifest: Manifest) -> None:
        """Move the files of a round to where readers see them; those that are there stay."""
        is_there = all((self.path / file.path).exists() for file in manifest.files)
        if not is_there or not self.compactions.is_settled():
            with self.compactions.lock(is_needed=False):
                self.compactions.settle()
                self._move(manifest)

    def table(self) -> ArchiveTable | None:
        """Return the Delta table; None if this is an archive of plain files."""
        bound = self.bound()
        return ArchiveTable(self.path, bound.by) if bound.table == DELTA else None

    def _move(self, manifest: Manifest) -> None:
        directories: dict[Path, None] = {}
        # Read once: there may be as many compactions as files.
        replaced: Mapping[str, ArchivedFile] | None = None
        for file in manifest.files:
            path = self.path / file.path
            if not path.exists():
                make_directories(path.parent)
                with suppress(FileNotFoundError):
                    os.rename(self.path / file.staged, path)
                    directories[path.parent] = None
            if path.exists():
                continue
            if replaced is None:
                replaced = holders_of(self.compactions.since(0))
            if file.path not in replaced:
                raise ArchiveRefused(
                    f"{path} is missing, which round {manifest.number} of the archive has written: "
                    "bring it back from a backup"
                )
        for directory in directories:
            flush_directory(directory)

    # --- Files on their way

    def new_run(self) -> str:
        """Make a directory for the files of a round, and return its path below the archive's."""
        self._remove_left_over()
        name = f"{STAGED}/{uuid.uuid4().hex}"
        make_directories(self.path / name)
        return name

    def drop(self, run: str) -> None:
        """Remove what is left of a round's directory, unless files in it count and are not in
        their place yet: the run failed between manifest and files, and the next one moves them.
        """
        if not self._is_needed(run):
            shutil.rmtree(self.path / run, ignore_errors=True)

    def _is_needed(self, run: str) -> bool:
        """Return whether the newest round or compaction may still take files from there."""
        try:
            rounds = self.numbers()[-1:]
            compactions = [] if self.compactions.is_settled() else self.compactions.numbers()[-1:]
            counting = [file for number in rounds for file in self.manifest(number).files]
            for number in compactions:
                counting += self.compactions.read(number).files
        except Exception:
            # Whatever it is, a table's errors too: a directory too much is removed in a day.
            return True
        staged = [file.staged for file in counting if file.staged.startswith(f"{run}/")]
        return any((self.path / name).exists() for name in staged)

    def _remove_left_over(self) -> None:
        for directory in (OWN, MANIFESTS, COMPACTIONS):
            remove_left_over(self.path / directory, LEFT_OVER_SECONDS)
        with suppress(FileNotFoundError):
            for each in (self.path / STAGED).iterdir():
                with suppress(OSError):
                    if time.time() - each.stat().st_mtime > LEFT_OVER_SECONDS:
                        self.drop(f"{STAGED}/{each.name}")


def _name(number: int) -> str:
    return f"{number:012}.json"

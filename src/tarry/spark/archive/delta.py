"""Delta table over an archive: the files of rounds enter its log, each round once.

The manifest of a round counts first; then its files are moved to their place, and one commit of the
table adds them.  The commit bears the number of the round as an application's transaction, which is
asked for before and which lets one of two commits fail, so a round enters once, whoever is killed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from tarry.client.arrow.installed import load_pyarrow
from tarry.spark.archive.manifest import ArchivedFile, ArchiveRefused, Manifest

log = logging.getLogger("tarry.spark")

LOG: Final = "_delta_log"

# Application of the transactions; their versions are the numbers of rounds.
APPLICATION: Final = "tarry-archive"
# The same of compactions.
COMPACTION: Final = "tarry-compaction"

# Commits of other writers may come first for so many times.
ATTEMPTS_MAX: Final = 20

# Columns that are in the path of a file, by layout.
PARTITION_COLUMNS: Final = {
    "hour": ["topic", "date", "hour"],
    "day": ["topic", "date"],
    "none": ["topic"],
}


class ArchiveTable:
    """Delta table of the archive at `path`, which is laid out `by` hour, day or none."""

    def __init__(self, path: Path, by: str) -> None:
        self.path = path
        self._columns = PARTITION_COLUMNS[by]
        self._delta = load_deltalake()

    def bring_up_to(self, number: int, read: Callable[[int], Manifest]) -> None:
        """Add the files of all rounds up to this one that the table does not have."""
        for _ in range(ATTEMPTS_MAX):
            table = self.snapshot()
            rounds = [read(one) for one in range(self.round_of(table) + 1, number + 1)]
            missing = [manifest for manifest in rounds if manifest.files]
            if not missing:
                return
            try:
                self.add(table or self._create(missing[0].files[0]), missing[0])
            except self._delta.exceptions.CommitFailedError as error:
                log.info("round %d is tried again: %s", missing[0].number, error)
        raise ArchiveRefused(
            f"the Delta table {self.path} could not take the files of round {number}, since others "
            "commit to it all the time: run the same command again"
        )

    def add(self, table: Any, manifest: Manifest) -> None:
        """Add the files of a round by one commit, which fails if the round came in meanwhile."""
        actions = [self._action(file) for file in manifest.files]
        self._commit(table, actions, APPLICATION, manifest.number)

    def merge(
        self, number: int, replaced: Sequence[ArchivedFile], files: Sequence[ArchivedFile]
    ) -> None:
        """Put files in the place of others, with the same rows, if this compaction did not yet."""
        remove = getattr(self._delta.transaction, "RemoveAction", None)
        if remove is None:
            raise ArchiveRefused(
                "this deltalake cannot replace files of a Delta table: pip install -U deltalake"
            )
        now_ms = int(time.time() * 1000)
        actions = [
            *(
                remove(file.path, False, now_ms, file.bytes, _partition_of(file))
                for file in replaced
            ),
            *(self._action(file, changes_data=False) for file in files),
        ]
        for _ in range(ATTEMPTS_MAX):
            table = self.snapshot()
            if self.compaction_of(table) >= number:
                return
            try:
                self._commit(table, actions, COMPACTION, number)
            except self._delta.exceptions.CommitFailedError as error:
                log.info("compaction %d is tried again: %s", number, error)
        raise ArchiveRefused(
            f"the Delta table {self.path} could not take the files of compaction {number}, since "
            "others commit to it all the time: run the same command again"
        )

    def snapshot(self) -> Any:
        """Return the table as it is now; None before there is one."""
        if not (self.path / LOG).is_dir():
            return None
        try:
            return self._delta.DeltaTable(str(self.path))
        except self._delta.exceptions.TableNotFoundError:
            return None

    def round_of(self, table: Any) -> int:
        """Return the number of the newest round that a snapshot has; 0 before the first one."""
        version = None if table is None else table.transaction_version(APPLICATION)
        return int(version or 0)

    def compaction_of(self, table: Any) -> int:
        """Return the number of the newest compaction that a snapshot has; 0 before the first."""
        version = None if table is None else table.transaction_version(COMPACTION)
        return int(version or 0)

    def paths(self, table: Any) -> dict[str, None]:
        """Return the files of a snapshot, by their paths below the table's."""
        if table is None:
            return {}
        found = load_pyarrow().table(table.get_add_actions()).column("path").to_pylist()
        return dict.fromkeys(found)

    def offsets(self, table: Any, topic: str) -> Any:
        """Return partition and offset of every row of a topic, as a reader of a snapshot does."""
        compute: Any = import_module("pyarrow.compute")
        rows = table.to_pyarrow_dataset()
        return rows.to_table(["partition", "offset"], filter=compute.field("topic") == topic)

    def _commit(self, table: Any, actions: list[Any], application: str, number: int) -> None:
        """Commit actions under a number, which fails if that came in meanwhile."""
        transaction = self._delta.Transaction(application, number)
        table.create_write_transaction(
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=self._columns,
            commit_properties=self._delta.CommitProperties(app_transactions=[transaction]),
        )

    def _create(self, file: ArchivedFile) -> Any:
        """Make the table with the columns of a file; one that is there stays."""
        import pyarrow.parquet as pq

        arrow = load_pyarrow()
        schema = pq.read_schema(self.path / file.path).remove_metadata()
        for name in self._columns:
            schema = schema.append(arrow.field(name, arrow.string()))
        return self._delta.DeltaTable.create(
            str(self.path),
            schema=self._delta.Schema.from_arrow(schema),
            partition_by=self._columns,
            mode="ignore",
        )

    def _action(self, file: ArchivedFile, *, changes_data: bool = True) -> Any:
        modified_ms = (self.path / file.path).stat().st_mtime_ns // 1_000_000
        statistics = {
            "numRecords": file.rows,
            "minValues": {"partition": file.partition, "offset": file.first},
            "maxValues": {"partition": file.partition, "offset": file.end - 1},
            "nullCount": {"partition": 0, "offset": 0},
        }
        text = msgspec.json.encode(statistics).decode()
        return self._delta.transaction.AddAction(
            file.path, file.bytes, _partition_of(file), modified_ms, changes_data, text
        )


def _partition_of(file: ArchivedFile) -> dict[str, str]:
    """Return the values of the columns that are in the path of a file."""
    return dict(part.split("=", 1) for part in file.path.split("/")[:-1])


def load_deltalake() -> Any:
    """Load the library, or say how to install it."""
    try:
        delta: Any = import_module("deltalake")
        import_module("deltalake.transaction")
        import_module("deltalake.exceptions")
    except ImportError:
        raise ArchiveRefused('a Delta table needs deltalake: pip install "tarry[delta]"') from None
    return delta

"""State of backfills: a directory for what is asked, and below it one for each run.

| name | holds |
|---|---|
| `NUMBER/backfill.json` | what the run stands for |
| `NUMBER/counts.json` | what was counted, written before the plan |
| `NUMBER/finished.json` | the sums, when all is in the topic |
| `NUMBER/sink.json`, `plan-…`, `done-…`, `task-…` | plans and files of the sink |

A run that has a plan and is not finished is gone on with.  Behind a finished one the next start
begins another, of what archive and log hold then, and so it does behind one without a plan: nothing
of that was written, and what it stands for is old.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tarry.spark.archive.manifest import OffsetSpan
from tarry.spark.backfill.plan import (
    AskedBackfill,
    BackfillRefused,
    FrozenBackfill,
)
from tarry.spark.durable_files import (
    create_if_absent,
    encode,
    make_directories,
    replace,
)
from tarry.spark.writing.commit import BATCH_ID
from tarry.spark.writing.directory import TASK, SinkDirectory

FROZEN: Final = "backfill.json"
FINISHED: Final = "finished.json"
COUNTS: Final = "counts.json"

# Runs whose directories are kept.
RUNS_KEPT: Final = 10

T = TypeVar("T")


class ResultCounts(msgspec.Struct, frozen=True):
    """Counts of a run: records that were read, and results by what became of them."""

    records: int = 0
    windows: int = 0
    new: int = 0
    changed: int = 0
    removed: int = 0

    @property
    def written(self) -> int:
        """Count of the results that are written."""
        return self.new + self.changed + self.removed

    def plus(self, other: ResultCounts) -> ResultCounts:
        """Return the sums."""
        return ResultCounts(
            self.records + other.records,
            self.windows + other.windows,
            self.new + other.new,
            self.changed + other.changed,
            self.removed + other.removed,
        )


def state_path(directory: Path, asked: AskedBackfill) -> Path:
    """Return the directory of the runs of what is asked."""
    digest = hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()[:12]
    return directory / f"{asked.aggregate['name']}-{digest}"


def numbers_of(path: Path) -> list[int]:
    """Return the numbers of the runs that were begun, in order."""
    with suppress(FileNotFoundError):
        return sorted(int(name) for name in os.listdir(path) if name.isdigit())
    return []


def remove_old(path: Path) -> None:
    """Remove the directories of runs that were finished long ago."""
    for number in numbers_of(path)[:-RUNS_KEPT]:
        shutil.rmtree(path / str(number), ignore_errors=True)


class BackfillState:
    """Directory of the run of a number, below `path`."""

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        self.path = path / str(number)
        self.sink = SinkDirectory(self.path)

    def frozen(self) -> FrozenBackfill | None:
        """Return what the run stands for; None before its start."""
        return self._read(FROZEN, FrozenBackfill)

    def freeze(
        self, asked: AskedBackfill, spans: list[OffsetSpan], closed_ms: int
    ) -> FrozenBackfill:
        """Write down what the run stands for; what another process has written counts."""
        make_directories(self.path)
        made = FrozenBackfill(uuid.uuid4().hex, asked, spans, closed_ms)
        create_if_absent(self.path / FROZEN, encode(made))
        frozen = self.frozen()
        assert frozen is not None
        return frozen

    def note(self, counts: ResultCounts) -> None:
        """Write down what was counted, in place of what a killed start had."""
        replace(self.path / COUNTS, encode(counts))

    def counts(self) -> ResultCounts:
        """Return what was counted."""
        return self._read(COUNTS, ResultCounts) or ResultCounts()

    def has_records(self) -> bool:
        """Return whether there is a plan that has results, which are to be written."""
        plan = self.sink.read_first_plan(BATCH_ID)
        return plan is not None and plan.record_count > 0

    def finished(self) -> ResultCounts | None:
        """Return the sums of a run that is done."""
        return self._read(FINISHED, ResultCounts)

    def finish(self, sums: ResultCounts) -> None:
        """Write down that all is in the topic; files of starts that were killed go."""
        create_if_absent(self.path / FINISHED, encode(sums))
        for path in self.path.glob(f"{TASK}*"):
            path.unlink(missing_ok=True)

    def _read(self, name: str, kind: type[T]) -> T | None:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise BackfillRefused(
                f"{path} cannot be read: {error}. Remove {self.path.parent}, and the next start "
                "begins this backfill anew"
            ) from None

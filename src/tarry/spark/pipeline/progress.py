"""Progress of a pipeline: a line for each micro-batch, and sums for the end."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final

import msgspec

from tarry.spark.reading.advance import ranges_between
from tarry.spark.reading.loss import LostOffsets
from tarry.spark.reading.offsets import QueryOffsets

log = logging.getLogger("tarry.spark")

# Name of what a stage observes of its rows, and of its columns.
OBSERVED: Final = "tarry"
OBSERVED_BYTES: Final = "bytes"
OBSERVED_RULE: Final = "rule:"
# Of the records that could not be decoded: the one with the least offset, and with the largest.
OBSERVED_UNDECODED: Final = ("undecoded:first", "undecoded:last")

# Reasons of one stage that are told, each once a run.
REASONS_MAX: Final = 10

# Size at which a file of progress makes room for a new one; one older file is kept.
FILE_BYTES_MAX: Final = 32 * 1024 * 1024


class BatchProgress(msgspec.Struct, frozen=True):
    """Progress of one micro-batch, or of one round of an archive."""

    at: str
    pipeline: str
    stage: str
    batch: int
    records: int
    bytes: int
    seconds: float
    # Records in the topics that the stage had not read yet; None: not known.
    lag: int | None
    # Time until the lag is gone at the pace of this micro-batch; None: not known.
    seconds_left: float | None
    rejected: dict[str, int]
    # Rows that Spark dropped behind the watermark: events of a wait; of an aggregate the sums that
    # a task has made of each window and group, so that only zero or not says something of events.
    late: int
    # Offsets that were left out, since their records were gone before they were read.
    lost: list[LostOffsets] = []
    # One or two records that could not be decoded, as `orders [0] offset 12: REASON`.
    undecoded: list[str] = []

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0


def progress_line(one: BatchProgress) -> bytes:
    """Return the line of JSON of a micro-batch."""
    pace = round(one.records_per_second, 1)
    megabytes = round(one.bytes / one.seconds / 1e6, 3) if one.seconds else 0.0
    told = msgspec.to_builtins(one)
    return msgspec.json.encode({**told, "records_per_second": pace, "mb_per_second": megabytes})


def batch_of(
    progress: Mapping[str, Any], pipeline: str, stage: str, lost: Sequence[LostOffsets] = ()
) -> BatchProgress:
    """Make the progress of a micro-batch from what Spark tells of it, and from what was left out
    since the one before."""
    observed = (progress.get("observedMetrics") or {}).get(OBSERVED) or {}
    operators = progress.get("stateOperators") or ()
    durations = progress.get("durationMs") or {}
    records = sum(int(source.get("numInputRows") or 0) for source in progress["sources"])
    seconds = int(durations.get("triggerExecution") or 0) / 1_000
    lags = [_lag(source) for source in progress["sources"]]
    lag = None if None in lags else sum(one or 0 for one in lags)
    left = lag * seconds / records if lag is not None and records else None
    return BatchProgress(
        at=str(progress["timestamp"]),
        pipeline=pipeline,
        stage=stage,
        batch=int(progress["batchId"]),
        records=records,
        bytes=int(observed.get(OBSERVED_BYTES) or 0),
        seconds=seconds,
        lag=lag,
        seconds_left=None if left is None else round(left, 1),
        rejected={
            name.removeprefix(OBSERVED_RULE): int(count)
            for name, count in observed.items()
            if name.startswith(OBSERVED_RULE) and count
        },
        late=sum(int(one.get("numRowsDroppedByWatermark") or 0) for one in operators),
        lost=list(lost),
        undecoded=list(
            dict.fromkeys(str(observed[name]) for name in OBSERVED_UNDECODED if observed.get(name))
        ),
    )


def _lag(source: Mapping[str, Any]) -> int | None:
    """Return how many offsets of a source are not read yet."""
    reached, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    if reached is None or latest is None:
        return None
    return sum(one.size for one in ranges_between(reached, latest))


def _offsets(told: object) -> QueryOffsets | None:
    if isinstance(told, str):
        told = msgspec.json.decode(told)
    return QueryOffsets.from_json(told) if isinstance(told, dict) else None


class StageSums(msgspec.Struct):
    """Sums of one stage over a run."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    rejected: dict[str, int] = {}
    late: int = 0
    restarts: int = 0
    lag: int | None = None
    lost: list[LostOffsets] = []

    def add(self, one: BatchProgress) -> None:
        """Count a micro-batch."""
        self.batches += 1
        self.records += one.records
        self.bytes += one.bytes
        self.late += one.late
        self.lag = one.lag
        self.lost += one.lost
        for rule, count in one.rejected.items():
            self.rejected[rule] = self.rejected.get(rule, 0) + count


class Progress:
    """Progress of a run, told by several threads."""

    def __init__(self, listeners: tuple[Callable[[BatchProgress], None], ...] = ()) -> None:
        self._lock = threading.Lock()
        self._listeners = listeners
        # Places of those that have failed, which was told.
        self._failing: list[int] = []
        self._sums: dict[str, StageSums] = {}

    def add(self, one: BatchProgress) -> None:
        """Count a micro-batch and tell it to all listeners."""
        with self._lock:
            self._sums.setdefault(one.stage, StageSums()).add(one)
            for place, listener in enumerate(self._listeners):
                try:
                    listener(one)
                except Exception as error:
                    # The micro-batch is done: no stage ends because nobody hears of it.
                    if place not in self._failing:
                        self._failing.append(place)
                        log.warning("progress could not be told: %s", error)

    def left_out(self, stage: str, lost: Sequence[LostOffsets]) -> None:
        """Count what was left out, and no micro-batch has told."""
        if lost:
            with self._lock:
                self._sums.setdefault(stage, StageSums()).lost += lost

    def restarted(self, stage: str) -> None:
        """Count a restart."""
        with self._lock:
            self._sums.setdefault(stage, StageSums()).restarts += 1

    def batches(self, stage: str) -> int:
        """Return how many micro-batches of a stage were done."""
        with self._lock:
            return self._sums[stage].batches if stage in self._sums else 0

    def sums(self) -> dict[str, StageSums]:
        """Return the sums so far."""
        with self._lock:
            return dict(self._sums)


class UndecodedTeller:
    """Teller of records that do not fit their schema, for people: each reason once a run.

    Producers that begin to send another type would else be seen in the topic of rejected records
    only.
    """

    def __init__(self, tell: Callable[[str], None], rejected: str) -> None:
        self._tell = tell
        self._rejected = rejected
        self._reasons: list[str] = []

    def add(self, one: BatchProgress) -> None:
        """Tell the reasons that are new."""
        for told in one.undecoded:
            place, _, reason = told.partition(": ")
            if reason in self._reasons or len(self._reasons) == REASONS_MAX:
                continue
            self._reasons.append(reason)
            self._tell(
                f"stage {one.stage}: {place} could not be decoded: {reason}. Such records go to "
                f"{self._rejected}; a reason is told once a run"
            )


class ProgressFile:
    """File with a line for each micro-batch; it makes room for a new one when it is large.

    Runs of single stages may share it: who makes room holds a lock of the file.  A line that
    a full disk does not take is left out and told: the micro-batch is done.
    """

    def __init__(self, path: Path, bytes_max: int = FILE_BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._is_failing = False
        # Without a buffer: what was not taken is not tried again by `close`.
        self._file: FileIO = path.open("ab", buffering=0)

    def add(self, one: BatchProgress) -> None:
        """Write a line."""
        try:
            with self._held():
                self._write(progress_line(one) + b"\n")
        except OSError as error:
            if not self._is_failing:
                reason = error.strerror
                log.warning("%s does not take the progress: %s. Make room", self._path, reason)
            self._is_failing = True
        else:
            self._is_failing = False

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the file that has the name now, and has room."""
        while True:
            is_ours = self._try_lock()
            if not self._has_name():
                # Another run has put a new one in its place.
                self._open_again()
            elif is_ours and os.fstat(self._file.fileno()).st_size >= self._bytes_max:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._open_again()
            else:
                break
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _try_lock(self) -> bool:
        """Lock the file, without waiting: who holds it may be stopped, and lines are appended."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # Not every file system has locks.
            pass
        return True

    def _has_name(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def _open_again(self) -> None:
        """Open what has the name now; the lock goes with the file that was open."""
        opened = self._path.open("ab", buffering=0)
        self._file.close()
        self._file = opened

    def _write(self, line: bytes) -> None:
        """Write all of a line, or nothing of it."""
        left = memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            if len(left) < len(line):
                self._file.truncate(self._file.tell() - (len(line) - len(left)))
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

"""State of a replay: a directory with what it stands for, its rounds, and the sink's plans.

| name | holds |
|---|---|
| `replay.json` | what the replay stands for |
| `round-NUMBER.json` | offsets that a round reads, written before it reads them |
| `finished.json` | the sums, when all is in the topic |
| `sink.json`, `plan-…`, `done-…`, `task-…` | plans and files of the sink |
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tarry.spark.archive.manifest import OffsetSpan
from tarry.spark.durable_files import create_if_absent, encode, make_directories
from tarry.spark.replay.plan import (
    AskedReplay,
    FrozenReplay,
    ReplayRefused,
    ReplayRound,
)
from tarry.spark.writing.directory import SinkDirectory

FROZEN: Final = "replay.json"
FINISHED: Final = "finished.json"
ROUND: Final = "round-"

# Rounds that are done are kept as long as the sink keeps their plans.
ROUNDS_KEPT: Final = 100

T = TypeVar("T")


class FinishedReplay(msgspec.Struct, frozen=True):
    """Content of `finished.json`."""

    rounds: int
    records: int


class ReplayState:
    """Directory at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sink = SinkDirectory(path)

    def frozen(self) -> FrozenReplay | None:
        """Return what the replay stands for; None before its first start."""
        return self._read(FROZEN, FrozenReplay)

    def freeze(self, asked: AskedReplay, spans: list[OffsetSpan]) -> FrozenReplay:
        """Write down what the replay stands for; what another process has written counts."""
        make_directories(self.path)
        made = FrozenReplay(uuid.uuid4().hex, asked, spans)
        create_if_absent(self.path / FROZEN, encode(made))
        frozen = self.frozen()
        assert frozen is not None
        return frozen

    def check(self, frozen: FrozenReplay, asked: AskedReplay) -> None:
        """Refuse to go on with another replay than the one that the directory is of."""
        if frozen.asked != asked:
            raise ReplayRefused(
                f"{self.path} is the state of another replay: it is of {frozen.asked.topic} to "
                f"{frozen.asked.to} and was started with other bounds or partitions. Start it as "
                "it was, or give another state directory"
            )

    def newest_round(self) -> ReplayRound | None:
        """Return the round that was written down last."""
        numbers = self._numbers()
        return self._read(_name(numbers[-1]), ReplayRound) if numbers else None

    def write_round(self, made: ReplayRound) -> ReplayRound:
        """Write a round down; of two processes that do the first one's counts."""
        create_if_absent(self.path / _name(made.number), encode(made))
        newest = self.newest_round()
        assert newest is not None
        for number in self._numbers():
            if number < newest.number - ROUNDS_KEPT:
                with suppress(OSError):
                    os.unlink(self.path / _name(number))
        return newest

    def finished(self) -> FinishedReplay | None:
        """Return the sums of a replay that is done."""
        return self._read(FINISHED, FinishedReplay)

    def finish(self, made: FinishedReplay) -> None:
        """Write down that all is in the topic."""
        create_if_absent(self.path / FINISHED, encode(made))

    def records_of(self, number: int) -> int:
        """Return how many records a round has written."""
        plan = self.sink.read_first_plan(number)
        return 0 if plan is None else plan.record_count

    def _numbers(self) -> list[int]:
        names = [
            name.removeprefix(ROUND).removesuffix(".json")
            for name in os.listdir(self.path)
            if name.startswith(ROUND)
        ]
        return sorted(int(name) for name in names if name.isdigit())

    def _read(self, name: str, kind: type[T]) -> T | None:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise ReplayRefused(
                f"{path} cannot be read: {error}. Bring it back from a copy; without it nobody "
                "knows what was replayed"
            ) from None


def _name(number: int) -> str:
    return f"{ROUND}{number:012}.json"

"""Ranges that a run leaves out: what sources and archives note of them, as progress tells it.

A source is asked in processes of its own, and Spark takes nothing from it but offsets and rows.  So
it appends a line for each range to a file beside the run's other files, and who tells of a
micro-batch reads what has come to that file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.pipeline.driver_lock import own_directory
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.reading.loss import LostOffsets

LOST: Final = ".lost.jsonl"


def loss_path(pipeline: Pipeline, stage: str) -> Path:
    """Return the path of what a stage left out."""
    return own_directory(pipeline).absolute() / f"{stage}{LOST}"


class LeftOut:
    """Ranges that a stage leaves out from now on, each told once.

    A micro-batch that is repeated notes its ranges again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0
        self._told: dict[LostOffsets, None] = {}

    def take(self) -> list[LostOffsets]:
        """Return the ranges that have come since they were last taken."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            # Nothing was left out, or the log of the run alone has it.
            return []
        # What is written at this moment is read the next time.
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        found: list[LostOffsets] = []
        for line in whole.splitlines():
            try:
                lost = msgspec.json.decode(line, type=LostOffsets)
            except msgspec.MsgspecError:
                # A full disk has taken a part of it only; the log has it.
                continue
            if lost not in self._told:
                self._told[lost] = None
                found.append(lost)
        return found

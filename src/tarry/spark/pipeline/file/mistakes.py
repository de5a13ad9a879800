"""Mistakes in a pipeline file: each with its line, its key and a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Mistake(NamedTuple):
    """Mistake at a key of the file; line 0 stands for the whole file."""

    line: int
    key: str
    sentence: str


class PipelineRefused(Exception):
    """The file has mistakes; the text has one line for each."""

    def __init__(self, path: Path, mistakes: Iterable[Mistake]) -> None:
        self.path = path
        self.mistakes = sorted(mistakes)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return a line for each mistake: file, line, key and what is wrong."""
        return [
            f"{self.path.name}{f':{one.line}' if one.line else ''}: "
            f"{f'{one.key}: ' if one.key else ''}{one.sentence}"
            for one in self.mistakes
        ]

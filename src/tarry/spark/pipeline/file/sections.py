"""Sections of a pipeline file, as the program has them; `keys` says what each value means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tarry.client.settings import CONSUMER, PRODUCER
from tarry.spark.pipeline.file.mistakes import Mistake
from tarry.spark.pipeline.file.toml_lines import KeyPath
from tarry.spark.pipeline.file.values import of_owner

# Readers of a pipeline see what is committed: a transaction that is open or aborted is no event.
READ_COMMITTED: Final = {"isolation.level": "read_committed"}


@dataclass(frozen=True)
class SourceSection:
    """Section `source`."""

    topics: tuple[str, ...]
    bootstrap: str
    # earliest, latest, or a time in milliseconds.
    start: str | int
    rate: int | None
    time: str | None
    group: str | None


@dataclass(frozen=True)
class DecodeSection:
    """Section `decode`."""

    format: str
    schema: Path | None
    message: str | None
    registry: str | None


@dataclass(frozen=True)
class DeduplicateSection:
    """Section `deduplicate`."""

    by: tuple[str, ...]
    within: str


@dataclass(frozen=True)
class AggregateSection:
    """Section `aggregate`, one of several."""

    name: str
    window: str | None
    slide: str | None
    session: str | None
    late: str
    by: tuple[str, ...]
    values: Mapping[str, str]
    topic: str


@dataclass(frozen=True)
class WaitSection:
    """Section `wait`, one of several."""

    name: str
    key: str
    start: str
    until: str
    within: str
    late: str
    topic: str


@dataclass(frozen=True)
class CleanSection:
    """Section `clean`."""

    topic: str
    rejected: str


@dataclass(frozen=True)
class ArchiveSection:
    """Section `archive`."""

    path: Path
    topics: tuple[str, ...]
    by: str
    table: str
    every: str


@dataclass(frozen=True)
class Pipeline:
    """Content of a pipeline file, without mistakes that can be seen without Spark."""

    name: str
    checkpoint: Path
    every: str
    settings: Mapping[str, str]
    source: SourceSection
    decode: DecodeSection | None
    # Settings of Spark's.
    spark: Mapping[str, str]
    derive: Mapping[str, str]
    check: Mapping[str, str]
    deduplicate: DeduplicateSection | None
    clean: CleanSection | None
    aggregates: tuple[AggregateSection, ...]
    waits: tuple[WaitSection, ...]
    archive: ArchiveSection | None
    path: Path
    lines: Mapping[KeyPath, int]

    def reading(self) -> dict[str, str]:
        """Return the settings of what reads."""
        settings = of_owner(self.settings, CONSUMER)
        return {**READ_COMMITTED, **settings, "bootstrap.servers": self.source.bootstrap}

    def writing(self) -> dict[str, str]:
        """Return the settings of what writes."""
        settings = of_owner(self.settings, PRODUCER)
        return {**settings, "bootstrap.servers": self.source.bootstrap}

    def columns(self) -> tuple[str, ...]:
        """Return the columns that deduplication, aggregates and waits name, each once."""
        once = () if self.deduplicate is None else self.deduplicate.by
        groups = (name for one in self.aggregates for name in one.by)
        keys = (one.key for one in self.waits)
        return tuple(dict.fromkeys((*once, *groups, *keys)))

    def mistake(self, at: KeyPath, sentence: str) -> Mistake:
        """Make a mistake at a key, or at the nearest table around it."""
        return make_mistake(self.lines, at, sentence)


def make_mistake(lines: Mapping[KeyPath, int], at: KeyPath, sentence: str) -> Mistake:
    """Make a mistake at a key; its line is that of the nearest table if the key is not there."""
    there = at
    while there and there not in lines:
        there = there[:-1]
    return Mistake(lines.get(there, 0), key_text(at), sentence)


def key_text(at: KeyPath) -> str:
    """Return a key with the tables around it, as in `source.topics`; the line tells which one."""
    return ".".join(part for part in at if isinstance(part, str))

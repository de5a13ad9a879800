"""Stages of a pipeline: what each one reads and writes, in the order of what feeds what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tarry.base.spelling import Spelling
from tarry.spark.pipeline.file.sections import Pipeline

CLEAN: Final = "clean"
AGGREGATE: Final = "aggregate"
WAIT: Final = "wait"
ARCHIVE: Final = "archive"


class UnknownStage(ValueError):
    """Name of a stage that the pipeline does not have."""


@dataclass(frozen=True)
class Stage:
    """Stage: a query with a checkpoint of its own, or the rounds of an archive."""

    name: str
    kind: str
    reads: tuple[str, ...]
    # Topics; none for an archive.
    writes: tuple[str, ...] = ()
    # Of the topics that are written, those whose older records of a key may go.
    compacted: tuple[str, ...] = ()
    # Directory of Spark's checkpoint, or of the archive.
    path: Path = Path()


def stages_of(pipeline: Pipeline) -> list[Stage]:
    """Return the stages; one that reads what another writes stands behind it."""
    stages: list[Stage] = []
    clean, kept = pipeline.clean, pipeline.archive
    if clean is not None:
        written = (clean.topic, clean.rejected)
        path = pipeline.checkpoint / CLEAN
        stages.append(Stage(CLEAN, CLEAN, pipeline.source.topics, written, path=path))
        for result in pipeline.aggregates:
            stages.append(
                Stage(
                    result.name,
                    AGGREGATE,
                    (clean.topic,),
                    (result.topic,),
                    compacted=(result.topic,),
                    path=pipeline.checkpoint / result.name,
                )
            )
        for ended in pipeline.waits:
            path = pipeline.checkpoint / ended.name
            stages.append(Stage(ended.name, WAIT, (clean.topic,), (ended.topic,), path=path))
    # The archive may hold what all others write.
    if kept is not None:
        stages.append(Stage(ARCHIVE, ARCHIVE, kept.topics, path=kept.path))
    return stages


def choose(stages: list[Stage], only: str | None) -> list[Stage]:
    """Return all stages, or the one of this name.  Raises UnknownStage."""
    if only is None:
        return stages
    found = [stage for stage in stages if stage.name == only]
    if not found:
        names = [stage.name for stage in stages]
        near = Spelling(names).near(only)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
        raise UnknownStage(f"there is no stage {only!r:.60}; {hint}")
    return found

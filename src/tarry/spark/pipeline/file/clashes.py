"""Clashes: keys of a pipeline file that cannot be meant together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tarry.spark.pipeline.file.mistakes import Mistake
from tarry.spark.pipeline.file.sections import Pipeline, key_text
from tarry.spark.pipeline.file.toml_lines import KeyPath
from tarry.spark.pipeline.file.values import duration_ms

# Rules under which the steps themselves reject records.
OWN_RULES: Final = ("decode", "duplicate", "late")

# Fields that every result of an aggregate has.
RESULT_FIELDS: Final = ("start", "end")

# Names of the stages that a file has once at most.
STAGES: Final = ("clean", "archive")


def clashes_of(pipeline: Pipeline) -> list[Mistake]:
    """Return what cannot be meant together."""
    mistakes = [
        *_missing_parts(pipeline),
        *_spark(pipeline),
        *_decoding(pipeline),
        *_rules(pipeline),
        *_names(pipeline),
        *_windows(pipeline),
        *_results(pipeline),
        *_topics(pipeline),
        *_paths(pipeline),
    ]
    return [pipeline.mistake(at, sentence) for at, sentence in mistakes]


Found = Iterator[tuple[KeyPath, str]]


def _missing_parts(pipeline: Pipeline) -> Found:
    if pipeline.clean is None:
        if pipeline.archive is None:
            yield (), "nothing is to be done: add [clean], which checks records, or [archive]"
        given = {
            "decode": pipeline.decode,
            "derive": pipeline.derive,
            "check": pipeline.check,
            "deduplicate": pipeline.deduplicate,
            "aggregate": pipeline.aggregates,
            "wait": pipeline.waits,
        }
        for name, section in given.items():
            if section:
                yield (name,), "needs [clean] with topic and rejected, where its records go"
    elif pipeline.decode is None:
        yield ("clean",), "needs [decode], which says how values become columns"


def _spark(pipeline: Pipeline) -> Found:
    for key in pipeline.spark:
        if not key.startswith("spark."):
            yield ("spark", key), "is no setting of Spark's: they begin with spark."


def _decoding(pipeline: Pipeline) -> Found:
    decode = pipeline.decode
    if decode is None:
        return
    if decode.format == "text" and decode.schema is not None:
        yield ("decode", "schema"), "is of no use to text, which has one column, text"
    if decode.format == "json" and decode.schema is None:
        yield ("decode",), "json needs a schema: name its file"


def _rules(pipeline: Pipeline) -> Found:
    for rule in pipeline.check:
        if rule in OWN_RULES:
            yield (
                ("check", rule),
                f"the pipeline itself rejects records as {rule}: give the rule another name",
            )


def _names(pipeline: Pipeline) -> Found:
    """Find names of stages that stand for two of them."""
    taken = list(STAGES)
    named = {
        "aggregate": [one.name for one in pipeline.aggregates],
        "wait": [one.name for one in pipeline.waits],
    }
    for section, names in named.items():
        for place, name in enumerate(names):
            # Directories have their names, and not every file system tells letters' cases apart.
            if name.lower() in taken:
                yield (section, place, "name"), f"there is a stage {name.lower()!r} already"
            taken.append(name.lower())


def _windows(pipeline: Pipeline) -> Found:
    for place, one in enumerate(pipeline.aggregates):
        at = ("aggregate", place)
        if (one.window is None) == (one.session is None):
            yield at, "needs either window, such as 5m, or session, such as 30m"
        elif one.slide is not None and one.window is None:
            yield (*at, "slide"), "needs window: a session does not slide"
        elif one.slide is not None and duration_ms(one.slide) > duration_ms(one.window or "1ms"):
            yield (*at, "slide"), "is longer than window, so that some events are in none"


def _results(pipeline: Pipeline) -> Found:
    """Find results that would have one field twice; Spark does not tell letters' cases apart."""
    for place, one in enumerate(pipeline.aggregates):
        taken = list(RESULT_FIELDS)
        named: list[tuple[KeyPath, str]] = [
            (("aggregate", place, "by", number), name) for number, name in enumerate(one.by)
        ]
        named += [(("aggregate", place, "values", name), name) for name in one.values]
        for at, name in named:
            if name.lower() in taken:
                yield at, f"the result has the field {name!r:.60} already: rename one"
            taken.append(name.lower())


def _topics(pipeline: Pipeline) -> Found:
    """Find topics that would feed themselves, or that two stages write."""
    sources = pipeline.source.topics
    written: dict[str, KeyPath] = {}
    for at, topic in written_topics(pipeline):
        if topic in sources:
            yield at, f"{topic!r} is a topic of source: what is written would be read again"
        elif topic in written:
            other = key_text(written[topic])
            yield at, f"{topic!r} is written by {other} already: give another topic"
        written.setdefault(topic, at)


def written_topics(pipeline: Pipeline) -> Iterator[tuple[KeyPath, str]]:
    """Yield the topics that stages write, each with its key."""
    if pipeline.clean is not None:
        yield ("clean", "topic"), pipeline.clean.topic
        yield ("clean", "rejected"), pipeline.clean.rejected
    for place, result in enumerate(pipeline.aggregates):
        yield ("aggregate", place, "topic"), result.topic
    for place, ended in enumerate(pipeline.waits):
        yield ("wait", place, "topic"), ended.topic


def _paths(pipeline: Pipeline) -> Found:
    if pipeline.archive is None:
        return
    path, checkpoint = (
        Path(os.path.realpath(one)) for one in (pipeline.archive.path, pipeline.checkpoint)
    )
    if path == checkpoint or checkpoint in path.parents or path in checkpoint.parents:
        yield ("archive", "path"), "lies within the checkpoint, or around it: keep them apart"

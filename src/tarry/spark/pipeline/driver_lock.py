"""Directory of a run: whose checkpoint it is, what its state is of, and which process runs it."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.durable_files import create_if_absent, make_directories, replace
from tarry.spark.file_locks import LockHeld, held
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import AGGREGATE, ARCHIVE, CLEAN, WAIT, Stage
from tarry.spark.steps.decoding import column_types, type_text
from tarry.spark.steps.formats.decoders import field_type
from tarry.spark.steps.refused import StepRefused

log = logging.getLogger("tarry.spark")

# Below the checkpoint, beside the stages; no stage begins with an underscore.
OWN: Final = "_pipeline"
BINDING: Final = "pipeline.json"
PROGRESS: Final = "progress.jsonl"
STATE: Final = ".state.json"

# Column of the event time, which every state is a state of.
TIME: Final = "time"

# Types of the columns that a state is a state of.  The event time needs none: it becomes a time of
# microseconds, whatever values have.
TYPES: Final = "types"

# Parts of the texts of types.
INTEGERS: Final = re.compile(r"\bu?int(8|16|32|64)\b")
WHOLE_NUMBERS: Final = re.compile(r"\bu?int(8|16|32|64)\b|\bdecimal128\(\d+, 0\)")
DECIMALS: Final = re.compile(r"\bdecimal128\(\d+, ")


class CheckpointOwner(msgspec.Struct, frozen=True):
    """Content of `pipeline.json`: what the checkpoint belongs to."""

    name: str
    cluster_id: str
    version: int = 1


def own_directory(pipeline: Pipeline) -> Path:
    """Return the directory of what the run itself keeps."""
    return pipeline.checkpoint / OWN


@contextmanager
def _telling(pipeline: Pipeline) -> Iterator[None]:
    """Raise what the operating system says of the run's own files as a sentence."""
    try:
        yield
    except OSError as error:
        advice = "mend that and start the run again"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "make room and start the run again"
        raise StageFailed(
            f"the checkpoint {pipeline.checkpoint} cannot be written: {error.strerror}. Advice: "
            f"{advice}; it goes on where it stopped"
        ) from error


def bind(pipeline: Pipeline, cluster_id: str) -> None:
    """Take the checkpoint for a pipeline on a cluster.  Raises StageFailed if it is another's."""
    directory = own_directory(pipeline)
    path = directory / BINDING
    with _telling(pipeline):
        make_directories(directory)
        create_if_absent(path, msgspec.json.encode(CheckpointOwner(pipeline.name, cluster_id)))
        text = path.read_bytes()
    try:
        bound = msgspec.json.decode(text, type=CheckpointOwner)
    except msgspec.MsgspecError as error:
        raise StageFailed(f"{path} cannot be read: {error}") from None
    advice = "give this one a checkpoint of its own"
    if bound.name != pipeline.name:
        raise StageFailed(
            f"the checkpoint {pipeline.checkpoint} belongs to the pipeline {bound.name!r}, and "
            f"this is {pipeline.name!r}: {advice}"
        )
    if bound.cluster_id != cluster_id:
        raise StageFailed(
            f"the checkpoint {pipeline.checkpoint} belongs to the cluster {bound.cluster_id}, and "
            f"{pipeline.source.bootstrap} leads to the cluster {cluster_id}: {advice}, or mend "
            "bootstrap"
        )


def bind_state(pipeline: Pipeline, stages: Sequence[Stage]) -> None:
    """Take the checkpoints of stages that keep state for what the file says of it now.

    Spark goes on with the state of other columns, or of columns whose values are told otherwise,
    such as 17 and 17.0, and mixes both in silence.
    Raises StageFailed for a checkpoint whose state is of something else.
    """
    for stage in stages:
        if stage.kind == ARCHIVE:
            continue
        # Empty for a stage that keeps none, so that one which keeps some later is known.
        wanted = _state_of(pipeline, stage)
        path = own_directory(pipeline) / f"{stage.name}{STATE}"
        text = msgspec.json.encode(wanted)
        with _telling(pipeline):
            if not stage.path.exists():
                # Removed, so that the stage begins anew.
                path.unlink(missing_ok=True)
            create_if_absent(path, text)
            kept = path.read_bytes()
        try:
            bound = msgspec.json.decode(kept, type=dict[str, object])
        except msgspec.MsgspecError as error:
            raise StageFailed(f"{path} cannot be read: {error}") from None
        given = msgspec.json.decode(text, type=dict[str, object])
        for key in (TIME, TYPES):
            if bound and key not in bound:
                # Written by a Tarry that did not note it.
                given.pop(key, None)
        _note_types_anew(stage, bound, given)
        for key in {**given, **bound}:
            if bound.get(key) != given.get(key):
                raise StageFailed(
                    f"stage {stage.name}: the state in {stage.path} is of "
                    f"{_difference(key, bound, given)}, or name another checkpoint"
                )
        if kept != text:
            # So that from now on it is bound to all.
            with _telling(pipeline):
                replace(path, text)


def _note_types_anew(stage: Stage, bound: dict[str, object], given: dict[str, object]) -> None:
    """Replace types that an older version noted otherwise, and that are the same."""
    noted, told = bound.get(TYPES), given.get(TYPES)
    if not isinstance(noted, dict) or not isinstance(told, dict):
        return
    for name, kind in told.items():
        was = str(noted.get(name, ""))
        # Integers of an aggregate were noted without their width.
        is_same = INTEGERS.sub("integer", kind) == was
        if is_same or (stage.kind != AGGREGATE and _with_same_text(was) == kind):
            noted[name] = kind


def _with_same_text(kind: str) -> str:
    """Return what a type has in common with those whose values have the same text.

    By their texts events and waits are known, so that a schema may widen numbers.
    """
    return DECIMALS.sub("decimal128(*, ", WHOLE_NUMBERS.sub("integer", kind))


def _state_of(pipeline: Pipeline, stage: Stage) -> dict[str, object]:
    """Return the keys of the file that the state of a stage is made of; empty without a state."""
    once = pipeline.deduplicate
    if stage.kind == CLEAN and once is not None:
        return {"by": once.by, **_columns(pipeline, once.by)}
    for result in pipeline.aggregates:
        if stage.kind == AGGREGATE and result.name == stage.name:
            return {
                "by": result.by,
                "window": result.window,
                "slide": result.slide,
                "session": result.session,
                "values": dict(result.values),
                **_columns(pipeline, result.by, [*result.values.values()], is_typed=True),
            }
    for ended in pipeline.waits:
        if stage.kind == WAIT and ended.name == stage.name:
            return {"key": ended.key, **_columns(pipeline, [ended.key])}
    return {}


def _columns(
    pipeline: Pipeline,
    names: Sequence[str],
    texts: Sequence[str] = (),
    *,
    is_typed: bool = False,
) -> dict[str, object]:
    """Return the name of the time, the types of the other columns of a state (with widths where
    Spark keeps the columns themselves), and what is derived of them."""
    decode = pipeline.decode
    assert decode is not None
    try:
        types = column_types(
            format=decode.format,
            schema=decode.schema,
            message=decode.message,
            registry=decode.registry,
        )
    except StepRefused as refusal:
        raise StageFailed(str(refusal)) from None
    kinds = {name: field_type(types, name) for name in names}
    told = {name: type_text(kind) for name, kind in kinds.items() if kind is not None}
    if not is_typed:
        told = {name: _with_same_text(kind) for name, kind in told.items()}
    return {TIME: pipeline.source.time, TYPES: told, **_derived(pipeline, [*names, *texts])}


def _derived(pipeline: Pipeline, texts: Sequence[str]) -> dict[str, object]:
    """Return the derived columns that these names and expressions have; none for none of them."""
    found: dict[str, str] = {}
    # From the last one on: an expression names those before it.
    for name, text in reversed(list(pipeline.derive.items())):
        word = re.compile(rf"(?<![\w`]){re.escape(name)}(?!\w)", re.IGNORECASE)
        if any(word.search(one) for one in (*texts, *found.values())):
            found[name] = text
    return {"derive": found} if found else {}


def _difference(key: str, bound: Mapping[str, object], given: Mapping[str, object]) -> str:
    """Return what the state is of, what there is instead, and what to write."""
    was, becomes = bound.get(key), given.get(key)
    if key == TYPES and isinstance(was, dict) and isinstance(becomes, dict):
        for name, kind in was.items():
            if becomes.get(name) != kind:
                return (
                    f"the column {name} of type {kind}, and the schema makes it "
                    f"{becomes.get(name, 'no column')}: give it the type that it had"
                )
    return f"{_shown(key, bound)}, and the file has {_shown(key, given)}: write what it had"


def _shown(key: str, values: Mapping[str, object]) -> str:
    value = values.get(key)
    return f"no {key}" if value is None else f"{key} = {msgspec.json.encode(value).decode()}"


def check_free(pipeline: Pipeline, stages: Sequence[Stage]) -> None:
    """Refuse stages that another process runs now, before a Spark is started for them.

    Raises StageFailed.
    """
    if own_directory(pipeline).is_dir():
        with locked(pipeline, stages):
            pass


@contextmanager
def locked(pipeline: Pipeline, stages: Sequence[Stage]) -> Iterator[None]:
    """Keep other processes of this machine from running these stages.

    The sink itself withstands a second driver, on any machine; a lock says it before work is done
    in vain.  The system gives it up with the process.  Where the file system has no locks a
    warning says so.
    """
    is_told = False
    with ExitStack() as locks:
        for stage in stages:
            path = own_directory(pipeline) / f"{stage.name}.lock"
            try:
                with _telling(pipeline):
                    has_locks = locks.enter_context(held(path))
            except LockHeld as other:
                raise StageFailed(
                    f"stage {stage.name} is run by process {other.owner} already, "
                    f"on the checkpoint {pipeline.checkpoint}: end that one, or leave it to it"
                ) from None
            if not has_locks and not is_told:
                is_told = True
                log.warning(
                    "the file system of %s has no locks, so a second process that runs its stages "
                    "would not be refused: see that no other process runs this pipeline",
                    pipeline.checkpoint,
                )
        yield

"""Directory of a run: whose checkpoint it is, and which process runs a stage of it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tarry.spark.durable_files import create_if_absent, make_directories
from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.stages import Stage

# Below the checkpoint, beside the stages; no stage begins with an underscore.
OWN: Final = "_pipeline"
BINDING: Final = "pipeline.json"
PROGRESS: Final = "progress.jsonl"


class CheckpointOwner(msgspec.Struct, frozen=True):
    """Content of `pipeline.json`: what the checkpoint belongs to."""

    name: str
    cluster_id: str
    version: int = 1


def own_directory(pipeline: Pipeline) -> Path:
    """Return the directory of what the run itself keeps."""
    return pipeline.checkpoint / OWN


def bind(pipeline: Pipeline, cluster_id: str) -> None:
    """Take the checkpoint for a pipeline on a cluster.  Raises StageFailed if it is another's."""
    directory = own_directory(pipeline)
    make_directories(directory)
    path = directory / BINDING
    create_if_absent(path, msgspec.json.encode(CheckpointOwner(pipeline.name, cluster_id)))
    try:
        bound = msgspec.json.decode(path.read_bytes(), type=CheckpointOwner)
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


@contextmanager
def locked(pipeline: Pipeline, stages: Sequence[Stage]) -> Iterator[None]:
    """Keep other processes of this machine from running these stages.

    The sink itself withstands a second driver, on any machine; a lock says it before work is done
    in vain.  The system gives it up with the process.
    """
    with ExitStack() as held:
        for stage in stages:
            path = own_directory(pipeline) / f"{stage.name}.lock"
            file = held.enter_context(path.open("a+"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise StageFailed(
                    f"stage {stage.name} is run by process {file.read().strip() or '?'} already, "
                    f"on the checkpoint {pipeline.checkpoint}: end that one, or leave it to it"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield

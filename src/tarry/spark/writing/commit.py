"""Commit: the driver's end of a micro-batch, from what the tasks tell to the mark."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tarry.client.sync.publisher import Publisher
from tarry.link.errors import ClientError
from tarry.spark.writing.directory import SinkDirectory, local_path
from tarry.spark.writing.plan import (
    Plan,
    SinkInterrupted,
    SinkRefused,
    TaskOutput,
    places_of,
)
from tarry.spark.writing.publishing import Publishing, expiration_ms_of
from tarry.spark.writing.steps import SinkSteps
from tarry.spark.writing.target import other_cluster, topics_made_anew
from tarry.spark.writing.write_options import CHECKPOINT_LOCATION, WriteOptions

log = logging.getLogger("tarry.spark")

# Of a write that is no stream: its directory stands for it.
BATCH_QUERY: Final = "batch"
BATCH_ID: Final = 0


def query_id_of(checkpoint: str) -> str:
    """Read the id of the query that a checkpoint belongs to."""
    path = local_path(checkpoint, CHECKPOINT_LOCATION) / "metadata"
    try:
        text = path.read_bytes()
        return str(msgspec.json.decode(text, type=dict[str, object])["id"])
    except (OSError, KeyError, msgspec.MsgspecError) as error:
        raise SinkRefused(
            f"{path} does not tell which query the checkpoint belongs to ({error}): the driver "
            "must see the checkpoint as a directory of a file system"
        ) from error


def commit(
    options: WriteOptions, query_id: str, batch_id: int, outputs: Sequence[TaskOutput]
) -> Plan:
    """Bring a micro-batch into the topics, once; return the plan that counted, as it was before
    anything of it was amended."""
    assert options.location is not None
    directory = SinkDirectory(local_path(options.location))
    limit_ms = options.producer_settings.delivery_timeout_ms
    try:
        directory.bind(query_id)
        with Publisher(options.client_settings) as publisher:
            steps = SinkSteps(query_id, expiration_ms_of(publisher))
            plan = Publishing(directory, publisher, limit_ms).run(
                steps.commit(batch_id, tuple(outputs))
            )
            # An amended plan lacks what was sent before it.
            plan = directory.read_first_plan(batch_id) or plan
    except Exception as error:
        # What is frozen waits for the next start; the rest is written anew.
        drop(options, batch_id, outputs)
        if not isinstance(error, ClientError):
            raise
        raise SinkInterrupted(
            f"micro-batch {batch_id} was not written to its end: {error}. Start the query again "
            "when that is mended; it goes on where it stopped"
        ) from error
    log.info(
        "micro-batch %d of query %s: %d records in %d partitions",
        batch_id,
        query_id,
        plan.record_count,
        len(plan.shares),
    )
    return plan


def commit_batch(options: WriteOptions, outputs: Sequence[TaskOutput]) -> None:
    """Bring a write that is no stream into the topics, once for its directory.

    A write that was begun is brought to its end first, whatever this one has.  Raises SinkRefused
    if the directory stands for another write: of other rows, to other topics, another cluster, or
    topics that were deleted since.
    """
    assert options.location is not None
    stands_for = f"the directory {options.location} stands for a write"
    try:
        _check_target(options, stands_for)
    except Exception:
        drop(options, BATCH_ID, outputs)
        raise
    plan = commit(options, BATCH_QUERY, BATCH_ID, outputs)
    planned, topics = _topics_of(plan), _listed(topic for topic, _ in places_of(outputs))
    count = sum(batch.count for one in outputs for part in one.parts for batch in part.batches)
    difference = ""
    if topics and planned and topics != planned:
        difference = f"to {planned}, which is done, and this one is to {topics}"
    elif plan.record_count != count:
        difference = f"of {plan.record_count} records, which is done, and this one has {count}"
    if difference:
        raise SinkRefused(
            f"{stands_for} {difference}: nothing of this one was written. Give another write a "
            "sinkLocation of its own; of the same write with more rows, only the rows that it did "
            "not have"
        )


def _check_target(options: WriteOptions, stands_for: str) -> None:
    """Refuse a write that the directory has a plan for which leads elsewhere.  Without this, one
    that is done would count as done for every cluster and topic."""
    assert options.location is not None
    directory = SinkDirectory(local_path(options.location))
    directory.bind(BATCH_QUERY)
    plan = directory.read_first_plan(BATCH_ID)
    if plan is None:
        return
    try:
        with Publisher(options.client_settings) as publisher:
            cluster_id = other_cluster(publisher, plan)
            anew = topics_made_anew(publisher, plan, plan.topic_ids) if cluster_id is None else []
    except ClientError as error:
        raise SinkInterrupted(
            f"{stands_for} that was begun, and what became of it cannot be asked: {error}. Write "
            "again when that is mended; where a topic of it was deleted, with a sinkLocation of "
            "its own"
        ) from error
    if cluster_id is not None:
        raise SinkRefused(
            f"{stands_for} to cluster {plan.cluster_id}, and kafka.bootstrap.servers lead to "
            f"cluster {cluster_id}: nothing of this one was written. Give another write a "
            "sinkLocation of its own"
        )
    if anew:
        gone = ", ".join(anew)
        rest = _listed(share.topic for share in plan.shares if share.topic not in anew)
        advice = "give the write a sinkLocation of its own to write all of it again"
        if rest:
            advice = (
                f"write the rows of {gone} again with a sinkLocation of their own, and those of "
                f"{rest} only where you do not find them there"
            )
        raise SinkRefused(
            f"{stands_for} to {_topics_of(plan)}, and {gone} was deleted and made anew since, so "
            f"what was written there is gone: {advice}"
        )


def _topics_of(plan: Plan) -> str:
    return _listed(share.topic for share in plan.shares)


def _listed(topics: Iterable[str]) -> str:
    return ", ".join(sorted(set(topics)))


def drop(options: WriteOptions, batch_id: int, outputs: Sequence[TaskOutput]) -> None:
    """Remove the files of tasks, unless a plan names them; no commit of theirs is under way."""
    assert options.location is not None
    directory = SinkDirectory(local_path(options.location))
    stored = directory.read_plan(batch_id)
    kept = {file.name for file in stored.plan.files} if stored is not None else set()
    names = [one.file.name for one in outputs if one.file is not None]
    directory.remove([name for name in names if name not in kept])

"""Plan: a micro-batch that is frozen, so that whoever sends it sends the same.

It names the files with the finished batches in the order of the tasks, the producer id, and for
each partition the first sequence, the batches in their order and the end of its log when the plan
was made.  No batch of the plan lies before that end, so the headers from there on tell how far it
was sent.

A plan is written once.  A partition whose leader has forgotten the producer id goes on under a new
one in an *amended* plan, which counts instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate
from typing import Final

import msgspec

from tarry.base.errors import CorruptData
from tarry.base.ids import TopicPartition
from tarry.records.batch import SEQUENCE_MAX

# Format of the text.
VERSION: Final = 1

# A producer id that rested longer than this part of its expiration is not trusted any more.
EXPIRATION_PARTS: Final = 10

# Topic id in hexadecimal digits, as a cluster tells it that knows none.
NO_TOPIC_ID: Final = "0" * 32


class SinkRefused(Exception):
    """The sink cannot go on; the text says why, where, and what to do.

    `is_target_gone` if what was written before is not where this goes: it was deleted, or it is in
    another cluster.
    """

    def __init__(self, text: str, *, is_target_gone: bool = False) -> None:
        super().__init__(text)
        self.is_target_gone = is_target_gone


class SinkInterrupted(SinkRefused):
    """The sink came no further for now: a query that is started again goes on where it stopped."""


class PlannedFile(msgspec.Struct, frozen=True):
    """File of finished batches that a task wrote; `crc` is its CRC32C."""

    name: str
    size: int
    crc: int


class PlannedBatch(msgspec.Struct, frozen=True, array_like=True):
    """Batch of `count` records in one of the files, which are counted from 0."""

    file: int
    position: int
    size: int
    count: int


class TaskPart(msgspec.Struct, frozen=True):
    """Batches of one partition in a task's file, in their order."""

    topic: str
    partition: int
    batches: tuple[PlannedBatch, ...]


class TaskOutput(msgspec.Struct, frozen=True):
    """Output of a task; no file if it had no rows."""

    file: PlannedFile | None = None
    parts: tuple[TaskPart, ...] = ()


class Share(msgspec.Struct, frozen=True, dict=True):
    """Share of one partition in a plan."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_sequence: int
    # End of the log before anything of the share was sent.
    end_offset: int
    batches: tuple[PlannedBatch, ...]
    # Epoch of the leader that told the end; -1: not known.
    leader_epoch: int = -1

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def count(self) -> int:
        """Count of records."""
        return sum(batch.count for batch in self.batches)

    def sequence_of(self, ordinal: int) -> int:
        """Return the sequence of the batch with this number, counted from 0; behind the last
        batch: where the next plan goes on."""
        return (self.first_sequence + self._counts_before[ordinal]) & SEQUENCE_MAX

    @cached_property
    def _counts_before(self) -> list[int]:
        """Count of records before each batch, and of all of them."""
        return list(accumulate((batch.count for batch in self.batches), initial=0))

    def ordinal_behind(self, last_sequence: int) -> int | None:
        """Return how many batches are in the log if this is the last sequence there; None: it is
        no end of a batch of this share."""
        records = ((last_sequence - self.first_sequence) & SEQUENCE_MAX) + 1
        for ordinal, batch in enumerate(self.batches):
            records -= batch.count
            if records == 0:
                return ordinal + 1
            if records < 0:
                break
        return None


class Plan(msgspec.Struct, frozen=True, dict=True):
    """Plan of one micro-batch."""

    batch_id: int
    query_id: str
    cluster_id: str
    producer_id: int
    producer_epoch: int
    # Calendar time, before anything was asked of the cluster for this plan.
    noted_ms: int
    files: tuple[PlannedFile, ...]
    shares: tuple[Share, ...]
    # Of all topics that the query has written to: a topic that was made anew is another topic.
    topic_ids: dict[str, str]
    # The next sequence of each partition that the id has been used for.
    sequences: dict[str, dict[int, int]]
    # Count of the plans of this micro-batch before.
    amendment: int = 0
    version: int = VERSION

    @property
    def record_count(self) -> int:
        return sum(share.count for share in self.shares)

    def share_of(self, place: TopicPartition) -> Share:
        return self._by_place[place]

    @cached_property
    def _by_place(self) -> dict[TopicPartition, Share]:
        return {share.place: share for share in self.shares}


def encode_plan(plan: Plan) -> bytes:
    """Write a plan as JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=1)


def decode_plan(text: bytes, name: str) -> Plan:
    """Read a plan; `name` is of its file, for the text of errors."""
    try:
        version = msgspec.json.decode(text, type=dict[str, object]).get("version")
        if version != VERSION:
            raise CorruptData(f"{name} has the format {version}, this Tarry reads {VERSION}")
        return msgspec.json.decode(text, type=Plan)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"{name} is damaged: {error}") from None


class Noted(msgspec.Struct, frozen=True):
    """Answer of the cluster before a plan is made: ends of logs, ids of topics and cluster."""

    ends: dict[TopicPartition, int]
    topic_ids: dict[str, str]
    cluster_id: str
    # Of the leaders that told the ends.
    leader_epochs: dict[TopicPartition, int] = {}


class Freezing(msgspec.Struct, frozen=True):
    """Ingredients of a plan besides what the cluster says."""

    batch_id: int
    query_id: str
    outputs: tuple[TaskOutput, ...]
    noted_ms: int
    producer: tuple[int, int]
    # The plan whose sequences go on; None: they begin at 0.
    goes_on: Plan | None = None
    # The plan before, whatever its producer.
    before: Plan | None = None


def is_rested(plan: Plan, now_ms: int, expiration_ms: int) -> bool:
    """Return whether a producer id rested for so long that the next plan takes another one; a clock
    that went back tells nothing, and counts as a rest."""
    return not 0 <= now_ms - plan.noted_ms <= expiration_ms // EXPIRATION_PARTS


def places_of(outputs: Iterable[TaskOutput]) -> list[TopicPartition]:
    """Return the partitions that tasks have batches for, in order."""
    found = {(part.topic, part.partition): None for one in outputs for part in one.parts}
    return sorted(found)


def make_plan(freezing: Freezing, noted: Noted) -> Plan:
    """Make the plan of a micro-batch.  Raises SinkRefused if cluster or topics are others than
    before."""
    topic_ids = _same_topics(freezing, noted)
    sequences: dict[str, dict[int, int]] = {}
    if freezing.goes_on is not None:
        sequences = {name: dict(of) for name, of in freezing.goes_on.sequences.items()}
    files: list[PlannedFile] = []
    batches: dict[TopicPartition, list[PlannedBatch]] = {}
    for output in freezing.outputs:
        if output.file is None:
            continue
        for part in output.parts:
            batches.setdefault((part.topic, part.partition), []).extend(
                msgspec.structs.replace(batch, file=len(files)) for batch in part.batches
            )
        files.append(output.file)
    shares: list[Share] = []
    producer_id, producer_epoch = freezing.producer
    for (topic, partition), of_place in sorted(batches.items()):
        of_topic = sequences.setdefault(topic, {})
        share = Share(
            topic,
            partition,
            producer_id,
            producer_epoch,
            of_topic.get(partition, 0),
            noted.ends[topic, partition],
            tuple(of_place),
            noted.leader_epochs.get((topic, partition), -1),
        )
        of_topic[partition] = share.sequence_of(len(share.batches))
        shares.append(share)
    return Plan(
        batch_id=freezing.batch_id,
        query_id=freezing.query_id,
        cluster_id=noted.cluster_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        noted_ms=freezing.noted_ms,
        files=tuple(files),
        shares=tuple(shares),
        topic_ids=topic_ids,
        sequences=sequences,
    )


def _same_topics(freezing: Freezing, noted: Noted) -> dict[str, str]:
    before = freezing.before
    if before is None:
        return dict(noted.topic_ids)
    if noted.cluster_id != before.cluster_id:
        raise refused_cluster(before, noted.cluster_id)
    for topic, topic_id in sorted(noted.topic_ids.items()):
        if not is_same_topic(before.topic_ids.get(topic, topic_id), topic_id):
            raise SinkRefused(
                f"topic {topic!r} was deleted and made anew since this query wrote to it, so what "
                "it wrote is gone: begin a query with a checkpoint of its own",
                is_target_gone=True,
            )
    known = {name: one for name, one in noted.topic_ids.items() if one != NO_TOPIC_ID}
    return {**noted.topic_ids, **before.topic_ids, **known}


def is_same_topic(planned: str | None, topic_id: str) -> bool:
    """Return whether a topic is the one that a plan notes; a cluster without topic ids, as it may
    have been then, tells zeros."""
    return planned == topic_id or NO_TOPIC_ID in (planned, topic_id)


def refused_cluster(plan: Plan, cluster_id: str) -> SinkRefused:
    """Make the error of servers that lead to another cluster than the plan's."""
    return SinkRefused(
        f"the sink belongs to cluster {plan.cluster_id}, and kafka.bootstrap.servers leads to "
        f"cluster {cluster_id}: give the servers of the former, or begin a query with a "
        "checkpoint of its own",
        is_target_gone=True,
    )


def amended(
    plan: Plan, producer: tuple[int, int], sent: Mapping[TopicPartition, int], noted: Noted
) -> Plan:
    """Make the plan in which these partitions go on under a new producer id, behind the batches
    that are in their logs already."""
    shares: list[Share] = []
    for share in plan.shares:
        if share.place in sent:
            share = Share(  # noqa: PLW2901  # the partition's share from now on
                share.topic,
                share.partition,
                *producer,
                0,
                noted.ends[share.place],
                share.batches[sent[share.place] :],
                noted.leader_epochs.get(share.place, -1),
            )
        shares.append(share)
    return msgspec.structs.replace(plan, shares=tuple(shares), amendment=plan.amendment + 1)

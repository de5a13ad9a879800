"""Topics of a pipeline: which are there, and those that a run makes before it begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tarry.base.errors import TOPIC_ALREADY_EXISTS
from tarry.base.spelling import Spelling
from tarry.client import Admin, BrokerError, NewTopic
from tarry.client.settings import CLIENT_SETTINGS, COMMON
from tarry.spark.pipeline.file.mistakes import Mistake
from tarry.spark.pipeline.file.sections import Pipeline
from tarry.spark.pipeline.file.toml_lines import KeyPath
from tarry.spark.pipeline.stages import CLEAN, Stage
from tarry.spark.writing.topic_limits import AFTER_MAX

POLICY: Final = "cleanup.policy"
COMPACTED: Final = {POLICY: "compact"}
BATCH_BYTES_MAX: Final = "max.message.bytes"
INT32_MAX: Final = 2**31 - 1
# A rejected record says in its headers why it is one.
HEADERS_BYTES: Final = 65_536


class SourceLimits(NamedTuple):
    """Limits of what sources take: the largest ones."""

    # Size of a batch in bytes.
    batch_bytes: int
    # The same of those sources that say one themselves; None: all of them leave it to the cluster.
    own_batch_bytes: int | None = None
    # How far a record's time may lie ahead; None: as the cluster has it.
    own_ahead_ms: int | None = None


@dataclass(frozen=True)
class PipelineTopics:
    """Plan of topics: partitions of those that are there, and those that are to be made."""

    cluster_id: str
    partitions: Mapping[str, int]
    missing: Sequence[NewTopic]
    mistakes: Sequence[Mistake] = field(default=())


def admin_of(pipeline: Pipeline, limits: Mapping[str, str] | None = None) -> Admin:
    """Make the client that looks at topics."""
    settings = pipeline.reading()
    common = {key: text for key, text in settings.items() if CLIENT_SETTINGS[key].scope == COMMON}
    return Admin({**common, **(limits or {})})


def find_topics(admin: Admin, pipeline: Pipeline, stages: Sequence[Stage]) -> PipelineTopics:
    """Look which topics of the stages are there.  Raises ClientError if the cluster is away."""
    wanted = [name for stage in stages for name in (*stage.reads, *stage.writes)]
    found = admin.find_topics(tuple(dict.fromkeys([*pipeline.source.topics, *wanted])))
    partitions = {name: len(topic.partitions) for name, topic in found.items()}
    made = [name for stage in stages for name in stage.writes]
    read = [(at, name) for at, name in read_topics(pipeline) if name not in made]
    lacking = [(at, name) for at, name in read if name not in partitions]
    missing: list[NewTopic] = []
    if not lacking and any(name not in partitions for name in made):
        sources = pipeline.source.topics
        missing = plan_missing(stages, sources, partitions, _source_limits(admin, sources))
    return PipelineTopics(
        admin.describe_cluster().cluster_id or "",
        partitions,
        missing,
        [_lacking(pipeline, at, name, admin) for at, name in lacking],
    )


def plan_missing(
    stages: Sequence[Stage],
    sources: Sequence[str],
    partitions: Mapping[str, int],
    limits: SourceLimits | None = None,
) -> list[NewTopic]:
    """Plan the topics that stages write and that are not there.

    They get as many partitions as the largest source has, so that records of a key stay together.
    Those that records of the sources go to take what the sources take.
    """
    count = max(partitions[name] for name in sources)
    topics: list[NewTopic] = []
    for stage in stages:
        for name in stage.writes:
            configs = dict(COMPACTED) if name in stage.compacted else {}
            if stage.kind == CLEAN and limits is not None:
                configs = _configs_for(limits, is_rejected=name == stage.writes[-1])
            if name not in partitions:
                topics.append(NewTopic(name, count, configs=configs))
    return topics


def _configs_for(limits: SourceLimits, *, is_rejected: bool) -> dict[str, str]:
    """Return the settings of a topic that takes records of the sources.

    A record that a source has just taken is rejected with a few headers more, so the topic of
    rejected records takes larger batches always.
    """
    configs: dict[str, str] = {}
    size = limits.batch_bytes if is_rejected else limits.own_batch_bytes
    if size is not None:
        configs[BATCH_BYTES_MAX] = str(min(size + HEADERS_BYTES, INT32_MAX))
    if limits.own_ahead_ms is not None:
        configs[AFTER_MAX] = str(limits.own_ahead_ms)
    return configs


def _source_limits(admin: Admin, sources: Sequence[str]) -> SourceLimits | None:
    """Return the limits of what the sources take; None: not known."""
    found: dict[str, list[int]] = {BATCH_BYTES_MAX: [], AFTER_MAX: []}
    own: dict[str, list[int]] = {BATCH_BYTES_MAX: [], AFTER_MAX: []}
    for name in sources:
        try:
            entries = admin.describe_topic_configs(name)
        except BrokerError:
            # Not every user may ask.
            return None
        for entry in entries:
            if entry.name in found and (entry.value or "").isdigit():
                found[entry.name].append(int(entry.value or 0))
                own[entry.name] += [] if entry.is_default else found[entry.name][-1:]
    if not found[BATCH_BYTES_MAX]:
        return None
    return SourceLimits(
        max(found[BATCH_BYTES_MAX]),
        max(own[BATCH_BYTES_MAX], default=None),
        max(found[AFTER_MAX]) if own[AFTER_MAX] else None,
    )


def make_topics(admin: Admin, topics: Sequence[NewTopic]) -> None:
    """Make topics; one that somebody else has made meanwhile is fine."""
    for outcome in admin.create_topics(list(topics), outcomes=True) if topics else ():
        error = outcome.error
        if error is None:
            continue
        if isinstance(error, BrokerError) and error.code == TOPIC_ALREADY_EXISTS:
            continue
        raise error


def read_topics(pipeline: Pipeline) -> Iterator[tuple[KeyPath, str]]:
    """Yield the topics that the file says are read, each with its key."""
    for place, name in enumerate(pipeline.source.topics):
        yield ("source", "topics", place), name
    if pipeline.archive is not None:
        for place, name in enumerate(pipeline.archive.topics):
            if name not in pipeline.source.topics:
                yield ("archive", "topics", place), name


def _lacking(pipeline: Pipeline, at: KeyPath, name: str, admin: Admin) -> Mistake:
    near = Spelling(topic.name for topic in admin.list_topics()).near(name)
    hint = f"; did you mean {near}?" if near else ""
    return pipeline.mistake(
        at,
        f"topic {name!r} does not exist at {pipeline.source.bootstrap}{hint}",
    )

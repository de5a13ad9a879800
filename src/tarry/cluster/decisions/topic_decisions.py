"""Decisions about creations and deletions of topics: Kafka's checks, in Kafka's order, pure.

Nothing is changed here: a decision consists of records for the metadata store and an outcome for
each topic of the request, in the request's order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.base.doors import Random
from tarry.base.errors import InvalidSetting
from tarry.base.ids import random_id
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.base.partition_row import PartitionRow
from tarry.base.setting import shown
from tarry.base.settings import Settings
from tarry.cluster.configs.delay_settings import check_delay
from tarry.cluster.configs.topic_settings import checked_configs
from tarry.cluster.decisions.replica_choice import (
    Refusal,
    check_factor,
    check_replicas,
    default_factor,
    placeable,
    rows_as_made,
    spread_replicas,
)
from tarry.cluster.state.levels import (
    SCHEDULED_RECORDS,
    THIS_RELEASE,
    LevelRefused,
    Release,
    decide_use,
    may_delay,
)
from tarry.cluster.state.records import (
    DeletionPending,
    MetadataRecord,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state.scheduled_topics import topic_shown_by, why_not_changed
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.cluster.state.topic_names import METADATA_TOPIC, collision_key, name_fault
from tarry.cluster.store.change import Change, ChangeOfMany

# Number of partitions or replicas in a request that stands for the broker's default.
DEFAULT: Final = -1

STANDS_STILL: Final = (
    "the topic is frozen, a row of it in etcd is damaged: the brokers' logs say which and why; "
    "mend it, or start a release that can read it"
)


class TopicWanted:
    """A topic that is to be created.  `assignments` are pairs of partition index and replicas."""

    __slots__ = ("assignments", "configs", "name", "partition_count", "replication_factor")

    def __init__(
        self,
        name: str,
        partition_count: int = DEFAULT,
        replication_factor: int = DEFAULT,
        assignments: list[tuple[int, list[int]]] | None = None,
        configs: list[tuple[str, str | None]] | None = None,
    ) -> None:
        self.name = name
        self.partition_count = partition_count
        self.replication_factor = replication_factor
        self.assignments = assignments or []
        self.configs = configs or []

    def asked_count(self, settings: Settings) -> int:
        """Return how many partitions are asked for, whether that many can be created or not."""
        if self.assignments:
            return len(self.assignments)
        count = self.partition_count
        return max(settings.num_partitions if count == DEFAULT else count, 0)


class TopicResult:
    """Outcome for one topic of a request; `created` has the record of a topic that is created."""

    __slots__ = ("created", "error_code", "message", "name", "topic_id")

    def __init__(self, name: str | None, topic_id: bytes | None = None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = errors.NONE
        self.message: str | None = None
        self.created: TopicCreated | None = None

    def refuse(self, error_code: int, message: str) -> TopicResult:
        self.error_code = error_code
        self.message = message
        return self


class TopicDecision:
    """Records to append, and an outcome for each topic."""

    __slots__ = ("outcomes", "records")

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []
        self.outcomes: list[TopicResult] = []


class TopicChange(ChangeOfMany[TopicResult]):
    """Topics that one request creates, grows or deletes, each with an outcome of its own.

    `before` is the change of the same request that ends before this one begins; None for the first.
    """

    def __init__(
        self, decide: Callable[[ClusterState], TopicDecision], before: TopicChange | None = None
    ) -> None:
        super().__init__()
        self._decide = decide
        self._before = before
        self._has_records = False
        self.outcomes: list[TopicResult] = []
        # Number of partitions that this change and those before it create.
        self.partitions_made = 0

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        decision = self._decide(view)
        self.outcomes = decision.outcomes
        self._has_records = bool(decision.records)
        self.partitions_made = sum(
            len(outcome.created.partitions)
            for outcome in self.outcomes
            if outcome.created is not None and outcome.error_code == errors.NONE
        )
        if self._before is not None:
            self.partitions_made += self._before.partitions_made
        return decision.records

    def fail(self, error_code: int, message: str) -> None:
        # A decision without records rests on changes of others that may be lost, so all outcomes
        # fail.
        for outcome in self.outcomes:
            if outcome.error_code == errors.NONE or not self._has_records:
                outcome.refuse(error_code, message)


# -- creation


class TopicIds:
    """The ids of the topics that a change creates.  An id is drawn once, however often it is
    decided.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._drawn: dict[str, bytes] = {}

    def of(self, name: str, view: ClusterState) -> bytes:
        """Return the id of the new topic with this name."""
        topic_id = self._drawn.get(name)
        while topic_id is None or view.topic_by_id(topic_id) is not None:
            topic_id = random_id(self._random)
        self._drawn[name] = topic_id
        return topic_id

    def has_made(self, topic: TopicState) -> bool:
        """Return whether an earlier decision of the same change has created this topic."""
        return self._drawn.get(topic.name) == topic.topic_id


def decide_create_topics(
    view: ClusterState,
    wanted: list[TopicWanted],
    settings: Settings,
    ids: TopicIds,
    partitions_left: int = PARTITIONS_PER_REQUEST_MAX,
    release: Release = THIS_RELEASE,
) -> TopicDecision:
    """Decide about each topic by itself: it is created or refused.  A name that is given twice is
    refused once.  At most `partitions_left` partitions are created.
    """
    decision = TopicDecision()
    by_name: dict[str, list[TopicWanted]] = {}
    for topic in wanted:
        by_name.setdefault(topic.name, []).append(topic)
    taken: dict[str, str] = {}
    # Leaders of a topic continue where those of the last topic ended, to spread small topics
    # evenly.
    made_count = view.partition_count
    for name, (topic, *others) in by_name.items():
        outcome = TopicResult(name)
        decision.outcomes.append(outcome)
        if others:
            outcome.refuse(errors.INVALID_REQUEST, f"topic '{shown(name)}' is asked for twice")
            continue
        made = view.topic(name)
        if made is not None and ids.has_made(made):
            # The outcome of an earlier decision was unknown, and now the topic is there.
            outcome.topic_id = made.topic_id
            outcome.created = made.record()
            continue
        try:
            _check_name(view, name, taken)
            configs = _checked_configs(topic, settings)
            begins = decide_use(view, SCHEDULED_RECORDS, release) if may_delay(configs) else []
            rows = _assign(view, topic, settings, partitions_left, made_count)
        except Refusal as refusal:
            outcome.refuse(refusal.error_code, refusal.message)
            continue
        except LevelRefused as refused:
            outcome.refuse(errors.UNSUPPORTED_VERSION, str(refused))
            continue
        if begins and begins[0] not in decision.records:
            decision.records[:0] = begins
        partitions_left -= len(rows)
        made_count += len(rows)
        taken[collision_key(name)] = name
        outcome.topic_id = ids.of(name, view)
        outcome.created = TopicCreated(
            topic_id=outcome.topic_id, name=name, partitions=rows, configs=configs
        )
        decision.records.append(outcome.created)
    return decision


def _check_name(view: ClusterState, name: str, taken: dict[str, str]) -> None:
    fault = name_fault(name)
    if fault:
        raise Refusal(errors.INVALID_TOPIC_EXCEPTION, fault)
    if name == METADATA_TOPIC:
        raise Refusal(errors.INVALID_REQUEST, f"'{name}' is the broker's own and no topic")
    shown = topic_shown_by(name)
    if shown:
        raise Refusal(
            errors.INVALID_TOPIC_EXCEPTION,
            f"'{name}' is the name under which the scheduled records of a topic '{shown}' are read",
        )
    if view.topic(name) is not None:
        raise Refusal(errors.TOPIC_ALREADY_EXISTS, f"topic '{name}' exists already")
    if view.is_being_deleted(name):
        raise Refusal(errors.TOPIC_ALREADY_EXISTS, f"topic '{name}' is being deleted; try again")
    like = view.topic_like(name) or taken.get(collision_key(name))
    if like is not None:
        raise Refusal(
            errors.INVALID_TOPIC_EXCEPTION,
            f"topic '{name}' clashes with topic '{like}': '.' and '_' are one in metric names",
        )


def _checked_configs(topic: TopicWanted, settings: Settings) -> dict[str, str]:
    configs: dict[str, str] = {}
    for key, value in topic.configs:
        if value is None:
            raise Refusal(errors.INVALID_CONFIG, f"{shown(key)} has no value")
        configs[key] = value
    try:
        checked = checked_configs(configs, settings)
        check_delay({}, checked, settings)
    except InvalidSetting as fault:
        raise Refusal(errors.INVALID_CONFIG, str(fault)) from fault
    return checked


def _assign(
    view: ClusterState, topic: TopicWanted, settings: Settings, partitions_left: int, made: int
) -> list[PartitionRow]:
    """Assign replicas to the topic's partitions; `made` is the number of partitions of other
    topics.
    """
    if topic.assignments:
        assignment = _given_assignment(view, topic)
    else:
        assignment = _spread(view, topic, settings, partitions_left, made)
    if len(assignment) > partitions_left:
        raise Refusal(*_too_many_partitions())
    return rows_as_made(view, assignment)


def _given_assignment(view: ClusterState, topic: TopicWanted) -> list[list[int]]:
    if topic.replication_factor != DEFAULT:
        raise Refusal(
            errors.INVALID_REQUEST, "with assignments given, the replication factor must be -1"
        )
    if topic.partition_count != DEFAULT:
        raise Refusal(
            errors.INVALID_REQUEST, "with assignments given, the number of partitions must be -1"
        )
    by_index: dict[int, list[int]] = {}
    for index, replicas in topic.assignments:
        if index in by_index:
            raise Refusal(errors.INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned twice")
        factor = len(topic.assignments[0][1])
        check_replicas(view, index, replicas, factor)
        by_index[index] = replicas
    if any(index not in by_index for index in range(len(by_index))):
        raise Refusal(
            errors.INVALID_REPLICA_ASSIGNMENT,
            "partitions are numbered from 0 on without a gap; the assignments are not",
        )
    return [by_index[index] for index in range(len(by_index))]


def _spread(
    view: ClusterState, topic: TopicWanted, settings: Settings, partitions_left: int, made: int
) -> list[list[int]]:
    count = topic.partition_count
    if count == DEFAULT:
        count = settings.num_partitions
    if count <= 0:
        raise Refusal(errors.INVALID_PARTITIONS, f"a topic has at least 1 partition, not {count}")
    factor = topic.replication_factor
    # If no broker serves, that is the fault to report, as any replication factor would be too high.
    placeable(view)
    if factor == DEFAULT:
        factor = default_factor(view, settings.default_replication_factor)
    if factor <= 0:
        raise Refusal(
            errors.INVALID_REPLICATION_FACTOR,
            f"the replication factor is at least 1, or -1 for the default, not {factor}",
        )
    check_factor(view, factor)
    if count > partitions_left:
        raise Refusal(*_too_many_partitions())
    return spread_replicas(view, count, factor, made)


def _too_many_partitions() -> tuple[int, str]:
    return (
        errors.POLICY_VIOLATION,
        f"one request creates at most {PARTITIONS_PER_REQUEST_MAX} partitions",
    )


# -- deletion


# A topic as a request for its deletion names it.
NameOrId = tuple[str | None, bytes | None]


def decide_delete_topics(
    view: ClusterState,
    wanted: list[NameOrId],
    tried: dict[NameOrId, tuple[str, bytes]] | None = None,
) -> TopicDecision:
    """Decide about topics given by name or id.  A topic that is named twice, in either way, is
    refused once.

    `tried` has the names and ids of the topics that earlier decisions of this change deleted.
    """
    decision = TopicDecision()
    tried = {} if tried is None else tried
    asked: dict[tuple[str | None, bytes | None], int] = {}
    for each in wanted:
        asked[each] = asked.get(each, 0) + 1
    meant = _meant_ids(view, list(asked))
    for (name, topic_id), times in asked.items():
        outcome = TopicResult(name, topic_id)
        deleted = tried.get((name, topic_id))
        if deleted is not None and view.topic_by_id(deleted[1]) is None:
            # The outcome of an earlier decision was unknown, and now the topic is gone.
            decision.outcomes.append(TopicResult(*deleted))
            continue
        topic = view.topic(name) if name is not None else None
        if topic_id is not None:
            topic = view.topic_by_id(topic_id)
        if name is not None and topic_id is not None:
            outcome.refuse(errors.INVALID_REQUEST, "give a topic's name or its id, not both")
        elif name is None and topic_id is None:
            outcome.refuse(errors.INVALID_REQUEST, "give a topic's name or its id")
        elif times > 1:
            outcome.refuse(errors.INVALID_REQUEST, "this topic is named twice")
        elif topic is None and (why := why_not_changed(view, name, topic_id)):
            outcome.refuse(errors.INVALID_TOPIC_EXCEPTION, why)
        elif topic is None and topic_id is not None:
            outcome.refuse(errors.UNKNOWN_TOPIC_ID, "no topic has this id")
        elif topic is None:
            outcome.refuse(errors.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
        elif meant[topic.topic_id] > 1:
            # The topic is named by name and by id: only the entry with the id gets the refusal.
            if topic_id is None:
                continue
            outcome.name = topic.name
            outcome.refuse(errors.INVALID_REQUEST, "this topic is named by its name and by its id")
        elif topic.is_frozen:
            outcome.name = topic.name
            outcome.refuse(errors.UNKNOWN_SERVER_ERROR, STANDS_STILL)
        else:
            outcome.name = topic.name
            outcome.topic_id = topic.topic_id
            tried[name, topic_id] = topic.name, topic.topic_id
            decision.records.append(TopicDeleted(topic_id=topic.topic_id))
        decision.outcomes.append(outcome)
    return decision


def _meant_ids(view: ClusterState, asked: list[NameOrId]) -> dict[bytes, int]:
    """Count how many entries of the request name each topic."""
    meant: dict[bytes, int] = {}
    for name, topic_id in asked:
        topic = view.topic(name) if name is not None else None
        if topic_id is not None:
            topic = view.topic_by_id(topic_id)
        if topic is not None:
            meant[topic.topic_id] = meant.get(topic.topic_id, 0) + 1
    return meant


class RemoveTopic(Change):
    """Removal of a deleted topic: one broker has no data of it under its name any more.

    When the last broker reports this, the topic's name is free.
    """

    def __init__(self, topic_id: bytes, broker_id: int) -> None:
        super().__init__()
        self.topic_id = topic_id
        self.broker_id = broker_id

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        deleted = view.deleted_topics.get(self.topic_id)
        if deleted is None:
            return []
        left = [other for other in deleted.broker_ids if other != self.broker_id]
        if len(left) == len(deleted.broker_ids) > 0:
            return []
        if left:
            return [DeletionPending(topic_id=self.topic_id, broker_ids=left)]
        return [TopicRemoved(topic_id=self.topic_id)]

"""Decisions about the growth of topics: Kafka's checks of CreatePartitions, pure.

A topic can only grow.  Each topic of a request is grown or refused by itself."""

from __future__ import annotations

from tarry.base import errors
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.base.partition_row import PartitionRow
from tarry.base.setting import shown
from tarry.cluster.decisions.replica_choice import (
    Refusal,
    check_replicas,
    rows_as_made,
    spread_before,
    spread_replicas,
)
from tarry.cluster.decisions.topic_decisions import STANDS_STILL, TopicDecision, TopicResult
from tarry.cluster.state.records import PartitionsAdded
from tarry.cluster.state.scheduled_topics import why_not_changed
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.cluster.state.topic_names import is_internal


class GrowthWanted:
    """A topic that is to have `count` partitions; `assignments` has the replicas of each new
    one.
    """

    __slots__ = ("assignments", "count", "name")

    def __init__(self, name: str, count: int, assignments: list[list[int]] | None = None) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments


def decide_create_partitions(
    view: ClusterState,
    wanted: list[GrowthWanted],
    tried: dict[bytes, list[list[int]]] | None = None,
) -> TopicDecision:
    """Decide about each topic by itself: it grows or is refused.  A name that is given twice is
    refused once.

    `tried` has, by topic, the replicas of the partitions that earlier decisions of this change
    added.
    """
    decision = TopicDecision()
    tried = {} if tried is None else tried
    by_name: dict[str, list[GrowthWanted]] = {}
    for growth in wanted:
        by_name.setdefault(growth.name, []).append(growth)
    partitions_left = PARTITIONS_PER_REQUEST_MAX
    for name, (growth, *others) in by_name.items():
        outcome = TopicResult(name)
        decision.outcomes.append(outcome)
        if others:
            outcome.refuse(errors.INVALID_REQUEST, f"topic '{shown(name)}' is asked for twice")
            continue
        topic = view.topic(name)
        if topic is None:
            why = why_not_changed(view, name)
            if why:
                outcome.refuse(errors.INVALID_TOPIC_EXCEPTION, why)
            else:
                outcome.refuse(errors.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
            continue
        if topic.is_frozen:
            outcome.refuse(errors.UNKNOWN_SERVER_ERROR, STANDS_STILL)
            continue
        added = tried.get(topic.topic_id)
        if added and len(topic.partitions) == growth.count and added == _last(topic, len(added)):
            # The outcome of an earlier decision was unknown, and now the partitions are there.
            outcome.topic_id = topic.topic_id
            continue
        try:
            rows = _new_rows(view, topic, growth, partitions_left)
        except Refusal as refusal:
            outcome.refuse(refusal.error_code, refusal.message)
            continue
        partitions_left -= len(rows)
        outcome.topic_id = topic.topic_id
        tried[topic.topic_id] = [row.replicas for row in rows]
        decision.records.append(PartitionsAdded(topic_id=topic.topic_id, partitions=rows))
    return decision


def _last(topic: TopicState, count: int) -> list[list[int]]:
    return [row.replicas for row in topic.partitions[-count:]]


def _new_rows(
    view: ClusterState, topic: TopicState, growth: GrowthWanted, partitions_left: int
) -> list[PartitionRow]:
    first = len(topic.partitions)
    added = growth.count - first
    if is_internal(topic.name):
        raise Refusal(
            errors.INVALID_PARTITIONS,
            f"the number of partitions of '{topic.name}' says who is responsible for what; "
            "it cannot be changed",
        )
    if added <= 0:
        raise Refusal(
            errors.INVALID_PARTITIONS,
            f"topic '{topic.name}' has {first} partitions, it can only get more than that",
        )
    if growth.assignments is not None and len(growth.assignments) != added:
        raise Refusal(
            errors.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partitions are to be added and {len(growth.assignments)} are assigned",
        )
    if added > partitions_left:
        raise Refusal(
            errors.POLICY_VIOLATION,
            f"one request creates at most {PARTITIONS_PER_REQUEST_MAX} partitions",
        )
    # Replicas that a reassignment adds or removes do not count in the topic's replication factor.
    last = topic.partitions[-1]
    factor = len(last.replicas) - len(last.adding)
    if growth.assignments is None:
        assignment = spread_replicas(view, added, factor, spread_before(view, last.replicas))
    else:
        assignment = growth.assignments
        for position, replicas in enumerate(assignment):
            check_replicas(view, first + position, replicas, factor)
    return rows_as_made(view, assignment)

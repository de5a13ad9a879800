"""Creating and deleting topics: every refusal, and that nothing is changed by deciding."""

from __future__ import annotations

import random

import pytest

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.replica_choice import spread_replicas
from tarry.cluster.decisions.topic_decisions import (
    TopicDecision,
    TopicIds,
    TopicResult,
    TopicWanted,
    decide_create_topics,
    decide_delete_topics,
)
from tarry.cluster.state.records import (
    BrokerDescribed,
    BrokerRegistered,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    TopicCreated,
    TopicDeleted,
)
from tarry.cluster.state.state import ClusterState


def cluster(*topics: str, brokers: int = 1) -> ClusterState:
    state = ClusterState()
    for broker_id in range(1, brokers + 1):
        state.apply(BrokerRegistered(broker_id=broker_id))
    for record in create(state, *[TopicWanted(name) for name in topics]).records:
        state.apply(record)
    return state


def create(
    state: ClusterState, *wanted: TopicWanted, settings: dict[str, str] | None = None
) -> TopicDecision:
    return decide_create_topics(
        state, list(wanted), Settings(settings or {}), TopicIds(random.Random(1))
    )


def only(decision: TopicDecision) -> TopicResult:
    assert len(decision.outcomes) == 1
    return decision.outcomes[0]


def created(record: MetadataRecord) -> TopicCreated:
    assert isinstance(record, TopicCreated)
    return record


def test_minus_one_means_the_brokers_defaults():
    decision = create(cluster(), TopicWanted("orders"), settings={"num.partitions": "3"})

    record = created(decision.records[0])
    assert record.name == "orders"
    assert [row.replicas for row in record.partitions] == [[1], [1], [1]]
    assert all(row.isr == [1] and row.leader_id == 1 for row in record.partitions)
    assert only(decision).topic_id == record.topic_id


def test_a_decision_changes_nothing():
    state = cluster("bills")
    before = state.snapshot()

    create(state, TopicWanted("orders"))
    decide_delete_topics(state, [("bills", None)])

    assert state.snapshot() == before


def test_replicas_are_spread_over_the_brokers():
    decision = create(cluster(brokers=3), TopicWanted("orders", 4, 1))

    rows = created(decision.records[0]).partitions
    assert [row.leader_id for row in rows] == [1, 2, 3, 1]
    assert spread_replicas(cluster(brokers=3), 4, 2) == [[1, 2], [2, 3], [3, 1], [1, 3]]


@pytest.mark.parametrize(
    ("wanted", "error_code", "word"),
    [
        (TopicWanted("a b"), errors.INVALID_TOPIC_EXCEPTION, "ASCII"),
        (TopicWanted(""), errors.INVALID_TOPIC_EXCEPTION, "empty"),
        (TopicWanted("__cluster_metadata"), errors.INVALID_REQUEST, "own"),
        (TopicWanted("a.b"), errors.TOPIC_ALREADY_EXISTS, "exists"),
        (TopicWanted("a_b"), errors.INVALID_TOPIC_EXCEPTION, "clashes with topic 'a.b'"),
        (TopicWanted("n", 0), errors.INVALID_PARTITIONS, "at least 1"),
        (TopicWanted("n", -2), errors.INVALID_PARTITIONS, "at least 1"),
        (TopicWanted("n", 1, 0), errors.INVALID_REPLICATION_FACTOR, "at least 1"),
        (
            TopicWanted("n", 1, 2),
            errors.INVALID_REPLICATION_FACTOR,
            "number of brokers that serve, 1",
        ),
        (TopicWanted("n", 10_001), errors.POLICY_VIOLATION, "10000"),
        (TopicWanted("n", 1, -1, [(0, [1])]), errors.INVALID_REQUEST, "partitions must be -1"),
        (TopicWanted("n", -1, 1, [(0, [1])]), errors.INVALID_REQUEST, "factor must be -1"),
        (TopicWanted("n", -1, -1, [(1, [1])]), errors.INVALID_REPLICA_ASSIGNMENT, "gap"),
        (TopicWanted("n", -1, -1, [(-1, [1])]), errors.INVALID_REPLICA_ASSIGNMENT, "gap"),
        (TopicWanted("n", -1, -1, [(0, [])]), errors.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
        (TopicWanted("n", -1, -1, [(0, [2])]), errors.INVALID_REPLICA_ASSIGNMENT, "broker 2"),
        (TopicWanted("n", -1, -1, [(0, [1, 1])]), errors.INVALID_REPLICA_ASSIGNMENT, "1 twice"),
        (
            TopicWanted("n", -1, -1, [(0, [1]), (0, [1])]),
            errors.INVALID_REPLICA_ASSIGNMENT,
            "assigned twice",
        ),
        (TopicWanted("n", configs=[("nope", "1")]), errors.INVALID_CONFIG, "nope"),
        (TopicWanted("n", configs=[("retention.ms", None)]), errors.INVALID_CONFIG, "no value"),
        (TopicWanted("n", configs=[("retention.ms", "x")]), errors.INVALID_CONFIG, "whole number"),
        (
            TopicWanted("n", configs=[("remote.storage.enable", "true")]),
            errors.INVALID_CONFIG,
            "had",
        ),
    ],
)
def test_what_cannot_be_created_is_refused_with_kafkas_code_and_a_sentence(
    wanted, error_code, word
):
    decision = create(cluster("a.b"), wanted)

    assert only(decision).error_code == error_code
    assert word in (only(decision).message or "")
    assert decision.records == []


def test_a_default_above_the_number_of_brokers_makes_as_many_replicas_as_there_are_brokers():
    decision = create(cluster(), TopicWanted("n"), settings={"default.replication.factor": "3"})

    assert only(decision).error_code == errors.NONE
    created = only(decision).created
    assert created is not None
    assert [len(row.replicas) for row in created.partitions] == [1]


@pytest.mark.parametrize("factor", [-1, 1])
def test_while_no_broker_serves_a_creation_and_a_growth_are_to_be_asked_for_again(factor):
    """Lives end all at once when etcd was away: that is neither a wrong factor nor a crash."""
    state = cluster("orders", brokers=2)
    for broker_id in (1, 2):
        state.apply(BrokerDescribed(broker_id=broker_id, directory_id="d", rack="", endpoints={}))
    state.apply(LifeChanged(broker_id=1, broker_epoch=7, phase="starting"))
    state.apply(LifeChanged(broker_id=2, broker_epoch=8, phase="serving"))
    state.apply(LifeEnded(broker_id=2))

    made = only(create(state, TopicWanted("more", replication_factor=factor)))
    grown = only(decide_create_partitions(state, [GrowthWanted("orders", 4)]))

    for outcome in (made, grown):
        assert outcome.error_code == errors.NOT_CONTROLLER
        assert "no broker of the cluster serves at this moment" in outcome.message


def test_the_name_is_looked_at_before_the_settings_and_these_before_the_partitions():
    existing = TopicWanted("a.b", 0, 7, configs=[("nope", "1")])
    fresh = TopicWanted("n", 0, 7, configs=[("nope", "1")])

    decision = create(cluster("a.b"), existing, fresh)

    codes = [outcome.error_code for outcome in decision.outcomes]
    assert codes == [errors.TOPIC_ALREADY_EXISTS, errors.INVALID_CONFIG]


def test_a_name_that_is_asked_for_twice_is_refused_once_and_the_others_are_created():
    decision = create(cluster(), TopicWanted("a"), TopicWanted("b"), TopicWanted("a"))

    assert [(outcome.name, outcome.error_code) for outcome in decision.outcomes] == [
        ("a", errors.INVALID_REQUEST),
        ("b", errors.NONE),
    ]
    assert [created(record).name for record in decision.records] == ["b"]


def test_two_names_of_one_request_may_not_clash():
    decision = create(cluster(), TopicWanted("a.b"), TopicWanted("a_b"))

    codes = [outcome.error_code for outcome in decision.outcomes]
    assert codes == [errors.NONE, errors.INVALID_TOPIC_EXCEPTION]


def test_one_request_has_a_bounded_number_of_partitions():
    decision = create(cluster(), TopicWanted("a", 9_999), TopicWanted("b", 2), TopicWanted("c", 1))

    codes = [outcome.error_code for outcome in decision.outcomes]
    assert codes == [errors.NONE, errors.POLICY_VIOLATION, errors.NONE]


def test_the_last_of_two_values_for_one_key_counts():
    wanted = TopicWanted("n", configs=[("retention.ms", "1"), ("retention.ms", "2")])

    decision = create(cluster(), wanted)

    assert created(decision.records[0]).configs == {"retention.ms": "2"}


def test_a_name_is_free_again_only_when_the_old_topics_data_is_removed():
    state = cluster("orders")
    for record in decide_delete_topics(state, [("orders", None)]).records:
        state.apply(record)

    decision = create(state, TopicWanted("orders"))

    assert only(decision).error_code == errors.TOPIC_ALREADY_EXISTS
    assert "being deleted" in (only(decision).message or "")


def test_topics_are_deleted_by_name_and_by_id():
    state = cluster("a", "b")
    a, b = state.topics["a"], state.topics["b"]

    decision = decide_delete_topics(state, [("a", None), (None, b.topic_id)])

    assert decision.records == [
        TopicDeleted(topic_id=a.topic_id),
        TopicDeleted(topic_id=b.topic_id),
    ]
    assert [(each.name, each.topic_id) for each in decision.outcomes] == [
        ("a", a.topic_id),
        ("b", b.topic_id),
    ]


def test_what_cannot_be_deleted_is_refused_with_kafkas_code():
    state = cluster("a", "b", "c")
    ids = {name: topic.topic_id for name, topic in state.topics.items()}

    decision = decide_delete_topics(
        state,
        [
            ("nope", None),
            (None, b"?" * 16),
            ("a", ids["a"]),
            (None, None),
            ("b", None),
            ("b", None),
            ("c", None),
            (None, ids["c"]),
        ],
    )

    assert decision.records == []
    assert [(each.name, each.topic_id, each.error_code) for each in decision.outcomes] == [
        ("nope", None, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (None, b"?" * 16, errors.UNKNOWN_TOPIC_ID),
        ("a", ids["a"], errors.INVALID_REQUEST),
        (None, None, errors.INVALID_REQUEST),
        ("b", None, errors.INVALID_REQUEST),
        ("c", ids["c"], errors.INVALID_REQUEST),
    ]

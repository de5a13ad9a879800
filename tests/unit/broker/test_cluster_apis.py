"""Administration of a cluster over frames: what clients see of it, elections, reassignments."""

from __future__ import annotations

import pytest
from tests.support.cluster.cluster_user import ClusterUser
from tests.support.cluster.simulated_cluster import SimulatedCluster

from tarry.base import errors
from tarry.cluster.decisions.row_changes import ROWS_PER_TRANSACTION
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tarry.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tarry.simulation import faults

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def cluster() -> SimulatedCluster:
    cluster = SimulatedCluster(7)
    for node in cluster.nodes:
        node.settings["auto.leader.rebalance.enable"] = "false"
        node.start()
    cluster.run_until(cluster.all_know_all, "brokers that know each other")
    return cluster


@pytest.fixture
def user(cluster: SimulatedCluster) -> ClusterUser:
    return ClusterUser(cluster)


def kill(cluster: SimulatedCluster, number: int) -> None:
    """Kill a broker for good, and wait until the others know."""
    node = cluster.nodes[number - 1]
    node.cut_off()
    node.lose(faults.KILL)
    stores = cluster.stores()
    cluster.run_until(
        lambda: all(number not in store.state.placeable_ids for store in stores), "a death"
    )
    cluster.world.run_for(500)


def described(user: ClusterUser, topic: str) -> list[DescribeTopicPartitionsResponsePartition]:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=topic)], response_partition_limit=100
    )
    answer = user.call(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert isinstance(answer, DescribeTopicPartitionsResponse)
    return answer.topics[0].partitions


def elect(
    user: ClusterUser,
    kind: int,
    places: dict[str, list[int]] | None,
    *,
    version: int = 2,
    timeout_ms: int = 5_000,
) -> dict[tuple[str, int], int]:
    asked = None if places is None else [TopicPartitions(*each) for each in places.items()]
    request = ElectLeadersRequest(topic_partitions=asked, timeout_ms=timeout_ms)
    if version >= 1:
        request.election_type = kind
    answer = user.call(api_keys.ELECT_LEADERS, version, request)
    assert isinstance(answer, ElectLeadersResponse)
    assert answer.error_code == errors.NONE
    return {
        (topic.topic, each.partition_id): each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def reassign(
    user: ClusterUser,
    places: dict[tuple[str, int], list[int] | None],
    *,
    timeout_ms: int = 5_000,
) -> dict[tuple[str, int], int]:
    topics = [
        ReassignableTopic(name, [ReassignablePartition(index, replicas)])
        for (name, index), replicas in places.items()
    ]
    request = AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)
    answer = user.call(api_keys.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert answer.error_code == errors.NONE
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.responses
        for each in topic.partitions
    }


def under_way(
    user: ClusterUser, asked: dict[str, list[int]] | None = None
) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    topics = None
    if asked is not None:
        topics = [ListPartitionReassignmentsTopics(*each) for each in asked.items()]
    request = ListPartitionReassignmentsRequest(topics=topics)
    answer = user.call(api_keys.LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert isinstance(answer, ListPartitionReassignmentsResponse)
    return {
        (topic.name, each.partition_index): (
            each.replicas,
            each.adding_replicas,
            each.removing_replicas,
        )
        for topic in answer.topics
        for each in topic.partitions
    }


# -- what clients see


@pytest.mark.parametrize("version", range(14))
def test_metadata_tells_who_leads_and_who_lives(
    cluster: SimulatedCluster, user: ClusterUser, version: int
) -> None:
    user.create("alone", [3])
    kill(cluster, 3)
    request = MetadataRequest([MetadataRequestTopic(name="alone")])

    answer = user.call(api_keys.METADATA, version, request)

    assert isinstance(answer, MetadataResponse)
    assert [broker.node_id for broker in answer.brokers] == [1, 2]
    assert [broker.host for broker in answer.brokers] == ["b1", "b2"]
    if version >= 1:
        assert answer.controller_id == 1
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (errors.LEADER_NOT_AVAILABLE, -1)
    assert (partition.replica_nodes, partition.isr_nodes) == ([3], [])
    assert partition.offline_replicas == ([3] if version >= 5 else [])


def test_the_last_in_sync_is_eligible_once_it_is_dead(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    user.create("alone", [3])
    assert described(user, "alone")[0].isr_nodes == [3]

    kill(cluster, 3)

    (partition,) = described(user, "alone")
    assert (partition.error_code, partition.leader_id) == (errors.LEADER_NOT_AVAILABLE, -1)
    assert partition.isr_nodes == []
    assert partition.eligible_leader_replicas == [3]
    assert partition.offline_replicas == [3]


def test_brokers_without_a_life_are_told_if_asked_for(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    kill(cluster, 2)

    def brokers(**asked: bool) -> list[tuple[int, str, bool]]:
        answer = user.call(api_keys.DESCRIBE_CLUSTER, 2, DescribeClusterRequest(**asked))
        assert isinstance(answer, DescribeClusterResponse)
        return [(each.broker_id, each.host, each.is_fenced) for each in answer.brokers]

    assert brokers() == [(1, "b1", False), (3, "b3", False)]
    assert brokers(include_fenced_brokers=True) == [*brokers(), (2, "b2", True)]


# -- elections


@pytest.mark.parametrize("version", [0, 1, 2])
def test_any_broker_elects_the_preferred_leader(
    cluster: SimulatedCluster, user: ClusterUser, version: int
) -> None:
    user.create("t", [1, 2], [2, 1])
    assert reassign(user, {("t", 0): [2, 1]}) == {("t", 0): errors.NONE}
    assert [each.leader_id for each in described(user, "t")] == [1, 2]

    codes = elect(
        ClusterUser(cluster, 3), PREFERRED, {"t": [0, 1, 0, 2], "nope": [0]}, version=version
    )

    assert codes == {
        ("t", 0): errors.NONE,
        ("t", 1): errors.ELECTION_NOT_NEEDED,
        ("t", 2): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [(each.leader_id, each.leader_epoch) for each in described(user, "t")] == [
        (2, 1),
        (2, 0),
    ]


def test_all_partitions_are_elected_if_none_is_named(user: ClusterUser) -> None:
    user.create("t", [1, 2], [2, 1], [1, 2])
    reassign(user, {("t", 0): [2, 1], ("t", 2): [2, 1]})

    assert elect(user, PREFERRED, None) == {("t", 0): errors.NONE, ("t", 2): errors.NONE}
    assert elect(user, PREFERRED, None) == {}


def test_an_unclean_election_leads_where_nobody_in_sync_lives(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    user.create("alone", [3])
    assert elect(user, UNCLEAN, {"alone": [0]}) == {("alone", 0): errors.ELECTION_NOT_NEEDED}
    kill(cluster, 3)
    assert elect(user, UNCLEAN, {"alone": [0]}) == {
        ("alone", 0): errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
    }
    assert reassign(user, {("alone", 0): [1]}) == {("alone", 0): errors.NONE}

    assert elect(user, UNCLEAN, {"alone": [0]}) == {("alone", 0): errors.NONE}

    cluster.run_until(lambda: described(user, "alone")[0].replica_nodes == [1], "the end")
    (partition,) = described(user, "alone")
    assert (partition.error_code, partition.leader_id) == (errors.NONE, 1)
    assert (partition.isr_nodes, partition.eligible_leader_replicas) == ([1], [])


@pytest.mark.parametrize("version", [0, 1])
def test_wrong_elections_are_refused_as_a_whole(user: ClusterUser, version: int) -> None:
    user.create("t", [1])
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0] * 10_001)])
    if version >= 1:
        request = ElectLeadersRequest(election_type=7, topic_partitions=None)

    answer = user.call(api_keys.ELECT_LEADERS, version, request)

    assert isinstance(answer, ElectLeadersResponse)
    if version >= 1:
        assert answer.error_code == errors.INVALID_REQUEST
    else:
        (topic,) = answer.replica_election_results
        assert topic.partition_result[0].error_code == errors.INVALID_REQUEST


# -- reassignments


def test_a_reassignment_is_under_way_until_it_is_cancelled(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    user.create("t", [1, 2], [2, 1])
    # It does not come into sync.
    kill(cluster, 3)
    assert under_way(user) == {}

    assert reassign(user, {("t", 0): [3, 1]}) == {("t", 0): errors.NONE}

    expected = {("t", 0): ([3, 1, 2], [3], [2])}
    assert under_way(user) == expected
    assert under_way(user, {"t": [0, 0, 1, 9, -1], "nope": [0]}) == expected
    assert under_way(user, {"t": [1]}) == {}
    assert described(user, "t")[0].replica_nodes == [3, 1, 2]

    assert reassign(user, {("t", 0): None, ("t", 1): None}) == {
        ("t", 0): errors.NONE,
        ("t", 1): errors.NO_REASSIGNMENT_IN_PROGRESS,
    }
    assert under_way(user) == {}
    assert described(user, "t")[0].replica_nodes == [1, 2]


def test_reassignments_that_no_transaction_holds_end_all(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    count = 2 * ROWS_PER_TRANSACTION + 1
    user.create("t", *[[1]] * count)
    wanted: dict[tuple[str, int], list[int] | None] = {("t", index): [2] for index in range(count)}
    reassign(user, wanted)
    cluster.run_until(lambda: not under_way(user), "the ends of all")

    assert [each.replica_nodes for each in described(user, "t")] == [[2]] * count


def test_a_reassignment_ends_when_its_target_is_in_sync_and_the_leader_hands_over(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    user.create("t", [1])

    assert reassign(user, {("t", 0): [2, 3]}) == {("t", 0): errors.NONE}
    cluster.run_until(lambda: not under_way(user), "the end of the reassignment")

    (partition,) = described(user, "t")
    assert (partition.leader_id, partition.leader_epoch) == (2, 1)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2, 3], [2, 3])


def test_replicas_that_are_in_sync_take_over_at_once(user: ClusterUser) -> None:
    user.create("t", [1, 2])

    assert reassign(user, {("t", 0): [2]}) == {("t", 0): errors.NONE}

    (partition,) = described(user, "t")
    assert (partition.leader_id, partition.leader_epoch) == (2, 1)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2], [2])


def test_each_partition_has_an_error_of_its_own(user: ClusterUser) -> None:
    user.create("t", [1], [1], [1], [1])

    codes = reassign(
        user,
        {
            ("t", 0): [1, 9],
            ("t", 1): [2, 2],
            ("t", 2): [],
            ("t", 3): [1, 2],
            ("t", 4): [1],
            ("nope", 0): [1],
        },
    )

    assert codes == {
        ("t", 0): errors.INVALID_REPLICA_ASSIGNMENT,
        ("t", 1): errors.INVALID_REPLICA_ASSIGNMENT,
        ("t", 2): errors.INVALID_REPLICA_ASSIGNMENT,
        ("t", 3): errors.NONE,
        ("t", 4): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): errors.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_partition_that_is_named_twice_stays_as_it_is(user: ClusterUser) -> None:
    user.create("t", [1])
    partitions = [ReassignablePartition(0, [2]), ReassignablePartition(0, [3])]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])

    answer = user.call(api_keys.ALTER_PARTITION_REASSIGNMENTS, 0, request)

    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert [each.error_code for each in answer.responses[0].partitions] == [errors.INVALID_REQUEST]
    assert under_way(user) == {}


def test_too_many_partitions_are_refused(user: ClusterUser) -> None:
    partitions = [ReassignablePartition(index, [1]) for index in range(10_001)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", partitions)])

    answer = user.call(api_keys.ALTER_PARTITION_REASSIGNMENTS, 0, request)

    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert answer.error_code == errors.INVALID_REQUEST
    assert "at most 10000" in (answer.error_message or "")


def test_many_partitions_are_reassigned_in_one_request(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    user.create("t", *[[1]] * 400)
    kill(cluster, 3)

    codes = reassign(user, {("t", index): [1, 3] for index in range(400)})

    assert set(codes.values()) == {errors.NONE}
    assert len(under_way(user)) == 400


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_no_time_is_a_time_out_and_the_broker_goes_on(user: ClusterUser, timeout_ms: int) -> None:
    user.create("t", *[[1, 2]] * 300)
    every = {("t", index): [2, 1] for index in range(300)}

    assert reassign(user, every, timeout_ms=timeout_ms) == dict.fromkeys(
        every, errors.REQUEST_TIMED_OUT
    )
    elected = elect(user, PREFERRED, {"t": [0]}, timeout_ms=timeout_ms)

    assert elected[("t", 0)] in (errors.REQUEST_TIMED_OUT, errors.ELECTION_NOT_NEEDED)
    assert set(reassign(user, every).values()) == {errors.NONE}


# -- unregistration


def unregister(user: ClusterUser, broker_id: int) -> tuple[int, str]:
    answer = user.call(api_keys.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(broker_id))
    assert isinstance(answer, UnregisterBrokerResponse)
    return answer.error_code, answer.error_message or ""


def test_a_broker_is_unregistered_once_it_is_dead_and_has_no_replicas(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    user.create("t", [1, 3])
    assert unregister(user, 3)[0] == errors.INVALID_REQUEST
    assert unregister(user, -1)[0] == errors.BROKER_ID_NOT_REGISTERED
    kill(cluster, 3)
    assert "replicas of 1 partitions, t-0" in unregister(user, 3)[1]
    reassign(user, {("t", 0): [1]})

    assert unregister(user, 3) == (errors.NONE, "")

    assert unregister(user, 3)[0] == errors.BROKER_ID_NOT_REGISTERED
    assert cluster.stores()[0].state.broker_ids == [1, 2]
    node = cluster.nodes[2]
    node.heal()
    node.reconnect()
    cluster.run_until(lambda: node.is_ready, "a broker that registers again")
    cluster.world.run_for(100)
    assert cluster.stores()[0].state.broker_ids == [1, 2, 3]


# -- many topics


@pytest.mark.parametrize(("size", "code"), [(3_900, errors.NONE), (7_900, errors.POLICY_VIOLATION)])
def test_settings_of_many_groups_are_never_too_large_for_a_transaction(
    user: ClusterUser, size: int, code: int
) -> None:
    tags = [AlterableConfig("streams.rack.aware.assignment.tags", 0, "t" * size)]
    names = [f"{number:030000}" if code else f"{number}" for number in range(30)]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(32, name, tags) for name in names]
    )

    answer = user.call(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)

    assert isinstance(answer, IncrementalAlterConfigsResponse)
    assert {one.error_code for one in answer.responses} == {code}


def test_more_topics_than_a_transaction_holds_are_made_configured_grown_and_deleted(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    names = [f"t{number}" for number in range(200)]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    twice = CreatableTopic(name="t7", num_partitions=1, replication_factor=1)

    made = user.call(
        api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[*topics, twice], timeout_ms=9_000)
    )
    values = dict.fromkeys([*names, "unknown"], "5000") | {"t9": "five"}
    configured = user.call(
        api_keys.INCREMENTAL_ALTER_CONFIGS,
        1,
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(2, name, [AlterableConfig("retention.ms", 0, value)])
                for name, value in values.items()
            ]
        ),
    )
    settings = {name: topic.configs for name, topic in cluster.stores()[0].state.topics.items()}
    grown = user.call(
        api_keys.CREATE_PARTITIONS,
        3,
        CreatePartitionsRequest([CreatePartitionsTopic(name, 2, None) for name in names], 9_000),
    )
    gone = user.call(
        api_keys.DELETE_TOPICS,
        6,
        DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=9_000
        ),
    )

    assert isinstance(made, CreateTopicsResponse)
    codes = {each.name: each.error_code for each in made.topics}
    assert len(codes) == len(made.topics) == 200
    assert codes.pop("t7") == errors.INVALID_REQUEST
    assert set(codes.values()) == {errors.NONE}
    assert isinstance(configured, IncrementalAlterConfigsResponse)
    wrong = {
        each.resource_name: each.error_code for each in configured.responses if each.error_code
    }
    assert [each.resource_name for each in configured.responses] == list(values)
    assert wrong == {
        "unknown": errors.UNKNOWN_TOPIC_OR_PARTITION,
        "t7": errors.UNKNOWN_TOPIC_OR_PARTITION,
        "t9": errors.INVALID_CONFIG,
    }
    assert {name for name in settings if settings[name] != {"retention.ms": "5000"}} == {"t9"}
    assert isinstance(grown, CreatePartitionsResponse)
    assert sum(each.error_code == errors.NONE for each in grown.results) == 199
    assert isinstance(gone, DeleteTopicsResponse)
    assert sum(each.error_code == errors.NONE for each in gone.responses) == 199
    assert not cluster.stores()[0].state.topics


@pytest.mark.parametrize("key", [api_keys.CREATE_TOPICS, api_keys.DELETE_TOPICS])
def test_thousands_of_topics_that_cannot_be_had_are_refused_at_once(
    user: ClusterUser, key: int
) -> None:
    """Each portion of them changes nothing, and ends as it is asked for."""
    names = [f"no/{number}" for number in range(10_000)]
    if key == api_keys.CREATE_TOPICS:
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names
        ]
        made = user.call(key, 7, CreateTopicsRequest(topics=topics, timeout_ms=9_000))
        assert isinstance(made, CreateTopicsResponse)
        codes = [each.error_code for each in made.topics]
    else:
        states = [DeleteTopicState(name=name) for name in names]
        gone = user.call(key, 6, DeleteTopicsRequest(topics=states, timeout_ms=9_000))
        assert isinstance(gone, DeleteTopicsResponse)
        codes = [each.error_code for each in gone.responses]

    assert len(codes) == 10_000
    assert errors.NONE not in codes


def test_the_bound_of_partitions_is_one_of_the_request_and_not_of_its_transactions(
    user: ClusterUser,
) -> None:
    topics = [
        CreatableTopic(name=f"t{number}", num_partitions=300, replication_factor=1)
        for number in range(40)
    ]

    answer = user.call(
        api_keys.CREATE_TOPICS,
        7,
        CreateTopicsRequest(topics=topics, timeout_ms=9_000, validate_only=True),
    )

    assert isinstance(answer, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [
        *[errors.NONE] * 33,
        *[errors.POLICY_VIOLATION] * 7,
    ]


# -- the log of the broker


def test_the_log_tells_who_moved_elected_and_unregistered(
    cluster: SimulatedCluster, user: ClusterUser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="tarry.broker")
    user.create("t", [1, 2])

    reassign(user, {("t", 0): [2, 1]})
    elect(user, PREFERRED, {"t": [0]})
    reassign(user, {("t", 0): [2]})
    kill(cluster, 3)
    unregister(user, 3)

    told = [line for line in caplog.messages if "by client 'user1'" in line]
    assert [line.partition(", by client")[0] for line in told[1:]] == [
        "partition t-0: replicas 2,1 (were 1,2)",
        "partition t-0: broker 2 elected (before it led 1)",
        "partition t-0: replicas 2 (were 2,1)",
        "broker 3 taken out of the cluster",
    ]


def test_a_topic_is_deleted_while_a_replica_is_away(
    cluster: SimulatedCluster, user: ClusterUser
) -> None:
    """It is gone for clients, and nobody waits for the dead broker but who wants its name."""
    user.create("orders", [1, 2, 3])
    kill(cluster, 3)
    asked = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=5_000)
    began_ms = cluster.world.agenda.now_ms

    answer = user.call(api_keys.DELETE_TOPICS, 6, asked)

    assert isinstance(answer, DeleteTopicsResponse)
    assert [each.error_code for each in answer.responses] == [errors.NONE]
    assert cluster.world.agenda.now_ms - began_ms < 2_000
    store = cluster.stores()[0]
    cluster.run_until(
        lambda: [each.broker_ids for each in store.state.deleted_topics.values()] == [(3,)],
        "the living have removed it",
    )

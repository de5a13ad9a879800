"""Groups of real clients whose coordinator goes and comes back: two moves, or as many as asked.

By themselves two groups have a member of every client.  `TARRY_TEST_MOVES=10` has every client and
assignor in a group of its own ride over ten moves, by SIGKILL and SIGTERM in turn: for minutes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Final

import pytest
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.java_groups import JavaGroups
from tests.support.interop.moving_groups import (
    MovingGroup,
    go_on,
    move_away,
    move_back,
    offences_of,
)

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    pytest.mark.slow,
]

SETTINGS: Final = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
}

MOVES: Final = int(os.environ.get("TARRY_TEST_MOVES", "0"))
ENDS: Final = (signal.SIGKILL, signal.SIGTERM)

# Members by the assignor that all of them have.
TOGETHER: Final = {
    "range": ["confluent-kafka", "kafka-python", "aiokafka", "java", "tarry", "tarry consume"],
    "cooperative-sticky": ["confluent-kafka", "kafka-python", "java", "tarry consume"],
}


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        yield made


@pytest.fixture
def groups(cluster: BrokerCluster, java_groups: JavaGroups) -> Iterator[list[MovingGroup]]:
    """Groups that are stable and have read and committed something."""
    made: list[MovingGroup] = []
    for assignor, clients in TOGETHER.items():
        teams = [[client] * 2 for client in clients] if MOVES else [clients]
        for number, team in enumerate(teams):
            made.append(MovingGroup(cluster, f"{assignor}-{number}", assignor, java_groups))
            made[-1].join(team)
    for group in made:
        group.scene.wait_until_shared_by(*group.scene.members)
    go_on(made)
    yield made
    for group in made:
        group.close()


@pytest.mark.timeout(600 * max(MOVES, 1))
def test_members_ride_over_moves_of_their_coordinator(
    cluster: BrokerCluster, groups: list[MovingGroup]
) -> None:
    before = [group.changes() for group in groups]

    for number in range(max(MOVES // 2, 1)):
        move_away(cluster, groups, ENDS[number % 2])
        move_back(cluster, groups)

    assert offences_of(cluster, groups) == []
    for group, then in zip(groups, before, strict=True):
        assert group.scene.state() == "STABLE"
        # Whoever has the group's log needs no rebalance to go on with it.
        assert group.changes() == then, group.scene.told()

"""Two nodes of Apache Kafka in two racks: each face reads from the replica in its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.broker_process import wait_until
from tests.support.client.faces import make_face
from tests.support.interop.kafka_server import KafkaServer, KafkaUnavailable, free_port
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, NewTopic, Producer

pytestmark = pytest.mark.slow

LEADER, FOLLOWER = 1, 2
HEAP_MEGABYTES = 256
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class TwoRacks(NamedTuple):
    """A leader in rack a and a follower in rack b."""

    leader: KafkaServer
    follower: KafkaServer


def server_of(
    directory: Path, broker_id: int, rack: str, first: KafkaServer | None = None
) -> KafkaServer:
    """Make a node: the first one is the controller too."""
    properties = {
        "node.id": str(broker_id),
        "broker.rack": rack,
        "replica.selector.class": SELECTOR,
        # A follower that stands still on a busy machine stays in sync.
        "replica.lag.time.max.ms": str(PATIENCE_S * 1_000),
    }
    port = free_port()
    if first is not None:
        properties |= {
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
        }
    return KafkaServer(
        directory / f"node-{broker_id}",
        port,
        heap_megabytes=HEAP_MEGABYTES,
        properties=properties,
    )


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoRacks]:
    directory = tmp_path_factory.mktemp("racks")
    leader = server_of(directory, LEADER, "a")
    follower = server_of(directory, FOLLOWER, "b", leader)
    try:
        for server in (leader, follower):
            server.start()
        yield TwoRacks(leader, follower)
    except KafkaUnavailable as reason:
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    finally:
        # The controller goes last: the other one tells it that it stops.
        follower.stop()
        leader.stop()


@pytest.fixture(scope="module")
def topic(racks: TwoRacks) -> str:
    """A topic whose follower has all that its leader has."""
    with Admin(bootstrap_servers=racks.leader.address) as admin:
        wait_until(
            lambda: "both" if len(admin.describe_cluster().brokers) == 2 else "", "both nodes"
        )
        (outcome,) = admin.create_topics([NewTopic("t", assignment=[[LEADER, FOLLOWER]])])
        assert outcome.error is None

        def in_sync() -> str:
            # The broker hears of the topic behind its controller's answer.
            found = admin.find_topics(["t"])
            is_so = found and sorted(found["t"].partitions[0].isr) == [LEADER, FOLLOWER]
            return "yes" if is_so else ""

        wait_until(in_sync, "the follower in sync")
    return "t"


@pytest.mark.parametrize("name", ["sync", "asyncio", "arrow"])
@pytest.mark.parametrize(("rack", "replica_id"), [("b", FOLLOWER), ("a", -1), (None, -1)])
def test_a_consumer_reads_from_the_replica_in_its_rack(
    racks: TwoRacks, topic: str, name: str, rack: str | None, replica_id: int
) -> None:
    face = make_face(name)
    place = (topic, 0)
    given = {} if rack is None else {"client.rack": rack}
    consumer = face.Consumer({"bootstrap.servers": racks.leader.address, **given})
    consumer.assign([place])
    with Producer(bootstrap_servers=racks.leader.address, acks="all") as producer:
        offset = producer.send(topic, b"0").result().offset
        consumer.seek(topic, 0, offset)
        found = face.read(consumer, 1)
        producer.send(topic, b"1").result()
        found += face.read(consumer, 1)

    position = consumer._core.fetcher.positions[place]
    face.run(consumer.close())
    face.close()
    assert found == [b"0", b"1"]
    assert position.replica_id == replica_id

"""Every client on three brokers: it begins at any one of them, and a leader is killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.interop.aiokafka_face import AiokafkaFace
from tests.support.interop.client_face import ClientMissing
from tests.support.interop.confluent_face import ConfluentFace
from tests.support.interop.foreign_clients import BUILD_SECONDS_MAX, CLIENTS
from tests.support.interop.foreign_faces import ForeignFace
from tests.support.interop.java_face import JavaFace, JavaProgram
from tests.support.interop.kafka_python_face import KafkaPythonFace
from tests.support.interop.kcat_face import KcatFace
from tests.support.interop.riding_clients import (
    MORE,
    PART,
    PARTS,
    MakeFace,
    Rider,
    create_topics,
    ride,
)
from tests.support.patience import PATIENCE_S

SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}

FACES: dict[str, MakeFace] = {
    "confluent-kafka": ConfluentFace,
    "kafka-python": KafkaPythonFace,
    "aiokafka": AiokafkaFace,
    "kcat": KcatFace,
}
NAMES = (*FACES, "java", *CLIENTS)

# Where a client begins to read which partition: broker 1 leads the first one, broker 2 the second.
STARTS = ((1, 1), (2, 0), (3, 0), (3, 1))

# Old importlib calls of kafka-python, and sockets that clients leave to the collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_SECONDS_MAX + 60),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# The outcome of each client; one that cannot run here says why.
Ridden = dict[str, Rider | ClientMissing]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        yield made


@pytest.fixture(scope="module")
def java_programs() -> Iterator[list[JavaProgram]]:
    """One that writes and one that reads: each does one thing at a time."""
    programs: list[JavaProgram] = []
    yield programs
    for program in programs:
        program.close()


@pytest.fixture(scope="module")
def ridden(cluster: BrokerCluster, java_programs: list[JavaProgram]) -> Ridden:
    """What all clients did at the same time, over one death of a leader."""
    made: Ridden = {}
    makers: dict[str, tuple[MakeFace, MakeFace]] = {}
    for name in NAMES:
        try:
            makers[name] = makers_of(name, java_programs)
            makers[name][0](cluster.addresses).close()
        except ClientMissing as reason:
            made[name] = reason
            makers.pop(name, None)
    create_topics(cluster, [*makers])
    riders = [Rider(name, cluster, *makers[name]) for name in makers]
    ride(cluster, riders)
    return made | {rider.name: rider for rider in riders}


def makers_of(name: str, java_programs: list[JavaProgram]) -> tuple[MakeFace, MakeFace]:
    """What makes the client that writes, and the one that reads."""
    if name in CLIENTS:
        return (lambda address: ForeignFace(name, address),) * 2
    if name != "java":
        return (FACES[name],) * 2
    java_programs += [JavaProgram(), JavaProgram()]
    writer, reader = java_programs
    return (lambda address: JavaFace(address, writer)), (lambda address: JavaFace(address, reader))


@pytest.fixture
def rider(ridden: Ridden, request: pytest.FixtureRequest) -> Rider:
    found = ridden[request.param]
    if isinstance(found, ClientMissing):
        pytest.skip(f"{request.param} is missing: {found}")
    return found


@pytest.mark.parametrize("rider", NAMES, indirect=True)
def test_what_is_written_over_the_death_of_a_leader_is_there_once_and_in_order(
    rider: Rider,
) -> None:
    rider.writing.result(PATIENCE_S)

    found = [rider.read_from(*start) for start in STARTS]

    expected = [(number, b"%d" % number) for number in range(PARTS * PART + 2 * MORE)]
    for start, each in zip(STARTS, found, strict=True):
        assert each == expected, start


@pytest.mark.parametrize("rider", NAMES, indirect=True)
def test_who_reads_over_the_death_of_a_leader_reads_everything_once(rider: Rider) -> None:
    found = rider.reading.result(PATIENCE_S)

    assert [(one.offset, one.record.value) for one in found] == [
        (number, b"%d" % number) for number in range(PARTS * PART)
    ]

"""Peers that the interop tests share: Apache Kafka, brokers of ours, real clients."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.cli.forked import ForkedCommand
from tests.support.interop.aiokafka_face import AiokafkaFace
from tests.support.interop.client_face import ClientFace, ClientMissing
from tests.support.interop.confluent_face import ConfluentFace
from tests.support.interop.group_broker import GroupBroker, start_group_broker
from tests.support.interop.java_face import JavaFace, JavaProgram
from tests.support.interop.java_groups import JavaGroups
from tests.support.interop.kafka_python_face import KafkaPythonFace
from tests.support.interop.kafka_server import KafkaServer, KafkaUnavailable, free_port
from tests.support.interop.kcat_face import KcatFace

BROKER_TEXTS = {"num.partitions": "1", "auto.create.topics.enable": "true"}

FACES: dict[str, Callable[[str], ClientFace]] = {
    "confluent-kafka": ConfluentFace,
    "kafka-python": KafkaPythonFace,
    "aiokafka": AiokafkaFace,
    "kcat": KcatFace,
}

MakeBroker = Callable[[], BrokerProcess]
MakeClient = Callable[[str, str], ClientFace]


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka; `TARRY_TEST_KAFKA` names one that runs already."""
    running = os.environ.get("TARRY_TEST_KAFKA")
    if running:
        yield running
        return
    server = KafkaServer(tmp_path_factory.mktemp("kafka"), free_port())
    try:
        server.start()
    except KafkaUnavailable as reason:
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    try:
        yield server.address
    finally:
        server.stop()


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[MakeBroker]:
    """Makes brokers that are ready, each with a directory of its own."""
    brokers: list[BrokerProcess] = []

    def make() -> BrokerProcess:
        directory = tmp_path / f"broker-{len(brokers)}"
        directory.mkdir()
        brokers.append(BrokerProcess(directory))
        brokers[-1].start(BROKER_TEXTS)
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for the tests of a module that do not stop it."""
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    broker.start(BROKER_TEXTS)
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedCommand]:
    """The command `tarry`, loaded once for all tests that run it."""
    command = ForkedCommand(tmp_path_factory.mktemp("command"))
    yield command
    command.close()


@pytest.fixture(scope="session")
def java_program() -> Iterator[JavaProgram]:
    try:
        program = JavaProgram()
    except ClientMissing as reason:
        pytest.skip(str(reason))
    yield program
    program.close()


@pytest.fixture(scope="session")
def group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroupBroker]:
    """One broker for all tests of groups; who kills it starts it again."""
    broker = start_group_broker(tmp_path_factory.mktemp("groups"))
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def java_groups() -> Iterator[JavaGroups]:
    """One JVM with members of groups, the admin client and Kafka's tools."""
    try:
        program = JavaGroups()
    except ClientMissing as reason:
        pytest.skip(str(reason))
    yield program
    program.close()


@pytest.fixture
def make_client(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """Makes clients by name and the broker's address."""
    faces: list[ClientFace] = []

    def make(name: str, address: str) -> ClientFace:
        if name == "java":
            faces.append(JavaFace(address, request.getfixturevalue("java_program")))
            return faces[-1]
        try:
            faces.append(FACES[name](address))
        except ClientMissing as reason:
            pytest.skip(f"{name} is missing: {reason}")
        return faces[-1]

    yield make
    for face in faces:
        face.close()
    with warnings.catch_warnings():
        # Sockets that clients leave to the collector are no fault of the next test.
        warnings.simplefilter("ignore")
        faces.clear()
        gc.collect()

"""Clients that ask for what Tarry does not have: each ends with an error, none waits for ever."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.confluent_face import confluent_kafka
from tests.support.interop.java_face import JavaError, JavaFace, JavaProgram
from tests.support.interop.kafka_server import KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S

NO_TRANSACTIONS = "this broker has no transactions yet"
NO_SHARE_GROUPS = "this broker has no share groups (KIP-932) yet"

SHARE_CONSUMER = Path(__file__).parent / "java" / "ShareConsumer.java"

# Longer than any of them needs; a client that is not told to stop would still be asking.
STEP_S = PATIENCE_S

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def the_broker_says_so(shared_broker: BrokerProcess, request: pytest.FixtureRequest) -> Any:
    """Whatever the client makes of it, the broker's log has the reason."""
    yield
    name = request.node.name
    words = NO_SHARE_GROUPS if "share" in name else NO_TRANSACTIONS
    if "protocol" in name:
        words = "group.protocol=classic"
    shared_broker.wait_for_log(words)


# -- Transactions


def test_librdkafka_gives_up_transactions_with_our_sentence(shared_broker):
    if confluent_kafka is None:
        pytest.skip("confluent-kafka is missing")
    settings = {"bootstrap.servers": shared_broker.address, "transactional.id": "rdkafka"}
    producer = confluent_kafka.Producer({**settings, "log_level": 0})

    with pytest.raises(confluent_kafka.KafkaException) as told:
        producer.init_transactions(STEP_S)

    error = told.value.args[0]
    assert error.name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert NO_TRANSACTIONS in error.str()
    assert not error.retriable()


def test_kafka_python_gives_up_transactions(shared_broker):
    kafka = pytest.importorskip("kafka")
    errors = pytest.importorskip("kafka.errors")
    producer = kafka.KafkaProducer(
        bootstrap_servers=shared_broker.address, transactional_id="kp", max_block_ms=STEP_S * 1000
    )

    with pytest.raises(errors.KafkaError, match="InvalidRequestError"):
        producer.init_transactions()
    producer.close(timeout=0)


def test_aiokafka_gives_up_transactions(shared_broker):
    aiokafka = pytest.importorskip("aiokafka")
    errors = pytest.importorskip("aiokafka.errors")

    async def begin() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=shared_broker.address, transactional_id="aiokafka"
        )
        try:
            await asyncio.wait_for(producer.start(), STEP_S)
        finally:
            await asyncio.wait_for(producer.stop(), STEP_S)

    with pytest.raises(errors.TransactionalIdAuthorizationFailed):
        asyncio.run(begin())


# -- The new consumer protocol


def test_librdkafka_gives_up_the_new_consumer_protocol(shared_broker):
    if confluent_kafka is None:
        pytest.skip("confluent-kafka is missing")
    settings = {"bootstrap.servers": shared_broker.address, "group.id": "new"}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": "consumer", "log_level": 0})
    consumer.subscribe(["any"])
    end = time.monotonic() + STEP_S

    told = None
    while told is None and time.monotonic() < end:
        told = consumer.poll(1)
    consumer.close()

    assert told is not None
    assert told.error().name() == "_FATAL"
    assert "ConsumerGroupHeartbeat" in told.error().str()


def test_java_gives_up_the_new_consumer_protocol(
    shared_broker: BrokerProcess, java_program: JavaProgram
) -> None:
    java = JavaFace(shared_broker.address, java_program)
    settings = {"group.id": "new-java", "group.protocol": "consumer"}

    with pytest.raises(JavaError, match="UnsupportedVersionException"):
        java.ask("subscribe", topic="any", settings=settings)


# -- Share groups


def test_librdkafka_gives_up_a_share_group(shared_broker):
    if confluent_kafka is None or not hasattr(confluent_kafka, "ShareConsumer"):
        pytest.skip("confluent-kafka is missing or older than share consumers")
    settings = {"bootstrap.servers": shared_broker.address, "group.id": "shared", "log_level": 0}
    consumer = confluent_kafka.ShareConsumer(settings)
    consumer.subscribe(["any"])
    end = time.monotonic() + STEP_S

    with pytest.raises(confluent_kafka.KafkaException, match="ShareGroupHeartbeat") as told:
        while time.monotonic() < end:
            consumer.poll(1)

    assert told.value.args[0].fatal()


def test_java_gives_up_a_share_group(shared_broker: BrokerProcess) -> None:
    try:
        command = java_command(str(SHARE_CONSUMER), shared_broker.address, "shared-java", "60")
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)

    assert "UnsupportedVersionException" in done.stdout
    assert "share group" in done.stdout

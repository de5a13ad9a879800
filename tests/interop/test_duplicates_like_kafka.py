"""A batch that comes again has the offset of its first try, at both brokers.

A receipt of our client has the offset of a record that was sent again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.both_brokers import RUN, KafkaConnection, wait_until_led
from tests.support.patience import tries

from tarry.base import errors
from tarry.client import Admin, NewTopic
from tarry.protocol import api_keys
from tarry.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.records.builder import BatchBuilder
from tarry.wire.reader import window_of

TOPIC = f"duplicates-{RUN}"


@pytest.fixture(params=["kafka", "tarry"])
def address(request: pytest.FixtureRequest) -> str:
    if request.param == "kafka":
        return str(request.getfixturevalue("apache_kafka"))
    broker: BrokerProcess = request.getfixturevalue("tarry_broker")
    return broker.address


@pytest.fixture
def tarry_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.close()


def new_producer_id(connection: KafkaConnection) -> int:
    """Return an id; Kafka has none to give for a moment behind its start."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    for _ in tries():
        given = connection.ask(api_keys.INIT_PRODUCER_ID, 3, request)
        assert isinstance(given, InitProducerIdResponse)
        if given.error_code == errors.NONE:
            return given.producer_id
    raise AssertionError("no producer id was given")


def test_a_batch_that_comes_again_has_the_offset_of_its_first_try(address: str) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
    connection = KafkaConnection(address)
    wait_until_led(connection.ask, TOPIC)
    producer_id = new_producer_id(connection)

    def produce(sequence: int) -> tuple[int, int]:
        builder = BatchBuilder()
        for _ in range(3):
            builder.append(int(time.time()) * 1000, None, b"x", None)
        batch = builder.build(0, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        data = TopicProduceData(TOPIC)
        data.partition_data.append(PartitionProduceData(0, window_of(batch)))
        told = connection.ask(api_keys.PRODUCE, 9, ProduceRequest(None, -1, 30_000, [data]))
        assert isinstance(told, ProduceResponse)
        (answer,) = told.responses[0].partition_responses
        return answer.error_code, answer.base_offset

    firsts = [produce(3 * number) for number in range(6)]
    again = [produce(3 * number) for number in range(6)]
    connection.close()

    assert firsts == [(errors.NONE, 3 * number) for number in range(6)]
    # Brokers remember the last five batches of a producer.
    assert again[1:] == firsts[1:]
    assert again[0] == (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)

"""InitProducerId over frames: ids that are never given out twice."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand


def request(transactional_id: str | None = None, **fields: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id, 60_000, **fields)


def ask(
    client: ClientByHand, asked: InitProducerIdRequest, version: int = 5
) -> InitProducerIdResponse:
    response = client.ask(api_keys.INIT_PRODUCER_ID, version, asked)
    assert isinstance(response, InitProducerIdResponse)
    return response


def answers(client: ClientByHand) -> list[InitProducerIdResponse]:
    found: list[InitProducerIdResponse] = []
    for answer in client.answers():
        assert isinstance(answer, InitProducerIdResponse)
        found.append(answer)
    return found


@pytest.fixture
def broker() -> BrokerByHand:
    return BrokerByHand()


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_an_id_with_epoch_0(broker, version):
    response = ask(broker.connect(), request(), version)

    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 0, 0)


def test_no_id_is_given_out_twice_over_crashes_and_stops(broker):
    given: list[int] = []
    for end in ("crash", "stop", "crash", "nothing"):
        client = broker.connect()
        given.extend(ask(client, request()).producer_id for _ in range(1_100))
        if end == "crash":
            broker.crash()
        elif end == "stop":
            broker.stop()
            broker.start()

    assert len(given) == len(dict.fromkeys(given)) == 4_400
    assert given == sorted(given)


def test_an_id_is_given_out_only_when_its_block_is_durable(broker):
    client = broker.connect()

    client.send(api_keys.INIT_PRODUCER_ID, 5, request())
    broker.turn()
    before = answers(client)
    broker.settle()

    assert before == []
    assert [answer.producer_id for answer in answers(client)] == [0]


def test_many_that_ask_at_once_share_one_reservation(broker):
    clients = [broker.connect() for _ in range(50)]
    end_offset = broker.broker.store.log.log_end_offset

    for client in clients:
        client.send(api_keys.INIT_PRODUCER_ID, 5, request())
    broker.settle()

    assert broker.broker.store.log.log_end_offset == end_offset + 1
    assert [answers(client)[0].producer_id for client in clients] == list(range(50))


def test_more_than_a_block_that_ask_at_once_all_get_an_id(broker):
    client = broker.connect()
    frames = [client.encode(api_keys.INIT_PRODUCER_ID, 5, request()) for _ in range(900)]
    other = broker.connect()
    other_frames = [other.encode(api_keys.INIT_PRODUCER_ID, 5, request()) for _ in range(900)]

    client.send_bytes(b"".join(frames))
    other.send_bytes(b"".join(other_frames))
    broker.settle()

    given = [answer.producer_id for each in (client, other) for answer in answers(each)]
    assert sorted(given) == list(range(1_800))


@pytest.mark.parametrize("transactional_id", ["", "payments"])
def test_a_transactional_id_is_refused_at_once_and_for_good(broker, transactional_id):
    for version in range(6):
        response = ask(broker.connect(), request(transactional_id), version)

        assert response.error_code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (response.producer_id, response.producer_epoch) == (-1, -1)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, 3), (5, 32767), (-5, 3)])
def test_a_producer_that_names_its_id_gets_a_fresh_one_as_from_kafka(broker, producer_id, epoch):
    asked = request(producer_id=producer_id, producer_epoch=epoch)

    response = ask(broker.connect(), asked)

    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 0, 0)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 3), (-1, 0)])
def test_an_id_without_an_epoch_is_an_invalid_request(broker, producer_id, epoch):
    asked = request(producer_id=producer_id, producer_epoch=epoch)

    assert ask(broker.connect(), asked).error_code == errors.INVALID_REQUEST


def test_a_reservation_that_the_disk_refuses_is_asked_for_again(broker):
    client = broker.connect()
    broker.disk.fail_writes()

    refused = ask(client, request())
    given = ask(client, request())

    assert refused.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert given.error_code == errors.NONE


def test_a_reservation_that_takes_too_long_is_asked_for_again(broker):
    client = broker.connect()

    client.send(api_keys.INIT_PRODUCER_ID, 5, request())
    for _ in range(10):
        broker.turn(after_ms=900)
    (refused,) = answers(client)

    assert refused.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert ask(client, request()).error_code == errors.NONE

"""Access control, quotas, logins and transactions that nobody has set up: the same questions to
Apache Kafka and to Tarry, and the answers must agree byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.absent_requests import acl_of, all_acls
from tests.support.interop.both_brokers import Both, KafkaConnection

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_acls import CreateAclsRequest
from tarry.protocol.messages.delete_acls import DeleteAclsRequest
from tarry.protocol.messages.describe_acls import DescribeAclsRequest
from tarry.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tarry.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from tarry.protocol.messages.list_transactions import ListTransactionsRequest
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.writer import Writer


@pytest.fixture(scope="module")
def both(apache_kafka: str) -> Iterator[Both]:
    connection = KafkaConnection(apache_kafka)
    yield Both(connection.ask, BrokerByHand().connect().ask)
    connection.close()


def encoded(message: Message, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return writer.finish()


ACLS = [
    (api_keys.DESCRIBE_ACLS, DescribeAclsRequest(1, None, 3, None, None, 1, 1)),
    (api_keys.CREATE_ACLS, CreateAclsRequest([acl_of("User:a"), acl_of("User:b")])),
    (api_keys.CREATE_ACLS, CreateAclsRequest([])),
    (api_keys.DELETE_ACLS, DeleteAclsRequest([all_acls(3), all_acls(3)])),
    (api_keys.DELETE_ACLS, DeleteAclsRequest([])),
]
STATES = ["Ongoing", "nope", "ongoing", "nope", "Dead", "PrepareEpochFence", "CompleteCommit"]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("api_key", "request_"), ACLS)
def test_access_control_that_is_off_is_told_alike(
    both: Both, api_key: int, request_: Message, version: int
) -> None:
    kafka, tarry = both.answers(api_key, version, lambda _: request_)

    assert encoded(tarry, version) == encoded(kafka, version)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("states", [[], ["Empty"], STATES])
def test_no_transaction_is_listed_alike(both: Both, version: int, states: list[str]) -> None:
    def sorted_answer(ask: Message) -> bytes:
        # Kafka gathers the unknown states in a hash set.
        ask.unknown_state_filters.sort()  # type: ignore[attr-defined]
        return encoded(ask, version)

    kafka, tarry = both.answers(
        api_keys.LIST_TRANSACTIONS, version, lambda _: ListTransactionsRequest(states, [7])
    )

    assert sorted_answer(tarry) == sorted_answer(kafka)


QUESTIONS: list[list[tuple[str, int, str | None]]] = [
    [],
    [("user", 0, "a")],
    [("user", 1, None), ("client-id", 2, None)],
    [("ip", 0, "127.0.0.1")],
    [("ip", 0, "127.0.0.1"), ("user", 0, "a")],
    [("planet", 0, "a")],
    [("", 0, "a")],
    [("user", 9, None)],
    [("user", 0, None)],
    [("user", 1, "a")],
    [("user", 2, "a")],
    [("user", 0, "a"), ("user", 0, "b")],
    [("planet", 0, "a"), ("planet", 0, "a")],
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("version", [0, 1])
def test_quotas_that_nobody_has_set_are_told_alike(
    both: Both, version: int, question: list[tuple[str, int, str | None]]
) -> None:
    components = [ComponentData(*one) for one in question]
    kafka, tarry = both.answers(
        api_keys.DESCRIBE_CLIENT_QUOTAS,
        version,
        lambda _: DescribeClientQuotasRequest(components, strict=False),
    )

    assert isinstance(kafka, DescribeClientQuotasResponse)
    assert isinstance(tarry, DescribeClientQuotasResponse)
    if kafka.error_code == errors.NONE:
        assert encoded(tarry, version) == encoded(kafka, version)
    assert (tarry.error_code, tarry.entries) == (kafka.error_code, kafka.entries)


@pytest.mark.parametrize("names", [None, [], ["a"], ["a", "b", "a", ""]], ids=str)
def test_credentials_that_nobody_has_are_told_alike(both: Both, names: list[str] | None) -> None:
    users = None if names is None else [UserName(name) for name in names]
    kafka, tarry = both.answers(
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        lambda _: DescribeUserScramCredentialsRequest(users),
    )

    for answer in (kafka, tarry):
        assert isinstance(answer, DescribeUserScramCredentialsResponse)
        # Kafka gathers the users in a hash map.
        answer.results.sort(key=lambda each: each.user)
    assert encoded(tarry, 0) == encoded(kafka, 0)

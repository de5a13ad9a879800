"""What clients of Go and Node do with a broker: records, groups, commits, and calls of admins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.client_face import ClientMissing
from tests.support.interop.foreign_clients import BUILD_SECONDS_MAX, CLIENTS, ask_client

RECORDS = 100

# The error that each client raises; none of them is "it took too long".
LAST_WORDS = {
    "franz-go": "INVALID_REQUEST",
    "sarama": "Transactional ID authorization failed",
    "kafkajs": "Failed to find group coordinator",
}

# The first of all builds the program.
pytestmark = pytest.mark.timeout(BUILD_SECONDS_MAX + 60)

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Makes topics that are asked for, and lets the first member of a group begin at once."""
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    broker.start({"auto.create.topics.enable": "true", "group.initial.rebalance.delay.ms": "0"})
    yield broker
    broker.close()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def ask(client: str, broker: BrokerProcess) -> Ask:
    def ask(task: str, name: str = "") -> dict[str, Any]:
        try:
            return ask_client(client, task, broker.address, name)
        except ClientMissing as reason:
            pytest.skip(f"{client} is missing: {reason}")

    return ask


def test_a_group_reads_what_was_produced_and_finds_its_commit_at_once(
    ask: Ask, client: str
) -> None:
    name = f"foreign-{client}"

    produced = ask("produce", name)
    consumed = ask("consume", name)
    seen = ask("admin", name)

    assert "error" not in produced, produced
    assert "error" not in consumed, consumed
    assert consumed["read"] == list(range(RECORDS))
    assert consumed["committed"] == RECORDS
    # Kafka's 37 and those of scheduled records.
    assert (seen["partitions"], seen["settings"]) == (1, 37 + 7)
    assert name in seen["groups"]
    assert "eplication" in seen["copies"], "three replicas on one broker are refused"
    if client == "franz-go":
        # Epoch, last sequence and coordinator epoch of its one producer; then what has settings.
        assert seen["producers"] == [[0, RECORDS - 1, -1]]
        assert seen["resources"] == ["8 1", "4 1", f"2 {name}"]


def test_transactions_are_refused_at_once_and_the_broker_says_so(
    ask: Ask, client: str, broker: BrokerProcess
) -> None:
    told = ask("transactions")

    assert LAST_WORDS[client] in told["error"]
    broker.wait_for_log("this broker has no transactions yet")


@pytest.mark.parametrize("client", ["franz-go"])
def test_a_member_of_the_new_protocol_is_refused_at_once(ask: Ask) -> None:
    assert "UNSUPPORTED_VERSION" in ask("new-protocol")["error"]

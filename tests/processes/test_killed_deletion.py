"""kill -9 of a broker while it deletes a topic of many partitions, in the middle of its steps."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.patience import PATIENCE_S
from tests.support.raw_client import RawClient

from tarry.client import Admin, Consumer, NewTopic, Producer
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

MANY = "many"
PARTITIONS = 1_500
# A topic beside it that stays, with a name that begins like it.
OTHER = "many-more"


class Deleting:
    """Broker with a topic of many partitions, each with a record, that was asked to delete it."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        with Admin(bootstrap_servers=broker.address) as admin:
            admin.create_topics([NewTopic(MANY, PARTITIONS), NewTopic(OTHER, 1)])
        with Producer(bootstrap_servers=broker.address) as producer:
            for partition in range(PARTITIONS):
                producer.send(MANY, b"old", partition=partition)
            producer.send(OTHER, b"kept", partition=0)
            producer.flush(timeout=PATIENCE_S)
        self.client = RawClient(broker.port)
        request = DeleteTopicsRequest([DeleteTopicState(MANY)], [], 60_000)
        # Nobody waits for the answer.
        self.client.socket.sendall(self.client.encode(api_keys.DELETE_TOPICS, 6, request))

    def names(self) -> list[str]:
        """Directories that the topic has or had."""
        names = os.listdir(self.broker.texts["log.dirs"])
        return [each for each in names if each.startswith(f"{MANY}-") and each != f"{OTHER}-0"]

    def unrenamed(self) -> list[str]:
        """Those that have a partition's name: before the kill the old ones, after it the new."""
        return [each for each in self.names() if each.removeprefix(f"{MANY}-").isdigit()]

    def seen_to_be_new_alone(self) -> str:
        """Say so if each directory is one of the topic that was made after the restart."""
        names = self.names()
        return "gone" if len(names) == len(self.unrenamed()) == PARTITIONS else ""


def has_begun(deleting: Deleting) -> bool:
    return len(deleting.unrenamed()) < PARTITIONS


def has_renamed_all(deleting: Deleting) -> bool:
    return not deleting.unrenamed()


@pytest.mark.slow
@pytest.mark.parametrize("is_time", [has_begun, has_renamed_all])
def test_a_topic_of_many_partitions_is_gone_though_its_broker_was_killed_while_it_went(
    make_broker: Callable[[], BrokerProcess], is_time: Callable[[Deleting], bool]
) -> None:
    broker = make_broker()
    broker.start()
    deleting = Deleting(broker)
    while not is_time(deleting):
        assert broker.process is not None and broker.process.poll() is None
    broker.kill()
    deleting.client.close()
    broker.start()

    with Admin(bootstrap_servers=broker.address) as admin:
        found = [each.name for each in admin.list_topics()]
        admin.create_topics([NewTopic(MANY, PARTITIONS)])
    with Consumer(bootstrap_servers=broker.address) as consumer:
        places = [(MANY, partition) for partition in range(PARTITIONS)]
        ends = consumer.end_offsets([(OTHER, 0), *places], timeout=PATIENCE_S)

    assert found == [OTHER]
    assert ends == {(OTHER, 0): 1, **dict.fromkeys(places, 0)}
    wait_until(deleting.seen_to_be_new_alone, "the end of the removals")

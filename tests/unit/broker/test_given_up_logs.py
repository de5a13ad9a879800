"""What a broker gives up is freed at once: no cycle of references keeps it for the collector.

A running broker tells the collector that its logs are there for good, so what is left in a cycle
would never be freed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tests.support.broker.admin_user import Operator
from tests.support.broker.broker_user import ORDERS, a_batch
from tests.support.broker.leader_scene import LEADER, SECOND, LeaderScene
from tests.support.broker.schedule_user import ScheduleUser, cancel

from tarry.base import doors, errors
from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.delayed.schedule_changes import AwaitedScheduleChanges
from tarry.log.log import Log
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.change_scheduled_records import (
    ChangedSchedulePartition,
    ChangedScheduleTopic,
    ChangeScheduledRecordsRequest,
)
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledPartition,
    ListScheduledRecordsRequest,
)
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand

HOUR_MS = 60 * 60 * 1000


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(topic: str) -> list[str]:
    """Return the kinds of the objects in memory that are a partition's of this topic."""
    found: list[str] = []
    for each in gc.get_objects():
        if isinstance(each, Leadership):
            is_one = each.topic == topic
        elif isinstance(each, Log):
            is_one = each.directory.startswith(f"{topic}-")
        else:
            is_one = isinstance(each, ReplicatedLog) and each.name.startswith(f"{topic}-")
        if is_one:
            found.append(type(each).__name__)
    return sorted(found)


def test_a_deleted_topic_is_freed() -> None:
    someone = Operator(BrokerByHand())
    someone.create(ORDERS, partitions=3)
    before = alive(ORDERS)

    someone.delete()

    assert before == ["Leadership"] * 3 + ["Log"] * 3 + ["ReplicatedLog"] * 3
    assert alive(ORDERS) == []


def test_a_deleted_topic_is_freed_though_it_was_written_read_and_waited_for() -> None:
    someone, reader = (Operator(hand) for hand in [BrokerByHand()] * 2)
    someone.create(ORDERS, partitions=2)
    assert someone.produce(a_batch(b"one", producer_id=7)).error_code == errors.NONE
    assert someone.fetch(0).error_code == errors.NONE
    reader.send_fetch(1, max_wait_ms=HOUR_MS)
    someone.send_produce(a_batch(b"two", producer_id=7, sequence=1))

    someone.send_delete()
    someone.hand.settle()
    answers = [*someone.answers(), *reader.answers()]

    assert len(answers) == 3
    del answers
    assert alive(ORDERS) == []


def test_a_deleted_topic_with_scheduled_records_is_freed() -> None:
    someone = Operator(BrokerByHand())
    someone.create(ORDERS, delay_enable="true", delay_source="timestamp")
    now = START_WALL_MS
    assert someone.produce(a_batch(b"now", times=(now,))).error_code == errors.NONE
    assert someone.produce(a_batch(b"later", times=(now + 1_000,))).error_code == errors.NONE
    someone.hand.turn(after_ms=1_000)
    someone.hand.settle()
    before = alive(ORDERS)

    someone.delete()

    assert before == ["Leadership", "Log", "Log", "ReplicatedLog", "ReplicatedLog"]
    assert alive(ORDERS) == []


def test_a_replica_that_a_row_takes_away_is_freed() -> None:
    scene = LeaderScene((LEADER, SECOND), partitions=1)
    scene.write(b"one")
    session_id = scene.fetch(SECOND, {0: 1}).session_id

    scene.bring_row(leader_id=SECOND, leader_epoch=1)
    scene.bring_row(replicas=[SECOND], isr=[SECOND])
    scene.fetch(SECOND, {}, session=(session_id, 1), forgotten=(0,))

    assert scene.broker.topics["shared"].replicas() == []
    assert alive("shared") == []


@pytest.mark.parametrize("what", ["list", "change"])
def test_an_answer_whose_client_has_gone_is_freed(what: str) -> None:
    user = ScheduleUser()
    user.park(b"waits", HOUR_MS, "id")
    client = user.hand.connect()
    request: Message
    if what == "list":
        asked = [ListScheduledPartition(0)] * 5
        edges = list(range(1_000))
        request = ListScheduledRecordsRequest(ORDERS, bucket_edges_ms=edges, partitions=asked)
        client.send(api_keys.LIST_SCHEDULED_RECORDS, 0, request)
    else:
        partition = ChangedSchedulePartition(0, [cancel("id")])
        topic = ChangedScheduleTopic(ORDERS, [partition])
        request = ChangeScheduledRecordsRequest(5_000, [topic])
        client.send(api_keys.CHANGE_SCHEDULED_RECORDS, 0, request)
    kinds = (LongAnswer, AwaitedScheduleChanges)
    before = sum(isinstance(each, kinds) for each in gc.get_objects())

    user.hand.turn(doors.disconnected(client.connection_id))
    user.hand.settle()
    user.hand.turn(after_ms=HOUR_MS)

    assert before == 1
    assert [each for each in gc.get_objects() if isinstance(each, kinds)] == []

"""A broker process that is stopped for longer than the sessions of its members, and goes on."""

from __future__ import annotations

import signal
import time

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.raw_client import RawClient, one_batch

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tarry.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")

pytestmark = pytest.mark.process

SESSION_MS = 2_000
STOPPED_S = 4.0


def members_of(client: RawClient, group: str) -> list[str]:
    request = DescribeGroupsRequest(groups=[group])
    answer = client.ask(api_keys.DESCRIBE_GROUPS, 5, request)
    assert isinstance(answer, DescribeGroupsResponse)
    return [each.member_id for each in answer.groups[0].members]


class RawMember:
    """The only member of a group, in its first generation; it does nothing of its own."""

    def __init__(self, port: int, group: str) -> None:
        self.client = RawClient(port)
        self.group = group
        # Version 3: no id has to be asked for first.
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        joined = self.client.ask(api_keys.JOIN_GROUP, 3, request)
        assert isinstance(joined, JoinGroupResponse)
        self.member_id = joined.member_id
        synced = self.client.ask(
            api_keys.SYNC_GROUP,
            3,
            SyncGroupRequest(group_id=group, generation_id=1, member_id=self.member_id),
        )
        assert isinstance(synced, SyncGroupResponse)
        assert synced.error_code == errors.NONE

    def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id=self.group, generation_id=1, member_id=self.member_id)
        answer = self.client.ask(api_keys.HEARTBEAT, 3, request)
        assert isinstance(answer, HeartbeatResponse)
        return answer.error_code


def test_a_consumer_stays_a_member_though_its_broker_was_stopped(
    broker: BrokerProcess,
) -> None:
    broker.stop()
    broker.start(
        {
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
    )
    with RawClient(broker.port) as client:
        client.create_topic("orders")
        client.produce(one_batch(b"before"), "orders")
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=broker.address,
            group_id="readers",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        # A leader that does not know the partitions yet assigns none.
        assert consumer.partitions_for_topic("orders") == {0}
        consumer.subscribe(["orders"])
        seen: list[bytes] = []

        # Not shorter: a poll that ends while a SyncGroup is under way loses its answer in this
        # client, which then believes that it has nothing assigned.
        def read() -> None:
            for records in consumer.poll(timeout_ms=1_000).values():
                seen.extend(each.value for each in records)

        def has_read(value: bytes) -> str:
            read()
            return "yes" if value in seen else ""

        wait_until(lambda: has_read(b"before"), "the first record")
        members = members_of(client, "readers")
        silent = RawMember(broker.port, "silent")

        broker.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)  # how long it is stopped is what the test is about
        broker.send_signal(signal.SIGCONT)
        broker.wait_for_log("the process did not run for")
        heartbeat = silent.heartbeat()
        client.produce(one_batch(b"after"), "orders")
        wait_until(lambda: has_read(b"after"), "the second record")
        consumer.commit()
        members_after = members_of(client, "readers")
        consumer.close(autocommit=False)
        silent.client.close()

    assert len(members) == 1
    assert members_after == members
    assert heartbeat == errors.NONE
    assert seen == [b"before", b"after"]
    log = broker.wait_for_log("was removed: it left")
    assert log.count("was removed: it left") == 1
    assert f"member {members[0]} of client" in log
    assert not [
        line for line in log.splitlines() if members[0] in line and "its session ended" in line
    ]

"""A broker process that is stopped for longer than the sessions of its members, and goes on."""

from __future__ import annotations

import signal
import time
from typing import NamedTuple

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

# A machine that stands still for longer than a session shows nothing: then with a longer one.
SESSIONS_MS = (2_000, 10_000, 50_000)


def members_of(client: RawClient, group: str) -> list[str]:
    request = DescribeGroupsRequest(groups=[group])
    answer = client.ask(api_keys.DESCRIBE_GROUPS, 5, request)
    assert isinstance(answer, DescribeGroupsResponse)
    return [each.member_id for each in answer.groups[0].members]


class RawMember:
    """The only member of a group, in its first generation; it does nothing of its own."""

    def __init__(self, port: int, group: str, session_ms: int) -> None:
        self.client = RawClient(port)
        self.group = group
        # Version 3: no id has to be asked for first.
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms,
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


class Found(NamedTuple):
    """What a stop of the broker has left of two groups."""

    members: list[str]
    members_after: list[str]
    heartbeat: int
    is_committed: bool
    seen: list[bytes]
    # Lines of the log about the first member.
    log: list[str]

    @property
    def is_well(self) -> bool:
        """Whether the members are what they were."""
        return (
            self.members_after == self.members
            and self.is_committed
            and self.heartbeat == errors.NONE
        )


def stop_over_sessions(broker: BrokerProcess, session_ms: int) -> Found:
    """Stop the broker for two sessions of a consumer and of a member that does nothing."""
    name = f"orders-{session_ms}"
    with RawClient(broker.port) as client:
        client.create_topic(name, retention_ms="-1")
        client.produce(one_batch(b"before"), name)
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=broker.address,
            group_id=name,
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=300,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        # A leader that does not know the partitions yet assigns none.
        assert consumer.partitions_for_topic(name) == {0}
        consumer.subscribe([name])
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
        members = members_of(client, name)
        silent = RawMember(broker.port, f"silent-{session_ms}", session_ms)

        log_begin = len(broker.log())
        broker.send_signal(signal.SIGSTOP)
        time.sleep(2 * session_ms / 1_000)  # how long it is stopped is what the test is about
        broker.send_signal(signal.SIGCONT)
        wait_until(lambda: told_of_stop(broker.log()[log_begin:]), "a line about the stop")
        heartbeat = silent.heartbeat()
        client.produce(one_batch(b"after"), name)
        wait_until(lambda: has_read(b"after"), "the second record")
        is_committed = True
        try:
            consumer.commit()
        except kafka.errors.CommitFailedError:
            is_committed = False
        members_after = members_of(client, name)
        consumer.close(autocommit=False)
        silent.client.close()
    assert len(members) == 1
    # A member that was lost has left under another name.
    left = members_after[0] if members_after else members[0]
    broker.wait_for_log(f"member {left} of client")
    log = [line for line in broker.log().splitlines() if members[0] in line]
    return Found(members, members_after, heartbeat, is_committed, seen, log)


def told_of_stop(log: str) -> str:
    words = "the process did not run for"
    return words if words in log else ""


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

    for session_ms in SESSIONS_MS:
        found = stop_over_sessions(broker, session_ms)
        if found.is_well:
            break

    assert found.members_after == found.members
    assert found.is_committed
    assert found.heartbeat == errors.NONE
    assert found.seen == [b"before", b"after"]
    left = [line for line in found.log if "was removed: it left" in line]
    assert len(left) == 1
    assert f"member {found.members[0]} of client" in left[0]
    assert not [line for line in found.log if "its session ended" in line]

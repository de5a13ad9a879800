"""Groups whose log is damaged are not served: neither "no offset" nor an old one for the newest."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.simulation.by_hand import BrokerByHand

LOG = "__consumer_offsets-0/00000000000000000000.log"


def fetched(hand: BrokerByHand) -> tuple[int, int]:
    """The group's error and the offset."""
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topic])])
    answer = hand.connect().ask(api_keys.OFFSET_FETCH, 9, request)
    assert isinstance(answer, OffsetFetchResponse)
    group = answer.groups[0]
    if group.error_code != errors.NONE:
        return group.error_code, -1
    return group.error_code, group.topics[0].partitions[0].committed_offset


def commit(hand: BrokerByHand, offset: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", topics=[topic])
    hand.connect().ask(api_keys.OFFSET_COMMIT, 9, request)


@pytest.fixture
def hand() -> BrokerByHand:
    """A broker with two commits of one offset."""
    made = BrokerByHand({"offsets.topic.num.partitions": "1"})
    client = made.connect()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    client.ask(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=9_000))
    client.ask(api_keys.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
    commit(made, 5)
    commit(made, 6)
    return made


def test_what_was_committed_is_there_after_a_crash(hand: BrokerByHand) -> None:
    hand.crash()
    hand.settle()

    assert fetched(hand) == (errors.NONE, 6)


def test_a_log_that_recovery_could_not_read_is_not_an_empty_one(hand: BrokerByHand) -> None:
    hand.disk.crash()
    hand.disk.fail_reads(1, LOG)
    hand.start()
    hand.settle()

    assert fetched(hand) == (errors.COORDINATOR_NOT_AVAILABLE, -1)


def test_a_log_that_ends_at_a_flaw_gives_no_older_offset(hand: BrokerByHand) -> None:
    hand.stop()
    size = len(hand.disk.content(LOG))
    hand.disk.flip_bit(LOG, size - 1)
    hand.start()
    hand.settle()

    assert fetched(hand) == (errors.COORDINATOR_NOT_AVAILABLE, -1)

"""Long answers to short requests, which ask for everything: made in steps beside the others'."""

from __future__ import annotations

import pytest
from tests.support.broker.group_user import GroupUser, group_broker

from tarry.base.limits import LONG_ANSWER_FIRST_UNITS_PER_TURN, LONG_ANSWER_UNITS_PER_TURN
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tarry.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tarry.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from tarry.protocol.messages.list_groups import ListGroupsRequest
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tarry.protocol.messages.metadata import MetadataRequest
from tarry.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

TOPICS = [f"t{number}" for number in range(250)]
PARTITIONS = 10
GROUPS = 2_500
# The share of the turns, and that of the requests that come in one.
UNITS_MAX = LONG_ANSWER_UNITS_PER_TURN + LONG_ANSWER_FIRST_UNITS_PER_TURN

SETTINGS = [DescribeConfigsResource(2, name) for name in TOPICS]
BY_TIME = [ListOffsetsPartition(index, -1, 0) for index in range(PARTITIONS)]
OF_ALL: dict[str, tuple[int, int, Message]] = {
    "Metadata": (api_keys.METADATA, 12, MetadataRequest(None)),
    "ListGroups": (api_keys.LIST_GROUPS, 5, ListGroupsRequest()),
    "DescribeConfigs": (
        api_keys.DESCRIBE_CONFIGS,
        4,
        DescribeConfigsRequest(SETTINGS, include_synonyms=True, include_documentation=True),
    ),
    "ListOffsets by time": (
        api_keys.LIST_OFFSETS,
        10,
        ListOffsetsRequest(-1, topics=[ListOffsetsTopic(name, BY_TIME) for name in TOPICS]),
    ),
    "OffsetFetch": (
        api_keys.OFFSET_FETCH,
        8,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup("group-0", topics=None)]),
    ),
    "DescribeLogDirs": (api_keys.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None)),
    "DescribeTopicPartitions": (
        api_keys.DESCRIBE_TOPIC_PARTITIONS,
        0,
        DescribeTopicPartitionsRequest([], response_partition_limit=1_000_000),
    ),
}


@pytest.fixture(scope="module")
def user() -> GroupUser:
    """A user of a broker with many topics and groups; one group has read all of them."""
    made = GroupUser(group_broker())
    for name in TOPICS:
        made.create(name, PARTITIONS)
        made.commit(dict.fromkeys(range(PARTITIONS), 0), "group-0", topic=name)
    for number in range(1, GROUPS):
        made.send_commit({0: 0}, f"group-{number}", topic=TOPICS[0])
        if number % 100 == 0:
            made.hand.settle()
            made.answers()
    made.hand.settle()
    made.answers()
    return made


@pytest.mark.parametrize("name", OF_ALL)
def test_a_long_answer_to_a_short_request_is_made_in_steps(user: GroupUser, name: str) -> None:
    key, version, request = OF_ALL[name]
    long_answers = user.hand.broker.long_answers
    other = user.hand.connect()

    user.client.send(key, version, request)
    spent = [int(long_answers.units_spent)]
    while long_answers.has_work_left():
        # Each of these is handled in a turn of its own.
        other.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
        spent.append(int(long_answers.units_spent))
        assert len(other.answers()) == 1

    assert len(user.answers()) == 1
    assert max(spent) <= UNITS_MAX
    assert len(spent) > 3

"""Generated messages: defaults, and what a version cannot carry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    decode_describe_topic_partitions_request,
)
from tarry.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    decode_metadata_request,
)
from tarry.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.wire import MalformedData, Reader, Writer

GENERATOR = Path(__file__).parents[3] / "tools" / "generate_messages.py"


def encoded(message: MetadataRequest | FetchRequest | ProduceResponse, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return writer.finish()


def test_generated_files_are_what_the_schema_gives() -> None:
    done = subprocess.run(
        [sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_every_api_has_its_messages() -> None:
    assert sorted(MESSAGES) == sorted(APIS)


def test_the_apis_are_those_that_the_project_speaks() -> None:
    ranges = {key: (api.version_min, api.version_max) for key, api in APIS.items()}

    assert ranges == {
        api_keys.PRODUCE: (3, 13),
        api_keys.FETCH: (4, 18),
        api_keys.LIST_OFFSETS: (1, 11),
        api_keys.METADATA: (0, 13),
        api_keys.OFFSET_COMMIT: (2, 10),
        api_keys.OFFSET_FETCH: (1, 10),
        api_keys.FIND_COORDINATOR: (0, 6),
        api_keys.JOIN_GROUP: (0, 9),
        api_keys.HEARTBEAT: (0, 4),
        api_keys.LEAVE_GROUP: (0, 5),
        api_keys.SYNC_GROUP: (0, 5),
        api_keys.DESCRIBE_GROUPS: (0, 6),
        api_keys.LIST_GROUPS: (0, 5),
        api_keys.API_VERSIONS: (0, 5),
        api_keys.CREATE_TOPICS: (2, 7),
        api_keys.DELETE_TOPICS: (1, 6),
        api_keys.DELETE_RECORDS: (0, 2),
        api_keys.INIT_PRODUCER_ID: (0, 5),
        api_keys.OFFSET_FOR_LEADER_EPOCH: (2, 4),
        api_keys.DESCRIBE_ACLS: (1, 3),
        api_keys.CREATE_ACLS: (1, 3),
        api_keys.DELETE_ACLS: (1, 3),
        api_keys.DESCRIBE_CONFIGS: (1, 4),
        api_keys.ALTER_CONFIGS: (0, 2),
        api_keys.DESCRIBE_LOG_DIRS: (1, 5),
        api_keys.CREATE_PARTITIONS: (0, 3),
        api_keys.DELETE_GROUPS: (0, 3),
        api_keys.ELECT_LEADERS: (0, 2),
        api_keys.INCREMENTAL_ALTER_CONFIGS: (0, 1),
        api_keys.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
        api_keys.LIST_PARTITION_REASSIGNMENTS: (0, 0),
        api_keys.OFFSET_DELETE: (0, 0),
        api_keys.DESCRIBE_CLIENT_QUOTAS: (0, 1),
        api_keys.ALTER_CLIENT_QUOTAS: (0, 1),
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
        api_keys.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
        api_keys.DESCRIBE_QUORUM: (0, 2),
        api_keys.UPDATE_FEATURES: (0, 2),
        api_keys.DESCRIBE_CLUSTER: (0, 2),
        api_keys.DESCRIBE_PRODUCERS: (0, 0),
        api_keys.UNREGISTER_BROKER: (0, 0),
        api_keys.LIST_TRANSACTIONS: (0, 2),
        api_keys.CONSUMER_GROUP_HEARTBEAT: (0, 1),
        api_keys.CONSUMER_GROUP_DESCRIBE: (0, 1),
        api_keys.LIST_CONFIG_RESOURCES: (0, 1),
        api_keys.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
        api_keys.SHARE_GROUP_HEARTBEAT: (1, 1),
        api_keys.LIST_SCHEDULED_RECORDS: (0, 0),
        api_keys.CHANGE_SCHEDULED_RECORDS: (0, 0),
    }


def test_a_new_message_holds_kafkas_defaults() -> None:
    request = FetchRequest()

    assert (request.replica_id, request.max_bytes, request.session_epoch) == (-1, 2**31 - 1, -1)
    assert (request.cluster_id, request.rack_id, request.replica_state) == (None, "", None)
    assert FetchTopic().topic_id == ZERO_UUID
    assert FetchPartition().high_watermark == 2**63 - 1


def test_two_messages_share_no_list() -> None:
    first, second = FetchRequest(), FetchRequest()

    first.topics.append(FetchTopic())

    assert second.topics == []


def test_null_and_empty_topics_are_told_apart() -> None:
    everything = decode_metadata_request(Reader(encoded(MetadataRequest(topics=None), 9)), 9)
    nothing = decode_metadata_request(Reader(encoded(MetadataRequest(topics=[]), 9)), 9)

    assert everything.topics is None
    assert nothing.topics == []


def test_null_where_a_version_has_none_is_refused_to_write_and_malformed_to_read() -> None:
    with pytest.raises(ValueError, match="topics must not be None"):
        encoded(MetadataRequest(topics=None), 0)
    with pytest.raises(MalformedData, match="topics must not be null"):
        decode_metadata_request(Reader(b"\xff\xff\xff\xff"), 0)


def test_a_field_nullable_from_a_later_version_on_is_strict_before() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None)])

    with pytest.raises(ValueError, match="name must not be None"):
        encoded(request, 9)
    assert encoded(request, 10)


def test_a_value_that_a_version_cannot_carry_is_refused() -> None:
    partition = PartitionProduceResponse(current_leader=LeaderIdAndEpoch(1, 2))
    response = ProduceResponse([TopicProduceResponse("t", partition_responses=[partition])])

    with pytest.raises(ValueError, match="no current_leader"):
        encoded(response, 9)
    assert encoded(response, 10)


def test_a_value_of_an_ignorable_field_is_left_out_of_versions_without_it() -> None:
    assert encoded(FetchRequest(rack_id="here"), 10) == encoded(FetchRequest(), 10)
    assert encoded(FetchRequest(rack_id="here"), 11) != encoded(FetchRequest(), 11)


@pytest.mark.parametrize("cursor", [None, Cursor("topic", 3)])
def test_a_nullable_struct_is_there_or_not(cursor: Cursor | None) -> None:
    writer = Writer()
    DescribeTopicPartitionsRequest(cursor=cursor).encode(writer, 0)

    decoded = decode_describe_topic_partitions_request(Reader(writer.finish()), 0).cursor

    if cursor is None:
        assert decoded is None
    else:
        assert decoded is not None
        assert (decoded.topic_name, decoded.partition_index) == ("topic", 3)

"""Changes of a broker that runs, over sockets and files, and what is left of them after kill -9."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.broker_process import BrokerProcess
from tests.support.raw_client import RawClient, one_batch

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC, BROKER = 2, 4


def change(client: RawClient, kind: int, name: str, key: str, value: str) -> None:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, 0, value)])
    request = IncrementalAlterConfigsRequest([resource])
    answer = client.ask(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    assert answer.responses[0].error_code == errors.NONE, answer.responses[0].error_message


def value(client: RawClient, kind: int, name: str, key: str) -> str | None:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [key])])
    answer = client.ask(api_keys.DESCRIBE_CONFIGS, 4, request)
    assert isinstance(answer, DescribeConfigsResponse)
    return answer.results[0].configs[0].value


def grow(client: RawClient, topic: str, count: int) -> int:
    request = CreatePartitionsRequest([CreatePartitionsTopic(topic, count, None)], 30_000)
    answer = client.ask(api_keys.CREATE_PARTITIONS, 3, request)
    assert isinstance(answer, CreatePartitionsResponse)
    return answer.results[0].error_code


def delete_records(client: RawClient, topic: str, offset: int) -> tuple[int, int]:
    asked = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
    answer = client.ask(api_keys.DELETE_RECORDS, 2, DeleteRecordsRequest([asked], 30_000))
    assert isinstance(answer, DeleteRecordsResponse)
    partition = answer.topics[0].partitions[0]
    return partition.low_watermark, partition.error_code


def sizes(client: RawClient) -> tuple[str, dict[tuple[str, int], int]]:
    answer = client.ask(api_keys.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None))
    assert isinstance(answer, DescribeLogDirsResponse)
    (result,) = answer.results
    assert 0 < result.usable_bytes <= result.total_bytes
    return result.log_dir, {
        (topic.name, part.partition_index): part.partition_size
        for topic in result.topics
        for part in topic.partitions
    }


def test_what_was_changed_holds_at_once_and_after_kill_9(
    make_broker: Callable[[], BrokerProcess],
) -> None:
    broker = make_broker()
    broker.start({"log.dirs": "data"})
    with RawClient(broker.port) as client:
        client.create_topic("orders")
        for number in range(10):
            client.produce(one_batch(b"%d" % number), "orders")

        change(client, BROKER, "1", "message.max.bytes", "200")
        change(client, TOPIC, "orders", "retention.ms", "-1")
        too_large = client.produce(one_batch(b"x" * 300), "orders").error_code
        growth = grow(client, "orders", 3)
        deletion = delete_records(client, "orders", 4)
        directory, before = sizes(client)
    broker.kill()
    broker.start()

    with RawClient(broker.port) as client:
        assert too_large == errors.MESSAGE_TOO_LARGE
        assert growth == errors.NONE
        assert deletion == (4, errors.NONE)
        assert directory == str(broker.directory / "data")
        assert sizes(client) == (directory, before)
        assert sorted(before) == [("orders", 0), ("orders", 1), ("orders", 2)]
        assert value(client, BROKER, "1", "message.max.bytes") == "200"
        assert value(client, TOPIC, "orders", "retention.ms") == "-1"
        assert client.produce(one_batch(b"x" * 300), "orders").error_code == too_large
        assert client.fetch(3, "orders").error_code == errors.OFFSET_OUT_OF_RANGE
        assert client.fetch(4, "orders").log_start_offset == 4

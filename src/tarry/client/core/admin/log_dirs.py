"""The call of an admin client that describes log directories: sizes of partitions by directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tarry.base.errors import NONE
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.brokers import ReadCluster
from tarry.client.core.connections import Connections
from tarry.client.errors import BrokerError
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    decode_describe_log_dirs_response,
)


class ReplicaSize(NamedTuple):
    """Replica of a partition in a log directory; `is_future` if it is being moved there."""

    place: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirectory(NamedTuple):
    """Log directory of one broker; a size is None if the broker does not report it."""

    broker_id: int
    path: str
    error: ClientError | None
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[ReplicaSize]


class DescribeLogDirs(Call[DescribeLogDirsResponse, list[LogDirectory]]):
    """Result: the directories of one broker, with the requested partitions (None means all
    partitions)."""

    def __init__(self, broker_id: int, topics: Mapping[str, Sequence[int]] | None) -> None:
        super().__init__(api_keys.DESCRIBE_LOG_DIRS, decode_describe_log_dirs_response, broker_id)
        self.topics = topics

    def build(self, version: int) -> Message:
        if self.topics is None:
            return DescribeLogDirsRequest(topics=None)
        return DescribeLogDirsRequest(
            topics=[DescribableLogDirTopic(name, [*some]) for name, some in self.topics.items()]
        )

    def interpret(self, response: DescribeLogDirsResponse) -> list[LogDirectory]:
        sentence = f"broker {self.target} does not describe its log directories"
        if response.error_code != NONE:
            raise BrokerError(response.error_code, sentence)
        return [
            LogDirectory(
                self.target,
                one.log_dir,
                None
                if one.error_code == NONE
                else BrokerError(
                    one.error_code,
                    f"log directory {one.log_dir} of broker {self.target} is offline",
                ),
                one.total_bytes if one.total_bytes >= 0 else None,
                one.usable_bytes if one.usable_bytes >= 0 else None,
                [
                    ReplicaSize(
                        (topic.name, replica.partition_index),
                        replica.partition_size,
                        replica.offset_lag,
                        replica.is_future_key,
                    )
                    for topic in one.topics
                    for replica in topic.partitions
                ],
            )
            for one in response.results
        ]


def describe_log_dirs(
    connections: Connections, topics: Mapping[str, Sequence[int]] | None
) -> Steps[list[LogDirectory]]:
    """Describe the log directories of all brokers.

    Fails if one broker does not answer, because the sums would be too small without a sign of it.
    """
    view = ReadCluster([])
    yield [view]
    brokers = view.brokers(connections)
    calls = [DescribeLogDirs(broker_id, topics) for broker_id in sorted(brokers)]
    yield calls
    found: list[LogDirectory] = []
    for call in calls:
        if call.error is not None:
            raise call.error
        found.extend(call.result)
    return found

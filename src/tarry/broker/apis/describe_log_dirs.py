"""DescribeLogDirs (key 35): how large each partition is, and how much room the directory has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


def handle(broker: Broker, context: RequestContext, request: Message) -> Message | None:
    """Describe the one directory; no topics named (null) means all of them."""
    assert isinstance(request, DescribeLogDirsRequest)
    result = DescribeLogDirsResult(log_dir=broker.settings.log_directory)
    asked = _asked(request)
    for name, indexes in asked.items() if asked is not None else _all(broker).items():
        partitions = _partitions(broker, name, list(indexes))
        if partitions:
            result.topics.append(DescribeLogDirsTopic(name, partitions))
    try:
        result.total_bytes = broker.disk.total_bytes()
        result.usable_bytes = broker.disk.free_bytes()
    except StorageError:
        result.error_code = errors.KAFKA_STORAGE_ERROR
        result.topics = []
    return DescribeLogDirsResponse(results=[result])


def _all(broker: Broker) -> dict[str, dict[int, None]]:
    return {name: dict.fromkeys(broker.topics[name].partitions) for name in broker.topics.names()}


def _asked(request: DescribeLogDirsRequest) -> dict[str, dict[int, None]] | None:
    """The partitions asked for by topic, each once; None for all."""
    if request.topics is None:
        return None
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    return asked


def _partitions(broker: Broker, name: str, indexes: list[int]) -> list[DescribeLogDirsPartition]:
    """Those that are here; nothing is said of others, as in Kafka."""
    hosted = broker.topics.get(name)
    if hosted is None:
        return []
    found: list[DescribeLogDirsPartition] = []
    for index in indexes:
        partition = hosted.partition(index)
        if partition is not None:
            # The leader's replica is never behind.
            found.append(DescribeLogDirsPartition(index, partition.log.size_bytes, 0))
    return found

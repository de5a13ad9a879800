"""DescribeLogDirs (key 35): how large each partition is, and how much room the directory has."""

from __future__ import annotations

from tarry.base import errors
from tarry.base.doors import Disk
from tarry.base.errors import StorageError
from tarry.base.settings import Settings
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(
    topics: Topics,
    disk: Disk,
    settings: Settings,
    context: RequestContext,
    request: DescribeLogDirsRequest,
) -> Message | None:
    """Describe the one directory; no topics named (null) means all of them."""
    result = DescribeLogDirsResult(log_dir=settings.log_directory)
    asked = _asked(request)
    for name, indexes in asked.items() if asked is not None else _all(topics).items():
        partitions = _partitions(topics, name, list(indexes))
        if partitions:
            result.topics.append(DescribeLogDirsTopic(name, partitions))
    try:
        result.total_bytes = disk.total_bytes()
        result.usable_bytes = disk.free_bytes()
    except StorageError:
        result.error_code = errors.KAFKA_STORAGE_ERROR
        result.topics = []
    return DescribeLogDirsResponse(results=[result])


def _all(topics: Topics) -> dict[str, dict[int, None]]:
    return {name: {each.index: None for each in topics[name].replicas()} for name in topics.names()}


def _asked(request: DescribeLogDirsRequest) -> dict[str, dict[int, None]] | None:
    """Return the partitions asked for by topic, each once; None for all."""
    if request.topics is None:
        return None
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    return asked


def _partitions(topics: Topics, name: str, indexes: list[int]) -> list[DescribeLogDirsPartition]:
    """Describe the partitions that are here; nothing is said of others, as in Kafka."""
    hosted = topics.get(name)
    if hosted is None:
        return []
    found: list[DescribeLogDirsPartition] = []
    for index in indexes:
        partition = hosted.replica(index)
        if partition is not None:
            # The leader's replica is never behind.
            found.append(DescribeLogDirsPartition(index, partition.log.size_bytes, 0))
    return found

"""DescribeLogDirs (key 35): how large each partition is, and how much room the directory has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tarry.base import errors
from tarry.base.doors import Disk
from tarry.base.errors import StorageError
from tarry.base.settings import Settings
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import once_each
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
    long_answers: LongAnswers,
    topics: Topics,
    disk: Disk,
    settings: Settings,
    context: RequestContext,
    request: DescribeLogDirsRequest,
) -> Message | None:
    """Describe the one directory; null topics ask for all topics."""
    result = DescribeLogDirsResult(log_dir=settings.log_directory)
    try:
        result.total_bytes = disk.total_bytes()
        result.usable_bytes = disk.free_bytes()
    except StorageError:
        result.error_code = errors.KAFKA_STORAGE_ERROR
        return DescribeLogDirsResponse(results=[result])
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, topics, result, request))


def _steps(
    answer: LongAnswer,
    topics: Topics,
    result: DescribeLogDirsResult,
    request: DescribeLogDirsRequest,
) -> Iterator[int]:
    answer.open(DescribeLogDirsResponse())
    answer.open(result)
    if request.topics is None:
        for name in topics.names():
            hosted = topics.get(name)
            replicas = [] if hosted is None else hosted.replicas()
            yield from _topic(answer, topics, name, [each.leadership.index for each in replicas])
        return
    asked = yield from once_each(((topic.topic, topic.partitions) for topic in request.topics), int)
    for name, indexes in asked.items():
        yield from _topic(answer, topics, name, indexes)


def _topic(answer: LongAnswer, topics: Topics, name: str, indexes: Iterable[int]) -> Iterator[int]:
    """Describe the partitions that this broker hosts; the answer leaves out others, as in
    Kafka's.
    """
    yield 1
    hosted = topics.get(name)
    here = [] if hosted is None else [each for each in indexes if hosted.replica(each) is not None]
    if not here:
        return
    answer.open(DescribeLogDirsTopic(name))
    for index in here:
        partition = topics.replica(name, index)
        if partition is not None:
            # The size includes the log of scheduled records.  The lag is 0: the high watermark
            # never exceeds the log end.
            size = sum([each.log.size_bytes for each in partition.leadership.logs])
            answer.add(DescribeLogDirsPartition(index, size, 0))
        yield 1
    answer.close()

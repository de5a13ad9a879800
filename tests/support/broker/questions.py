"""Questions that a test has a broker ask, of itself or of others, with how each of them ended."""

from __future__ import annotations

from typing import Any

from tarry.broker.broker import Broker
from tarry.broker.peers.asker import Asker
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tarry.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tarry.protocol.registry import MESSAGES


class Question(Exchange[Any]):
    """Question with its one end: an answer or an error."""

    def __init__(self, api_key: int, request: Message, timeout_ms: int = 5_000) -> None:
        super().__init__(api_key, MESSAGES[api_key].decode_response, timeout_ms)
        self.request = request
        self.answer: Any = None
        self.error: ClientError | None = None
        self.ends = 0

    def build(self, version: int) -> Message:
        return self.request

    def on_response(self, response: Any, now_ms: int) -> None:
        self.answer = response
        self.ends += 1

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.error = error
        self.ends += 1

    @property
    def is_over(self) -> bool:
        return self.ends > 0


def what_is_stored() -> Question:
    """Ask which partitions a broker stores."""
    return Question(api_keys.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))


def stored(question: Question) -> list[int]:
    """Return the indexes of the partitions that an answer names."""
    answer = question.answer
    assert isinstance(answer, DescribeLogDirsResponse)
    return sorted(
        one.partition_index
        for directory in answer.results
        for topic in directory.topics
        for one in topic.partitions
    )


def waiting_fetch(
    topic_id: bytes, index: int, *, offset: int = 0, wait_ms: int = 3_000, timeout_ms: int = 5_000
) -> Question:
    """Ask for records that are not there yet, and let the broker wait for them."""
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )
    return Question(api_keys.FETCH, request, timeout_ms)


def new_asker(broker: Broker, *, answer_bytes_max: int = 1 << 20) -> Asker:
    """Return an asker of the tests."""
    return broker.peers.asker(
        "tests", timeout_ms=5_000, backoff_ms=100, answer_bytes_max=answer_bytes_max
    )

"""TopicQuery: waits for the partitions of a topic."""

from __future__ import annotations

from collections.abc import Callable

from tarry.client.core.metadata import Metadata
from tarry.client.core.operation import Operation, Operations
from tarry.link.errors import ClientError

# Function that returns the error for a topic; it takes the topic, the ms waited, and now.
TopicErrorOf = Callable[[str, int, int], ClientError]


class TopicQuery(Operation[list[int]]):
    """Query of one topic.  Raises UnknownTopic if the topic does not exist, or the error for which
    no broker has described it."""

    def __init__(
        self, operations: Operations, metadata: Metadata, topic: str, error_of: TopicErrorOf
    ) -> None:
        super().__init__(operations)
        self.topic = topic
        self._metadata = metadata
        self._error_of = error_of

    def look(self, now_ms: int) -> bool:
        metadata, topic = self._metadata, self.topic
        return metadata.topic(topic) is not None or metadata.is_missing(topic, now_ms)

    def answer(self, now_ms: int) -> list[int]:
        known = self._metadata.topic(self.topic)
        if known is None:
            raise self.late_error(now_ms)
        return list(known.partitions)

    def late_error(self, now_ms: int) -> ClientError:
        return self._error_of(self.topic, self.timeout_ms, now_ms)

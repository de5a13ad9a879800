"""Fetch of thousands of partitions: looked up, watched, read and answered in steps.

The fetch waits in shares of some partitions.  A share is examined and begins to wait in one step,
so no record can come between.  The bytes of all shares together decide whether there is enough.
The partitions are read in the request's order and within the limit in bytes, some in each turn; a
partition of a later turn may have more records by then.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.apis.fetch import AskedPartitions, FetchHandler
from tarry.broker.delayed.fetch import DelayedFetchShare, FetchInShares, FetchShare
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.reads import FETCH_VERSION_OF_ZSTD, FetchTopic, PartialRead
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
)

# Number of partitions of one share, which are looked up in one step and examined in one step.
SHARE_PARTITIONS: Final = 100
READS_PER_STEP: Final = 20

# Number of partitions that are looked up in the time of one unit of work, and that are examined and
# watched in it.
LOOKUPS_PER_UNIT: Final = 5
WATCHES_PER_UNIT: Final = 3


def begin(
    long_answers: LongAnswers,
    handler: FetchHandler,
    context: RequestContext,
    request: FetchRequest,
) -> Message | None:
    """Begin the steps of a fetch of many partitions."""
    fetch = LargeFetch(long_answers, handler, context, request)
    answer = LongAnswer(context)
    return long_answers.begin(answer, fetch.steps(answer))


class LargeFetch(FetchInShares):
    """A fetch of many partitions."""

    def __init__(
        self,
        long_answers: LongAnswers,
        handler: FetchHandler,
        context: RequestContext,
        request: FetchRequest,
    ) -> None:
        super().__init__(context, handler.limits(context, request))
        self._long_answers = long_answers
        self._handler = handler
        self._request = request
        self._deadline_ms = context.now_ms + request.max_wait_ms
        self._topics: list[FetchTopic] = []
        # True once every share waits: then the end of a wait answers, and not the steps.
        self._is_watched = False

    def steps(self, answer: LongAnswer) -> Iterator[int]:
        """Look up all partitions, then answer or wait."""
        request = self._request
        asked = AskedPartitions(self._handler.topics, self.context.api_version, request)
        for index, topic in enumerate(request.topics):
            partitions = topic.partitions
            for start in range(0, len(partitions), SHARE_PARTITIONS):
                share = partitions[start : start + SHARE_PARTITIONS]
                asked.resolve(index, share)
                yield 1 + len(share) // LOOKUPS_PER_UNIT
        self._topics = asked.found()
        if request.max_wait_ms > 0 and not (yield from self._has_vain_zstd()):
            yield from self._watch()
            if self._is_watched:
                return
        self.operation.force_complete()
        yield from self._rows(answer)

    def _watch(self) -> Iterator[int]:
        """Let one share after the other wait, unless one finds enough bytes."""
        fetches = self._handler.fetches
        for topic in self._topics:
            for start in range(0, len(topic.statuses), SHARE_PARTITIONS):
                share = FetchShare(self, topic.statuses[start : start + SHARE_PARTITIONS])
                if self.operation.is_completed or fetches.is_stopped or share.is_enough():
                    return
                operation = DelayedFetchShare(self._deadline_ms, share)
                self.operation.add(operation)
                fetches.watch(operation, share.keys())
                yield 1 + SHARE_PARTITIONS // WATCHES_PER_UNIT
        self._is_watched = self.operation.has_shares()

    # -- the answer

    def answer(self) -> None:
        if self._is_watched:
            answer = LongAnswer(self.context)
            self._long_answers.begin(answer, self._rows(answer))

    def _rows(self, answer: LongAnswer) -> Iterator[int]:
        endpoints: dict[int, NodeEndpoint] = {}
        answer.open(FetchResponse())
        reading = PartialRead(self.context, self.limits, self._handler.fetches.hints)
        for topic in self._topics:
            answer.open(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id))
            for part in _parts(reading, topic):
                for each in part.node_endpoints:
                    endpoints[each.node_id] = each
                rows = part.responses[0].partitions
                for row in rows:
                    answer.add(row)
                yield len(rows)
            answer.close()
            yield 1
        answer.end_with(FetchResponse(node_endpoints=list(endpoints.values())))

    def _has_vain_zstd(self) -> Generator[int, None, bool]:
        """Return whether the fetch would wait in vain, because an old client is refused the
        batches there.
        """
        if self.context.api_version >= FETCH_VERSION_OF_ZSTD:
            return False
        reading = PartialRead(self.context, self.limits, self._handler.fetches.hints)
        for topic in self._topics:
            for part in _parts(reading, topic):
                rows = part.responses[0].partitions
                yield len(rows)
                if any(row.error_code == errors.UNSUPPORTED_COMPRESSION_TYPE for row in rows):
                    return True
        return False


def _parts(reading: PartialRead, topic: FetchTopic) -> Iterator[FetchResponse]:
    for start in range(0, len(topic.statuses), READS_PER_STEP):
        yield reading.read(topic, start, start + READS_PER_STEP)

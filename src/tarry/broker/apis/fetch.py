"""Fetch (key 1): records of many partitions, at once or when there are enough bytes.  Hot.

Session id 0 in the answer declines fetch sessions (KIP-227): every client goes on with full fetches
then.  A request that names a session is answered that the session is not found.  A fetch of
thousands of partitions is handled in steps (`fetch_steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.broker.delayed.fetch import DelayedFetch, Fetches
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.reads import (
    FETCH_VERSION_OF_ZSTD,
    Fetch,
    FetchLimits,
    FetchStatus,
    FetchTopic,
    ScheduledFetchStatus,
    reader_of,
)
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.partition.replicated_log import WatchKey
from tarry.partition.topic import ReadableTopic, ScheduledTopic
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse

# KIP-516: from this version on a fetch names topics by id.
VERSION_OF_TOPIC_IDS: Final = 13


class FetchHandler:
    """Handler of fetches, with the parts of the broker that it needs.

    `take_steps` handles a consumer's fetch of thousands of partitions.
    """

    def __init__(
        self,
        topics: Topics,
        fetches: Fetches,
        neighbours: Neighbours,
        max_bytes: int,
        *,
        take_steps: Callable[[FetchHandler, RequestContext, FetchRequest], Message | None],
    ) -> None:
        self.topics = topics
        self.fetches = fetches
        self._neighbours = neighbours
        self._max_bytes = max_bytes
        self._take_steps = take_steps

    def handle(self, context: RequestContext, request: FetchRequest) -> Message | None:
        """Answer now if there are enough bytes, there is an error, or the fetch may not wait;
        else wait.
        """
        replica_fetches = self._neighbours.replica_fetches
        if replica_fetches is not None and _is_of_replica(request):
            return replica_fetches.handle(context, request)
        if request.session_id != 0:
            return FetchResponse(error_code=errors.FETCH_SESSION_ID_NOT_FOUND)
        if context.elements > LONG_REQUEST_ELEMENTS:
            return self._take_steps(self, context, request)
        asked = AskedPartitions(self.topics, context.api_version, request)
        for index, asked_topic in enumerate(request.topics):
            asked.resolve(index, asked_topic.partitions)
        fetch = Fetch(context, asked.found(), self.limits(context, request), self.fetches.hints)
        if request.max_wait_ms <= 0 or fetch.is_enough():
            return fetch.read()
        keys = fetch.keys()
        if not keys or (context.api_version < FETCH_VERSION_OF_ZSTD and fetch.holds_zstd()):
            return fetch.read()
        operation = DelayedFetch(context.now_ms + request.max_wait_ms, fetch)
        context.operation = operation
        self.fetches.watch(operation, keys)
        return None

    def limits(self, context: RequestContext, request: FetchRequest) -> FetchLimits:
        """Return the limits of a fetch."""
        return FetchLimits(
            reader_of(request.isolation_level),
            request.min_bytes,
            min(request.max_bytes, self._max_bytes),
            context.api_version,
        )


def _is_of_replica(request: FetchRequest) -> bool:
    """Return whether a fetch names a replica and its life; a replica's id alone (before 15) is
    no proof.
    """
    state = request.replica_state
    return state is not None and state.replica_id >= 0


class AskedPartitions:
    """The partitions that a fetch names, each once: a fetch that waits costs work for each of
    them.
    """

    def __init__(self, known: Topics, api_version: int, request: FetchRequest) -> None:
        # A client that claims to be a replica, and is no broker of the cluster, must neither read
        # past the high watermark nor count as in sync (CVE-2018-1288).
        state = request.replica_state
        self._is_consumer = request.replica_id < 0 and (state is None or state.replica_id < 0)
        self._known = known
        self._is_by_id = api_version >= VERSION_OF_TOPIC_IDS
        self._seen: dict[tuple[str, int] | WatchKey, None] = {}
        self.topics = [FetchTopic(topic.topic, topic.topic_id) for topic in request.topics]

    def resolve(self, index: int, partitions: list[FetchPartition]) -> None:
        """Look up these partitions of the topic at position `index` of the request."""
        topic = self.topics[index]
        hosted: ReadableTopic | None
        if self._is_by_id:
            hosted = self._known.readable_with_id(topic.topic_id)
            unknown = errors.UNKNOWN_TOPIC_ID
        else:
            hosted = self._known.readable(topic.topic)
            unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
        seen = self._seen
        if hosted is None:
            # No topic has a question mark in its name.
            name = "?" + (topic.topic_id.hex() if self._is_by_id else topic.topic)
            for asked in partitions:
                if (name, asked.partition) not in seen:
                    seen[name, asked.partition] = None
                    topic.statuses.append(FetchStatus(None, asked, unknown))
            return
        is_virtual = isinstance(hosted, ScheduledTopic)
        for asked in partitions:
            partition = hosted.partition(asked.partition)
            gone_code = hosted.missing_code(asked.partition) if partition is None else unknown
            key = (hosted.name, asked.partition) if partition is None else partition.watch_key
            if key in seen:
                continue
            seen[key] = None
            if not self._is_consumer:
                partition = None
                gone_code = errors.NOT_LEADER_OR_FOLLOWER
            if is_virtual:
                topic.statuses.append(ScheduledFetchStatus(partition, asked, gone_code))
            else:
                topic.statuses.append(FetchStatus(partition, asked, gone_code))

    def found(self) -> list[FetchTopic]:
        """Return the topics with the partitions that were looked up.

        A topic that is named again without another partition is left out.
        """
        if len(self.topics) == 1:
            return self.topics
        return [topic for topic in self.topics if topic.statuses]

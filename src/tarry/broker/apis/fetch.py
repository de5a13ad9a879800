"""Fetch (key 1): records from many partitions, at once or when there are enough.  Hot.

Fetch sessions (KIP-227) are declined by answering session id 0, which every client takes as
"full fetches, please"; a request that names a session is told that it is not found.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.delayed.fetch import DelayedFetch, Fetches
from tarry.broker.reads import (
    FETCH_VERSION_OF_ZSTD,
    Fetch,
    FetchLimits,
    FetchStatus,
    FetchTopic,
    reader_of,
)
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.partition.state import PartitionKey
from tarry.partition.topic import HostedTopic
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import FetchRequest, FetchResponse

# KIP-516: from here on a fetch names topics by id.
VERSION_OF_TOPIC_IDS: Final = 13


def handle(
    known: Topics,
    fetches: Fetches,
    max_bytes: int,
    context: RequestContext,
    request: FetchRequest,
) -> Message | None:
    """Answer now if there is enough, an error, or no wait is wanted; else watch."""
    if fetches.of_replicas is not None and _is_of_replica(request):
        return fetches.of_replicas(context, request)
    if request.session_id != 0:
        return FetchResponse(error_code=errors.FETCH_SESSION_ID_NOT_FOUND)
    limits = FetchLimits(
        reader_of(request.isolation_level),
        request.min_bytes,
        min(request.max_bytes, max_bytes),
        context.api_version,
    )
    fetch = Fetch(context, _resolve(known, context.api_version, request), limits)
    fetch.add_hints = fetches.add_hints
    if request.max_wait_ms <= 0 or fetch.is_enough():
        return fetch.read()
    keys = fetch.keys()
    if not keys or (context.api_version < FETCH_VERSION_OF_ZSTD and fetch.holds_zstd()):
        return fetch.read()
    operation = DelayedFetch(context.now_ms + request.max_wait_ms, fetch)
    context.operation = operation
    fetches.watch(operation, keys)
    return None


def _is_of_replica(request: FetchRequest) -> bool:
    """Return whether a fetch names a replica and its life; an id alone (before 15) proves none."""
    state = request.replica_state
    return state is not None and state.replica_id >= 0


def _resolve(known: Topics, api_version: int, request: FetchRequest) -> list[FetchTopic]:
    # Who calls itself a replica, and is not one of a cluster, must neither read past the high
    # watermark nor count as in sync (CVE-2018-1288).
    state = request.replica_state
    is_consumer = request.replica_id < 0 and (state is None or state.replica_id < 0)
    topics: list[FetchTopic] = []
    # A partition that is named again is answered once: who waits for it pays for each.
    seen: dict[PartitionKey, None] = {}
    for asked_topic in request.topics:
        hosted: HostedTopic | None
        if api_version >= VERSION_OF_TOPIC_IDS:
            hosted = known.with_id(asked_topic.topic_id)
            unknown = errors.UNKNOWN_TOPIC_ID
        else:
            hosted = known.get(asked_topic.topic)
            unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
        topic = FetchTopic(asked_topic.topic, asked_topic.topic_id)
        topics.append(topic)
        for asked in asked_topic.partitions:
            if hosted is None:
                topic.statuses.append(FetchStatus(None, asked, unknown))
                continue
            partition = hosted.partition(asked.partition)
            gone_code = hosted.missing_code(asked.partition) if partition is None else unknown
            if partition is not None:
                if partition.key in seen:
                    continue
                seen[partition.key] = None
            if not is_consumer:
                partition = None
                gone_code = errors.NOT_LEADER_OR_FOLLOWER
            topic.statuses.append(FetchStatus(partition, asked, gone_code))
    return topics

"""OffsetFetch (key 9): what groups have committed; durable offsets and no others.

An error of a group stands in each partition in version 1, at the top in 2 to 7, in the group from
8 on.  Without transactions every offset is stable, so `require_stable` changes nothing.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.group.offsets import all_offsets, fetched_offsets
from tarry.group.records import NO_TOPIC_ID, OffsetCommitted
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

VERSION_OF_GROUP_ERRORS: Final = 2
# KIP-709: from here on several groups in a request.
VERSION_OF_BATCHES: Final = 8
NO_OFFSET: Final = -1

# What is asked of a group: topics with partitions, or None for all.
Wanted = list[tuple[str, list[int]]] | None
Fetched = list[tuple[str, list[tuple[int, OffsetCommitted | None]]]]


def handle(
    coordinator: GroupCoordinator,
    known: Topics,
    context: RequestContext,
    request: OffsetFetchRequest,
) -> Message | None:
    """Always answered at once."""
    if context.api_version >= VERSION_OF_BATCHES:
        groups: list[OffsetFetchResponseGroup] = []
        for asked in request.groups:
            topics = asked.topics
            wanted: Wanted = None
            if topics is not None:
                wanted = [(each.name, each.partition_indexes) for each in topics]
            groups.append(_group(coordinator, known, asked.group_id, wanted))
        return OffsetFetchResponse(groups=groups)
    wanted_topics: Wanted = None
    if request.topics is not None:
        wanted_topics = [(each.name, each.partition_indexes) for each in request.topics]
    return _single(coordinator, known, context, request.group_id, wanted_topics)


def _fetch(
    coordinator: GroupCoordinator, known: Topics, group_id: str, wanted: Wanted
) -> tuple[Fetched, int]:
    shard, error_code = coordinator.find(group_id)
    if shard is None:
        return [], error_code
    group = shard.group(group_id)
    if wanted is None:
        here = _of_topics_that_are(known, all_offsets(group))
        there = [(topic, [each for each in rows if each[1] is not None]) for topic, rows in here]
        return [each for each in there if each[1]], errors.NONE
    return _of_topics_that_are(known, fetched_offsets(group, wanted)), errors.NONE


def _of_topics_that_are(known: Topics, fetched: Fetched) -> Fetched:
    """Leave out what was committed for an earlier topic of the same name and is not forgotten
    yet.
    """
    here: Fetched = []
    for topic, partitions in fetched:
        hosted = known.get(topic)
        ids = (NO_TOPIC_ID, NO_TOPIC_ID if hosted is None else hosted.topic_id)
        here.append(
            (
                topic,
                [
                    (index, None if found is not None and found.topic_id not in ids else found)
                    for index, found in partitions
                ],
            )
        )
    return here


def _group(
    coordinator: GroupCoordinator, known: Topics, group_id: str, wanted: Wanted
) -> OffsetFetchResponseGroup:
    fetched, error_code = _fetch(coordinator, known, group_id, wanted)
    topics = [
        OffsetFetchResponseTopics(
            name=topic,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=NO_OFFSET if found is None else found.offset,
                    committed_leader_epoch=-1 if found is None else found.leader_epoch,
                    metadata="" if found is None else found.metadata,
                    error_code=errors.NONE,
                )
                for index, found in partitions
            ],
        )
        for topic, partitions in fetched
    ]
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=error_code)


def _single(
    coordinator: GroupCoordinator,
    known: Topics,
    context: RequestContext,
    group_id: str,
    wanted: Wanted,
) -> OffsetFetchResponse:
    fetched, error_code = _fetch(coordinator, known, group_id, wanted)
    if error_code != errors.NONE and context.api_version < VERSION_OF_GROUP_ERRORS:
        fetched = [(topic, [(each, None) for each in indexes]) for topic, indexes in wanted or []]
    partition_code = error_code if context.api_version < VERSION_OF_GROUP_ERRORS else errors.NONE
    topics = [
        OffsetFetchResponseTopic(
            name=topic,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=NO_OFFSET if found is None else found.offset,
                    committed_leader_epoch=-1 if found is None else found.leader_epoch,
                    metadata="" if found is None else found.metadata,
                    error_code=partition_code,
                )
                for index, found in partitions
            ],
        )
        for topic, partitions in fetched
    ]
    return OffsetFetchResponse(topics=topics, error_code=error_code)

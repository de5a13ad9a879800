"""OffsetFetch (key 9): the offsets that groups have committed durably.

Version 1 puts a group's error into each partition, versions 2 to 7 at the top, version 8 and later
into the group.  Without transactions every offset is stable, so `require_stable` changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.apis.offset_commit import (
    VERSION_OF_TOPIC_IDS,
    AskedTopic,
    code_of_unknown,
    known_topic,
)
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT, once_each
from tarry.broker.request import RequestContext
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.group.offsets.decisions import all_offsets, fetched_offsets
from tarry.group.offsets.records import NO_TOPIC_ID, OffsetCommitted
from tarry.group.state import GroupState
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

VERSION_OF_GROUP_ERRORS: Final = 2
# KIP-709: from this version on a request may have several groups.
VERSION_OF_BATCHES: Final = 8
NO_OFFSET: Final = -1

# Estimated size of one offset in an answer without its metadata, in bytes.
OFFSET_BYTES: Final = 32

# Durable offsets of a topic, by partition.
Rows = list[tuple[int, OffsetCommitted | None]]


def handle(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: OffsetFetchRequest,
) -> Message | None:
    """Answer each group once, and each of its partitions once."""
    answer = LongAnswer(context)
    # The metadata says which topics exist; the logs here are not those of all topics.
    known = coordinator.cluster
    if context.api_version >= VERSION_OF_BATCHES:
        steps = _of_groups(answer, coordinator, known, request)
    else:
        steps = _of_one_group(answer, coordinator, known, request)
    return long_answers.begin(answer, steps)


def _of_groups(
    answer: LongAnswer,
    coordinator: GroupCoordinator,
    known: ClusterState,
    request: OffsetFetchRequest,
) -> Iterator[int]:
    groups: dict[str, OffsetFetchRequestGroup] = {}
    for each in request.groups:
        groups.setdefault(each.group_id, each)
    yield 1 + len(request.groups) // ELEMENTS_PER_UNIT
    answer.open(OffsetFetchResponse())
    for group_id, asked in groups.items():
        shard, error_code = coordinator.find(group_id)
        group = None if shard is None else shard.group(group_id)
        if group is not None and asked.topics is None and not _has_room_for_all(answer, group):
            group, error_code = None, errors.INVALID_REQUEST
        answer.open(OffsetFetchResponseGroup(group_id=group_id, error_code=error_code))
        yield 1
        if group is not None and asked.topics is None:
            yield from _all(answer, known, group)
        elif group is not None:
            wanted = yield from once_each(
                (
                    ((topic.name, topic.topic_id), topic.partition_indexes)
                    for topic in asked.topics or ()
                ),
                int,
            )
            yield from _wanted(answer, known, group, wanted)
        answer.close()


def _of_one_group(
    answer: LongAnswer,
    coordinator: GroupCoordinator,
    known: ClusterState,
    request: OffsetFetchRequest,
) -> Iterator[int]:
    shard, error_code = coordinator.find(request.group_id)
    has_group_errors = answer.api_version >= VERSION_OF_GROUP_ERRORS
    answer.open(OffsetFetchResponse(error_code=error_code))
    if shard is not None and request.topics is None:
        yield from _all(answer, known, shard.group(request.group_id))
        return
    if shard is None and has_group_errors:
        return
    wanted = yield from once_each(
        (((topic.name, ZERO_UUID), topic.partition_indexes) for topic in request.topics or ()), int
    )
    if shard is not None:
        yield from _wanted(answer, known, shard.group(request.group_id), wanted)
        return
    for topic, indexes in wanted.items():
        yield from _topic(answer, topic, [(index, None) for index in indexes], error_code)


def _has_room_for_all(answer: LongAnswer, group: GroupState) -> bool:
    return answer.has_room(
        OFFSET_BYTES * sum(len(partitions) for partitions in group.offsets.values())
    )


def _all(answer: LongAnswer, known: ClusterState, group: GroupState) -> Iterator[int]:
    for name, rows in all_offsets(group):
        there = known_topic(known, name, ZERO_UUID)
        here = [each for each in _of_topic_that_is(there, rows) if each[1] is not None]
        yield 1 + len(rows) // ELEMENTS_PER_UNIT
        if there is None and answer.api_version >= VERSION_OF_TOPIC_IDS:
            # The topic does not exist, so there is no id by which the answer could name it.
            continue
        if here:
            topic = (name, ZERO_UUID if there is None else there.topic_id)
            yield from _topic(answer, topic, here, errors.NONE)


def _wanted(
    answer: LongAnswer,
    known: ClusterState,
    group: GroupState,
    wanted: dict[AskedTopic, dict[int, int]],
) -> Iterator[int]:
    for topic, indexes in wanted.items():
        there = known_topic(known, *topic)
        if there is None and answer.api_version >= VERSION_OF_TOPIC_IDS:
            unknown_code = code_of_unknown(answer.api_version)
            yield from _topic(answer, topic, [(index, None) for index in indexes], unknown_code)
            continue
        name = topic[0] if there is None else there.name
        [(_, rows)] = fetched_offsets(group, [(name, list(indexes))])
        yield from _topic(answer, topic, _of_topic_that_is(there, rows), errors.NONE)


def _of_topic_that_is(there: TopicState | None, rows: Rows) -> Rows:
    """Leave out offsets that were committed for an earlier topic of the same name and are not
    removed yet.
    """
    ids = (NO_TOPIC_ID, NO_TOPIC_ID if there is None else there.topic_id)
    return [
        (index, None if found is not None and found.topic_id not in ids else found)
        for index, found in rows
    ]


def _topic(answer: LongAnswer, topic: AskedTopic, rows: Rows, error_code: int) -> Iterator[int]:
    """Add a topic with its offsets; before version 8 the messages have other classes."""
    name, topic_id = topic
    is_batch = answer.api_version >= VERSION_OF_BATCHES
    row_class = OffsetFetchResponsePartitions if is_batch else OffsetFetchResponsePartition
    if is_batch:
        answer.open(OffsetFetchResponseTopics(name, topic_id))
    else:
        answer.open(OffsetFetchResponseTopic(name))
    yield 1 + len(rows) // ELEMENTS_PER_UNIT
    for index, found in rows:
        answer.add(
            row_class(
                partition_index=index,
                committed_offset=NO_OFFSET if found is None else found.offset,
                committed_leader_epoch=-1 if found is None else found.leader_epoch,
                metadata="" if found is None else found.metadata,
                error_code=error_code,
            )
        )
        yield 1
    answer.close()

"""DeleteTopics (key 20): topics are deleted by name, or from version 6 on by id.

The answer is given once the topics' data no longer uses their names, so that the client can at once
create a topic of the same name.  It does not wait for brokers without a life.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from tarry.base import errors
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.metadata.changes import MetadataChanges, too_many
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.topic_decisions import TopicChange, TopicResult, decide_delete_topics
from tarry.cluster.state.state import ClusterState, is_alive
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

VERSION_OF_TOPIC_IDS: Final = 6
# Before this version clients do not know TOPIC_DELETION_DISABLED.
VERSION_OF_DELETION_DISABLED: Final = 3


def handle(
    changes: MetadataChanges, context: RequestContext, request: DeleteTopicsRequest
) -> Message | None:
    """Delete each topic, or refuse."""
    wanted = _wanted(request, context.api_version)
    is_enabled = changes.settings.delete_topic_enable
    if not is_enabled or len(wanted) > PARTITIONS_PER_REQUEST_MAX:
        answer = LongAnswer(context)
        refuse = too_many if is_enabled else partial(_disabled, context.api_version)
        return changes.long_answers.begin(answer, _rows(answer, refuse(once(wanted))))
    state = changes.store.state

    def topic_of(one: tuple[str | None, bytes | None]) -> str | bytes | None:
        """Return the same key for a topic whether the request names it by name or by id."""
        topic = state.topic_by_id(one[1]) if one[1] is not None else None
        return one[0] or (topic.name if topic is not None else one[1])

    deletions = [
        TopicChange(partial(decide_delete_topics, wanted=portion, tried={}))
        for portion in changes.in_portions(wanted, topic_of)
    ]

    def is_data_away() -> bool:
        """Return whether all living brokers have removed the data; dead ones may be away for
        long.
        """
        return not any(
            is_kept(state, outcome.topic_id) for change in deletions for outcome in change.outcomes
        )

    return changes.ask_for_many(context, deletions, _rows, request.timeout_ms, until=is_data_away)


def is_kept(state: ClusterState, topic_id: bytes | None) -> bool:
    """Return whether this broker, or one that lives, still has data of a deleted topic."""
    deleted = state.deleted_topics.get(topic_id) if topic_id is not None else None
    if deleted is None:
        return False
    return not deleted.broker_ids or any(is_alive(state, each) for each in deleted.broker_ids)


def _wanted(
    request: DeleteTopicsRequest, api_version: int
) -> list[tuple[str | None, bytes | None]]:
    if api_version < VERSION_OF_TOPIC_IDS:
        return [(name, None) for name in request.topic_names]
    return [
        (topic.name, None if topic.topic_id == ZERO_UUID else topic.topic_id)
        for topic in request.topics
    ]


def _disabled(
    api_version: int, wanted: Iterable[tuple[str | None, bytes | None]]
) -> Iterator[TopicResult]:
    code = errors.TOPIC_DELETION_DISABLED
    if api_version < VERSION_OF_DELETION_DISABLED:
        code = errors.INVALID_REQUEST
    for name, topic_id in wanted:
        yield TopicResult(name, topic_id).refuse(code, "delete.topic.enable=false on this broker")


def _rows(answer: LongAnswer, outcomes: Iterable[TopicResult]) -> Iterator[int]:
    answer.open(DeleteTopicsResponse())
    for outcome in outcomes:
        answer.add(
            DeletableTopicResult(
                name=outcome.name,
                topic_id=outcome.topic_id or ZERO_UUID,
                error_code=outcome.error_code,
                error_message=outcome.message,
            )
        )
        yield 1

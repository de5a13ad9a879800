"""CreatePartitions (key 37): topics grow; the answer comes once the growth is durable and
applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.metadata.changes import MetadataChanges, too_many
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.topic_decisions import TopicChange, TopicResult
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(
    changes: MetadataChanges, context: RequestContext, request: CreatePartitionsRequest
) -> Message | None:
    """Grow each topic, or refuse; with `validate_only` only check the request."""
    if len(request.topics) > PARTITIONS_PER_REQUEST_MAX:
        answer = LongAnswer(context)
        names = once((topic.name, None) for topic in request.topics)
        return changes.long_answers.begin(answer, _rows(answer, too_many(names)))
    wanted = [_wanted(topic) for topic in request.topics]
    growths = [
        TopicChange(partial(decide_create_partitions, wanted=portion, tried={}))
        for portion in changes.in_portions(
            wanted, lambda growth: growth.name, lambda growth: max(growth.count, 0)
        )
    ]
    return changes.ask_for_many(
        context, growths, _rows, request.timeout_ms, validate_only=request.validate_only
    )


def _wanted(topic: CreatePartitionsTopic) -> GrowthWanted:
    if topic.assignments is None:
        return GrowthWanted(topic.name, topic.count)
    return GrowthWanted(topic.name, topic.count, [each.broker_ids for each in topic.assignments])


def _rows(answer: LongAnswer, outcomes: Iterable[TopicResult]) -> Iterator[int]:
    answer.open(CreatePartitionsResponse())
    for outcome in outcomes:
        answer.add(
            CreatePartitionsTopicResult(
                name=outcome.name or "",
                error_code=outcome.error_code,
                error_message=outcome.message,
            )
        )
        yield 1

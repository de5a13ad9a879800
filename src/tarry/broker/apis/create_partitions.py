"""CreatePartitions (key 37): topics grow; durable and in the metadata before the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base import errors
from tarry.broker.metadata_writes import MetadataWrite, failure_sentence, propose_or_wait
from tarry.broker.request import RequestContext
from tarry.cluster.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.topic_decisions import TopicDecision, TopicOutcome
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


class CreatePartitionsWrite(MetadataWrite):
    """Waits until the topics have grown, then answers."""

    def __init__(self, context: RequestContext, decision: TopicDecision, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.context = context
        self.decision = decision

    def on_complete(self) -> None:
        if self.error_code != errors.NONE:
            for outcome in self.decision.outcomes:
                if outcome.error_code == errors.NONE or not self.decision.records:
                    outcome.refuse(self.error_code, failure_sentence(self.error_code))
        self.context.respond(_response(self.decision.outcomes))


def handle(broker: Broker, context: RequestContext, request: Message) -> Message | None:
    """Let grow what can grow; with `validate_only` say only what would."""
    assert isinstance(request, CreatePartitionsRequest)
    wanted = [_wanted(topic) for topic in request.topics]
    decision = decide_create_partitions(broker.store.latest, wanted)
    if request.validate_only or (not decision.records and not broker.store.has_pending):
        return _response(decision.outcomes)
    write = CreatePartitionsWrite(context, decision, broker.now_ms + max(request.timeout_ms, 0))
    context.operation = write
    propose_or_wait(broker, decision.records, write)
    return None


def _wanted(topic: CreatePartitionsTopic) -> GrowthWanted:
    if topic.assignments is None:
        return GrowthWanted(topic.name, topic.count)
    return GrowthWanted(topic.name, topic.count, [each.broker_ids for each in topic.assignments])


def _response(outcomes: list[TopicOutcome]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=outcome.name or "",
                error_code=outcome.error_code,
                error_message=outcome.message,
            )
            for outcome in outcomes
        ]
    )

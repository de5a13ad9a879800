"""Changes of topics on their way: what CreateTopics, CreatePartitions and DeleteTopics share.

Every topic of a request has an outcome of its own; the records of all that can be done are one
batch, durable before the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tarry.base import errors
from tarry.broker.metadata_writes import MetadataWrite, failure_sentence, propose_or_wait
from tarry.broker.request import RequestContext
from tarry.cluster.topic_decisions import TopicDecision, TopicOutcome
from tarry.protocol.message import Message

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

Respond = Callable[[list[TopicOutcome]], Message]


class TopicWrite(MetadataWrite):
    """Waits until the topics are as decided, then answers."""

    def __init__(
        self, context: RequestContext, decision: TopicDecision, respond: Respond, timeout_ms: int
    ) -> None:
        super().__init__(context.now_ms + max(timeout_ms, 0))
        self.context = context
        self.decision = decision
        self.make_response = respond

    def on_complete(self) -> None:
        self.tell_changes()
        if self.error_code != errors.NONE:
            for outcome in self.decision.outcomes:
                if outcome.error_code == errors.NONE or not self.decision.records:
                    outcome.refuse(self.error_code, failure_sentence(self.error_code))
        self.context.respond(self.make_response(self.decision.outcomes))


def change_topics(
    broker: Broker, write: TopicWrite, *, validate_only: bool = False
) -> Message | None:
    """Make durable what was decided, and answer then; at once if there is nothing to wait for."""
    decision = write.decision
    if validate_only or (not decision.records and not broker.store.has_pending):
        return write.make_response(decision.outcomes)
    write.context.operation = write
    write.note_changes(broker.store.latest, write.context, decision.records)
    propose_or_wait(broker, decision.records, write)
    return None

"""Send: a request that sends finished batches to a leader, and the meaning of its answer.

The batches have their producer ids, epochs and sequences already.  Only one attempt is made: the
caller decides what to do after a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tarry.base.errors import NONE, UNKNOWN_PRODUCER_ID
from tarry.base.ids import TopicPartition
from tarry.client.core import reactions
from tarry.client.core.metadata import leader_hint
from tarry.client.core.producer.produce import VERSION_WITH_IDS, BatchAnswer
from tarry.client.core.topic import ZERO_ID, brokers_of
from tarry.client.errors import broker_error
from tarry.link.errand import Call
from tarry.link.errors import ClientError
from tarry.link.exchange import VERSION_UNLIMITED
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    decode_produce_response,
)
from tarry.wire.reader import window_of

# Kind of outcome: the batch is in the log, by this request or by an earlier one.
ACCEPTED: Final = 0
# Kind of outcome: the sequence does not follow the producer's last one at the leader.
OUT_OF_ORDER: Final = 1
# Kind of outcome: the leader refuses the producer id; it has forgotten it, or has a newer epoch.
FORGOTTEN: Final = 2
# Kind of outcome: the batch may be in the log or not.
UNCLEAR: Final = 3
# Kind of outcome: the batch is not in the log, and a retry would be refused again.
REFUSED: Final = 4

_KINDS: Final = {
    reactions.RETRY: UNCLEAR,
    reactions.REFRESH: UNCLEAR,
    reactions.ALREADY_THERE: ACCEPTED,
    reactions.FATAL: FORGOTTEN,
}

ALL_IN_SYNC: Final = -1


class SendOutcome(NamedTuple):
    """Outcome for one batch; `error` is the reason if it was not accepted."""

    kind: int
    error: ClientError | None = None


class SendBatches(Call[ProduceResponse, dict[TopicPartition, SendOutcome]]):
    """Call to one leader with at most one batch of each partition.  Result: an outcome for each
    partition that the answer names."""

    repeats = False

    def __init__(
        self,
        leader_id: int,
        batches: Mapping[TopicPartition, bytes],
        topic_ids: Mapping[str, bytes],
    ) -> None:
        super().__init__(api_keys.PRODUCE, decode_produce_response, leader_id)
        self.batches = batches
        self.topic_ids = topic_ids

    def version_max(self) -> int:
        if any(self.topic_ids.get(topic, ZERO_ID) == ZERO_ID for topic, _ in self.batches):
            return VERSION_WITH_IDS - 1
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        topics: dict[str, TopicProduceData] = {}
        for (name, partition), batch in self.batches.items():
            topic = topics.get(name)
            if topic is None:
                topic = TopicProduceData(name, self.topic_ids.get(name, ZERO_ID))
                topics[name] = topic
            topic.partition_data.append(PartitionProduceData(partition, window_of(batch)))
        return ProduceRequest(None, ALL_IN_SYNC, self.timeout_ms, [*topics.values()])

    def interpret(self, response: ProduceResponse) -> dict[TopicPartition, SendOutcome]:
        brokers = brokers_of(response.node_endpoints)
        names = {self.topic_ids.get(name, ZERO_ID): name for name, _ in self.batches}
        outcomes: dict[TopicPartition, SendOutcome] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for one in topic.partition_responses:
                hint = leader_hint(name, one.index, one.current_leader, brokers)
                outcomes[name, one.index] = _outcome((name, one.index), BatchAnswer(one, hint))
        return outcomes


def _outcome(place: TopicPartition, answer: BatchAnswer) -> SendOutcome:
    code = answer.error_code
    if code == NONE:
        return SendOutcome(ACCEPTED)
    sentence = answer.message or "the broker refused the records"
    if answer.record_errors:
        sentence = answer.record_errors[0][1]
    error = broker_error(code, f"{place[0]} [{place[1]}]: {sentence}")
    reaction = reactions.reaction_to(reactions.PRODUCE, code)
    if reaction == reactions.RENUMBER:
        kind = FORGOTTEN if code == UNKNOWN_PRODUCER_ID else OUT_OF_ORDER
        return SendOutcome(kind, error)
    return SendOutcome(_KINDS.get(reaction, REFUSED), error)

"""Produce: the request that sends batches to a leader, and the answer for each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base.errors import NETWORK_EXCEPTION
from tarry.base.ids import TopicPartition
from tarry.client.core.metadata import LeaderHint, leader_hint
from tarry.client.core.producer.batch import ProducerBatch
from tarry.client.core.producer.queue import PartitionQueue
from tarry.client.core.topic import ZERO_ID, brokers_of
from tarry.link.errors import ClientError
from tarry.link.exchange import VERSION_UNLIMITED, Exchange
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    decode_produce_response,
)
from tarry.wire.reader import window_of

if TYPE_CHECKING:
    from tarry.client.core.producer.sender import Sender

# First version that names topics by id only.
VERSION_WITH_IDS: Final = 13


class BatchAnswer:
    """Answer of the broker about one batch."""

    def __init__(self, answer: PartitionProduceResponse, hint: LeaderHint) -> None:
        self.hint = hint
        self.error_code = answer.error_code
        self.message = answer.error_message
        self.base_offset = answer.base_offset
        self.s_offset = answer.s_offset
        self.append_time_ms = answer.log_append_time_ms
        fallback = answer.error_message or "the broker refused the record"
        self.record_errors = [
            (flaw.batch_index, flaw.batch_index_error_message or fallback)
            for flaw in answer.record_errors
        ]


def left_out(topic: str, partition: int) -> BatchAnswer:
    """Make the answer for a partition that is missing in the broker's answer."""
    answer = PartitionProduceResponse(partition, NETWORK_EXCEPTION, -1)
    answer.error_message = "the broker's answer leaves this partition out"
    return BatchAnswer(answer, leader_hint(topic, partition, None, {}))


class ProduceExchange(Exchange[ProduceResponse]):
    """Exchange of one request with batches for one leader."""

    def __init__(self, sender: Sender, leader_id: int) -> None:
        settings = sender.settings
        super().__init__(api_keys.PRODUCE, decode_produce_response, settings.request_timeout_ms)
        self.sender = sender
        self.leader_id = leader_id
        self.size = 0
        self.has_response = settings.acks != 0
        self._entries: dict[TopicPartition, tuple[PartitionQueue, ProducerBatch]] = {}

    def add(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.size += batch.size
        self._entries[queue.topic, queue.partition] = (queue, batch)

    def version_max(self) -> int:
        metadata = self.sender.metadata
        if any(metadata.topic_id(topic) == ZERO_ID for topic, _ in self._entries):
            return VERSION_WITH_IDS - 1
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        settings = self.sender.settings
        topics: dict[str, TopicProduceData] = {}
        for (name, partition), (_, batch) in self._entries.items():
            if batch.is_done:
                # The batch has timed out before the connection was ready.
                continue
            topic = topics.get(name)
            if topic is None:
                topic = TopicProduceData(name, self.sender.metadata.topic_id(name))
                topics[name] = topic
            records = window_of(batch.encode(settings.codec, settings.codec_level))
            topic.partition_data.append(PartitionProduceData(partition, records))
            batch.was_sent = True
        return ProduceRequest(None, settings.acks, settings.request_timeout_ms, [*topics.values()])

    def on_sent(self, now_ms: int) -> None:
        self.sender.on_request_done(self.leader_id)
        for queue, batch in self._entries.values():
            self.sender.on_acknowledged_by_nobody(queue, batch)

    def on_response(self, response: ProduceResponse, now_ms: int) -> None:
        sender = self.sender
        sender.on_request_done(self.leader_id)
        answers = self._answers(response)
        for place, (queue, batch) in self._entries.items():
            sender.on_answer(queue, batch, answers.get(place) or left_out(*place), now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.sender.on_request_done(self.leader_id)
        for queue, batch in self._entries.values():
            self.sender.on_failure(queue, batch, error, now_ms)

    def _answers(self, response: ProduceResponse) -> dict[TopicPartition, BatchAnswer]:
        brokers = brokers_of(response.node_endpoints)
        names = self.sender.metadata.names
        answers: dict[TopicPartition, BatchAnswer] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for partition in topic.partition_responses:
                hint = leader_hint(name, partition.index, partition.current_leader, brokers)
                answers[name, partition.index] = BatchAnswer(partition, hint)
        return answers

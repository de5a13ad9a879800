"""The call of an admin client that lists the producers of partitions, with their last sequences."""

from __future__ import annotations

from typing import NamedTuple

from tarry.base.errors import NONE
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.partitions import ask_leaders
from tarry.client.core.connections import Connections
from tarry.client.core.group.assignment.consumer_protocol import by_topic
from tarry.client.errors import broker_error
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
    decode_describe_producers_response,
)


class ActiveProducer(NamedTuple):
    """Idempotent producer that a partition knows: its id and epoch, and the sequence and time (in
    milliseconds since 1970) of its last record.

    `transaction_start_offset` is the first offset of its open transaction in the partition, or -1.
    Consumers with `read_committed` cannot read past an open transaction.  `coordinator_epoch` is
    the epoch of the coordinator of its last transaction, or -1.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


# Outcome of `describe_producers`: by partition its producers, or an error.
DescribedProducers = dict[TopicPartition, list[ActiveProducer] | ClientError]


class DescribeProducers(Call[DescribeProducersResponse, DescribedProducers]):
    """Call that asks one leader for the producers of its partitions.  Result:
    DescribedProducers."""

    repeats = False

    def __init__(self, broker_id: int, places: list[TopicPartition]) -> None:
        super().__init__(api_keys.DESCRIBE_PRODUCERS, decode_describe_producers_response, broker_id)
        self.places = places

    def build(self, version: int) -> Message:
        return DescribeProducersRequest(
            [TopicRequest(name, indexes) for name, indexes in by_topic(self.places).items()]
        )

    def interpret(self, response: DescribeProducersResponse) -> DescribedProducers:
        found: DescribedProducers = {}
        for topic in response.topics:
            for one in topic.partitions:
                place = (topic.name, one.partition_index)
                if one.error_code != NONE:
                    sentence = f"the producers of {place[0]} [{place[1]}] are not known"
                    told = (one.error_message or sentence).rstrip(".")
                    found[place] = broker_error(one.error_code, told)
                    continue
                found[place] = [
                    ActiveProducer(
                        each.producer_id,
                        each.producer_epoch,
                        each.last_sequence,
                        each.last_timestamp,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                    )
                    for each in one.active_producers
                ]
        return found


def describe_producers(
    connections: Connections, places: list[TopicPartition]
) -> Steps[DescribedProducers]:
    """Describe the producers of partitions at the leaders; look up leaders that moved."""
    return ask_leaders(connections, places, DescribeProducers)

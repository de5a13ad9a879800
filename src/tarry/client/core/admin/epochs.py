"""The call of an admin client that asks where leader epochs end in the logs (KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tarry.base.errors import FENCED_LEADER_EPOCH, NONE
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.partitions import ask_leaders, may_pass
from tarry.client.core.connections import Connections
from tarry.client.core.consumer.lookup import CONSUMER_ID
from tarry.client.core.group.assignment.consumer_protocol import by_topic
from tarry.client.errors import broker_error
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    decode_offset_for_leader_epoch_response,
)

# Leader epoch of a request if the caller names none.
EPOCH_UNKNOWN: Final = -1


class FoundEpoch(NamedTuple):
    """Result of `epoch_ends`: the largest leader epoch of the log that is not above the requested
    epoch, and the offset after its last record; both are -1 if the leader does not know.

    If the log begins after that epoch, the result is the requested epoch and the first offset of
    the log.
    """

    leader_epoch: int
    end_offset: int


# Outcome of `epoch_ends`: by partition the end of the epoch, or an error.
FoundEpochs = dict[TopicPartition, FoundEpoch | ClientError]


class AskEpochs(Call[OffsetForLeaderEpochResponse, FoundEpochs]):
    """Call that asks one leader where epochs end in the logs of its partitions.  Result:
    FoundEpochs."""

    def __init__(
        self,
        broker_id: int,
        epochs: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int],
    ) -> None:
        super().__init__(
            api_keys.OFFSET_FOR_LEADER_EPOCH, decode_offset_for_leader_epoch_response, broker_id
        )
        self.epochs = epochs
        self.leader_epochs = leader_epochs

    def build(self, version: int) -> Message:
        topics = [
            OffsetForLeaderTopic(name, [self._asked((name, index)) for index in indexes])
            for name, indexes in by_topic(sorted(self.epochs)).items()
        ]
        return OffsetForLeaderEpochRequest(replica_id=CONSUMER_ID, topics=topics)

    def _asked(self, place: TopicPartition) -> OffsetForLeaderPartition:
        current = self.leader_epochs.get(place, EPOCH_UNKNOWN)
        return OffsetForLeaderPartition(place[1], current, self.epochs[place])

    def interpret(self, response: OffsetForLeaderEpochResponse) -> FoundEpochs:
        found: FoundEpochs = {}
        for topic in response.topics:
            for one in topic.partitions:
                place = (topic.topic, one.partition)
                if one.error_code == NONE:
                    found[place] = FoundEpoch(one.leader_epoch, one.end_offset)
                else:
                    sentence = f"the leader epochs of {place[0]} [{place[1]}] are not known"
                    found[place] = broker_error(one.error_code, sentence)
        return found


def epoch_ends(
    connections: Connections,
    epochs: Mapping[TopicPartition, int],
    leader_epochs: Mapping[TopicPartition, int],
) -> Steps[FoundEpochs]:
    """Ask the leaders where epochs end in their logs."""

    def call_of(leader_id: int, places: list[TopicPartition]) -> AskEpochs:
        return AskEpochs(leader_id, {place: epochs[place] for place in places}, leader_epochs)

    return ask_leaders(connections, epochs, call_of, _may_pass)


def _may_pass(error: ClientError) -> bool:
    # A retry names the same leader epoch and would be fenced again.
    return may_pass(error) and getattr(error, "code", NONE) != FENCED_LEADER_EPOCH

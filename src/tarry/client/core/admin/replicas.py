"""The calls of an admin client about replicas: elections, reassignments, and removal of brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tarry.base.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.calls import left_out, unknown_topic
from tarry.client.core.admin.offsets import PartitionErrors
from tarry.client.core.group.assignment.consumer_protocol import by_topic
from tarry.client.core.routing import CONTROLLER
from tarry.client.errors import BrokerError, broker_error
from tarry.link.errand import Call
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
    decode_alter_partition_reassignments_response,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
    decode_elect_leaders_response,
)
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    decode_list_partition_reassignments_response,
)
from tarry.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    decode_unregister_broker_response,
)

# First version with an election type, so that an election may be unclean.
VERSION_OF_ELECTION_TYPES = 1


class Reassignment(NamedTuple):
    """A partition under reassignment: all its present replicas, the replicas that are being added,
    and those that are being removed."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class ElectLeaders(Call[ElectLeadersResponse, PartitionErrors]):
    """Result: by partition None or an error; for all partitions, only those that needed an
    election."""

    def __init__(self, places: list[TopicPartition] | None, *, unclean: bool) -> None:
        super().__init__(api_keys.ELECT_LEADERS, decode_elect_leaders_response, CONTROLLER)
        self.places = places
        self.unclean = unclean

    def build(self, version: int) -> Message:
        asked = None
        if self.places is not None:
            asked = [TopicPartitions(*each) for each in by_topic(sorted(self.places)).items()]
        request = ElectLeadersRequest(topic_partitions=asked, timeout_ms=self.timeout_ms)
        if version >= VERSION_OF_ELECTION_TYPES:
            request.election_type = int(self.unclean)
        elif self.unclean:
            raise ClientError("the cluster is too old for unclean elections")
        return request

    def interpret(self, response: ElectLeadersResponse) -> PartitionErrors:
        if response.error_code != NONE:
            raise BrokerError(response.error_code, "no leader was elected")
        told: dict[TopicPartition, ClientError | None] = {
            (topic.topic, each.partition_id): _error_of(
                topic.topic, each.error_code, each.error_message
            )
            for topic in response.replica_election_results
            for each in topic.partition_result
        }
        return told if self.places is None else _asked_of(self.places, told)


class AlterReassignments(Call[AlterPartitionReassignmentsResponse, PartitionErrors]):
    """Result: by partition None or an error."""

    def __init__(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        super().__init__(
            api_keys.ALTER_PARTITION_REASSIGNMENTS,
            decode_alter_partition_reassignments_response,
            CONTROLLER,
        )
        self.targets = targets

    def build(self, version: int) -> Message:
        topics = []
        for name, indexes in by_topic(sorted(self.targets)).items():
            partitions = []
            for index in indexes:
                target = self.targets[name, index]
                replicas = None if target is None else list(target)
                partitions.append(ReassignablePartition(index, replicas))
            topics.append(ReassignableTopic(name, partitions))
        return AlterPartitionReassignmentsRequest(timeout_ms=self.timeout_ms, topics=topics)

    def interpret(self, response: AlterPartitionReassignmentsResponse) -> PartitionErrors:
        if response.error_code != NONE:
            sentence = response.error_message or "no partition was reassigned"
            raise BrokerError(response.error_code, sentence)
        told: dict[TopicPartition, ClientError | None] = {
            (topic.name, each.partition_index): _error_of(
                topic.name, each.error_code, each.error_message
            )
            for topic in response.responses
            for each in topic.partitions
        }
        return _asked_of(list(self.targets), told)


class ListReassignments(
    Call[ListPartitionReassignmentsResponse, dict[TopicPartition, Reassignment]]
):
    """Result: the reassignments in progress, by partition."""

    def __init__(self, places: list[TopicPartition] | None) -> None:
        super().__init__(
            api_keys.LIST_PARTITION_REASSIGNMENTS,
            decode_list_partition_reassignments_response,
            CONTROLLER,
        )
        self.places = places

    def build(self, version: int) -> Message:
        topics = None
        if self.places is not None:
            named = by_topic(sorted(self.places)).items()
            topics = [ListPartitionReassignmentsTopics(*each) for each in named]
        return ListPartitionReassignmentsRequest(timeout_ms=self.timeout_ms, topics=topics)

    def interpret(
        self, response: ListPartitionReassignmentsResponse
    ) -> dict[TopicPartition, Reassignment]:
        if response.error_code != NONE:
            sentence = response.error_message or "the reassignments cannot be listed"
            raise BrokerError(response.error_code, sentence)
        return {
            (topic.name, each.partition_index): Reassignment(
                list(each.replicas), list(each.adding_replicas), list(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }


class UnregisterBroker(Call[UnregisterBrokerResponse, None]):
    """Call that removes a broker from the cluster.  No result."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(api_keys.UNREGISTER_BROKER, decode_unregister_broker_response, CONTROLLER)
        self.broker_id = broker_id

    def build(self, version: int) -> Message:
        return UnregisterBrokerRequest(self.broker_id)

    def interpret(self, response: UnregisterBrokerResponse) -> None:
        if response.error_code != NONE:
            sentence = response.error_message or f"broker {self.broker_id} was not unregistered"
            raise BrokerError(response.error_code, sentence)


def _error_of(topic: str, code: int, message: str | None) -> ClientError | None:
    if code == NONE:
        return None
    if code == UNKNOWN_TOPIC_OR_PARTITION and not message:
        return unknown_topic(topic)
    return broker_error(code, message or f"nothing was changed for topic {topic!r}")


def _asked_of(
    places: list[TopicPartition], told: dict[TopicPartition, ClientError | None]
) -> PartitionErrors:
    """Return the outcome of each requested partition."""
    return {
        place: told[place] if place in told else left_out(f"partition {place[0]}-{place[1]}")
        for place in places
    }

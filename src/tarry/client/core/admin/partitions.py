"""The calls of an admin client that add partitions and delete records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tarry.base.errors import (
    ERRORS,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.brokers import ReadCluster, View
from tarry.client.core.admin.calls import TopicOutcome, left_out, topic_error, unknown_topic
from tarry.client.core.connections import Connections
from tarry.client.core.group.assignment.consumer_protocol import by_topic
from tarry.client.core.routing import CONTROLLER
from tarry.client.core.topic import NO_LEADER
from tarry.client.errors import BrokerError, UnknownTopic, broker_error
from tarry.link.errand import A, Call, Outcomes, Steps, until_settled
from tarry.link.errors import ClientError, TimedOut
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    decode_create_partitions_response,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    decode_delete_records_response,
)

# Offset for `delete_records`: delete all records up to the high watermark.
TO_THE_END: Final = -1


class CreatePartitions(Call[CreatePartitionsResponse, TopicOutcome]):
    """Call that raises the partition count of one topic to `count`.  Result: a TopicOutcome."""

    def __init__(
        self, name: str, count: int, assignment: list[list[int]] | None, *, validate_only: bool
    ) -> None:
        super().__init__(api_keys.CREATE_PARTITIONS, decode_create_partitions_response, CONTROLLER)
        self.name = name
        self.count = count
        self.assignment = assignment
        self.validate_only = validate_only

    def build(self, version: int) -> Message:
        assignments = None
        if self.assignment is not None:
            assignments = [CreatePartitionsAssignment(ids) for ids in self.assignment]
        topic = CreatePartitionsTopic(self.name, self.count, assignments)
        return CreatePartitionsRequest([topic], self.timeout_ms, self.validate_only)

    def interpret(self, response: CreatePartitionsResponse) -> TopicOutcome:
        if not response.results:
            raise left_out(f"topic {self.name!r}")
        answer = response.results[0]
        sentence = answer.error_message or f"topic {self.name} did not get more partitions"
        if answer.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            return TopicOutcome(self.name, unknown_topic(self.name))
        error = topic_error(answer.error_code, sentence.rstrip("."))
        return TopicOutcome(self.name, error, self.count if error is None else -1)


# Outcome of `delete_records`: by partition the new first offset, or an error.
DeletedRecords = dict[TopicPartition, int | ClientError]


class DeleteRecords(Call[DeleteRecordsResponse, DeletedRecords]):
    """Call that deletes records at one leader.  Result: DeletedRecords."""

    repeats = False

    def __init__(self, broker_id: int, offsets: Mapping[TopicPartition, int]) -> None:
        super().__init__(api_keys.DELETE_RECORDS, decode_delete_records_response, broker_id)
        self.offsets = offsets

    def build(self, version: int) -> Message:
        topics = [
            DeleteRecordsTopic(
                name,
                [DeleteRecordsPartition(index, self.offsets[name, index]) for index in indexes],
            )
            for name, indexes in by_topic(sorted(self.offsets)).items()
        ]
        return DeleteRecordsRequest(topics, self.timeout_ms)

    def interpret(self, response: DeleteRecordsResponse) -> DeletedRecords:
        found: DeletedRecords = {}
        for topic in response.topics:
            for one in topic.partitions:
                place = (topic.name, one.partition_index)
                if one.error_code == NONE:
                    found[place] = one.low_watermark
                else:
                    found[place] = self._error_of(place, one.error_code)
        return found

    def _error_of(self, place: TopicPartition, code: int) -> ClientError:
        where = f"{place[0]} [{place[1]}]"
        if code == OFFSET_OUT_OF_RANGE:
            sentence = f"{where} ends before offset {self.offsets.get(place)}"
        elif code == POLICY_VIOLATION:
            sentence = f"{where} is compacted; its cleanup.policy must hold delete as well"
        elif code == INVALID_TOPIC_EXCEPTION:
            sentence = f"{where} is internal, and only the broker deletes its records"
        elif code == UNKNOWN_TOPIC_OR_PARTITION:
            sentence = f"{where} does not exist"
        else:
            sentence = f"the records of {where} were not deleted"
        return broker_error(code, sentence)


def delete_records(
    connections: Connections, offsets: Mapping[TopicPartition, int]
) -> Steps[DeletedRecords]:
    """Delete the records before each offset at the leaders; look up leaders that moved."""

    def call_of(leader_id: int, places: list[TopicPartition]) -> DeleteRecords:
        return DeleteRecords(leader_id, {place: offsets[place] for place in places})

    return ask_leaders(connections, offsets, call_of)


def ask_leaders(
    connections: Connections,
    places: Iterable[TopicPartition],
    call_of: Callable[
        [int, list[TopicPartition]], Call[Any, dict[TopicPartition, A | ClientError]]
    ],
    passes: Callable[[ClientError], bool] | None = None,
) -> Steps[dict[TopicPartition, A | ClientError]]:
    """Send one call to each leader for its partitions; look up the leaders again if they moved.

    `passes` returns true for errors that are worth a retry; the default is `may_pass`.
    """

    def attempt(outcomes: Outcomes[TopicPartition, A]) -> Steps[None]:
        view = ReadCluster(list(by_topic(sorted(outcomes.left))))
        yield [view]
        view.brokers(connections)
        by_leader = _leaders(view.result, outcomes)
        calls = [call_of(leader_id, led) for leader_id, led in by_leader.items()]
        yield calls
        for call, asked in zip(calls, by_leader.values(), strict=True):
            outcomes.settle_call(call, asked, ClientError(_SILENT))

    return until_settled(Outcomes(places, passes or may_pass), attempt, _late_error)


_SILENT: Final = "the leader did not answer for this partition"


def _leaders(
    view: View, outcomes: Outcomes[TopicPartition, Any]
) -> dict[int, list[TopicPartition]]:
    """Group the places that have no answer by leader; record an error for those without a
    leader."""
    found: dict[int, list[TopicPartition]] = {}
    for place in outcomes.left:
        name, index = place
        topic = view.topics.get(name)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is None:
            outcomes.answers[place] = UnknownTopic(f"{name} [{index}] does not exist")
        elif partition.leader_id == NO_LEADER or partition.leader_id not in view.brokers:
            sentence = f"{name} [{index}] has no leader"
            outcomes.settle(place, BrokerError(LEADER_NOT_AVAILABLE, sentence))
        else:
            found.setdefault(partition.leader_id, []).append(place)
    return found


def may_pass(error: ClientError) -> bool:
    """Return true if a retry may succeed after this error."""
    if isinstance(error, BrokerError):
        known = ERRORS.get(error.code)
        return known is not None and known.refreshes
    return error.is_retriable


def _late_error(place: TopicPartition, reason: ClientError, late: TimedOut) -> ClientError:
    return late

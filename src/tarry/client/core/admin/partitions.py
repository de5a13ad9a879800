"""The calls of an admin client about partitions: more of them, and fewer records in them."""

from __future__ import annotations

from collections.abc import Mapping
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
from tarry.client.core.admin.brokers import ClusterView, View
from tarry.client.core.admin.calls import TopicOutcome, topic_error, unknown_topic
from tarry.client.core.admin.errand import Pause, Steps
from tarry.client.core.call import CONTROLLER, Call
from tarry.client.core.connections import Connections
from tarry.client.core.group.assignment.consumer_protocol import Place, by_topic
from tarry.client.core.metadata import NO_LEADER
from tarry.client.errors import BrokerError, ClientError, TimedOut, UnknownTopic
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    decode_create_partitions_response,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    decode_delete_records_response,
)

# As an offset of DeleteRecords: all that is there, up to the high watermark.
TO_THE_END: Final = -1


class CreatePartitions(Call):
    """Grows one topic to `count` partitions.  Result: its TopicOutcome."""

    def __init__(
        self, name: str, count: int, assignment: list[list[int]] | None, *, validate_only: bool
    ) -> None:
        super().__init__(api_keys.CREATE_PARTITIONS, decode_create_partitions_response, CONTROLLER)
        self.name = name
        self.count = count
        self.assignment = assignment
        self.validate_only = validate_only

    def build(self, version: int, timeout_ms: int) -> Message:
        assignments = None
        if self.assignment is not None:
            assignments = [CreatePartitionsAssignment(ids) for ids in self.assignment]
        topic = CreatePartitionsTopic(self.name, self.count, assignments)
        return CreatePartitionsRequest([topic], timeout_ms, self.validate_only)

    def interpret(self, response: Any, version: int) -> TopicOutcome:
        answer = response.results[0]
        sentence = answer.error_message or f"topic {self.name} did not get more partitions"
        if answer.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            return TopicOutcome(self.name, unknown_topic(self.name))
        error = topic_error(answer.error_code, sentence.rstrip("."))
        return TopicOutcome(self.name, error, self.count if error is None else -1)


# For each partition its new first offset, or why it has none.
DeletedRecords = dict[Place, int | ClientError]


class DeleteRecords(Call):
    """Deletes records at one leader.  Result: DeletedRecords."""

    repeats = False

    def __init__(self, broker_id: int, offsets: Mapping[Place, int]) -> None:
        super().__init__(api_keys.DELETE_RECORDS, decode_delete_records_response, broker_id)
        self.offsets = offsets

    def build(self, version: int, timeout_ms: int) -> Message:
        topics = [
            DeleteRecordsTopic(
                name,
                [DeleteRecordsPartition(index, self.offsets[name, index]) for index in indexes],
            )
            for name, indexes in by_topic(sorted(self.offsets)).items()
        ]
        return DeleteRecordsRequest(topics, timeout_ms)

    def interpret(self, response: Any, version: int) -> DeletedRecords:
        found: DeletedRecords = {}
        for topic in response.topics:
            for one in topic.partitions:
                place = (topic.name, one.partition_index)
                if one.error_code == NONE:
                    found[place] = one.low_watermark
                else:
                    found[place] = self._error_of(place, one.error_code)
        return found

    def _error_of(self, place: Place, code: int) -> ClientError:
        where = f"{place[0]} [{place[1]}]"
        if code == OFFSET_OUT_OF_RANGE:
            sentence = f"{where} ends before offset {self.offsets.get(place)}"
        elif code == POLICY_VIOLATION:
            sentence = f"{where} is compacted; its cleanup.policy must hold delete as well"
        elif code == INVALID_TOPIC_EXCEPTION:
            sentence = f"{where} is the broker's own, and only it deletes there"
        else:
            sentence = f"the records of {where} were not deleted"
        return BrokerError(code, sentence)


def delete_records(connections: Connections, offsets: Mapping[Place, int]) -> Steps[DeletedRecords]:
    """Delete what lies before each offset, at the leaders, found again where they moved."""
    answers: DeletedRecords = {}
    failures = 0
    while True:
        left = [place for place in offsets if place not in answers]
        view = ClusterView(list(by_topic(sorted(left))))
        yield [view]
        view.brokers(connections)
        reasons: dict[Place, ClientError] = {}
        calls = [
            DeleteRecords(leader_id, {place: offsets[place] for place in places})
            for leader_id, places in _leaders(view.result, left, answers, reasons).items()
        ]
        yield calls
        for call in calls:
            told = call.result if call.error is None else dict.fromkeys(call.offsets, call.error)
            for place in call.offsets:
                _settle(answers, reasons, place, told.get(place, _SILENT))
        if not reasons:
            return {place: answers[place] for place in offsets}
        failures += 1
        try:
            yield Pause(failures, next(iter(reasons.values())))
        except TimedOut as late:
            return {place: answers.get(place, late) for place in offsets}


_SILENT: Final = ClientError("the leader did not answer for this partition")


def _leaders(
    view: View, places: list[Place], answers: DeletedRecords, reasons: dict[Place, ClientError]
) -> dict[int, list[Place]]:
    """The places by their leaders; those without one have a reason, those that are not there an
    answer."""
    found: dict[int, list[Place]] = {}
    for place in places:
        name, index = place
        topic = view.topics.get(name)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is None:
            answers[place] = UnknownTopic(f"{name} [{index}] does not exist")
        elif partition.leader_id == NO_LEADER or partition.leader_id not in view.brokers:
            sentence = f"{name} [{index}] has no leader"
            reasons[place] = BrokerError(LEADER_NOT_AVAILABLE, sentence)
        else:
            found.setdefault(partition.leader_id, []).append(place)
    return found


def _settle(
    answers: DeletedRecords,
    reasons: dict[Place, ClientError],
    place: Place,
    answer: int | ClientError,
) -> None:
    if isinstance(answer, BrokerError):
        known = ERRORS.get(answer.code)
        if known is not None and known.refreshes:
            reasons[place] = answer
            return
    elif isinstance(answer, ClientError) and answer.is_retriable:
        reasons[place] = answer
        return
    answers[place] = answer

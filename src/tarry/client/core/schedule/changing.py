"""The call of an admin client that cancels and moves scheduled records."""

from __future__ import annotations

from typing import Any, Final

from tarry.base.errors import NONE, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT
from tarry.base.ids import TopicPartition
from tarry.base.schedule_outcomes import ALREADY_RELEASED, OUTCOMES, UNKNOWN
from tarry.client.core.admin.partitions import ask_leaders
from tarry.client.core.connections import Connections
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.schedule.entries import ScheduleOutcome
from tarry.client.core.schedule.support import may_pass_soon
from tarry.client.errors import broker_error
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.change_scheduled_records import (
    ChangedSchedulePartition,
    ChangedScheduleTopic,
    ChangeScheduledRecordsRequest,
    ChangeScheduledRecordsResponse,
    ScheduledChange,
    ScheduledChangeResult,
    decode_change_scheduled_records_response,
)

# Error codes after which the broker may have made the change.
_UNCLEAR: Final = (NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT)


class ScheduleChange(
    Call[ChangeScheduledRecordsResponse, dict[TopicPartition, ScheduleOutcome | ClientError]]
):
    """Call that asks one leader for a change in each of its partitions.  Result: the outcomes.

    `unclear` collects the partitions in which the change may have been made without an answer.
    """

    repeats = False
    version_unlisted = 0

    def __init__(
        self,
        broker_id: int,
        places: list[TopicPartition],
        change: ScheduledChange,
        unclear: dict[TopicPartition, None],
    ) -> None:
        super().__init__(
            api_keys.CHANGE_SCHEDULED_RECORDS, decode_change_scheduled_records_response, broker_id
        )
        self.places = places
        self.change = change
        self.unclear = unclear

    def build(self, version: int) -> Message:
        partitions = [ChangedSchedulePartition(index, [self.change]) for _, index in self.places]
        topic = ChangedScheduleTopic(self.places[0][0], partitions)
        return ChangeScheduledRecordsRequest(self.timeout_ms, [topic])

    def interpret(
        self, response: ChangeScheduledRecordsResponse
    ) -> dict[TopicPartition, ScheduleOutcome | ClientError]:
        found: dict[TopicPartition, ScheduleOutcome | ClientError] = {}
        for topic in response.topics:
            for one in topic.partitions:
                for result in one.results:
                    place = (topic.name, one.partition_index)
                    found[place] = self._outcome_of(place, result)
        return found

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        for place in self.places:
            self.unclear[place] = None
        super().on_failure(error, now_ms)

    def _outcome_of(
        self, place: TopicPartition, result: ScheduledChangeResult
    ) -> ScheduleOutcome | ClientError:
        if result.error_code == NONE:
            outcome = OUTCOMES.get(result.outcome, f"outcome {result.outcome}")
            is_repeated = place in self.unclear
            return ScheduleOutcome(outcome, place[1], result.s_offset, result.offset, is_repeated)
        if result.error_code in _UNCLEAR:
            self.unclear[place] = None
        sentence = f"what waits in {place[0]} [{place[1]}] was not changed"
        return broker_error(result.error_code, (result.error_message or sentence).rstrip("."))


def cancel_record(connections: Connections, receipt: RecordReceipt) -> Steps[ScheduleOutcome]:
    """Cancel the record of a receipt that is done; ValueError if its place is not known.

    One that was never parked has been released already, to its offset.
    """
    topic, partition = receipt.topic, receipt.partition
    s_offset = receipt.s_offset
    if s_offset < 0:
        if receipt.offset < 0:
            raise ValueError(
                f"the broker has not told where the record of {receipt!r} is (with acks=0 it tells "
                "nothing): cancel it by its schedule_id"
            )
        outcome = ScheduleOutcome(OUTCOMES[ALREADY_RELEASED], partition, -1, receipt.offset)
        return _known(outcome)
    change = ScheduledChange(s_offset=s_offset, batch_s_offset=receipt.batch.s_offset)
    return change_schedule(connections, topic, [partition], change)


def _known(outcome: ScheduleOutcome) -> Steps[ScheduleOutcome]:
    yield from ()
    return outcome


def change_schedule(
    connections: Connections, topic: str, indexes: list[int], change: ScheduledChange
) -> Steps[ScheduleOutcome]:
    """Cancel or move the scheduled records of one name in these partitions; return the outcome.

    The outcome is "unknown" if no partition knows the name; an error of a partition is raised
    instead.
    """
    unclear: dict[TopicPartition, None] = {}

    def call_of(leader_id: int, places: list[TopicPartition]) -> ScheduleChange:
        return ScheduleChange(leader_id, places, change, unclear)

    places = [(topic, index) for index in indexes]
    answers = yield from ask_leaders(connections, places, call_of, may_pass_soon)
    told = [one for one in answers.values() if isinstance(one, ScheduleOutcome)]
    errors: list[Any] = [one for one in answers.values() if isinstance(one, ClientError)]
    absent = (OUTCOMES[ALREADY_RELEASED], OUTCOMES[UNKNOWN])
    done = [one for one in told if one.outcome not in absent]
    if done:
        return done[0]
    if errors:
        raise errors[0]
    released = [one for one in told if one.outcome != OUTCOMES[UNKNOWN]]
    if released:
        return released[0]
    return ScheduleOutcome(
        OUTCOMES[UNKNOWN],
        indexes[0] if len(indexes) == 1 else -1,
        is_repeated=any(one.is_repeated for one in told),
    )

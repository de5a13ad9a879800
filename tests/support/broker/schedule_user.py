"""A user of a topic with scheduled records, who lists, cancels and moves what waits."""

from __future__ import annotations

from tests.support.broker.broker_user import ORDERS, User, a_batch, records_in

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.schedule_outcomes import OUTCOMES
from tarry.broker.lifecycle import StartBroker, start_broker
from tarry.protocol import api_keys
from tarry.protocol.messages.change_scheduled_records import (
    ChangedSchedulePartition,
    ChangedScheduleTopic,
    ChangeScheduledRecordsRequest,
    ChangeScheduledRecordsResponse,
    ScheduledChange,
    ScheduledChangeResult,
)
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
    ScheduledPartition,
)
from tarry.protocol.messages.produce import PartitionProduceResponse
from tarry.records.builder import Headers
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand


class ScheduleUser(User):
    """One connection to a broker with the topic `orders`, whose headers say when it is due."""

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        *,
        start: StartBroker = start_broker,
        **topic: str,
    ) -> None:
        super().__init__(BrokerByHand(settings, start=start))
        self.create(ORDERS, **{"delay_enable": "true", "delay_source": "header", **topic})

    # --- Records.

    def park(self, value: bytes, after_ms: int, schedule_id: str = "") -> None:
        """Let one record wait."""
        self.park_all((value, after_ms, schedule_id))

    def park_all(self, *records: tuple[bytes, int, str]) -> None:
        """Let one batch wait: value, time and id of each record."""
        answer = self.produce_scheduled(*records)
        assert answer.error_code == errors.NONE, answer.error_message

    def produce_scheduled(self, *records: tuple[bytes, int, str]) -> PartitionProduceResponse:
        headers: list[Headers] = []
        for _, after_ms, schedule_id in records:
            each: Headers = [("x-deliver-after", b"%d" % after_ms)]
            if schedule_id:
                each.append(("x-sched-id", schedule_id.encode()))
            headers.append(each)
        values = [value for value, _, _ in records]
        return self.produce(a_batch(*values, headers=tuple(headers)))

    def pass_time(self, ms: int) -> None:
        self.hand.turn(after_ms=ms)
        self.hand.settle()

    def values(self) -> list[bytes | None]:
        found: list[bytes | None] = []
        while batch := records_in(self.fetch(len(found))):
            found += [each.value for each in batch if each.offset >= len(found)]
        return found

    def begin_anew(self) -> None:
        """Connect to the broker that was started again."""
        self.client = self.hand.connect()
        self.hand.settle()

    def end(self, ends: str) -> None:
        """End the broker cleanly ("stop") or not ("crash") and start it, or have it lead in another
        epoch ("fail-over"); "": let it run on."""
        if ends == "stop":
            self.hand.stop()
            self.hand.start()
        elif ends == "crash":
            self.hand.crash()
        if ends == "fail-over":
            self.elect_again()
        elif ends:
            self.begin_anew()

    def elect_again(self) -> None:
        """Have the broker lead in another epoch: it reads what waits, as a new leader does."""
        leadership = self.hand.broker.topics[ORDERS].partitions[0].leadership
        own, epoch = leadership.own_id, leadership.leader_epoch
        before = PartitionRow(own, epoch, -1, 1, [own], [own])
        leadership.take_row(PartitionRow(own, epoch + 1, -1, 1, [own], [own]), is_leader=True)
        self.hand.broker.parts.on_role(leadership, before, was_leader=True)
        self.hand.settle()

    # --- What waits.

    def list(
        self,
        *partitions: ListScheduledPartition,
        topic: str = ORDERS,
        **terms: object,
    ) -> ScheduledPartition:
        """List partition 0, or those given: the first answer."""
        asked = [*partitions] or [ListScheduledPartition(0)]
        request = ListScheduledRecordsRequest(topic, partitions=asked, **terms)  # type: ignore[arg-type]
        answer = self.client.ask(api_keys.LIST_SCHEDULED_RECORDS, 0, request)
        assert isinstance(answer, ListScheduledRecordsResponse)
        return answer.partitions[0]

    def waiting(self) -> list[tuple[int, bytes | None]]:
        """How long after the start each entry is due, and its id."""
        return [
            (each.due_ms - START_WALL_MS, each.schedule_id)
            for each in self.list(ListScheduledPartition(0)).scheduled
        ]

    # --- Changes.

    def send_changes(
        self,
        *changes: ScheduledChange,
        topic: str = ORDERS,
        index: int = 0,
        timeout_ms: int = 5_000,
    ) -> None:
        partition = ChangedSchedulePartition(index, list(changes))
        request = ChangeScheduledRecordsRequest(
            timeout_ms, [ChangedScheduleTopic(topic, [partition])]
        )
        self.client.send(api_keys.CHANGE_SCHEDULED_RECORDS, 0, request)

    def results(self) -> list[ScheduledChangeResult]:
        """The results that have come since the last call."""
        return [result for answer in self.answers() for result in results_of(answer)]

    def change(self, *changes: ScheduledChange, **terms: object) -> list[ScheduledChangeResult]:
        self.send_changes(*changes, **terms)  # type: ignore[arg-type]
        self.hand.settle()
        return self.results()

    def cancel(self, schedule_id: str) -> str:
        """Cancel by id; the outcome in words."""
        return outcome_of(*self.change(cancel(schedule_id)))


def results_of(answer: object) -> list[ScheduledChangeResult]:
    assert isinstance(answer, ChangeScheduledRecordsResponse)
    return [
        result
        for topic in answer.topics
        for partition in topic.partitions
        for result in partition.results
    ]


def outcome_of(result: ScheduledChangeResult) -> str:
    """The outcome in words; of an error its name."""
    if result.error_code != errors.NONE:
        return errors.error_name(result.error_code)
    return OUTCOMES[result.outcome]


def cancel(name: str | int) -> ScheduledChange:
    """A cancel by id, or by s-offset."""
    if isinstance(name, int):
        return ScheduledChange(s_offset=name)
    return ScheduledChange(schedule_id=name.encode())


def move(name: str | int, after_ms: int) -> ScheduledChange:
    change = cancel(name)
    change.due_ms = START_WALL_MS + after_ms
    return change

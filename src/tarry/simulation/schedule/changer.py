"""Changer: sends records with ids to one broker, cancels them by header, and cancels and moves
pending records by the broker's own API.

It speaks the protocol by hand and sends nothing twice.  Each of its records is released once at
most, and each answer that it gets has to be true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.base.schedule_outcomes import ALREADY_RELEASED, CANCELLED, MOVED, UNKNOWN
from tarry.protocol import api_keys
from tarry.protocol.messages.change_scheduled_records import (
    ChangedSchedulePartition,
    ChangedScheduleTopic,
    ChangeScheduledRecordsRequest,
    ChangeScheduledRecordsResponse,
    ScheduledChange,
    ScheduledChangeResult,
    decode_change_scheduled_records_response,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    decode_produce_response,
)
from tarry.records.builder import BatchBuilder
from tarry.schedule.release_identity import released_batch
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import Place, place_name
from tarry.simulation.clients.simulated_client import Delay, Query, RunClient, Script
from tarry.simulation.schedule.ledger import UNSAID, AskedChange, ScheduleLedger, SentWish
from tarry.wire.reader import window_of

_TIMEOUT_MS: Final = 2_000
_PRODUCE_VERSION: Final = 9
_RECORDS_MAX: Final = 4
_CHANGES_MAX: Final = 3
# One of so many requests of a client that imitates releases.
_IMITATED_OF: Final = 16
_VALUE_BYTES_MAX: Final = 120
# A change by s-offset names one of so many entries that were parked last.
_NEWEST: Final = 20

# Errors after which a change may have been made, as the API's page says.
_UNCLEAR: Final = (errors.NOT_LEADER_OR_FOLLOWER, errors.REQUEST_TIMED_OUT)
# Other errors that a change may get: the leader has just begun, or its disk is full.
_REFUSALS: Final = (
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_ENOUGH_REPLICAS,
    errors.KAFKA_STORAGE_ERROR,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.LEADER_NOT_AVAILABLE,
)


class Changer(RunClient):
    """Client of one broker that works until the run is quiet.

    `leads` says whether the broker believes that it leads a partition.  If it `imitates`, it also
    sends batches that look like releases, which the broker has to refuse.
    """

    def __init__(
        self,
        context: RunContext,
        name: str,
        run: RunContext,
        topic: KnownTopic,
        ledger: ScheduleLedger,
        *,
        pause_ms_max: int,
        leads: Callable[[Place], bool],
        imitates: bool = False,
    ) -> None:
        super().__init__(context, name, run)
        self._topic = topic
        self._ledger = ledger
        self._pause_ms_max = pause_ms_max
        self._count = 0
        self._leads = leads
        self._imitates = imitates

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            yield Delay(1 + random.randrange(self._pause_ms_max))
            place = self._draw_place()
            if place is None:
                continue
            if self._imitates and random.randrange(_IMITATED_OF) == 0:
                yield from self._imitate(place)
            elif random.randrange(2):
                yield from self._send(place)
            else:
                yield from self._change(place)

    def _draw_place(self) -> Place | None:
        """Draw a partition, mostly one that the broker believes to lead; None if it leads none."""
        random = self.context.random
        places = self._topic.places()
        if random.randrange(8):
            places = [place for place in places if self._leads(place)]
        return places[random.randrange(len(places))] if places else None

    # --- Records.

    def _send(self, place: Place) -> Script:
        random = self.context.random
        builder = BatchBuilder()
        wishes: list[SentWish] = []
        codec = (0, 0, 1)[random.randrange(3)]
        for _ in range(1 + random.randrange(_RECORDS_MAX)):
            wish = self._draw_wish(place)
            now_wall_ms = self.context.clock.now_wall_ms
            builder.append(now_wall_ms, None, wish.value, wish.headers(random.randrange(2)))
            wishes.append(wish)
        outcome = yield self._produce(place, builder.build(codec))
        if outcome is None or not isinstance(outcome.answer, ProduceResponse):
            return
        code = outcome.answer.responses[0].partition_responses[0].error_code
        for wish in wishes:
            if code == errors.NONE:
                wish.is_promised = True
                wish.promised_ms = self.context.clock.now_ms

    def _produce(self, place: Place, batch: bytes) -> Query:
        data = [PartitionProduceData(place[1], window_of(batch))]
        topic = TopicProduceData(self._topic.name, partition_data=data)
        request = ProduceRequest(None, -1, _TIMEOUT_MS, [topic])
        return Query(
            api_keys.PRODUCE, _PRODUCE_VERSION, request, decode_produce_response, _TIMEOUT_MS
        )

    def _imitate(self, place: Place) -> Script:
        """Send a batch that says of a body which was parked lately that it is released."""
        parked = self._ledger.parked.get(place, [])[-_NEWEST:]
        if not parked:
            return
        builder = BatchBuilder()
        builder.append(self.context.clock.now_wall_ms, None, b"no release")
        s_offset = parked[self.context.random.randrange(len(parked))]
        outcome = yield self._produce(place, released_batch(builder.build(), s_offset))
        if outcome is None or not isinstance(outcome.answer, ProduceResponse):
            return
        if outcome.answer.responses[0].partition_responses[0].error_code == errors.NONE:
            self.context.history.violate(
                f"{place_name(place)} has taken a client's batch for the release of {s_offset}"
            )

    def _draw_wish(self, place: Place) -> SentWish:
        random = self.context.random
        clock = self.context.clock
        self._count += 1
        value = b"%s-%d-" % (self.name.encode(), self._count)
        value += b"." * random.randrange(_VALUE_BYTES_MAX)
        return self._ledger.draw_wish(random, place, value, clock.now_ms, clock.now_wall_ms)

    # --- Changes.

    def _change(self, place: Place) -> Script:
        asked = [
            self._draw_change(place) for _ in range(1 + self.context.random.randrange(_CHANGES_MAX))
        ]
        self._ledger.changes += asked
        changes = [ScheduledChange(each.schedule_id, each.s_offset, each.due_ms) for each in asked]
        partitions = [ChangedSchedulePartition(place[1], changes)]
        outcome = yield Query(
            api_keys.CHANGE_SCHEDULED_RECORDS,
            0,
            ChangeScheduledRecordsRequest(
                _TIMEOUT_MS, [ChangedScheduleTopic(self._topic.name, partitions)]
            ),
            decode_change_scheduled_records_response,
            _TIMEOUT_MS,
        )
        if outcome is None or not isinstance(outcome.answer, ChangeScheduledRecordsResponse):
            return
        results = outcome.answer.topics[0].partitions[0].results
        for each, result in zip(asked, results, strict=True):
            self._take(each, result)

    def _draw_change(self, place: Place) -> AskedChange:
        random = self.context.random
        clock = self.context.clock
        ledger = self._ledger
        schedule_id: bytes | None = ledger.draw_id(random)
        s_offset = UNSAID
        parked = ledger.parked.get(place, [])[-_NEWEST:]
        if parked and random.randrange(4) == 0:
            schedule_id, s_offset = None, parked[random.randrange(len(parked))]
        due_ms = UNSAID
        if random.randrange(2):
            delays_ms = ledger.delays_ms
            due_ms = clock.now_wall_ms + delays_ms[random.randrange(len(delays_ms))]
        return AskedChange(place, schedule_id, s_offset, due_ms, clock.now_ms)

    def _take(self, asked: AskedChange, result: ScheduledChangeResult) -> None:
        asked.answered_ms = self.context.clock.now_ms
        code = result.error_code
        if code == errors.NONE:
            asked.outcome = result.outcome
            asked.told_s_offset = result.s_offset
            asked.told_offset = result.offset
            right = UNKNOWN, ALREADY_RELEASED, CANCELLED if asked.due_ms == UNSAID else MOVED
            if result.outcome not in right:
                self._violate(asked, f"has the outcome {result.outcome}")
        elif code in _REFUSALS or (code in _UNCLEAR and result.error_message):
            # A broker that does not lead answers with a message.  Without a message the broker has
            # led and tried, and the outcome is not clear.
            asked.is_refused = code != errors.REQUEST_TIMED_OUT
        elif code not in _UNCLEAR:
            self._violate(asked, f"fails with {error_name(code)}: {result.error_message}")

    def _violate(self, asked: AskedChange, sentence: str) -> None:
        self.context.history.violate(f"{place_name(asked.place)}: {asked} {sentence}")

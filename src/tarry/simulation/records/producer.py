"""Producer like real clients: batches by partition, several requests in flight, retries.

An idempotent producer sends a batch again with the same sequence until it is answered, in order,
and only when nothing of its partition is in flight any more.  A plain producer gives up after some
retries and may leave duplicates.  With acks=0 a producer does not learn the outcome.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import ERRORS, error_name
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    decode_init_producer_id_response,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    decode_produce_response,
)
from tarry.records.builder import BatchBuilder
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import REFUSED, Place, SentBatch, SentRecord, place_name
from tarry.simulation.clients.simulated_client import Query, SimulatedClient
from tarry.simulation.exchange import ObservedExchange
from tarry.wire.compression import ZSTD
from tarry.wire.reader import window_of

_VERSION_OF_TOPIC_IDS: Final = 13
_VERSION_MIN: Final = 3
_VERSION_OF_ZSTD: Final = 7
_PLAIN_SENDS_MAX: Final = 4
_RETRY_MS: Final = 20
_WINDOW_BATCHES: Final = 5
_BATCHES_BEFORE_REST: Final = 3


class ProducerPlan:
    """Traits of one producer."""

    def __init__(self) -> None:
        self.is_idempotent = True
        self.acks = -1
        self.in_flight_max = 5
        self.timeout_ms = 3_000
        self.batches = 20
        self.records_max = 4
        self.value_bytes_max = 60
        self.pause_ms_max = 100
        # Bound on the age of a record when it is sent, in ms.
        self.lateness_ms_max = 50
        # Times from now until batches are due; empty if they have no due time.
        self.delays_ms: tuple[int, ...] = ()
        # True for a plain producer that reports a failing disk to its user instead of retrying.
        self.gives_up_on_storage_errors = False
        # Time of a rest after its first batches, in ms: brokers forget producers that rest.
        self.rest_ms = 0


class _Outgoing:
    """Batch with its bytes."""

    __slots__ = ("data", "sent", "sequence", "version_min")

    def __init__(self, sent: SentBatch, data: bytes, sequence: int, codec: int) -> None:
        self.sent = sent
        self.data = data
        self.sequence = sequence
        self.version_min = _VERSION_OF_ZSTD if codec == ZSTD else _VERSION_MIN


class _Lane:
    """Batches of a producer for one partition."""

    def __init__(self, topic: KnownTopic, place: Place) -> None:
        self.topic = topic
        self.place = place
        self.queue: list[_Outgoing] = []
        self.in_flight: list[_Outgoing] = []
        self.next_number = 0
        self.next_sequence = 0
        # True after a failure: nothing is sent until all that is in flight has come back.
        self.is_draining = False

    def is_in_window(self) -> bool:
        """Return true if the next batch is near enough to the first unacknowledged one.

        A broker knows a producer's last five batches.  A batch that may be retried must not be
        older, even if some batches behind it are acknowledged already.
        """
        first = min(outgoing.sent.number for outgoing in self.in_flight + self.queue)
        return self.queue[0].sent.number < first + _WINDOW_BATCHES


class SimulatedProducer(SimulatedClient):
    """Simulated client that produces records."""

    def __init__(self, context: RunContext, name: str, plan: ProducerPlan) -> None:
        super().__init__(context, name)
        self.plan = plan
        self._lanes: dict[Place, _Lane] = {}
        self._requests_in_flight = 0
        self._batches_made = 0
        self._values_made = 0
        self._producer_id = -1
        self._producer_epoch = -1
        self._is_asking_id = False

    @property
    def is_done(self) -> bool:
        return not any(lane.queue or lane.in_flight for lane in self._lanes.values())

    def unfinished(self) -> list[SentBatch]:
        """Return the batches that the producer still tries to send."""
        batches: list[SentBatch] = []
        for lane in self._lanes.values():
            batches += [outgoing.sent for outgoing in lane.in_flight + lane.queue]
        return batches

    def start(self) -> None:
        super().start()
        self._tick()

    def ready(self) -> None:
        if self.plan.is_idempotent and self._producer_id < 0:
            self._ask_producer_id()
        else:
            self._pump()

    # --- Making batches.

    def _tick(self) -> None:
        context = self.context
        if context.is_quiet or self._batches_made >= self.plan.batches:
            return
        if self.plan.rest_ms and self._batches_made >= _BATCHES_BEFORE_REST and self.is_done:
            rest_ms, self.plan.rest_ms = self.plan.rest_ms, 0
            self._begin_epoch()
            context.clock.after(rest_ms, self._tick)
            return
        topics = context.alive_topics()
        if topics and not (self.plan.is_idempotent and self._producer_id < 0):
            topic = topics[context.random.randrange(len(topics))]
            place = (topic.topic_id, context.random.randrange(topic.partitions))
            lane = self._lanes.get(place)
            if lane is None:
                lane = self._lanes[place] = _Lane(topic, place)
            self._make_batch(lane)
            self._pump()
        context.clock.after(1 + context.random.randrange(self.plan.pause_ms_max), self._tick)

    def _begin_epoch(self) -> None:
        """Begin the next epoch with sequence 0 in some producers, like Java's client (KIP-360).

        Other producers go on: the broker knows them, or has forgotten them and takes any sequence.
        """
        if self._values_made % 2 == 0 and self._producer_id >= 0:
            self._producer_epoch += 1
            for lane in self._lanes.values():
                lane.next_sequence = 0

    def _make_batch(self, lane: _Lane) -> None:
        context = self.context
        count = 1 + context.random.randrange(self.plan.records_max)
        records: list[SentRecord] = []
        builder = BatchBuilder()
        delay_ms = 0
        if self.plan.delays_ms:
            delay_ms = self.plan.delays_ms[context.random.randrange(len(self.plan.delays_ms))]
        for _ in range(count):
            self._values_made += 1
            filler = context.random.randrange(self.plan.value_bytes_max)
            value = f"{self.name}-{self._values_made}-".encode() + b"." * filler
            lateness_ms = context.random.randrange(self.plan.lateness_ms_max)
            timestamp = context.clock.now_wall_ms - lateness_ms + delay_ms
            records.append(SentRecord(value, timestamp))
            builder.append(timestamp, None, value, [])
        self._batches_made += 1
        sent = SentBatch(self.name, lane.place, lane.next_number, records)
        sent.is_idempotent = self.plan.is_idempotent
        sent.is_ordered = self.plan.is_idempotent
        sent.made_turn = context.network.turn
        sent.may_wait = lane.topic.name in context.delayed_topics
        # A retry of a batch that was to wait may be due at once, and come behind later batches.
        sent.is_ordered = sent.is_ordered and not sent.may_wait
        if sent.may_wait and context.delayed_topics[lane.topic.name] >= 0:
            sent.due_ms = max(record.timestamp for record in records)
        lane.next_number += 1
        context.history.batches.append(sent)
        codec = context.codecs[context.random.randrange(len(context.codecs))]
        if self.plan.is_idempotent:
            data = builder.build(
                codec,
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                base_sequence=lane.next_sequence,
            )
        else:
            data = builder.build(codec)
        lane.queue.append(_Outgoing(sent, data, lane.next_sequence, codec))
        lane.next_sequence += count

    # --- Sending.

    def _pump(self) -> None:
        while self.is_connected and self._requests_in_flight < self.plan.in_flight_max:
            chosen: list[_Lane] = []
            for lane in self._lanes.values():
                if lane.is_draining and not lane.in_flight:
                    lane.is_draining = False
                if lane.queue and not lane.is_draining and lane.is_in_window():
                    chosen.append(lane)
            if not chosen:
                return
            self._send(chosen[: 1 + self.context.random.randrange(3)])

    def _send(self, lanes: list[_Lane]) -> None:
        """Send a request with the first batch of each lane."""
        version = self.context.version(max(_version_min(lane) for lane in lanes), 13)
        topics: list[TopicProduceData] = []
        batches: dict[Place, _Outgoing] = {}
        for lane in lanes:
            outgoing = lane.queue.pop(0)
            outgoing.sent.sends += 1
            batches[lane.place] = outgoing
            lane.in_flight.append(outgoing)
            data = PartitionProduceData(index=lane.place[1], records=window_of(outgoing.data))
            topics.append(
                TopicProduceData(
                    name=lane.topic.name if version < _VERSION_OF_TOPIC_IDS else "",
                    topic_id=lane.topic.topic_id,
                    partition_data=[data],
                )
            )
        request = ProduceRequest(
            acks=self.plan.acks, timeout_ms=self.plan.timeout_ms, topic_data=_merge(topics)
        )
        query = Query(
            api_keys.PRODUCE, version, request, decode_produce_response, self.plan.timeout_ms
        )
        query.is_answer_expected = self.plan.acks != 0
        if not query.is_answer_expected:
            self.ask(query, self._ignore_answer, self._ignore_loss)
            for lane in lanes:
                lane.in_flight.remove(batches[lane.place])
            return
        self._requests_in_flight += 1
        attempt = _ProduceAttempt(self, batches)
        self.ask(query, attempt.on_answer, attempt.on_lost)

    def _ignore_answer(self, exchange: ObservedExchange, answer: Message) -> None:
        self.context.history.violate("a produce with acks=0 was answered")

    def _ignore_loss(self, exchange: ObservedExchange) -> None:
        pass

    # --- Answers.

    def finish(
        self, exchange: ObservedExchange, batches: dict[Place, _Outgoing], answer: Message
    ) -> None:
        """Handle the answer to the request with these batches."""
        assert isinstance(answer, ProduceResponse)
        self._requests_in_flight -= 1
        told: dict[Place, PartitionProduceResponse] = {}
        for topic_answer in answer.responses:
            topic_id = topic_answer.topic_id
            if exchange.api_version < _VERSION_OF_TOPIC_IDS:
                topic = self.context.topic_by_name(topic_answer.name)
                topic_id = b"" if topic is None else topic.topic_id
            for partition_answer in topic_answer.partition_responses:
                told[(topic_id, partition_answer.index)] = partition_answer
        for place, outgoing in batches.items():
            partition_told = told.get(place)
            if partition_told is None:
                self.context.history.violate(
                    f"a produce to {place_name(place)} got no answer for it"
                )
                self._try_again(outgoing)
            else:
                self._settle(exchange, outgoing, partition_told)
        self._pump()

    def give_up_request(self, batches: dict[Place, _Outgoing]) -> None:
        """Try these batches again: the connection was lost before the answer."""
        self._requests_in_flight -= 1
        for outgoing in batches.values():
            self._try_again(outgoing)

    def _settle(
        self, exchange: ObservedExchange, outgoing: _Outgoing, answer: PartitionProduceResponse
    ) -> None:
        history = self.context.history
        sent = outgoing.sent
        code = answer.error_code
        lane = self._lanes[sent.place]
        if code == errors.NONE:
            lane.in_flight.remove(outgoing)
            if answer.base_offset < 0 and sent.may_wait:
                history.park(sent, exchange)
                return
            if answer.base_offset < 0:
                history.violate(
                    f"a produce to {place_name(sent.place)} succeeded at offset "
                    f"{answer.base_offset}"
                )
            history.acknowledge(sent, answer.base_offset, exchange)
            return
        if code == errors.REQUEST_TIMED_OUT:
            self.context.check_time_out(exchange, f"a produce to {place_name(sent.place)}")
        if code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._has_gap_before(outgoing):
            history.violate(
                f"{self.name} sent sequence {outgoing.sequence} to {place_name(sent.place)} "
                "after all before it were acknowledged and got OUT_OF_ORDER_SEQUENCE_NUMBER"
            )
        elif code != errors.OUT_OF_ORDER_SEQUENCE_NUMBER and not _is_expected(lane.topic, code):
            history.violate(f"a produce to {place_name(sent.place)} got {error_name(code)}")
            sent.outcome = REFUSED
            lane.in_flight.remove(outgoing)
            return
        self._try_again(outgoing, code)

    def _has_gap_before(self, outgoing: _Outgoing) -> bool:
        """Return true if an earlier batch of the lane is not acknowledged yet, or was given up
        because its topic is deleted.
        """
        lane = self._lanes[outgoing.sent.place]
        if not lane.topic.is_alive:
            return True
        return any(other.sequence < outgoing.sequence for other in lane.in_flight + lane.queue)

    def _try_again(self, outgoing: _Outgoing, code: int = errors.NONE) -> None:
        lane = self._lanes[outgoing.sent.place]
        lane.in_flight.remove(outgoing)
        if not lane.topic.is_alive:
            # Nothing more is sent to a topic that is deleted.
            lane.queue.clear()
            return
        if not self.plan.is_idempotent and outgoing.sent.sends >= _PLAIN_SENDS_MAX:
            return
        if code == errors.KAFKA_STORAGE_ERROR and self.plan.gives_up_on_storage_errors:
            return
        lane.is_draining = True
        lane.queue.append(outgoing)
        lane.queue.sort(key=_number_of)
        self.context.clock.after(_RETRY_MS, self._pump)

    # --- The producer's id.

    def _ask_producer_id(self) -> None:
        if self._is_asking_id:
            return
        self._is_asking_id = True
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        query = Query(
            api_keys.INIT_PRODUCER_ID,
            self.context.version(0, 5),
            request,
            decode_init_producer_id_response,
            5_000,
        )
        self.ask(query, self._take_producer_id, self._lose_producer_id)

    def _take_producer_id(self, exchange: ObservedExchange, answer: Message) -> None:
        assert isinstance(answer, InitProducerIdResponse)
        self._is_asking_id = False
        if answer.error_code == errors.NONE:
            self._producer_id = answer.producer_id
            self._producer_epoch = answer.producer_epoch
            self.context.history.producer_ids.append(
                (answer.producer_id, answer.producer_epoch, self.name)
            )
            self._pump()
            return
        if not ERRORS[answer.error_code].retriable:
            self.context.history.violate(f"InitProducerId got {error_name(answer.error_code)}")
        self.context.clock.after(_RETRY_MS, self._ask_again)

    def _lose_producer_id(self, exchange: ObservedExchange) -> None:
        self._is_asking_id = False

    def _ask_again(self) -> None:
        if self.is_connected and self._producer_id < 0:
            self._ask_producer_id()


class _ProduceAttempt:
    """Attempt to send one produce request."""

    def __init__(self, producer: SimulatedProducer, batches: dict[Place, _Outgoing]) -> None:
        self._producer = producer
        self._batches = batches

    def on_answer(self, exchange: ObservedExchange, answer: Message) -> None:
        self._producer.finish(exchange, self._batches, answer)

    def on_lost(self, exchange: ObservedExchange) -> None:
        self._producer.give_up_request(self._batches)


def _version_min(lane: _Lane) -> int:
    return lane.queue[0].version_min if lane.topic.is_lasting else _VERSION_OF_TOPIC_IDS


def _number_of(outgoing: _Outgoing) -> int:
    return outgoing.sent.number


def _is_expected(topic: KnownTopic, code: int) -> bool:
    """Return true for an error that faults may cause; each of them is worth another try."""
    if code in (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_ID):
        return not topic.is_alive
    return code in (errors.REQUEST_TIMED_OUT, errors.KAFKA_STORAGE_ERROR)


def _merge(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Merge the entries of each topic into one."""
    merged: dict[bytes, TopicProduceData] = {}
    for topic in topics:
        known = merged.get(topic.topic_id)
        if known is None:
            merged[topic.topic_id] = topic
        else:
            known.partition_data += topic.partition_data
    return list(merged.values())

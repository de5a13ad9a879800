"""Brokers made of a few dictionaries, in simulated time: what client cores are tested against.

They keep real batches, check the sequences of idempotent producers as Kafka does, and answer in
the order of the requests.  A test scripts what it is about: `script(api_key, answer)` replaces
the next answer, `cut()` drops connections, `refuse()` lets nobody in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tarry.base import errors
from tarry.base.doors import connected_to, disconnected, received
from tarry.client.core.core import ClientCore
from tarry.client.core.operation import Notice, Operation
from tarry.link.events import Address, Close, Connect, LinkEvent, Resolve, Resolved, Send
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response
from tarry.protocol.headers import decode_request_header
from tarry.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tarry.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tarry.protocol.messages.init_producer_id import InitProducerIdResponse
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tarry.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import Record, decode_records
from tarry.wire.reader import Reader, window_of

LATENCY_MS = 1
WALL_MS = 1_700_000_000_000

# Values that a script may return instead of an answer.
SILENCE = "silence"
CUT = "cut"

Script = Callable[["ScriptedCluster", "Seen"], Any]


class Seen:
    """A request as a broker saw it."""

    def __init__(self, now_ms: int, broker_id: int, header: Any, request: Any) -> None:
        self.now_ms = now_ms
        self.broker_id = broker_id
        self.api_key: int = header.api_key
        self.version: int = header.api_version
        self.correlation_id: int = header.correlation_id
        self.client_id = header.client_id
        self.request = request


class Log:
    """Log of one partition: its batches in the bytes that were sent, with their offsets."""

    def __init__(self, leader_id: int) -> None:
        self.leader_id = leader_id
        self.leader_epoch = 0
        self.is_damaged = False
        self.batches: list[bytes] = []
        self.start_offset = 0
        self.end_offset = 0
        # By producer: epoch and the last five batches as (first sequence, count, offset).
        self.producers: dict[int, tuple[int, list[tuple[int, int, int]]]] = {}

    def append(self, data: bytes) -> tuple[int, int]:
        """(error code, base offset), with Kafka's check of sequences."""
        header = decode_batch_header(data, 0)
        if header.producer_id >= 0:
            code, known = self._check(header)
            if code != errors.NONE or known >= 0:
                return code, known
        offset = self.end_offset
        stored = offset.to_bytes(8, "big") + data[8:12]
        stored += self.leader_epoch.to_bytes(4, "big") + data[16:]
        self.batches.append(stored)
        self.end_offset += header.record_count
        if header.producer_id >= 0:
            kept = self.producers[header.producer_id][1]
            kept.append((int(header.base_sequence), int(header.record_count), offset))
            del kept[:-5]
        return errors.NONE, offset

    def _check(self, header: BatchHeader) -> tuple[int, int]:
        epoch, kept = self.producers.get(header.producer_id, (-1, []))
        if header.producer_epoch < epoch:
            return errors.INVALID_PRODUCER_EPOCH, -1
        for sequence, count, offset in kept:
            if header.producer_epoch == epoch and (sequence, count) == (
                header.base_sequence,
                header.record_count,
            ):
                return errors.NONE, offset
        expected = (kept[-1][0] + kept[-1][1]) & 0x7FFF_FFFF if kept else None
        if header.producer_epoch > epoch and kept:
            expected = 0
            kept = []
        if expected is not None and header.base_sequence != expected:
            return errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        self.producers[header.producer_id] = (int(header.producer_epoch), list(kept))
        return errors.NONE, -1

    def records(self) -> list[Record]:
        return [one for data in self.batches for one in decode_records(data, size_max=1 << 30)]

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records()]

    def add(self, *values: bytes, codec: int = 0, timestamp: int = WALL_MS) -> int:
        """Put a batch in as if somebody had produced it; its base offset."""
        builder = BatchBuilder()
        for value in values:
            builder.append(timestamp, None, value, None)
        return self.append(builder.build(codec))[1]


class FakeTopic:
    def __init__(self, name: str, topic_id: bytes, logs: list[Log]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.logs = logs
        self.is_internal = False


class ScriptedCluster:
    """Drives one core: `run_until`, `run_for`."""

    def __init__(self, brokers: int = 1) -> None:
        self.now_ms = 1_000
        self.core: Any = None
        self.brokers = {
            number: Address(f"10.0.0.{number}", 9092) for number in range(1, brokers + 1)
        }
        self.topics: dict[str, FakeTopic] = {}
        self._topics_made = 0
        self.ranges = {
            key: (api.version_min, api.version_max) for key, api in api_keys.APIS.items()
        }
        self.names: dict[str, list[Address]] = {}
        self.refused: dict[Address, str] = {}
        self.seen: list[Seen] = []
        self.notices: list[Operation[Any]] = []
        self.connects: list[tuple[int, Address]] = []
        self.closes: list[int] = []
        self.producer_ids = 1_000
        self.latency_ms = LATENCY_MS
        self.throttle_ms = 0
        self._scripts: dict[int, deque[Script]] = {}
        self._rules: dict[int, Script] = {}
        self._connections: dict[int, Address] = {}
        self._streams: dict[int, bytes] = {}
        self._due: list[tuple[int, int, LinkEvent]] = []
        # When the last answer of each connection comes: none overtakes another.
        self._answered_ms: dict[int, int] = {}
        self._order = 0

    # --- Setting up

    def attach(self, core: ClientCore) -> Any:
        self.core = core
        return core

    def topic(self, name: str, partitions: int = 1, leader_id: int = 1) -> FakeTopic:
        self._topics_made += 1
        topic_id = self._topics_made.to_bytes(16, "big")
        made = FakeTopic(name, topic_id, [Log(leader_id) for _ in range(partitions)])
        self.topics[name] = made
        return made

    def script(self, api_key: int, *answers: Script) -> None:
        """Give these answers to the next requests of this API, one each."""
        self._scripts.setdefault(api_key, deque()).extend(answers)

    def rule(self, api_key: int, answer: Script | None) -> None:
        """Give this answer to all requests of this API, until it is None."""
        if answer is None:
            self._rules.pop(api_key, None)
        else:
            self._rules[api_key] = answer

    def requests(self, api_key: int) -> list[Seen]:
        return [one for one in self.seen if one.api_key == api_key]

    def cut(self, broker_id: int) -> None:
        """Drop all connections to a broker."""
        for connection_id, address in list(self._connections.items()):
            if address == self.brokers[broker_id]:
                self._cut_one(connection_id)

    def _cut_one(self, connection_id: int) -> None:
        self._connections.pop(connection_id, None)
        self._due = [one for one in self._due if one[2].connection_id != connection_id]
        self._later(disconnected(connection_id, "connection reset by peer"))

    # --- Running

    def run_for(self, duration_ms: int) -> None:
        self.run_until(lambda: False, duration_ms, must=False)

    def run_until(
        self, is_done: Callable[[], bool], limit_ms: int = 300_000, *, must: bool = True
    ) -> None:
        """Turn the core until it is done, jumping from event to event."""
        end_ms = self.now_ms + limit_ms
        turns = 0
        while True:
            events = self.take_due()
            outputs = self.core.turn(events, self.now_ms, WALL_MS + self.now_ms)
            self.perform(outputs)
            turns += 1
            assert turns < 100_000, "the core spins"
            if is_done():
                return
            following = [due[0] for due in self._due[:1]]
            due_ms = self.core.next_due_ms()
            if due_ms is not None:
                following.append(max(due_ms, self.now_ms))
            next_ms = min(following, default=end_ms)
            if next_ms >= end_ms:
                self.now_ms = end_ms
                self.perform(self.core.turn([], self.now_ms, WALL_MS + self.now_ms))
                assert not must or is_done(), f"not done after {limit_ms} ms"
                return
            self.now_ms = next_ms

    @property
    def due_ms(self) -> int | None:
        """When the next event comes; None: none is on its way."""
        return self._due[0][0] if self._due else None

    def take_due(self) -> list[LinkEvent]:
        events = [event for due_ms, _, event in self._due if due_ms <= self.now_ms]
        self._due = [one for one in self._due if one[0] > self.now_ms]
        return events

    def _later(self, event: LinkEvent, delay_ms: int | None = None) -> None:
        self._order += 1
        due_ms = self.now_ms + (self.latency_ms if delay_ms is None else delay_ms)
        self._due.append((due_ms, self._order, event))
        self._due.sort(key=lambda one: one[:2])

    def perform(self, outputs: Sequence[Any]) -> None:
        for output in outputs:
            if isinstance(output, Resolve):
                found = self.names.get(output.address.host, [output.address])
                self._later(Resolved(output.connection_id, found, "" if found else "unknown name"))
            elif isinstance(output, Connect):
                self._connect(output)
            elif isinstance(output, Send):
                self._receive(output.connection_id, output.data)
            elif isinstance(output, Close):
                self.closes.append(output.connection_id)
                self._connections.pop(output.connection_id, None)
                self._due = [
                    one for one in self._due if one[2].connection_id != output.connection_id
                ]
            elif isinstance(output, Notice):
                self.notices.append(output.operation)

    def _connect(self, output: Connect) -> None:
        self.connects.append((self.now_ms, output.address))
        refusal = self.refused.get(output.address)
        if refusal == SILENCE:
            return
        if refusal is not None:
            self._later(disconnected(output.connection_id, refusal))
            return
        self._connections[output.connection_id] = output.address
        self._streams[output.connection_id] = b""
        self._later(connected_to(output.connection_id, ""))

    def _receive(self, connection_id: int, data: bytes) -> None:
        address = self._connections.get(connection_id)
        if address is None:
            return
        stream = self._streams[connection_id] + data
        while len(stream) >= 4 and len(stream) >= 4 + int.from_bytes(stream[:4], "big"):
            size = 4 + int.from_bytes(stream[:4], "big")
            self._answer(connection_id, self._broker_at(address), stream[4:size])
            stream = stream[size:]
        self._streams[connection_id] = stream

    def _broker_at(self, address: Address) -> int:
        for broker_id, known in self.brokers.items():
            if known == address:
                return broker_id
        return -1

    def _answer(self, connection_id: int, broker_id: int, frame: bytes) -> None:
        reader = Reader(frame)
        header = decode_request_header(reader)
        request = MESSAGES[header.api_key].decode_request(reader, header.api_version)
        reader.expect_end()
        seen = Seen(self.now_ms, broker_id, header, request)
        self.seen.append(seen)
        answer = self.answer_to(seen)
        if answer == CUT:
            self._cut_one(connection_id)
        elif isinstance(answer, bytes):
            self._later(received(connection_id, answer))
        elif answer is not None and answer != SILENCE:
            delay_ms = self.latency_ms
            if isinstance(answer, tuple):
                delay_ms, answer = answer
            if self.throttle_ms and hasattr(answer, "throttle_time_ms") and seen.api_key != 18:
                answer.throttle_time_ms = self.throttle_ms
            chunks = encode_response(seen.api_key, seen.version, seen.correlation_id, answer)
            due_ms = max(self.now_ms + delay_ms, self._answered_ms.get(connection_id, 0))
            self._answered_ms[connection_id] = due_ms
            data = b"".join(bytes(one) for one in chunks)
            self._later(received(connection_id, data), due_ms - self.now_ms)

    def answer_to(self, seen: Seen) -> Any:
        scripts = self._scripts.get(seen.api_key)
        if scripts:
            return scripts.popleft()(self, seen)
        if seen.api_key in self._rules:
            return self._rules[seen.api_key](self, seen)
        return self.default(seen)

    # --- What brokers say unless a script knows better

    def default(self, seen: Seen) -> Any:
        handlers: dict[int, Callable[[Seen], Any]] = {
            api_keys.API_VERSIONS: self._api_versions,
            api_keys.METADATA: self.metadata,
            api_keys.INIT_PRODUCER_ID: self._init_producer_id,
            api_keys.PRODUCE: self.produce,
            api_keys.FETCH: self.fetch,
            api_keys.LIST_OFFSETS: self._list_offsets,
            api_keys.OFFSET_FOR_LEADER_EPOCH: self._epoch_ends,
        }
        return handlers[seen.api_key](seen)

    def _api_versions(self, seen: Seen) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[ApiVersion(key, low, high) for key, (low, high) in self.ranges.items()]
        )

    def metadata(self, seen: Seen) -> MetadataResponse:
        asked = seen.request.topics
        names = list(self.topics) if asked is None else [one.name for one in asked]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(broker_id, address.host, address.port, None)
                for broker_id, address in self.brokers.items()
            ],
            cluster_id="scripted",
            controller_id=1,
            topics=[self._topic_answer(name, seen.version) for name in names],
        )

    def _topic_answer(self, name: str, version: int) -> MetadataResponseTopic:
        topic = self.topics.get(name)
        if topic is None:
            return MetadataResponseTopic(errors.UNKNOWN_TOPIC_OR_PARTITION, name)
        answer = MetadataResponseTopic(errors.NONE, name)
        answer.is_internal = topic.is_internal and version >= 1
        if version >= 10:
            answer.topic_id = topic.topic_id
        for index, log in enumerate(topic.logs):
            partition = MetadataResponsePartition(errors.NONE, index, log.leader_id)
            if version >= 7:
                partition.leader_epoch = log.leader_epoch
            if version >= 5 and log.is_damaged:
                partition.offline_replicas = [log.leader_id]
            answer.partitions.append(partition)
        return answer

    def _init_producer_id(self, seen: Seen) -> InitProducerIdResponse:
        self.producer_ids += 1
        return InitProducerIdResponse(0, errors.NONE, self.producer_ids, 0)

    def log_of(self, topic: Any, index: int) -> Log | None:
        for known in self.topics.values():
            name = getattr(topic, "name", "") or getattr(topic, "topic", "")
            if known.name == name or known.topic_id == topic.topic_id:
                return known.logs[index] if 0 <= index < len(known.logs) else None
        return None

    def produce(self, seen: Seen) -> ProduceResponse | None:
        response = ProduceResponse()
        for topic in seen.request.topic_data:
            answer = TopicProduceResponse(topic.name, topic.topic_id)
            for data in topic.partition_data:
                answer.partition_responses.append(self.produce_one(seen, topic, data))
            response.responses.append(answer)
        return None if seen.request.acks == 0 else response

    def produce_one(self, seen: Seen, topic: Any, data: Any) -> PartitionProduceResponse:
        log = self.log_of(topic, data.index)
        if log is None:
            return PartitionProduceResponse(data.index, errors.UNKNOWN_TOPIC_OR_PARTITION, -1)
        if log.leader_id != seen.broker_id:
            return PartitionProduceResponse(data.index, errors.NOT_LEADER_OR_FOLLOWER, -1)
        code, offset = log.append(data.records.to_bytes())
        return PartitionProduceResponse(data.index, code, offset)

    def fetch(self, seen: Seen) -> Any:
        response = FetchResponse()
        size = 0
        for topic in seen.request.topics:
            answer = FetchableTopicResponse(topic.topic, topic.topic_id)
            for wanted in topic.partitions:
                found = self.fetch_one(seen, topic, wanted)
                size += found.records.size if found.records is not None else 0
                size += 1 if found.error_code else 0
                answer.partitions.append(found)
            response.responses.append(answer)
        # Nothing there: the broker uses up the wait (and looks only once, which is enough here).
        return response if size else (seen.request.max_wait_ms, response)

    def fetch_one(self, seen: Seen, topic: Any, wanted: Any) -> PartitionData:
        log = self.log_of(topic, wanted.partition)
        if log is None:
            return PartitionData(wanted.partition, errors.UNKNOWN_TOPIC_OR_PARTITION)
        if log.leader_id != seen.broker_id:
            return PartitionData(wanted.partition, errors.NOT_LEADER_OR_FOLLOWER)
        answer = PartitionData(wanted.partition, errors.NONE, log.end_offset, log.end_offset)
        answer.log_start_offset = log.start_offset
        if not log.start_offset <= wanted.fetch_offset <= log.end_offset:
            answer.error_code = errors.OFFSET_OUT_OF_RANGE
            return answer
        found = b""
        for data in log.batches:
            # From the first batch that claims to reach the offset on, whatever the others claim.
            if found or decode_batch_header(data, 0).last_offset >= wanted.fetch_offset:
                if found and len(found) + len(data) > wanted.partition_max_bytes:
                    break
                found += data
        answer.records = window_of(found)
        return answer

    def _list_offsets(self, seen: Seen) -> ListOffsetsResponse:
        response = ListOffsetsResponse()
        for topic in seen.request.topics:
            answer = ListOffsetsTopicResponse(topic.name)
            for wanted in topic.partitions:
                answer.partitions.append(self._offset_answer(seen, topic.name, wanted))
            response.topics.append(answer)
        return response

    def _offset_answer(self, seen: Seen, name: str, wanted: Any) -> ListOffsetsPartitionResponse:
        log = self.topics[name].logs[wanted.partition_index]
        answer = ListOffsetsPartitionResponse(wanted.partition_index)
        if log.leader_id != seen.broker_id:
            answer.error_code = errors.NOT_LEADER_OR_FOLLOWER
        elif wanted.timestamp == -2:
            answer.offset = log.start_offset
        elif wanted.timestamp == -1:
            answer.offset = log.end_offset
        else:
            young = [one for one in log.records() if one.timestamp >= wanted.timestamp]
            answer.offset = young[0].offset if young else -1
            answer.timestamp = young[0].timestamp if young else -1
        return answer

    def _epoch_ends(self, seen: Seen) -> OffsetForLeaderEpochResponse:
        response = OffsetForLeaderEpochResponse()
        for topic in seen.request.topics:
            answer = OffsetForLeaderTopicResult(topic.topic)
            for wanted in topic.partitions:
                log = self.topics[topic.topic].logs[wanted.partition]
                answer.partitions.append(self._epoch_end(seen, log, wanted))
            response.topics.append(answer)
        return response

    def _epoch_end(self, seen: Seen, log: Log, wanted: Any) -> EpochEndOffset:
        answer = EpochEndOffset(errors.NONE, wanted.partition, wanted.leader_epoch, -1)
        if log.leader_id != seen.broker_id:
            answer.error_code = errors.NOT_LEADER_OR_FOLLOWER
        elif 0 <= wanted.current_leader_epoch < log.leader_epoch:
            answer.error_code = errors.FENCED_LEADER_EPOCH
        elif wanted.current_leader_epoch > log.leader_epoch:
            answer.error_code = errors.UNKNOWN_LEADER_EPOCH
        for data in log.batches:
            header = decode_batch_header(data, 0)
            if header.leader_epoch <= wanted.leader_epoch:
                answer.leader_epoch = int(header.leader_epoch)
                answer.end_offset = int(header.last_offset) + 1
        return answer


def seeded_random() -> Random:
    return Random(7)

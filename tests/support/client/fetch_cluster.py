"""Brokers with what Apache Kafka knows of fetches: transactions, replicas in racks, sessions.

A `TransactionalLog` has a last stable offset and names its aborted transactions.  `racks` says
where brokers are; a `Follower` of a log may lag behind its leader.  With `gives_sessions` a broker
answers as Kafka does: what a session knows is read from where it was last asked for, and only
what is new comes back.
"""

from __future__ import annotations

from typing import Any

from tests.support.client.scripted_cluster import Log, ScriptedCluster, Seen

from tarry.base import errors
from tarry.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tarry.records.batch import decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.wire.reader import window_of

TRANSACTIONAL = 0x10
CONTROL = 0x20
ABORT, COMMIT = 0, 1


class TransactionalLog(Log):
    """Log with transactions, open, committed and aborted."""

    def __init__(self, leader_id: int = 1) -> None:
        super().__init__(leader_id)
        self.open: dict[int, int] = {}
        # Producer, first offset, offset of the marker.
        self.aborted: list[tuple[int, int, int]] = []

    @property
    def last_stable_offset(self) -> int:
        return min(self.open.values(), default=self.end_offset)

    def write(self, producer_id: int, *values: bytes, codec: int = 0) -> int:
        """Append a batch to the open transaction of a producer, which begins with it if need be."""
        self.open.setdefault(producer_id, self.end_offset)
        builder = BatchBuilder()
        for value in values:
            builder.append(0, None, value, None)
        return self._put(builder.build(codec, attributes=TRANSACTIONAL), producer_id)

    def end(self, producer_id: int, kind: int) -> int:
        """End the transaction of a producer with a marker."""
        builder = BatchBuilder()
        key = b"\0\0" + kind.to_bytes(2, "big")
        builder.append(0, key, b"\0\0\0\0\0\0", None)
        data = builder.build(attributes=TRANSACTIONAL | CONTROL)
        offset = self._put(data, producer_id)
        first_offset = self.open.pop(producer_id)
        if kind == ABORT:
            self.aborted.append((producer_id, first_offset, offset))
        return offset

    def _put(self, data: bytes, producer_id: int) -> int:
        """Append a batch of a producer without the check of its sequences."""
        offset = self.append(data)[1]
        stored = bytearray(self.batches[-1])
        stored[43:51] = producer_id.to_bytes(8, "big")
        stored[17:21] = crc_of(bytes(stored))
        self.batches[-1] = bytes(stored)
        return offset


def crc_of(batch: bytes) -> bytes:
    from tarry.wire.crc32c import crc32c

    return int(crc32c(batch[21:])).to_bytes(4, "big")


class Session:
    """Session as its broker keeps it."""

    def __init__(self, session_id: int) -> None:
        self.session_id = session_id
        self.epoch = 1
        # In the order in which they are read; with the high watermark that was told last.
        self.partitions: dict[tuple[str, int], tuple[FetchTopic, FetchPartition]] = {}
        self.told: dict[tuple[str, int], int] = {}


class FetchCluster(ScriptedCluster):
    """Scripted brokers with transactions, racks and sessions."""

    def __init__(self, brokers: int = 1, *, gives_sessions: bool = False) -> None:
        super().__init__(brokers)
        self.gives_sessions = gives_sessions
        self.racks: dict[int, str] = {}
        # Brokers that have a copy of every log up to this offset.
        self.followers: dict[int, int] = {}
        self.sessions: dict[int, Session] = {}
        self.sessions_made = 0

    def log(self, name: str = "t") -> TransactionalLog:
        """Make a topic of one partition with a log for transactions."""
        made = TransactionalLog()
        self.topic(name).logs[0] = made
        return made

    def fetch(self, seen: Seen) -> Any:
        request = seen.request
        if seen.version < 7 or not self.gives_sessions or request.session_epoch == -1:
            return super().fetch(seen)
        if request.session_epoch == 0:
            return self._begin_session(seen)
        session = self.sessions.get(request.session_id)
        if session is None:
            return FetchResponse(error_code=errors.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchResponse(error_code=errors.INVALID_FETCH_SESSION_EPOCH)
        session.epoch += 1
        return self._go_on(seen, session)

    def _begin_session(self, seen: Seen) -> Any:
        self.sessions.pop(seen.request.session_id, None)
        response = super().fetch(seen)
        delay_ms, answer = response if isinstance(response, tuple) else (0, response)
        if seen.request.topics:
            self.sessions_made += 1
            session = Session(self.sessions_made)
            self.sessions[session.session_id] = session
            self._enter(session, seen.request.topics)
            for topic in answer.responses:
                for one in topic.partitions:
                    self._note(session, self._name_of(topic), one)
            answer.session_id = session.session_id
        return (delay_ms, answer) if delay_ms else answer

    def _name_of(self, topic: Any) -> str:
        for known in self.topics.values():
            if known.name == topic.topic or known.topic_id == topic.topic_id:
                return known.name
        raise AssertionError("a topic that is not there")

    def _enter(self, session: Session, topics: list[FetchTopic]) -> None:
        for topic in topics:
            for one in topic.partitions:
                session.partitions[self._name_of(topic), one.partition] = (topic, one)

    def _note(self, session: Session, name: str, one: PartitionData) -> None:
        place = (name, one.partition_index)
        session.told[place] = -1 if one.error_code else one.high_watermark
        if one.records is not None and one.records.size:
            # Kafka reads next what had nothing this time.
            session.partitions[place] = session.partitions.pop(place)

    def _go_on(self, seen: Seen, session: Session) -> Any:
        self._enter(session, seen.request.topics)
        for topic in seen.request.forgotten_topics_data:
            for index in topic.partitions:
                place = (self._name_of(topic), index)
                session.partitions.pop(place, None)
                session.told.pop(place, None)
        response = FetchResponse(session_id=session.session_id)
        for place, (topic, wanted) in list(session.partitions.items()):
            found = self.fetch_one(seen, topic, wanted)
            has_records = found.records is not None and found.records.size > 0
            is_news = found.high_watermark != session.told.get(place, -1)
            is_named = found.preferred_read_replica >= 0
            if has_records or found.error_code or is_news or is_named:
                answer = FetchableTopicResponse(topic.topic, topic.topic_id, [found])
                response.responses.append(answer)
                self._note(session, place[0], found)
        return response if response.responses else (seen.request.max_wait_ms, response)

    def fetch_one(self, seen: Seen, topic: Any, wanted: Any) -> PartitionData:
        log = self.log_of(topic, wanted.partition)
        if log is not None and log.leader_id != seen.broker_id and seen.broker_id in self.followers:
            return self._fetch_from_follower(seen, log, wanted)
        answer = super().fetch_one(seen, topic, wanted)
        if log is None or answer.error_code:
            return answer
        nearby = self._nearby(seen, wanted)
        if nearby >= 0:
            answer.preferred_read_replica = nearby
            answer.records = window_of(b"")
            return answer
        if isinstance(log, TransactionalLog):
            self._judge(seen, log, wanted, answer)
        return answer

    def _nearby(self, seen: Seen, wanted: Any) -> int:
        """Return the follower in the consumer's rack that has the offset; -1: none."""
        rack = getattr(seen.request, "rack_id", "")
        if seen.version < 11 or not rack or self.racks.get(seen.broker_id) == rack:
            return -1
        for broker_id, end_offset in self.followers.items():
            if self.racks.get(broker_id) == rack and wanted.fetch_offset <= end_offset:
                return broker_id
        return -1

    def _fetch_from_follower(self, seen: Seen, log: Log, wanted: Any) -> PartitionData:
        end_offset = min(self.followers[seen.broker_id], log.end_offset)
        answer = PartitionData(wanted.partition, errors.NONE, end_offset, end_offset)
        if wanted.fetch_offset > end_offset:
            answer.error_code = errors.OFFSET_OUT_OF_RANGE
            return answer
        answer.log_start_offset = log.start_offset
        found = b""
        for data in log.batches:
            header = decode_batch_header(data, 0)
            if wanted.fetch_offset <= header.last_offset < end_offset:
                if found and len(found) + len(data) > wanted.partition_max_bytes:
                    break
                found += data
        answer.records = window_of(found)
        if isinstance(log, TransactionalLog):
            self._judge(seen, log, wanted, answer)
        return answer

    def _judge(self, seen: Seen, log: TransactionalLog, wanted: Any, answer: PartitionData) -> None:
        """Leave out what a committed reader may not have yet, and name what was aborted."""
        answer.last_stable_offset = min(log.last_stable_offset, answer.high_watermark)
        if not seen.request.isolation_level:
            return
        data = answer.records.to_bytes() if answer.records is not None else b""
        kept = b""
        upper = wanted.fetch_offset
        while len(kept) < len(data):
            header = decode_batch_header(data, len(kept))
            if header.last_offset >= log.last_stable_offset:
                break
            kept = data[: len(kept) + int(header.size)]
            upper = int(header.last_offset) + 1
        answer.records = window_of(kept)
        answer.aborted_transactions = [
            AbortedTransaction(producer_id, first_offset)
            for producer_id, first_offset, marker in log.aborted
            if marker >= wanted.fetch_offset and first_offset < upper
        ]

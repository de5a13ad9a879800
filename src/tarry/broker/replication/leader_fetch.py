"""Fetches of replicas at their leader: which are accepted, what they report, what they receive.

A replica reads up to the written end.  Its fetch offset says that everything below is on its disk.
So an offset counts only if the fetch names a broker in its living epoch that is a replica, knows
the leader epoch, and has a log that does not diverge.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tarry.base import errors
from tarry.base.ids import id_text
from tarry.base.limits import FETCHED_LOGS_MAX, PARTITIONS_PER_FETCH_MAX
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.reads import (
    VERSION_OF_LEADERS,
    FetchLimits,
    FetchStatus,
    put_ends,
    read_status,
)
from tarry.broker.replication.fetch_sessions import ReplicaSession, ReplicaSessions, Seat
from tarry.broker.replication.leader import ReplicaLeader
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.cluster.state.state import ClusterState
from tarry.partition.reader import REPLICA
from tarry.partition.replicated_log import ReplicatedLog, key_of
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tarry.purgatory.operation import PayloadOperation
from tarry.wire.writer import ChunkList

# Limits of a replica's fetch; the bytes are bounded by its session, and its version is newer.
LIMITS: Final = FetchLimits(REPLICA, 1, 0, VERSION_OF_LEADERS)

# Number of partitions of which one answer reports only moved ends.
ENDS_TOLD_MAX: Final = 2_000

NO_SESSION: Final = 0
NEW_SESSION_EPOCH: Final = 0
LAST_EPOCH: Final = -1


class SessionFetch:
    """Fetch of a session; `number` shows whether a newer one has come."""

    __slots__ = ("bytes_max", "context", "is_full", "number", "session")

    def __init__(
        self, context: RequestContext, session: ReplicaSession, request: FetchRequest, number: int
    ) -> None:
        self.context = context
        self.session = session
        self.number = number
        self.bytes_max = max(request.max_bytes, 0)
        self.is_full = request.session_epoch <= NEW_SESSION_EPOCH


class DelayedReplicaFetch(PayloadOperation[SessionFetch]):
    """Fetch of a replica that waits because it has all records."""

    def __init__(self, handler: ReplicaFetchHandler, fetch: SessionFetch, deadline_ms: int) -> None:
        super().__init__(deadline_ms, fetch)
        self._handler = handler

    def is_ready(self, payload: SessionFetch) -> bool:
        return self._handler.is_ready(payload)

    def complete_with(self, payload: SessionFetch) -> None:
        context = payload.context
        if not context.connection.is_closed:
            context.respond(self._handler.answer(payload))


class ReplicaFetchHandler:
    """Handler of fetches that name a replica, in a cluster."""

    def __init__(
        self,
        topics: Topics,
        state: ClusterState,
        turn: Turn,
        leader: ReplicaLeader,
        sessions: ReplicaSessions,
        settings: Settings,
    ) -> None:
        self._topics = topics
        self._state = state
        self._turn = turn
        self._leader = leader
        self._sessions = sessions
        self._bytes_max = settings.fetch_max_bytes
        self._listener = settings.inter_broker_listener
        # Texts of directory ids that are registered and were asked with; others are not kept.
        self._directory_texts: dict[bytes, str] = {}

    def handle(self, context: RequestContext, request: FetchRequest) -> Message | None:
        """Take what the follower reports; answer with news, or wait for it."""
        error_code = self._refusal(context, request)
        if error_code != errors.NONE:
            return FetchResponse(error_code=error_code)
        found = self._session(request)
        if isinstance(found, int):
            return FetchResponse(error_code=found)
        session = found
        number = session.begin_request(self._turn.now_ms, self._turn.monotonic_ms())
        request.max_bytes = min(request.max_bytes, self._bytes_max)
        fetch = SessionFetch(context, session, request, number)
        if number > 1:
            # An older fetch that still waits in this session is not awaited any more.
            self._sessions.purgatory.check_and_complete(session.id)
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                self._sessions.forget(session, key_of(gone.topic_id, index))
        # Without a session only the first names are answered, which is enough to explain the
        # refusal.
        count = PARTITIONS_PER_FETCH_MAX if session.id == NO_SESSION else None
        for topic_id, asked in islice(_named(request), count):
            self._take(session, topic_id, asked, is_full=fetch.is_full)
        if request.session_epoch == LAST_EPOCH or session.id == NO_SESSION:
            answer = self.answer(fetch)
            self._sessions.close(session)
            answer.session_id = NO_SESSION
            return answer
        if fetch.is_full or request.max_wait_ms <= 0 or self.is_ready(fetch):
            return self.answer(fetch)
        now_ms = self._turn.now_ms
        wait_ms = session.wait_ms(request.max_wait_ms, now_ms)
        operation = DelayedReplicaFetch(self, fetch, now_ms + wait_ms)
        context.operation = operation
        self._sessions.watch(operation, [session.id])
        return None

    # -- which follower asks

    def _refusal(self, context: RequestContext, request: FetchRequest) -> int:
        state = request.replica_state
        assert state is not None
        if context.connection.listener != self._listener:
            context.report(
                "a fetch as a replica came through a listener that is not inter.broker.listener"
                ".name: brokers are asked there only"
            )
            return errors.CLUSTER_AUTHORIZATION_FAILED
        if request.cluster_id and request.cluster_id != self._state.cluster_id:
            context.report("a broker of another cluster asks for records; check its addresses")
            return errors.INCONSISTENT_CLUSTER_ID
        if state.replica_epoch < 0 or (
            self._leader.living_epoch(state.replica_id) != state.replica_epoch
        ):
            # The life is over, or the watch has not brought it yet.
            return errors.STALE_BROKER_EPOCH
        return errors.NONE

    def _session(self, request: FetchRequest) -> ReplicaSession | int:
        """Return the session of a fetch, or the error if there is none."""
        state = request.replica_state
        assert state is not None
        sessions = self._sessions
        session = sessions.get(request.session_id) if request.session_id != NO_SESSION else None
        if session is not None and (session.replica_id, session.broker_epoch) != (
            state.replica_id,
            state.replica_epoch,
        ):
            # The session belongs to another replica or an earlier life.
            session = None
        if request.session_epoch <= NEW_SESSION_EPOCH:
            if session is not None:
                sessions.close(session)
            if not self._is_from_own_directory(request):
                # The sender may be any client.  It must not end the broker's sessions, and gets one
                # refusal.
                return ReplicaSession(NO_SESSION, state.replica_id, state.replica_epoch)
            return sessions.open(state.replica_id, state.replica_epoch)
        if session is None:
            return errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return errors.INVALID_FETCH_SESSION_EPOCH
        session.go_on()
        return session

    # -- what a fetch reports

    def _take(
        self, session: ReplicaSession, topic_id: bytes, asked: FetchPartition, *, is_full: bool
    ) -> None:
        key = key_of(topic_id, asked.partition)
        hosted = self._topics.with_id(topic_id)
        partition = None if hosted is None else hosted.log(*key[1:])
        seat = self._sessions.seat(session, key, asked)
        self._sessions.attach(seat, partition)
        was_doubted, seat.is_doubted = seat.is_doubted, False
        if self._look(seat).has_refused or partition is None:
            self._sessions.add_news(seat)
            return
        if not was_doubted and _tells_less(partition, session, asked.fetch_offset):
            seat.is_doubted = True
            self._sessions.add_news(seat)
            return
        self._leader.on_fetched(
            partition,
            session.replica_id,
            session.broker_epoch,
            asked.fetch_offset,
            asked.log_start_offset,
            session,
        )
        if asked.fetch_offset < partition.log.written_end_offset:
            self._sessions.add_news(seat)
        else:
            self._sessions.drop_news(seat)
        # The follower may have ignored the log start of an answer in a lane that the replica has
        # left.
        is_behind = asked.log_start_offset < partition.log.log_start_offset
        if is_full or is_behind or _must_tell_ends(seat, partition):
            session.moved[seat] = None

    def _look(self, seat: Seat) -> FetchStatus:
        """Check what a seat asks for; the status says whether it is refused or diverges."""
        codes = (self._missing_code(seat), self._own_code(seat))
        status = FetchStatus(seat.partition, seat.asked, *codes)
        status.is_refused(REPLICA)
        return status

    def _own_code(self, seat: Seat) -> int:
        """Return the error of this replica if its leader epoch is right; NONE if it is accepted."""
        session = seat.session
        if seat.partition is None or seat.partition.copy(session.replica_id) is None:
            # The follower, or this broker, does not know the newest row yet.  Kafka answers a
            # replica that is not in its row with the same code.
            return errors.UNKNOWN_LEADER_EPOCH
        if not self._is_own_directory(session.replica_id, seat.asked.replica_directory_id):
            return errors.LOG_DIR_NOT_FOUND
        # A follower that repeats the request for this offset is answered.
        return errors.OFFSET_NOT_AVAILABLE if seat.is_doubted else errors.NONE

    def _missing_code(self, seat: Seat) -> int:
        hosted = self._topics.with_id(seat.topic_id)
        if hosted is None:
            return errors.UNKNOWN_TOPIC_ID
        return hosted.missing_code(key_of(seat.topic_id, seat.asked.partition)[1])

    def _is_from_own_directory(self, request: FetchRequest) -> bool:
        """Return whether a full fetch proves that it comes from the broker that it names."""
        state = request.replica_state
        assert state is not None
        return any(
            self._is_own_directory(state.replica_id, asked.replica_directory_id)
            for _, asked in islice(_named(request), PARTITIONS_PER_FETCH_MAX)
        )

    def _is_own_directory(self, broker_id: int, directory_id: bytes) -> bool:
        """Return whether a fetch names the directory with which the broker is registered.

        Epochs are small numbers that a client could guess, and clients may use this listener too.
        A fetch without the directory's id may come from any client.
        """
        text = self._leader.directory_id(broker_id)
        if self._directory_texts.get(directory_id) == text:
            return True
        if not text or id_text(directory_id) != text:
            return False
        self._directory_texts[directory_id] = text
        return True

    # -- what a fetch receives

    def is_ready(self, fetch: SessionFetch) -> bool:
        """Return whether there is something to answer, or the fetch is not awaited any more."""
        session = fetch.session
        if session.is_closed or session.is_hurried or session.requests != fetch.number:
            return True
        for seat in list(session.news):
            partition = seat.partition
            if self._look(seat).has_refused or partition is None:
                return True
            if seat.asked.fetch_offset >= partition.log.written_end_offset:
                self._sessions.drop_news(seat)
                continue
            if self._leader.must_withhold(partition, session.replica_id):
                continue
            return True
        return any(
            seat.partition is not None
            and seat.sent_log_start != seat.partition.log.log_start_offset
            for seat in session.moved
        )

    def answer(self, fetch: SessionFetch) -> FetchResponse:
        """Return the news of a session, within the limits in bytes and partitions; every partition
        gets its turn.
        """
        session = fetch.session
        response = FetchResponse(session_id=session.id)
        if session.requests != fetch.number:
            return response
        if session.is_closed:
            response.error_code = errors.FETCH_SESSION_ID_NOT_FOUND
            return response
        session.is_hurried = False
        session.answered_real_ms = self._turn.monotonic_ms()
        topics: dict[bytes, FetchableTopicResponse] = {}
        left = fetch.bytes_max
        read = 0
        for seat in list(session.news):
            if (left <= 0 and read > 0) or read == FETCHED_LOGS_MAX:
                # The partitions that are left come first in the next answer.
                break
            told = self._answer(seat, left, is_first=read == 0)
            if told is None:
                continue
            if isinstance(told.records, ChunkList):
                left -= told.records.size
                read += 1
            session.moved.pop(seat, None)
            _put(topics, seat, told)
        for seat in list(islice(session.moved, ENDS_TOLD_MAX)):
            del session.moved[seat]
            partition = seat.partition
            if partition is not None and partition.leadership.gone_code == errors.NONE:
                answer = PartitionData(partition_index=seat.asked.partition)
                put_ends(answer, partition, REPLICA)
                seat.note_sent(answer)
                _put(topics, seat, answer)
        # Moved ends that are left are in the next answer, which does not wait.
        session.is_hurried = len(session.moved) > 0
        response.responses = list(topics.values())
        if session.takes_calendar(self._turn.now_ms):
            response.calendar_ms = self._turn.now_wall_ms
        return response

    def _answer(self, seat: Seat, left: int, *, is_first: bool) -> PartitionData | None:
        """Return the answer to a seat with news; None if it has no news after all, or there is
        no room.
        """
        sessions, session = self._sessions, seat.session
        status, partition = self._look(seat), seat.partition
        answer = PartitionData(partition_index=seat.asked.partition)
        if status.has_refused or partition is None:
            # A refusal is sent once; the follower asks again when it knows newer rows.
            session.news.pop(seat, None)
            read_status(status, answer, 0, LIMITS, at_least_one=False)
            if status.diverging is not None:
                # The follower cuts its log first, and takes the ends from the next answer.
                seat.forget_sent()
                sessions.on_diverged(session, self._turn.now_ms)
            elif partition is None or status.error_code == errors.LOG_DIR_NOT_FOUND:
                # Such a seat never has news, and a sender that is no broker could name any number
                # of them.
                sessions.forget(session, key_of(seat.topic_id, seat.asked.partition))
            return answer
        if seat.asked.fetch_offset >= partition.log.written_end_offset:
            sessions.drop_news(seat)
            return None
        if self._leader.must_withhold(partition, session.replica_id):
            # The seat keeps its news.
            return None
        size = read_status(status, answer, max(left, 0), LIMITS, at_least_one=is_first)
        is_read = answer.error_code == errors.NONE
        if is_read and size == 0 and not is_first:
            return None
        session.news.pop(seat, None)
        if is_read and size == 0:
            return None
        if is_read:
            # The seat moves behind the others; it has news until the follower asks for a later
            # offset.
            session.news[seat] = None
            seat.note_sent(answer)
        return answer


def _named(request: FetchRequest) -> Iterator[tuple[bytes, FetchPartition]]:
    for topic in request.topics:
        for asked in topic.partitions:
            yield topic.topic_id, asked


def _tells_less(partition: ReplicatedLog, session: ReplicaSession, offset: int) -> bool:
    """Return whether a fetch has a lower offset than the same life had in another open session.

    The follower may have changed or reopened its lane, and a request from before comes late.  If it
    counted, it would look like a disk that has lost records.  Two connections have no order.  But
    the sender of a late request does not wait for its answer, and one that has fewer records asks
    again.
    """
    copy = partition.copy(session.replica_id)
    return (
        copy is not None
        and copy.clock is not None
        and copy.clock is not session
        and copy.broker_epoch == session.broker_epoch
        and offset < copy.end
    )


def _must_tell_ends(seat: Seat, partition: ReplicatedLog) -> bool:
    """Return whether a follower does not know the leader's log start or high watermark."""
    return (
        seat.sent_high_watermark != partition.high_watermark
        or seat.sent_log_start != partition.log.log_start_offset
    )


def _put(topics: dict[bytes, FetchableTopicResponse], seat: Seat, answer: PartitionData) -> None:
    topic_id = seat.topic_id
    topic = topics.get(topic_id)
    if topic is None:
        topic = topics[topic_id] = FetchableTopicResponse(topic_id=topic_id, partitions=[])
    topic.partitions.append(answer)

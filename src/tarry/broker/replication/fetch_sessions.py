"""Fetch sessions of replicas (KIP-227): what each follower asks for, and which of it has news.

A follower names its partitions once, and later only changes.  A write to a partition puts it into
the lists of news of its followers' sessions.  So a fetch costs work for the partitions that have
news, and not for the thousands that a follower follows.

Consumers have no sessions: their fetches name all partitions.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Random
from tarry.broker.part import WaitingPart
from tarry.broker.replication.calendars import CALENDAR_INTERVAL_MS
from tarry.partition.followers import FetchClock
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import LogKey, ReplicatedLog
from tarry.protocol.messages.fetch import FetchPartition, PartitionData
from tarry.timer.wheel import TimingWheel

# Bound on the sessions of a replica: a follower has two lanes, and more after lost connections.
SESSIONS_PER_REPLICA_MAX: Final = 4
SESSION_EPOCH_MAX: Final = 2**31 - 1
NOT_SENT: Final = -1

# For so long followers are answered almost at once after this broker became a leader, or after
# their log was found to diverge.
HASTE_MS: Final = 1_000
# Longest wait of a fetch during that time, in ms.
HASTY_WAIT_MS: Final = 20

# A follower asks again as soon as it has flushed the last answer.  A fetch that comes later than
# this may have been delayed by a broken link, and its sender may follow another leader by now.
LATE_FETCH_MS: Final = 500


class Seat:
    """Place of one partition in a session, with what was last asked for and last sent.

    `partition` is None while this broker does not lead it.  `is_doubted` is true if the last asked
    offset must be repeated before it counts: it is lower than the one of another session and may be
    that of a late request, or the replica was removed from the isr since.
    """

    __slots__ = (
        "asked",
        "is_doubted",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "session",
        "topic_id",
    )

    def __init__(self, session: ReplicaSession, topic_id: bytes, asked: FetchPartition) -> None:
        self.session = session
        self.topic_id = topic_id
        self.asked = asked
        self.partition: ReplicatedLog | None = None
        self.sent_high_watermark = NOT_SENT
        self.sent_log_start = NOT_SENT
        self.is_doubted = False

    def note_sent(self, answer: PartitionData) -> None:
        """Note the log's start and high watermark in an answer to the follower."""
        self.sent_high_watermark = answer.high_watermark
        self.sent_log_start = answer.log_start_offset

    def forget_sent(self) -> None:
        """Forget the ends that were sent, so that the next answer has them."""
        self.sent_high_watermark = NOT_SENT
        self.sent_log_start = NOT_SENT


class ReplicaSession(FetchClock):
    """Session of a follower in one of its lives; its connections may change."""

    def __init__(self, session_id: int, replica_id: int, broker_epoch: int) -> None:
        super().__init__()
        self.id = session_id
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        # Epoch of the next fetch.
        self.epoch = 1
        self.seats: dict[LogKey, Seat] = {}
        # Seats with news, which are worth an answer, in the order in which they are read; and seats
        # of which only an end has moved, which are added to the next answer.
        self.news: dict[Seat, None] = {}
        self.moved: dict[Seat, None] = {}
        # Real monotonic time of the last answer, in ms; -1 if there was none.
        self.answered_real_ms = -1
        # When the follower was told this broker's calendar last, or had its first answer; -1: none.
        self._calendar_told_ms = -1
        # Number of the newest request: an older one that still waits is ended.
        self.requests = 0
        self.is_closed = False
        # True if a waiting fetch is to be answered without news; and the time until which no fetch
        # waits long.
        self.is_hurried = False
        self.hasty_until_ms = 0

    def wait_ms(self, asked_ms: int, now_ms: int) -> int:
        """Return how long a fetch may wait that asks for `asked_ms`, in ms."""
        return min(asked_ms, HASTY_WAIT_MS) if now_ms < self.hasty_until_ms else asked_ms

    def begin_request(self, now_ms: int, real_ms: int) -> int:
        """Note a fetch, which also asks again for all partitions without news.  Return its
        number.
        """
        self.fetched_ms = now_ms
        answered_ms = self.answered_real_ms
        # A late fetch is only known to have left after the last answer.  The first fetch of a
        # session has no answer before it, and may be as old as the link.
        is_late = answered_ms < 0 or answered_ms < real_ms - LATE_FETCH_MS
        self.fetched_real_ms = answered_ms if is_late else real_ms
        self.requests += 1
        return self.requests

    def takes_calendar(self, now_ms: int) -> bool:
        """Return whether the answer of now is to tell this broker's calendar, which counts as
        told."""
        told_ms = self._calendar_told_ms
        if told_ms >= 0 and now_ms - told_ms < CALENDAR_INTERVAL_MS:
            return False
        self._calendar_told_ms = now_ms
        return told_ms >= 0

    def go_on(self) -> None:
        """Advance to the next epoch."""
        self.epoch = 1 if self.epoch == SESSION_EPOCH_MAX else self.epoch + 1


class ReplicaSessions(WaitingPart):
    """Sessions of all replicas, and the waiting fetches, by session."""

    def __init__(self, timer: TimingWheel, random: Random) -> None:
        super().__init__(timer, "ReplicaFetch")
        self._random = random
        self._sessions: dict[int, ReplicaSession] = {}
        self._seats: dict[ReplicatedLog, dict[Seat, None]] = {}
        # Time until which fetches in new sessions of a replica must not wait long, by replica.
        self._hasty_until_ms: dict[int, int] = {}

    def get(self, session_id: int) -> ReplicaSession | None:
        """Return the session with this id, or None."""
        return self._sessions.get(session_id)

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, replica_id: int, broker_epoch: int) -> ReplicaSession:
        """Begin a session; end those of earlier lives, and the oldest if there are too many."""
        own = [each for each in self._sessions.values() if each.replica_id == replica_id]
        living = [each for each in own if each.broker_epoch == broker_epoch]
        for session in own:
            if session.broker_epoch != broker_epoch:
                self.close(session)
        for session in living[: max(len(living) - SESSIONS_PER_REPLICA_MAX + 1, 0)]:
            self.close(session)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = 1 + self._random.randrange(2**31 - 1)
        session = ReplicaSession(session_id, replica_id, broker_epoch)
        session.hasty_until_ms = self._hasty_until_ms.get(replica_id, 0)
        self._sessions[session_id] = session
        return session

    def close(self, session: ReplicaSession) -> None:
        """End a session; a fetch that waits in it is answered."""
        self._sessions.pop(session.id, None)
        session.is_closed = True
        for key in list(session.seats):
            self.forget(session, key)
        self.touch(session.id)

    def keep_living(self, epochs: dict[int, int]) -> None:
        """End the sessions of lives that are over; `epochs` has the broker epochs of the living
        brokers.
        """
        for session in list(self._sessions.values()):
            if epochs.get(session.replica_id, -1) != session.broker_epoch:
                self.close(session)

    def seat(self, session: ReplicaSession, key: LogKey, asked: FetchPartition) -> Seat:
        """Set what a fetch asks for of a partition; return its seat."""
        seat = session.seats.get(key)
        if seat is None:
            seat = session.seats[key] = Seat(session, key[0], asked)
        seat.asked = asked
        return seat

    def attach(self, seat: Seat, partition: ReplicatedLog | None) -> None:
        """Let a seat receive the news of this partition from now on."""
        before = seat.partition
        if before is partition:
            return
        if before is not None:
            self._detach(seat, before)
        seat.partition = partition
        if partition is not None:
            self._seats.setdefault(partition, {})[seat] = None

    def forget(self, session: ReplicaSession, key: LogKey) -> None:
        """Remove a partition from a session."""
        seat = session.seats.pop(key, None)
        if seat is None:
            return
        session.news.pop(seat, None)
        session.moved.pop(seat, None)
        if seat.partition is not None:
            self._detach(seat, seat.partition)
            seat.partition = None

    def _detach(self, seat: Seat, partition: ReplicatedLog) -> None:
        seats = self._seats.get(partition)
        if seats is not None:
            seats.pop(seat, None)
            if not seats:
                del self._seats[partition]
        copy = partition.copy(seat.session.replica_id)
        if copy is not None:
            copy.leave_session(seat.session)

    def add_news(self, seat: Seat) -> None:
        """Put a seat at the end of the seats with news."""
        session = seat.session
        session.news[seat] = None
        copy = None if seat.partition is None else seat.partition.copy(session.replica_id)
        if copy is not None and copy.clock is session:
            copy.on_news()

    def drop_news(self, seat: Seat) -> None:
        """Note that a seat has no news: the follower has all records."""
        session = seat.session
        session.news.pop(seat, None)
        copy = None if seat.partition is None else seat.partition.copy(session.replica_id)
        if copy is not None and copy.clock is session:
            copy.has_news = False

    # -- reports of the leader's side

    def on_news(self, partition: ReplicatedLog) -> None:
        """Wake the sessions of all followers of this partition."""
        for seat in self._seats.get(partition, {}):
            self.add_news(seat)
            self.touch(seat.session.id)

    def on_led(self, leadership: Leadership, now_ms: int) -> None:
        """Let the followers of a partition that this broker leads from now on fetch again soon.

        A follower that knows its new leader names the partition in its next fetch.  A fetch under
        way may wait for `replica.fetch.wait.max.ms`, and no record would count for that long.
        """
        until_ms = now_ms + HASTE_MS
        for replica_id in leadership.replicas:
            self._hasty_until_ms[replica_id] = until_ms
        for session in self._sessions.values():
            if session.hasty_until_ms != until_ms and session.replica_id in leadership.replicas:
                session.hasty_until_ms = until_ms
                session.is_hurried = True
                self.touch(session.id)

    def on_diverged(self, session: ReplicaSession, now_ms: int) -> None:
        """Let a follower that cuts its log ask again soon; it asks without that log meanwhile."""
        session.hasty_until_ms = max(session.hasty_until_ms, now_ms + HASTE_MS)

    def on_put_out(self, leadership: Leadership, replica_id: int) -> None:
        """Require a replica that was removed from the isr to ask for its logs again."""
        for log in leadership.logs:
            for seat in self._seats.get(log, {}):
                if seat.session.replica_id == replica_id:
                    seat.is_doubted = True
                    self.add_news(seat)
                    self.touch(seat.session.id)

    def on_ends_moved(self, partition: ReplicatedLog) -> None:
        """Add moved ends to the next answers; wake fetches for a new log start."""
        log_start = partition.log.log_start_offset
        for seat in self._seats.get(partition, {}):
            if seat.sent_high_watermark != partition.high_watermark:
                seat.session.moved[seat] = None
            if seat.sent_log_start != log_start:
                seat.session.moved[seat] = None
                self.touch(seat.session.id)

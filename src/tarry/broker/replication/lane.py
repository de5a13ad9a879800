"""Lane: the requests to one leader, in one fetch session and with one request under way.

The next request leaves once the last answer is taken and its records are as durable as they get.
So a fetch offset always says that this broker has everything below it.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import islice
from typing import Final, NamedTuple

from tarry.base import errors
from tarry.base.limits import PARTITIONS_PER_FETCH_MAX
from tarry.broker.peers.asker import Asker
from tarry.broker.replication.calendars import Calendars
from tarry.broker.replication.followed import ASKING, FETCHING, Followed
from tarry.broker.replication.follower_session import FollowerSession, Position
from tarry.broker.replication.lane_requests import ReplicaTerms, fetch_request, starts_request
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.link.exchange import Exchange
from tarry.link.tasks import Task, Tasks
from tarry.partition.replicated_log import LogKey, key_of, wire_index
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
    decode_fetch_response,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    decode_list_offsets_response,
)

logger = logging.getLogger("tarry.replication")

# Errors that say that the leader does not know the session: a full fetch begins another one.
_SESSION_CODES: Final = (
    errors.FETCH_SESSION_ID_NOT_FOUND,
    errors.INVALID_FETCH_SESSION_EPOCH,
    errors.FETCH_SESSION_TOPIC_ID_ERROR,
)


class LaneKey(NamedTuple):
    """Leader, and whether the lane is for replicas that are far behind or not in sync."""

    leader_id: int
    is_catching_up: bool


class AnsweredPart(NamedTuple):
    """Part of an answer about one partition, and the position from which that was fetched."""

    followed: Followed
    position: Position
    data: PartitionData


class AnsweredStart(NamedTuple):
    """Answer to the question where the leader's log of a partition begins, and in which leader
    epoch; -1 if the leader does not know that epoch.
    """

    followed: Followed
    error_code: int
    offset: int
    leader_epoch: int


class Lane:
    """Lane to one leader.  It adds itself to `stirred` when it may have something to send."""

    def __init__(
        self,
        key: LaneKey,
        address: Address,
        life: int,
        tasks: Tasks,
        asker: Asker,
        terms: ReplicaTerms,
        *,
        stirred: dict[Lane, None],
        calendars: Calendars,
    ) -> None:
        self.key = key
        self.address = address
        # Broker epoch of the leader's life.
        self.life = life
        self.members: dict[LogKey, Followed] = {}
        # Members of the leader's other lane that move to this one.  The other lane fetches them
        # until this lane is free, whose request may wait at the leader for long.
        self.joining: dict[LogKey, Followed] = {}
        # Parts of the last answer that are not taken yet, and members whose records of it are not
        # durable yet.
        self.parts: deque[AnsweredPart] = deque()
        self.awaiting: dict[Followed, None] = {}
        self.session = FollowerSession(terms.partition_bytes_max)
        # Bound on the bytes a second that the lane fetches; 0 without a bound.
        self.rate = 0
        self.is_closed = False
        self._tasks = tasks
        self._asker = asker
        self._terms = terms
        self._stirred = stirred
        self._calendars = calendars
        self._asking: dict[LogKey, Followed] = {}
        # Answers about log starts that the follower has not taken yet.
        self._starts: list[AnsweredStart] = []
        self._is_busy = False
        self._failures = 0
        self._pause = Task(self._go_on)

    @property
    def is_at_rest(self) -> bool:
        """Return whether the last answer is taken, and its records are durable."""
        return not self.parts and not self.awaiting

    @property
    def is_free(self) -> bool:
        """Return whether the next fetch may leave at once."""
        is_under_way = self._is_busy or self._pause.is_armed or bool(self._asking)
        return self.is_at_rest and not is_under_way and not self.is_closed

    def stir(self) -> None:
        """Note that the lane may have something to send at the end of the turn."""
        self._stirred[self] = None

    # -- members

    def join(self, followed: Followed) -> None:
        """Let a member of the leader's other lane move here as soon as this lane is free."""
        self.joining[followed.key] = followed
        followed.is_joining = True

    def withdraw(self, followed: Followed) -> None:
        """Stop expecting a partition to move here."""
        self.joining.pop(followed.key, None)
        followed.is_joining = False

    def add(self, followed: Followed) -> None:
        """Add a member; it is fetched once `want` is called."""
        self.members[followed.key] = followed
        followed.lane_key = self.key

    def remove(self, followed: Followed) -> None:
        """Remove a member; the answer about it that is under way does not count."""
        key = followed.key
        followed.lane_key = None
        del self.members[key]
        self.rest(followed)

    def rest(self, followed: Followed) -> None:
        """Leave a member out of the requests until it is wanted again."""
        self.session.forget(followed.key)
        self._asking.pop(followed.key, None)
        if self.awaiting.pop(followed, self) is None:
            self.stir()

    def want(self, followed: Followed) -> None:
        """Fetch a member from the end of its log."""
        followed.state = FETCHING
        self.session.want(followed.key, followed.position())
        if self.awaiting.pop(followed, self) is None or self.is_at_rest:
            self.stir()

    def ask_start(self, followed: Followed) -> None:
        """Ask where the leader's log of a member begins."""
        self.rest(followed)
        followed.state = ASKING
        self._asking[followed.key] = followed
        self.stir()

    # -- requests

    def maybe_send(self) -> None:
        """Send the next request if there is one and it may leave now."""
        if self.is_closed or self._is_busy or self._pause.is_armed or not self.is_at_rest:
            return
        if self._asking:
            asked = list(islice(self._asking.values(), PARTITIONS_PER_FETCH_MAX))
            self._is_busy = True
            self._asker.ask(self.key.leader_id, _Starts(self, self._terms, asked))
        elif len(self.session):
            self._is_busy = True
            self._asker.ask(self.key.leader_id, _Fetch(self, self._terms))

    def close(self, reason: str) -> None:
        """Stop the lane; its members have to be moved to another lane first."""
        self.is_closed = True
        self.parts.clear()
        self.awaiting.clear()
        self._tasks.cancel(self._pause)
        self._asker.hang_up(self.key.leader_id, reason)

    def reset_session(self) -> None:
        """Begin again with a full fetch."""
        self.session.reset()

    # -- answers

    def take_starts(self) -> list[AnsweredStart]:
        """Return the answers about log starts for members that still ask for them."""
        starts, self._starts = self._starts, []
        return [
            each for each in starts if self._asking.pop(each.followed.key, None) is each.followed
        ]

    def on_fetched(self, response: FetchResponse, now_ms: int) -> None:
        self._is_busy = False
        if self.is_closed:
            return
        code = response.error_code
        if code != errors.NONE:
            self.session.reset()
            # The full fetch after an unknown session may follow at once.
            is_known = code in _SESSION_CODES and self._failures == 0
            self._fail(f"it answers {errors.error_name(code)}", now_ms, at_once=is_known)
            return
        if response.calendar_ms >= 0:
            self._calendars.compare(self.key.leader_id, response.calendar_ms)
        asked: list[tuple[LogKey, PartitionData]] = [
            (key_of(topic.topic_id, data.partition_index), data)
            for topic in response.responses
            for data in topic.partitions
        ]
        size = 0
        for key, data in asked:
            followed, position = self.members.get(key), self.session.asked(key)
            if followed is not None and position is not None:
                self.parts.append(AnsweredPart(followed, position, data))
                size += 0 if data.records is None else len(data.records)
        if not self.session.on_answered(response.session_id):
            self.parts.clear()
            self._fail("it answers in another session than the one asked in", now_ms)
            return
        if self._failures:
            logger.info("what broker %d leads is fetched again", self.key.leader_id)
            self._failures = 0
        if self.rate and size:
            self._tasks.schedule(self._pause, now_ms + size * 1_000 // self.rate)
        self.stir()

    def on_starts(self, asked: list[Followed], response: ListOffsetsResponse, now_ms: int) -> None:
        self._is_busy = False
        if self.is_closed:
            return
        self._failures = 0
        found = {
            (topic.name, one.partition_index): one
            for topic in response.topics
            for one in topic.partitions
        }
        for followed in asked:
            topic = followed.partition.leadership.topic
            one = found.get((topic, wire_index(followed.key)))
            if one is None:
                self._starts.append(AnsweredStart(followed, errors.UNKNOWN_SERVER_ERROR, -1, -1))
            else:
                self._starts.append(
                    AnsweredStart(followed, one.error_code, one.offset, one.leader_epoch)
                )
        self.stir()

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._is_busy = False
        if not self.is_closed:
            self.session.reset()
            self._fail(str(error), now_ms)

    def _fail(self, reason: str, now_ms: int, *, at_once: bool = False) -> None:
        """Pause after a failure; a full fetch follows the pause."""
        self._failures += 1
        if at_once:
            self.stir()
            return
        if self._failures <= 2:
            logger.warning(
                "what broker %d leads is not fetched for now: %s", self.key.leader_id, reason
            )
        pause_ms = self._asker.retry_pause_ms(self._failures)
        self._tasks.schedule(self._pause, now_ms + pause_ms)

    def _go_on(self, now_ms: int) -> None:
        self.stir()


class _Fetch(Exchange[FetchResponse]):
    """Fetch request of the lane's session, built when it leaves."""

    def __init__(self, lane: Lane, terms: ReplicaTerms) -> None:
        super().__init__(api_keys.FETCH, decode_fetch_response, terms.timeout_ms)
        self._lane = lane
        self._terms = terms

    def build(self, version: int) -> FetchRequest:
        return fetch_request(self._terms, self._lane.session)

    def on_response(self, response: FetchResponse, now_ms: int) -> None:
        self._lane.on_fetched(response, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._lane.on_failure(error, now_ms)


class _Starts(Exchange[ListOffsetsResponse]):
    """Question where the leader's logs of some partitions begin."""

    def __init__(self, lane: Lane, terms: ReplicaTerms, asked: list[Followed]) -> None:
        super().__init__(api_keys.LIST_OFFSETS, decode_list_offsets_response, terms.timeout_ms)
        self._lane = lane
        self._asked = asked
        self._request = starts_request(terms, asked)

    def build(self, version: int) -> ListOffsetsRequest:
        return self._request

    def on_response(self, response: ListOffsetsResponse, now_ms: int) -> None:
        self._lane.on_starts(self._asked, response, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._lane.on_failure(error, now_ms)

"""Lane: one link to a leader with one fetch session and one request under way.

The next request leaves when the last answer is taken and what it brought is as durable as it gets:
so an offset that is asked for always says "below it I have everything".
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from tarry.base import errors
from tarry.broker.replication.followed import ASKING, FETCHING, Followed
from tarry.broker.replication.follower_session import FollowerSession, Position, ReplicaKey
from tarry.broker.replication.lane_requests import (
    FetchEnds,
    ReplicaFetch,
    ReplicaTerms,
    StartsQuestion,
)
from tarry.broker.replication.peer_links import PeerLinks
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.link.tasks import Task
from tarry.protocol.messages.fetch import FetchResponse, PartitionData
from tarry.protocol.messages.list_offsets import ListOffsetsResponse

logger = logging.getLogger("tarry.replication")

# A batch came to the leader in one request, and an answer has little else in it.
_OVERHEAD_BYTES: Final = 1 << 20

# The leader has forgotten the session, or never heard of it: a full fetch begins another one.
_SESSION_CODES: Final = (
    errors.FETCH_SESSION_ID_NOT_FOUND,
    errors.INVALID_FETCH_SESSION_EPOCH,
    errors.FETCH_SESSION_TOPIC_ID_ERROR,
)


class LaneKey(NamedTuple):
    """Leader, and whether the lane is for those who are far behind or not in sync."""

    leader_id: int
    is_catching_up: bool


class AnsweredPart(NamedTuple):
    """Part of an answer about one partition, and from where that was asked for."""

    followed: Followed
    position: Position
    data: PartitionData


class Lane:
    """Lane to one leader.  `stir` is called when it may have something to send."""

    def __init__(
        self,
        key: LaneKey,
        address: Address,
        life: int,
        links: PeerLinks,
        terms: ReplicaTerms,
        *,
        answer_bytes_max: int,
        stir: Callable[[Lane], None],
        on_start: Callable[[Followed, int, int], None],
    ) -> None:
        self.key = key
        self.address = address
        # The leader's broker epoch.
        self.life = life
        self.members: dict[ReplicaKey, Followed] = {}
        # Members of the leader's other lane, which go on being asked for there until this one may
        # send: its request may wait at the leader for long.
        self.joining: dict[ReplicaKey, Followed] = {}
        # What the last answer brought and is not taken yet, and what of it is not durable yet.
        self.parts: deque[AnsweredPart] = deque()
        self.awaiting: dict[Followed, None] = {}
        self.session = FollowerSession(terms.partition_bytes_max)
        # Bytes a second that it may take.
        self.rate = 0
        self.is_closed = False
        self._links = links
        self._terms = terms
        self._stir = stir
        self._on_start = on_start
        self._asking: dict[ReplicaKey, Followed] = {}
        self._is_busy = False
        self._failures = 0
        self._pause = Task(self._go_on)
        bytes_max = answer_bytes_max + _OVERHEAD_BYTES
        self._link = links.links.dedicated(key.leader_id, address, bytes_max)

    @property
    def is_at_rest(self) -> bool:
        """Return whether nothing of an answer is left to be taken."""
        return not self.parts and not self.awaiting

    @property
    def is_free(self) -> bool:
        """Return whether the next fetch may leave at once."""
        is_under_way = self._is_busy or self._pause.is_armed or bool(self._asking)
        return self.is_at_rest and not is_under_way and not self.is_closed

    # -- members

    def join(self, followed: Followed) -> None:
        """Take over a member of the leader's other lane as soon as this lane is free."""
        self.joining[followed.key] = followed
        followed.is_joining = True

    def withdraw(self, followed: Followed) -> None:
        """Expect a partition no more."""
        self.joining.pop(followed.key, None)
        followed.is_joining = False

    def add(self, followed: Followed) -> None:
        """Take a partition in; it is asked for as soon as `want` says so."""
        self.members[followed.key] = followed
        followed.lane_key = self.key

    def remove(self, followed: Followed) -> None:
        """Ask for a partition no more; what is under way about it does not count."""
        key = followed.key
        followed.lane_key = None
        del self.members[key]
        self.rest(followed)

    def rest(self, followed: Followed) -> None:
        """Leave a member out of the requests until it is wanted again."""
        self.session.forget(followed.key)
        self._asking.pop(followed.key, None)
        if self.awaiting.pop(followed, self) is None:
            self._stir(self)

    def want(self, followed: Followed) -> None:
        """Ask for a member from where its log ends."""
        followed.state = FETCHING
        self.session.want(followed.key, followed.position())
        if self.awaiting.pop(followed, self) is None or self.is_at_rest:
            self._stir(self)

    def ask_start(self, followed: Followed) -> None:
        """Ask where the leader's log of a member begins."""
        self.rest(followed)
        followed.state = ASKING
        self._asking[followed.key] = followed
        self._stir(self)

    # -- requests

    def maybe_send(self, now_ms: int) -> None:
        """Send the next request if there is one and its time has come."""
        if self.is_closed or self._is_busy or self._pause.is_armed or not self.is_at_rest:
            return
        if self._asking:
            asked = list(self._asking.values())
            self._is_busy = True
            on_starts = partial(self._on_starts, asked)
            self._link.send(StartsQuestion(self._terms, asked, on_starts, self._on_failure), now_ms)
        elif len(self.session):
            self._is_busy = True
            ends = FetchEnds(self._on_fetched, self._on_failure)
            self._link.send(ReplicaFetch(self._terms, self.session, ends), now_ms)
        self._links.carry_out()

    def close(self, reason: str, now_ms: int) -> None:
        """Give the link up; members are to be in another lane before."""
        self.is_closed = True
        self.parts.clear()
        self.awaiting.clear()
        self._links.tasks.cancel(self._pause)
        self._links.links.release(self._link, reason, now_ms)
        self._links.carry_out()

    def reset_session(self) -> None:
        """Begin with a full fetch."""
        self.session.reset()

    # -- answers

    def _on_fetched(self, response: FetchResponse, now_ms: int) -> None:
        self._is_busy = False
        if self.is_closed:
            return
        code = response.error_code
        if code != errors.NONE:
            self.session.reset()
            # The first full fetch may follow at once.
            is_known = code in _SESSION_CODES and self._failures == 0
            self._fail(f"it answers {errors.error_name(code)}", now_ms, at_once=is_known)
            return
        asked: list[tuple[ReplicaKey, PartitionData]] = [
            ((topic.topic_id, data.partition_index), data)
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
            self._links.tasks.schedule(self._pause, now_ms + size * 1_000 // self.rate)
        self._stir(self)

    def _on_starts(self, asked: list[Followed], response: ListOffsetsResponse, now_ms: int) -> None:
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
            if self._asking.pop(followed.key, None) is not followed:
                continue
            one = found.get((followed.partition.topic, followed.partition.index))
            if one is None:
                self._on_start(followed, errors.UNKNOWN_SERVER_ERROR, -1)
            else:
                self._on_start(followed, one.error_code, one.offset)
        self._stir(self)

    def _on_failure(self, error: ClientError, now_ms: int) -> None:
        self._is_busy = False
        if not self.is_closed:
            self.session.reset()
            self._fail(str(error), now_ms)

    def _fail(self, reason: str, now_ms: int, *, at_once: bool = False) -> None:
        """Pause after a failure; then everything that is wanted is asked for in full."""
        self._failures += 1
        if at_once:
            self._stir(self)
            return
        if self._failures <= 2:
            logger.warning(
                "what broker %d leads is not fetched for now: %s", self.key.leader_id, reason
            )
        pause_ms = self._links.links.retry_pause_ms(self._failures)
        self._links.tasks.schedule(self._pause, now_ms + pause_ms)

    def _go_on(self, now_ms: int) -> None:
        self._stir(self)

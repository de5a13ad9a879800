"""Fetch session: the state of a consumer's fetches that a broker keeps (KIP-227).

Inside a session, a fetch names only the partitions that changed, and so does the answer.  The
broker also reads the unchanged partitions, from the fetch offsets that it has; so a partition that
must not be read now has to be forgotten.  A broker that offers no session gets whole fetches.

Any doubt ends a session: an error, a lost connection, or a partition or topic that was replaced.
The next fetch is a whole one, and may begin a new session.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
)
from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.position import PartitionPosition
from tarry.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
# Session epochs of a whole fetch: one that asks for a session, and one that does not.
EPOCH_FIRST: Final = 0
EPOCH_WITHOUT: Final = -1
EPOCH_MAX: Final = 0x7FFF_FFFF

# Error codes of a whole answer that are about the session.
SESSION_ERRORS: Final = (
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR,
)

# After so many broken sessions in a row, the broker has no room: fetch without a session.
FAILURES_MAX: Final = 3


class FetchSession:
    """Session at one broker; `session_id` and `epoch` belong in the next fetch."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = EPOCH_FIRST
        # State at the broker by partition, the positions of these partitions, and the topics' ids.
        self._known: dict[TopicPartition, FetchPartition] = {}
        self._positions: dict[TopicPartition, PartitionPosition] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._has_ids = False
        self._failures = 0

    @property
    def is_open(self) -> bool:
        """True if the next fetch may name only the changed partitions."""
        return self.epoch > EPOCH_FIRST

    def narrow(
        self,
        topics: list[FetchTopic],
        positions: dict[TopicPartition, PartitionPosition],
        *,
        has_ids: bool,
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]] | None:
        """Return the changed partitions and those to forget, and store them as known to the broker;
        None if the fetch must be a whole one."""
        if not self.is_open or has_ids != self._has_ids:
            return None
        known = self._known
        changed: list[FetchTopic] = []
        kept = 0
        for topic in topics:
            name = topic.topic
            if self._topic_ids.get(name, topic.topic_id) != topic.topic_id:
                return None
            part = FetchTopic(name, topic.topic_id)
            for one in topic.partitions:
                place = (name, one.partition)
                old = known.get(place)
                if old is not None:
                    kept += 1
                    if self._positions[place] is not positions[place]:
                        return None
                if old is None or not _is_same(one, old):
                    part.partitions.append(one)
            if part.partitions:
                changed.append(part)
        forgotten = self._forget(positions) if kept < len(known) else []
        self._take(changed, positions)
        return changed, forgotten

    def _forget(self, positions: dict[TopicPartition, PartitionPosition]) -> list[ForgottenTopic]:
        """Remove partitions that are not wanted, and return the request's part that forgets
        them."""
        topics: dict[str, ForgottenTopic] = {}
        for place in list(self._known):
            if place in positions:
                continue
            name, index = place
            topic = topics.get(name)
            if topic is None:
                topic = ForgottenTopic(name, self._topic_ids[name])
                topics[name] = topic
            topic.partitions.append(index)
            del self._known[place]
            del self._positions[place]
        return list(topics.values())

    def _take(
        self, topics: list[FetchTopic], positions: dict[TopicPartition, PartitionPosition]
    ) -> None:
        """Store the partitions as the broker knows them after this fetch."""
        for topic in topics:
            self._topic_ids[topic.topic] = topic.topic_id
            for one in topic.partitions:
                place = (topic.topic, one.partition)
                self._known[place] = one
                self._positions[place] = positions[place]

    # --- Answers

    def on_whole_answer(
        self,
        session_id: int,
        topics: list[FetchTopic],
        positions: dict[TopicPartition, PartitionPosition],
        *,
        has_ids: bool,
    ) -> None:
        """Begin the session of the answer to a whole fetch; session id 0 means no session."""
        self.session_id = NO_SESSION
        if session_id != NO_SESSION and self.epoch != EPOCH_WITHOUT:
            self.session_id = session_id
            self.epoch = EPOCH_FIRST + 1
            self._has_ids = has_ids
            self._take(topics, positions)

    def on_answer(self, session_id: int) -> None:
        """Advance the session after an answer; the broker may have ended it."""
        if session_id != self.session_id:
            self.lose(is_known=False)
            return
        self._failures = 0
        self.epoch = self.epoch + 1 if self.epoch < EPOCH_MAX else EPOCH_FIRST + 1

    def fail(self) -> None:
        """End the session because the broker does not know it, or not in this state."""
        self._failures += 1
        self.lose(is_known=False)
        if self._failures >= FAILURES_MAX:
            self.epoch = EPOCH_WITHOUT

    def lose(self, *, is_known: bool) -> None:
        """End the session; if the broker may still know it (`is_known`), the next fetch closes it
        there."""
        if not is_known:
            self.session_id = NO_SESSION
        if self.epoch != EPOCH_WITHOUT:
            self.epoch = EPOCH_FIRST
        self._known = {}
        self._positions = {}
        self._topic_ids = {}


def _is_same(one: FetchPartition, other: FetchPartition) -> bool:
    return (
        one.fetch_offset == other.fetch_offset
        and one.current_leader_epoch == other.current_leader_epoch
    )

"""Fetch session: what a broker remembers of a consumer's fetches (KIP-227).

Inside a session a fetch names only the partitions that have changed, and so does the answer.  The
broker reads all others as well, from where they were last asked for; so a partition that is not
wanted now has to be forgotten.  A broker that gives no session gets whole fetches.

Any doubt ends a session: an error, a lost connection, a partition or topic that is not the one it
was.  The next fetch is a whole one, and may begin a new session.
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
# Epochs of a whole fetch that asks for a session, and of one that does not.
EPOCH_FIRST: Final = 0
EPOCH_WITHOUT: Final = -1
EPOCH_MAX: Final = 0x7FFF_FFFF

# Codes of a whole answer that concern the session and no partition.
SESSION_ERRORS: Final = (
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR,
)

# A broker that breaks so many sessions in a row has no room for them: each costs a fetch.
FAILURES_MAX: Final = 3


class FetchSession:
    """Session at one broker; `session_id` and `epoch` are those of the next fetch."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = EPOCH_FIRST
        # What the broker has of each partition, whose position that was, and the topics' ids.
        self._known: dict[TopicPartition, FetchPartition] = {}
        self._positions: dict[TopicPartition, PartitionPosition] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._has_ids = False
        self._failures = 0

    @property
    def is_open(self) -> bool:
        """True if the next fetch may name only what has changed."""
        return self.epoch > EPOCH_FIRST

    def narrow(
        self,
        topics: list[FetchTopic],
        positions: dict[TopicPartition, PartitionPosition],
        *,
        has_ids: bool,
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]] | None:
        """Return what a fetch of these partitions has to name, and what the broker has to forget,
        and take it as told; None if the fetch has to be a whole one."""
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
        """Forget what is not wanted, and return the part of a request that says so."""
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
        """Take over what the broker knows from now on."""
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
        """Begin the session that a broker gives in answer to a whole fetch; 0: it gives none."""
        self.session_id = NO_SESSION
        if session_id != NO_SESSION and self.epoch != EPOCH_WITHOUT:
            self.session_id = session_id
            self.epoch = EPOCH_FIRST + 1
            self._has_ids = has_ids
            self._take(topics, positions)

    def on_answer(self, session_id: int) -> None:
        """Go on after a fetch inside the session; a broker may end the session with its answer."""
        if session_id != self.session_id:
            self.lose(is_known=False)
            return
        self._failures = 0
        self.epoch = self.epoch + 1 if self.epoch < EPOCH_MAX else EPOCH_FIRST + 1

    def fail(self) -> None:
        """End the session because the broker says that it is not there, or not so."""
        self._failures += 1
        self.lose(is_known=False)
        if self._failures >= FAILURES_MAX:
            self.epoch = EPOCH_WITHOUT

    def lose(self, *, is_known: bool) -> None:
        """End the session; one that the broker may still know is closed by the next fetch."""
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

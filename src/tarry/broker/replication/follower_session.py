"""A follower's fetch session (KIP-227): what the leader knows of it, and what it has to be told.

A full fetch names every partition and begins a session; those after it name only what has changed,
so a request costs by that and not by the partitions that are followed.  What is too much for one
request comes with those after it.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from tarry.base.limits import PARTITIONS_PER_FETCH_MAX
from tarry.partition.replicated_log import LogKey, wire_index
from tarry.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

# The epoch of a fetch that begins a session.
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 0x7FFF_FFFF

_NO_DIRECTORY: Final = bytes(16)


class Position(NamedTuple):
    """Position from which a partition is asked for, as the leader is to hold it."""

    # Everything below is as durable here as it gets.
    offset: int
    leader_epoch: int
    # Of the last batch, -1 if there is none.
    last_epoch: int
    log_start_offset: int


class FollowerSession:
    """The session of one lane."""

    def __init__(self, partition_bytes_max: int) -> None:
        self._partition_bytes_max = partition_bytes_max
        self.session_id = 0
        self.epoch = INITIAL_EPOCH
        self._wanted: dict[LogKey, Position] = {}
        # What the leader holds once it has the last request.
        self._told: dict[LogKey, Position] = {}
        self._changed: dict[LogKey, None] = {}
        self._forgotten: dict[LogKey, None] = {}
        # Forgotten and wanted again before the next request: to be named anew, however often it is
        # wanted until then.  The leader tells a refusal once.
        self._back: dict[LogKey, None] = {}

    def __len__(self) -> int:
        """Return how many partitions are to be asked for."""
        return len(self._wanted)

    def want(self, key: LogKey, position: Position) -> None:
        """Ask for a partition from here on; one that was forgotten meanwhile is named anew."""
        self._wanted[key] = position
        if key in self._forgotten:
            del self._forgotten[key]
            self._back[key] = None
        if self._told.get(key) == position and key not in self._back:
            self._changed.pop(key, None)
        else:
            self._changed[key] = None

    def forget(self, key: LogKey) -> None:
        """Ask for this partition no more."""
        self._wanted.pop(key, None)
        self._changed.pop(key, None)
        self._back.pop(key, None)
        if key in self._told:
            self._forgotten[key] = None

    def asked(self, key: LogKey) -> Position | None:
        """Return from where the last request asked for a partition; None if it did not."""
        return self._told.get(key)

    def take_topics(
        self, directory_id: bytes = _NO_DIRECTORY
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return what the next request says, which counts as told from now on.

        `directory_id`: with which the follower is registered.
        """
        told, wanted = self._told, self._wanted
        is_full = self.epoch == INITIAL_EPOCH
        if is_full:
            told.clear()
            self._forgotten.clear()
            self._changed = dict.fromkeys(wanted)
        topics: dict[bytes, FetchTopic] = {}
        for key in list(islice(self._changed, PARTITIONS_PER_FETCH_MAX)):
            del self._changed[key]
            self._back.pop(key, None)
            topic_id = key[0]
            position = wanted[key]
            told[key] = position
            if is_full:
                # If the leader keeps no session, the next fetch is full again.  It names first the
                # partitions for which this one has no room.
                wanted[key] = wanted.pop(key)
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id)
            topic.partitions.append(
                FetchPartition(
                    wire_index(key),
                    position.leader_epoch,
                    position.offset,
                    position.last_epoch,
                    position.log_start_offset,
                    self._partition_bytes_max,
                    directory_id,
                )
            )
        return list(topics.values()), self._take_forgotten()

    @property
    def has_untold(self) -> bool:
        """Return whether the next request has more to say than the last one had room for."""
        return len(self._changed) > 0 or len(self._forgotten) > 0

    def _take_forgotten(self) -> list[ForgottenTopic]:
        topics: dict[bytes, ForgottenTopic] = {}
        for key in list(islice(self._forgotten, PARTITIONS_PER_FETCH_MAX)):
            topic_id = key[0]
            del self._forgotten[key]
            del self._told[key]
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = ForgottenTopic(topic_id=topic_id)
            topic.partitions.append(wire_index(key))
        return list(topics.values())

    def on_answered(self, session_id: int) -> bool:
        """Go on to the next epoch; false: the answer is of another session, and nothing of it
        counts."""
        if self.epoch == INITIAL_EPOCH:
            # 0: the leader keeps no session, and the next fetch is a full one again.
            self.session_id = session_id
            self.epoch = INITIAL_EPOCH if session_id == 0 else INITIAL_EPOCH + 1
            return True
        if session_id != self.session_id:
            self.reset()
            return False
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        return True

    def reset(self) -> None:
        """Begin with a full fetch, which ends the session that the leader may still have."""
        self.epoch = INITIAL_EPOCH
        self._told.clear()
        self._changed.clear()
        self._forgotten.clear()

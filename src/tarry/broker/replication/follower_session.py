"""A follower's fetch session (KIP-227): what the leader knows of it, and what it has to be told.

A full fetch names every partition and begins a session; those after it name only what has changed,
so a request costs by that and not by the partitions that are followed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

# The epoch of a fetch that begins a session.
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 0x7FFF_FFFF

_NO_DIRECTORY: Final = bytes(16)

# Topic id and index.
ReplicaKey = tuple[bytes, int]


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
        self._wanted: dict[ReplicaKey, Position] = {}
        # What the leader holds once it has the last request.
        self._told: dict[ReplicaKey, Position] = {}
        self._changed: dict[ReplicaKey, None] = {}
        self._forgotten: dict[ReplicaKey, None] = {}

    def __len__(self) -> int:
        """Return how many partitions are to be asked for."""
        return len(self._wanted)

    def want(self, key: ReplicaKey, position: Position) -> None:
        """Ask for a partition from here on; one that was forgotten meanwhile is named anew."""
        self._wanted[key] = position
        is_back = key in self._forgotten
        self._forgotten.pop(key, None)
        if self._told.get(key) == position and not is_back:
            self._changed.pop(key, None)
        else:
            self._changed[key] = None

    def forget(self, key: ReplicaKey) -> None:
        """Ask for this partition no more."""
        self._wanted.pop(key, None)
        self._changed.pop(key, None)
        if key in self._told:
            self._forgotten[key] = None

    def asked(self, key: ReplicaKey) -> Position | None:
        """Return from where the last request asked for a partition; None if it did not."""
        return self._told.get(key)

    def take_topics(
        self, directory_id: bytes = _NO_DIRECTORY
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return what the next request says, which counts as told from now on.

        `directory_id`: with which the follower is registered.
        """
        told, wanted = self._told, self._wanted
        if self.epoch == INITIAL_EPOCH:
            told.clear()
            self._forgotten.clear()
            keys = list(wanted)
        else:
            keys = list(self._changed)
        self._changed.clear()
        topics: dict[bytes, FetchTopic] = {}
        for key in keys:
            topic_id, index = key
            position = wanted[key]
            told[key] = position
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id)
            topic.partitions.append(
                FetchPartition(
                    index,
                    position.leader_epoch,
                    position.offset,
                    position.last_epoch,
                    position.log_start_offset,
                    self._partition_bytes_max,
                    directory_id,
                )
            )
        return list(topics.values()), self._take_forgotten()

    def _take_forgotten(self) -> list[ForgottenTopic]:
        topics: dict[bytes, ForgottenTopic] = {}
        for key in self._forgotten:
            topic_id, index = key
            del self._told[key]
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = ForgottenTopic(topic_id=topic_id)
            topic.partitions.append(index)
        self._forgotten.clear()
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

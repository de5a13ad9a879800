"""A follower's fetch session (KIP-227): what its leader knows of it, and what it has to be sent.

A full fetch names every partition and begins a session.  Later fetches name only changes, so that a
request costs work for those and not for all followed partitions.  Changes that do not fit into one
request are put into the next ones.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from tarry.base.limits import PARTITIONS_PER_FETCH_MAX
from tarry.partition.replicated_log import LogKey, wire_index
from tarry.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

# Epoch of a fetch that begins a session.
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 0x7FFF_FFFF

_NO_DIRECTORY: Final = bytes(16)


class Position(NamedTuple):
    """Position from which a partition is fetched, as its leader is to know it."""

    # Offset below which everything is as durable here as it gets.
    offset: int
    leader_epoch: int
    # Leader epoch of the last batch; -1 if there is none.
    last_epoch: int
    log_start_offset: int


class FollowerSession:
    """The fetch session of one lane."""

    def __init__(self, partition_bytes_max: int) -> None:
        self._partition_bytes_max = partition_bytes_max
        self.session_id = 0
        self.epoch = INITIAL_EPOCH
        self._wanted: dict[LogKey, Position] = {}
        # Positions that the leader knows once it has the last request.
        self._told: dict[LogKey, Position] = {}
        self._changed: dict[LogKey, None] = {}
        self._forgotten: dict[LogKey, None] = {}
        # Partitions that were forgotten and wanted again before the next request.  That request
        # names them even if their position is unchanged: the leader reports a refusal only once.
        self._back: dict[LogKey, None] = {}

    def __len__(self) -> int:
        """Return the number of wanted partitions."""
        return len(self._wanted)

    def want(self, key: LogKey, position: Position) -> None:
        """Ask for a partition from this position; name it again if it was forgotten meanwhile."""
        self._wanted[key] = position
        if key in self._forgotten:
            del self._forgotten[key]
            self._back[key] = None
        if self._told.get(key) == position and key not in self._back:
            self._changed.pop(key, None)
        else:
            self._changed[key] = None

    def forget(self, key: LogKey) -> None:
        """Stop asking for this partition."""
        self._wanted.pop(key, None)
        self._changed.pop(key, None)
        self._back.pop(key, None)
        if key in self._told:
            self._forgotten[key] = None

    def asked(self, key: LogKey) -> Position | None:
        """Return the position from which the last request asked for a partition; None if it did
        not.
        """
        return self._told.get(key)

    def take_topics(
        self, directory_id: bytes = _NO_DIRECTORY
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """Return the content of the next request, which counts as known to the leader from now on.

        `directory_id` is the id of the directory with which the follower is registered.
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
                # If the leader keeps no session, the next fetch is full again.  It begins with the
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
        """Return whether changes are left for which the last request had no room."""
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
        """Advance to the next epoch; return false if the answer is of another session and must be
        ignored.
        """
        if self.epoch == INITIAL_EPOCH:
            # Session id 0 means that the leader keeps no session, so the next fetch is full again.
            self.session_id = session_id
            self.epoch = INITIAL_EPOCH if session_id == 0 else INITIAL_EPOCH + 1
            return True
        if session_id != self.session_id:
            self.reset()
            return False
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        return True

    def reset(self) -> None:
        """Begin again with a full fetch, which ends the session that the leader may still have."""
        self.epoch = INITIAL_EPOCH
        self._told.clear()
        self._changed.clear()
        self._forgotten.clear()

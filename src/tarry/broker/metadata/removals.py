"""Directories of deleted topics on their way out.

They are renamed first and removed outside the turn.  When the renames are durable a record says
so, which frees the topic's name; until then a restart finishes the deletion.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from tarry.base.errors import StorageError
from tarry.broker.flushes import Flushes
from tarry.broker.metadata.retries import Retries
from tarry.broker.topics import Topics
from tarry.cluster.decisions.topic_decisions import RemoveTopic
from tarry.cluster.state.state import DeletedTopic
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore
from tarry.log.identity import LogIdentity
from tarry.log.logs import Logs
from tarry.log.segment import LOG_SUFFIX

logger = logging.getLogger("tarry.broker")

# Partitions of deleted topics whose directories are renamed in one turn: some 35 µs for each.
RENAMED_PER_TURN: Final = 100

# A directory of this name was given up; nothing else gets it.
DELETED_SUFFIX: Final = "-delete"

# Directory of a companion log.  A partition's ends in its number.
COMPANION_SUFFIX: Final = ".schedule"
# With a longer name of its topic a companion log's directory would have no file name.
_TOPIC_LENGTH_MAX: Final = 180


def partition_directory(topic: str, index: int) -> str:
    """Return Kafka's name for the directory of a partition."""
    return f"{topic}-{index}"


def companion_directory(topic: str, index: int, topic_id: bytes) -> str:
    """Return the name for the directory of a partition's companion log."""
    if len(topic) > _TOPIC_LENGTH_MAX:
        topic = f"{topic[:_TOPIC_LENGTH_MAX]}.{topic_id.hex()}"
    return f"{topic}-{index}{COMPANION_SUFFIX}"


def log_directories(topic: str, index: int, topic_id: bytes) -> list[str]:
    """Return the names for the directories that a partition may have: a log's each."""
    return [partition_directory(topic, index), companion_directory(topic, index, topic_id)]


def deleted_directory(directory: str, topic_id: bytes, number: int = 0) -> str:
    """Return the name under which a deleted directory waits for its removal.

    The name is cut so that the whole stays a file name; the id and what is behind the topic's name
    keep it unique.
    """
    topic, _, last = directory.rpartition("-")
    more = f".{number}" if number else ""
    return f"{topic[:_TOPIC_LENGTH_MAX]}-{last}.{topic_id.hex()}{more}{DELETED_SUFFIX}"


class Removals:
    """Renames and removes the directories of deleted topics; what the disk refuses comes later."""

    def __init__(
        self,
        broker_id: int,
        store: MetadataStore,
        topics: Topics,
        logs: Logs,
        flushes: Flushes,
        retries: Retries,
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._topics = topics
        self._logs = logs
        self._flushes = flushes
        self._retries = retries
        # Deleted topics whose directories are still to be renamed, with the next partition's index.
        self._unrenamed: dict[DeletedTopic, int] = {}

    def remove_leftovers(self) -> None:
        """Remove at start the given-up directories whose removal a power loss undid."""
        disk = self._logs.disk
        for path in disk.paths():
            if path.endswith(f"{DELETED_SUFFIX}/"):
                disk.begin_remove(path[:-1])

    def give_up_replica(self, topic: str, index: int, topic_id: bytes) -> None:
        """Remove the directories of a replica that a row has taken from this broker."""
        try:
            self.move_replica_away(topic, index, topic_id)
        except StorageError as error:
            name = partition_directory(topic, index)
            self._logs.trouble.report(f"{name} cannot be removed yet", error)
            again = partial(self._give_up_again, topic, index, topic_id)
            self._retries.later(again)

    def _give_up_again(self, topic: str, index: int, topic_id: bytes) -> None:
        hosted = self._topics.with_id(topic_id)
        # The replica may have come back meanwhile, which has moved the directory away by itself.
        if hosted is None or hosted.replica(index) is None:
            self.give_up_replica(topic, index, topic_id)

    def move_replica_away(self, topic: str, index: int, topic_id: bytes) -> None:
        """Rename the directories of a replica that is none any more, and have them removed.

        Harmless if there is none, or if it is another topic's, or does not say whose data it has.
        """
        for directory in log_directories(topic, index, topic_id):
            self._move_away(directory, topic_id)

    def _move_away(self, directory: str, topic_id: bytes) -> None:
        disk = self._logs.disk
        if not disk.exists(directory):
            return
        identity = LogIdentity(directory, topic_id)
        has_data = any(path.endswith(LOG_SUFFIX) for path in disk.paths(directory))
        if identity.read(disk) != identity.text and has_data:
            return
        number = 0
        self._logs.forget_directory(directory)
        away = deleted_directory(directory, topic_id)
        while disk.exists(away):
            # An earlier one is still being removed.
            number += 1
            away = deleted_directory(directory, topic_id, number)
        disk.rename(directory, away)
        logger.info("%s: this broker has no replica of it any more", directory)
        disk.begin_remove(away)

    def remove(self, deleted: DeletedTopic) -> None:
        """Have what is left of a deleted topic renamed and removed; harmless if nothing is."""
        self._unrenamed[deleted] = 0

    def has_work_left(self) -> bool:
        return len(self._unrenamed) > 0

    def step(self) -> None:
        """Go on with the deletions; of many directories some are renamed in this turn."""
        left = RENAMED_PER_TURN
        while self._unrenamed and left > 0:
            deleted = next(iter(self._unrenamed))
            first = self._unrenamed.pop(deleted)
            end = min(first + left, deleted.partition_count)
            left -= max(end - first, 1)
            try:
                self._rename(deleted, range(first, end))
                if end < deleted.partition_count:
                    self._unrenamed[deleted] = end
                    continue
                flush_id = self._logs.disk.begin_flush([], [""])
            except StorageError as error:
                # Its name stays taken until the directories are away.
                self._logs.trouble.report(f"topic {deleted.name} cannot be removed yet", error)
                self._retries.later(partial(self._remove_again, deleted))
                continue
            self._flushes.then(flush_id, partial(self._on_renamed, deleted.topic_id))

    def on_refused(self, change: Change) -> None:
        """Record later that the directories of a topic are gone."""
        if isinstance(change, RemoveTopic):
            again = RemoveTopic(change.topic_id, self._broker_id)
            self._retries.later(partial(self._store.change, again))

    def _remove_again(self, deleted: DeletedTopic) -> None:
        if deleted.topic_id in self._store.state.deleted_topics:
            self.remove(deleted)

    def _rename(self, deleted: DeletedTopic, indexes: range) -> None:
        """Rename the directories of these partitions, and have them removed."""
        disk = self._logs.disk
        is_recreated = deleted.name in self._topics
        for index in indexes:
            for directory in log_directories(deleted.name, index, deleted.topic_id):
                away = deleted_directory(directory, deleted.topic_id)
                if not is_recreated and disk.exists(directory):
                    disk.rename(directory, away)
                    disk.begin_remove(away)
                elif disk.exists(away):
                    disk.begin_remove(away)

    def _on_renamed(self, topic_id: bytes, flush_id: int) -> None:
        self._store.change(RemoveTopic(topic_id, self._broker_id))

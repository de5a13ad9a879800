"""Directories of deleted topics on their way to removal.

They are renamed first, and removed outside the turn.  When the renames are durable, a record frees
the topic's name.  If the broker stops before that, its next start finishes the deletion.
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

# Number of partitions of deleted topics whose directories are renamed in a turn: each takes 35 µs.
RENAMED_PER_TURN: Final = 100

# End of the name of a given-up directory; no other directory has it.
DELETED_SUFFIX: Final = "-delete"

# End of the name of a companion log's directory; a partition's directory ends in its number.
COMPANION_SUFFIX: Final = ".schedule"
# A longer topic name is cut, so that the directory's name stays within the file system's limit.
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
    """Return the names of the directories that a partition may have, one for each log."""
    return [partition_directory(topic, index), companion_directory(topic, index, topic_id)]


def deleted_directory(directory: str, topic_id: bytes, number: int = 0) -> str:
    """Return the name under which a deleted directory waits for its removal.

    A long topic name is cut, so that the name stays a file name; the topic's id and the end of the
    directory's name keep it unique.
    """
    topic, _, last = directory.rpartition("-")
    more = f".{number}" if number else ""
    return f"{topic[:_TOPIC_LENGTH_MAX]}-{last}.{topic_id.hex()}{more}{DELETED_SUFFIX}"


class Removals:
    """Renames and removals of the directories of deleted topics; what the disk refuses is
    retried.
    """

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
        # Deleted topics whose directories are not all renamed, each with the index of the next
        # partition.
        self._unrenamed: dict[DeletedTopic, int] = {}

    def remove_leftovers(self) -> None:
        """Remove given-up directories at a start that a loss of power has left."""
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
        # A replica that has come back meanwhile has moved the directory away itself.
        if hosted is None or hosted.replica(index) is None:
            self.give_up_replica(topic, index, topic_id)

    def move_replica_away(self, topic: str, index: int, topic_id: bytes) -> None:
        """Rename the directories of a replica that is given up, and begin their removal.

        Does nothing if a directory is missing, belongs to another topic, or has data without an
        owner.
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
            # An earlier directory of this name is still being removed.
            number += 1
            away = deleted_directory(directory, topic_id, number)
        disk.rename(directory, away)
        logger.info("%s: this broker has no replica of it any more", directory)
        disk.begin_remove(away)

    def remove(self, deleted: DeletedTopic) -> None:
        """Rename and remove the remaining directories of a deleted topic in the next turns."""
        self._unrenamed[deleted] = 0

    def has_work_left(self) -> bool:
        return len(self._unrenamed) > 0

    def step(self) -> None:
        """Continue with the deletions: rename some directories in this turn."""
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
                # The topic's name stays taken until its directories are renamed.
                self._logs.trouble.report(f"topic {deleted.name} cannot be removed yet", error)
                self._retries.later(partial(self._remove_again, deleted))
                continue
            self._flushes.then(flush_id, partial(self._on_renamed, deleted.topic_id))

    def on_refused(self, change: Change) -> None:
        """Ask again later for the record that the directories of a topic are gone."""
        if isinstance(change, RemoveTopic):
            again = RemoveTopic(change.topic_id, self._broker_id)
            self._retries.later(partial(self._store.change, again))

    def _remove_again(self, deleted: DeletedTopic) -> None:
        if deleted.topic_id in self._store.state.deleted_topics:
            self.remove(deleted)

    def _rename(self, deleted: DeletedTopic, indexes: range) -> None:
        """Rename the directories of these partitions, and begin their removal."""
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

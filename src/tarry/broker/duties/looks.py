"""Looks at logs for compaction: the seam between `Compactions` and the kinds of logs.

`KeyedLooks` is for the records of compacted topics.  `CompanionLooks` is for companion logs.
"""

from __future__ import annotations

from tarry.log.compaction.cleanable import Cleanable
from tarry.log.compaction.compaction import Compaction
from tarry.partition.replicated_log import ReplicatedLog


class LogLooks:
    """Contract of what `Compactions` asks about logs of one kind."""

    def cleanable(self, partition: ReplicatedLog) -> Cleanable | None:
        """Return the part of a log that can be compacted; None if the log is not due.  Raises
        `Flaw` and `StorageError`.
        """
        raise NotImplementedError

    def begin(self, partition: ReplicatedLog, cleanable: Cleanable) -> Compaction:
        """Begin the compaction of this part of a log."""
        raise NotImplementedError

    def is_for_nothing(self, partition: ReplicatedLog) -> bool:
        """Return whether the compaction of a log that has begun is not wanted any more."""
        raise NotImplementedError

    def end(self, partition: ReplicatedLog, compaction: Compaction) -> None:
        """Note that the compaction of a log is done or abandoned."""
        raise NotImplementedError

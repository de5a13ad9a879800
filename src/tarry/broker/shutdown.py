"""The end of a broker: asked for and clean, or because of a failure.

Nothing new is taken from the request on; when everything is durable and answered, the logs are
closed and marked.  That may wait for the disk, as `lifecycle` does: nobody is served any more.
Hot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tarry.base.errors import StorageError
from tarry.broker.answers import Answers
from tarry.broker.flushes import Flushes
from tarry.broker.part import Parts
from tarry.broker.topics import Topics
from tarry.log.logs import Logs

logger = logging.getLogger("tarry.broker")

# A stopping broker waits so long for flushes and for peers that take their answers.  Closing their
# connections takes the runtime a second more, and all of it is to be done in five.
STOP_MS_MAX: Final = 3_500

# A broker that has failed waits so long until the others can know it.
PARTING_MS_MAX: Final = 1_000


class Shutdown:
    """Shutdown of the broker, under way or done.  `reason` is "" after a clean end."""

    def __init__(
        self, answers: Answers, parts: Parts, flushes: Flushes, topics: Topics, logs: Logs
    ) -> None:
        self._answers = answers
        self._parts = parts
        self._flushes = flushes
        self._topics = topics
        self._logs = logs
        self._deadline_ms = 0
        # In a cluster: tells the others, and whether they know it.
        self.leave: Callable[[], bool] = _is_alone
        self.is_begun = False
        self.is_over = False
        # It was not asked for.
        self._has_failed = False
        # In a cluster: nothing is done any more but to tell the others, until then at most.
        self.is_parting = False
        self.parting_due_ms = 0
        self.reason = ""

    def begin(self) -> None:
        """Take nothing new and answer what waits."""
        if self.is_begun:
            return
        self.is_begun = True
        self._deadline_ms = self._answers.turn.now_ms + STOP_MS_MAX
        self._answers.transport.stop_listening()
        self._parts.stop()

    def fail(self, reason: str) -> None:
        """Stop at once, without the clean marker: nothing more is answered."""
        logger.critical("%s", reason)
        self.is_begun = True
        self._has_failed = True
        self._answers.transport.stop_listening()
        self._end(reason)

    def part(self, now_ms: int) -> None:
        """Tell the others, now that nothing is done any more; called again while `is_parting`.

        After a stop they know.  A broker that has failed waits for a moment until etcd does, so
        that nobody has to wait for its lease.  It has left no replicas in sync: what it told them
        to be on its disk is there, as after a crash.
        """
        if not self.is_parting:
            self.parting_due_ms = now_ms + PARTING_MS_MAX
        is_waiting = not self.leave() and self._has_failed
        self.is_parting = is_waiting and now_ms < self.parting_due_ms

    def fail_flush(self, error: str) -> None:
        """Stop because a flush has failed.

        fsync may have dropped the pages that it could not write: trying again would prove
        nothing, so the broker stops and recovery decides what is there.
        """
        self.fail(
            f"a flush failed ({error}); what was not flushed may be lost, so the broker "
            "stops; check the disk and start it again"
        )

    def maybe_finish(self) -> None:
        """Mark the clean end once everything is durable and answered, or time is up."""
        if not self.is_begun or self.is_over:
            return
        is_late = self._answers.turn.now_ms >= self._deadline_ms
        if not is_late and not (self._is_at_rest() and self.leave()):
            return
        if not self._flushes.is_idle():
            self._end("the disk did not finish a flush in time; the next start scans what it left")
            return
        for partition in self._topics.replicas():
            partition.producers.settle()
        try:
            self._logs.close_cleanly()
        except StorageError as error:
            self._end(
                f"the clean end could not be written ({error}); the next start scans the logs"
            )
            return
        self._end("")

    def _is_at_rest(self) -> bool:
        if not self._flushes.is_idle() or self._parts.has_work_left():
            return False
        return not self._answers.is_any_waiting()

    def _end(self, reason: str) -> None:
        self.reason = reason
        self.is_over = True


def _is_alone() -> bool:
    return True

"""The end of a broker: a clean stop that was asked for, or a stop because of a failure.

From the request on the broker takes nothing new.  When everything is durable and answered, the logs
are closed and marked as clean.  Closing may wait for the disk, as a start may: no client is served
then.
Hot.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.errors import StorageError
from tarry.broker.answers import Answers
from tarry.broker.flushes import Flushes
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.part import Parts
from tarry.broker.topics import Topics
from tarry.log.logs import Logs

logger = logging.getLogger("tarry.broker")

# Time that a stopping broker gives its peers to take answers, and etcd to answer.
STOP_MS_MAX: Final = 3_500

# Time that a stopping broker gives the disk to finish a flush.  A less patient supervisor kills the
# broker, which costs no more than giving up: either way the next start scans the logs.
FLUSH_MS_MAX: Final = 20_000

# Longest time for which a failed broker waits until the other brokers can know of its end.
PARTING_MS_MAX: Final = 1_000


class Shutdown:
    """Shutdown of the broker, under way or done.  `reason` is "" after a clean end."""

    def __init__(
        self,
        answers: Answers,
        parts: Parts,
        flushes: Flushes,
        topics: Topics,
        logs: Logs,
        neighbours: Neighbours,
    ) -> None:
        self._neighbours = neighbours
        self._answers = answers
        self._parts = parts
        self._flushes = flushes
        self._topics = topics
        self._logs = logs
        self._deadline_ms = 0
        self._is_waiting_for_flush = False
        self.is_begun = False
        self.is_over = False
        # True if the stop was not asked for.
        self._has_failed = False
        # True in a cluster while the broker only waits for others to know of its end; and until
        # when.
        self.is_parting = False
        self.parting_due_ms = 0
        self.reason = ""

    def begin(self) -> None:
        """Take nothing new, and answer the requests that wait."""
        if self.is_begun:
            return
        self.is_begun = True
        self._deadline_ms = self._answers.turn.now_ms + STOP_MS_MAX
        self._answers.transport.stop_listening()
        self._parts.stop()

    def fail(self, reason: str) -> None:
        """Stop at once, without the clean marker and without further answers."""
        logger.critical("%s", reason)
        self.is_begun = True
        self._has_failed = True
        self._answers.transport.stop_listening()
        self._end(reason)

    def part(self, now_ms: int) -> None:
        """End the life, now that the broker does nothing more; called again while `is_parting`.

        After a clean stop etcd knows it already.  A failed broker waits a moment until etcd does,
        so that other brokers need not wait for its lease.  It stays in the isr of its partitions:
        what it reported as flushed is on its disk, as after a crash.
        """
        if not self.is_parting:
            self.parting_due_ms = now_ms + PARTING_MS_MAX
        is_waiting = not self._neighbours.leave() and self._has_failed
        self.is_parting = is_waiting and now_ms < self.parting_due_ms

    def fail_flush(self, error: str) -> None:
        """Stop because a flush has failed.

        fsync may have dropped the pages that it could not write, so another try would prove
        nothing.  The next start's recovery decides what the logs hold.
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
        if not is_late and not (self._is_at_rest() and self._neighbours.leave()):
            return
        if not self._flushes.is_idle():
            self._wait_for_flush()
            return
        for log in self._topics.logs():
            log.producers.settle()
        try:
            self._logs.close_cleanly()
        except StorageError as error:
            self._end(
                f"the clean end could not be written ({error}); the next start scans the logs"
            )
            return
        self._end("")

    def _wait_for_flush(self) -> None:
        """Wait for the flush under way; give up after a time in which even a slow disk would have
        finished.
        """
        if self._answers.turn.now_ms >= self._deadline_ms + FLUSH_MS_MAX:
            self._end("the disk did not finish a flush in time; the next start scans what it left")
        elif not self._is_waiting_for_flush:
            self._is_waiting_for_flush = True
            # The broker copies nothing any more, so other brokers need not keep it in sync until
            # its lease ends.
            self._neighbours.leave()
            logger.warning(
                "stopping: the disk has not finished a flush for %.1f s; waiting for it, at most "
                "%d s more",
                STOP_MS_MAX / 1000,
                FLUSH_MS_MAX // 1000,
            )

    def _is_at_rest(self) -> bool:
        if not self._flushes.is_idle() or self._parts.has_work_left():
            return False
        return not self._answers.is_any_waiting()

    def _end(self, reason: str) -> None:
        self.reason = reason
        self.is_over = True

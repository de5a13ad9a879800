"""Closing: the steps by which a consumer with a group ends.

First `on_revoked` is called, then finished records are committed, then the member leaves the group.
All steps share the time of the close, callbacks included; requests that are late by then are sent
without waiting for their answers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tarry.client.core.group.offsets.commit import Commit
from tarry.client.core.operation import Callback, Done, Operation, UserEvent, Wait

if TYPE_CHECKING:
    from tarry.client.core.group.consumer import GroupConsumerCore

log = logging.getLogger("tarry.client")


class Closing(Operation[None]):
    """Operation of one close.

    An exception of a callback is raised at the end, after the leave; the last commit is left out
    then.
    """

    def __init__(self, core: GroupConsumerCore, *, leaves: bool, even_static: bool) -> None:
        super().__init__(core.operations)
        # The last automatic commit, once it has begun.
        self.commit: Commit | None = None
        self._core = core
        self._leaves = leaves
        self._even_static = even_static
        self._event: UserEvent | None = None
        self._error: Exception | None = None
        self._has_told = False
        self._has_left = False

    def look(self, now_ms: int) -> bool:
        if self.is_late or not self._has_told or self._core.committer.outcomes:
            return True
        if self._has_left:
            return self._core.membership.leaving.is_answered
        return self._core.committer.is_idle

    def step(self, now_ms: int) -> Done[None] | Callback | Wait:
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        core = self._core
        if not self._has_told:
            told = self._tell(now_ms)
            if told is not None:
                return told
        leaves_now = not self._has_left and (self.is_late or core.committer.is_idle)
        if leaves_now:
            self._leave(now_ms)
        if core.committer.outcomes:
            return self._call(core.committer.outcomes.popleft())
        is_answered = self._has_left and core.membership.leaving.is_answered
        if not is_answered and (leaves_now or not self.is_late):
            # One turn is needed to send the leave, even if the time is up.
            return self.wait()
        if not is_answered:
            log.warning("the coordinator did not answer to the leave within %d ms", self.timeout_ms)
        if self._error is not None:
            raise self._error
        return Done(None)

    def _tell(self, now_ms: int) -> Callback | None:
        """Return the callback for the owned partitions once; then begin the last commit, and return
        None."""
        core = self._core
        if self._event is None:
            event = core.begin_last_event()
            if event is not None:
                return self._call(event)
        self._has_told = True
        if core.has_group and core.consumer_settings.auto_commit and self._error is None:
            self.commit = core.begin_auto_commit(now_ms)
        return None

    def _call(self, event: UserEvent) -> Callback:
        self._event = event
        self._core.begin_callback(event)
        return Callback(event)

    def end_callback(self, now_ms: int, error: Exception | None = None) -> None:
        self._core.end_callback()
        if self._error is None:
            self._error = error

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        self._core.end_callback()
        self._core.end_event()

    def _leave(self, now_ms: int) -> None:
        self._has_left = True
        committer = self._core.committer
        committer.give_up_all(committer.late_error(self.timeout_ms))
        if self.commit is not None and self.commit.error is not None:
            log.warning("the last commit failed: %s", self.commit.error)
        if self._leaves:
            self._core.leave("the consumer was closed", now_ms, even_static=self._even_static)

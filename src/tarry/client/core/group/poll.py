"""Poll: the steps between a user's call for records and its result.

The events of the group come first, with one callback after the other; revoked partitions are
committed before their callback.  Then come errors, then records.  An error that was raised before
and still holds is raised again if there is nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from tarry.client.core.group.events import REVOKED, GroupEvent
from tarry.client.core.group.offsets.commit import Commit
from tarry.client.core.operation import Callback, Done, Operation, UserEvent, Wait

if TYPE_CHECKING:
    from tarry.client.core.group.consumer import GroupConsumerCore

log = logging.getLogger("tarry.client")

# Time without news after which an error that was raised before is raised again.
STANDING_MS_MAX: Final = 1_000


Group = TypeVar("Group")


class Poll(Operation[list[Group]]):
    """Operation of one poll; `Done` has the result of `take`: records by partition, or runs of
    rows.  It is empty if the time is up or the poll was woken.

    After `Done` with records, the operation may be stepped again for more records.
    """

    def __init__(self, core: GroupConsumerCore, take: Callable[[int], list[Group]]) -> None:
        super().__init__(core.operations)
        # Commit before the callback of a revocation: in flight, or the last one.
        self.commit: Commit | None = None
        self._core = core
        self._take = take
        self._event: UserEvent | None = None

    def look(self, now_ms: int) -> bool:
        if self._event is not None:
            return self.commit is None or self.commit.is_done
        return self._core.is_woken or self._core.has_news(now_ms)

    def step(self, now_ms: int) -> Done[list[Group]] | Callback | Wait:
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        core = self._core
        told = self._tell(now_ms)
        if told is not None:
            return told
        error = core.membership.take_error()
        if error is not None:
            raise error.with_traceback(None)
        groups = self._take(now_ms)
        if groups:
            return Done(groups)
        standing = core.standing_error(now_ms)
        if core.is_woken:
            return Done([])
        if self.is_late:
            if standing is not None:
                raise standing.with_traceback(None)
            return Done([])
        if standing is not None:
            self.operations.set_deadline(self, STANDING_MS_MAX, now_ms)
        return self.wait()

    def _tell(self, now_ms: int) -> Callback | Wait | None:
        """Return the next callback, the wait for the commit before it, or None."""
        core = self._core
        if self._event is None:
            self._event = core.begin_event()
            if self._event is None:
                return None
            self.commit = None
            is_revoked = isinstance(self._event, GroupEvent) and self._event.kind == REVOKED
            if is_revoked and core.consumer_settings.auto_commit:
                self.commit = core.begin_auto_commit(now_ms)
        if self.commit is not None and not self.commit.is_done:
            return self.wait()
        if self.commit is not None and self.commit.error is not None:
            log.warning("the last commit failed: %s", self.commit.error)
        core.begin_callback(self._event)
        core.membership.begin_callback(self._event.callback, now_ms)
        return Callback(self._event)

    def end_callback(self, now_ms: int, error: Exception | None = None) -> None:
        self._event = None
        self._core.end_callback()
        self._core.membership.end_callback()
        self._core.end_event()
        if error is not None:
            raise error

    def end(self, now_ms: int) -> None:
        super().end(now_ms)
        if self._event is not None and self._core.told is None:
            # The commit before the callback was in flight: the next poll begins the event again.
            self._event = None
            self._core.membership.ownership.put_back()
        elif self._event is not None:
            self.end_callback(now_ms)
        self._core.end_poll(now_ms)

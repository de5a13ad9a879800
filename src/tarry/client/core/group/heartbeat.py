"""Heartbeat: requests that keep a member's session alive, and the limit of the time between two
polls of its user.

There is one task and the flag `in_flight`, so that there is never a second heartbeat in flight.
After each new generation the heartbeats come after 100, 200, 400 ms and so on up to the interval: a
member that joins right after it is noticed in a tenth of a second instead of three seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from tarry.client.core.group.coordinator import CoordinatorFinder
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.core.group.requests import heartbeat_request
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.link.tasks import Task, Tasks
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.heartbeat import HeartbeatResponse, decode_heartbeat_response

log = logging.getLogger("tarry.client")

RAMP_MS_FIRST: Final = 100


class HeartbeatOwner(Protocol):
    """Member that sends the heartbeats."""

    def identity(self) -> GroupIdentity: ...

    def may_beat(self) -> bool: ...

    def on_beat(self, code: int, who: GroupIdentity, now_ms: int) -> None:
        """Handle the answer to a heartbeat that was sent as `who`."""

    def on_beat_failed(self, error: ClientError, who: GroupIdentity, now_ms: int) -> None: ...


class Heartbeat:
    """Heartbeats of one member, sent between `begin` and `stop`."""

    def __init__(
        self, settings: ConsumerSettings, coordinator: CoordinatorFinder, owner: HeartbeatOwner
    ) -> None:
        self.in_flight = False
        self.sent_ms = 0
        self._coordinator = coordinator
        self.owner = owner
        self._tasks = coordinator.connections.tasks
        self._timeout_ms = min(settings.request_timeout_ms, settings.session_timeout_ms)
        self._interval_ms = settings.heartbeat_interval_ms
        ramp_ms = min(RAMP_MS_FIRST, self._interval_ms)
        self._first_ms = ramp_ms if settings.heartbeat_ramp else self._interval_ms
        self._pause_ms = self._interval_ms
        self.is_on = False
        self._task = Task(self._on_due)

    @property
    def due_ms(self) -> int | None:
        """Deadline of the next heartbeat on the monotonic clock; None if there is none, or if one
        is in flight."""
        return self._task.deadline_ms if self._task.is_armed else None

    def begin(self, now_ms: int) -> None:
        """Begin the heartbeats of a new generation; the first is due after the first pause."""
        self.is_on = True
        self._pause_ms = self._first_ms
        self._arm(now_ms + self._pause_ms)

    def beat_now(self, now_ms: int) -> None:
        """Send a heartbeat as soon as none is in flight, then continue at the interval."""
        self.is_on = True
        self._arm(now_ms)

    def stop(self) -> None:
        """Stop the heartbeats; the owner decides what the answer to one in flight means."""
        self.is_on = False
        self._tasks.cancel(self._task)

    def _arm(self, deadline_ms: int) -> None:
        if not self.in_flight:
            self._tasks.schedule(self._task, deadline_ms)

    def _on_due(self, now_ms: int) -> None:
        if not self.is_on or self.in_flight or not self.owner.may_beat():
            return
        self.in_flight = True
        self.sent_ms = now_ms
        self._pause_ms = min(2 * self._pause_ms, self._interval_ms)
        self._coordinator.send(_Beat(self, self.owner.identity(), self._timeout_ms), now_ms)

    def on_over(self, now_ms: int) -> None:
        """Note that the heartbeat in flight was answered or failed."""
        self.in_flight = False
        if self.is_on:
            self._arm(max(now_ms, self.sent_ms + self._pause_ms))


class PollLimit:
    """Limit of the time in which the user must poll again or return from a callback
    (`max.poll.interval.ms`), between `begin` and `end`; `when_over` is called with a reason to
    leave.

    Without it, heartbeats would keep the partitions of a user that hangs.
    """

    def __init__(
        self, settings: ConsumerSettings, tasks: Tasks, when_over: Callable[[str, int], None]
    ) -> None:
        self.task = Task(self._on_over)
        self._settings = settings
        self._tasks = tasks
        self._when_over = when_over
        # Name of the running callback; empty between two polls.
        self._callback = ""

    def begin(self, now_ms: int, callback: str) -> None:
        self._callback = callback
        self._tasks.schedule(self.task, now_ms + self._settings.poll_interval_ms_max)

    def end(self) -> None:
        self._tasks.cancel(self.task)

    def _on_over(self, now_ms: int) -> None:
        limit_ms = self._settings.poll_interval_ms_max
        if self._callback:
            reason = f"{self._callback} did not return for {limit_ms} ms"
            advice = "do less in it or allow more time"
        else:
            reason = f"no poll for {limit_ms} ms"
            advice = "take fewer records at a time (max.poll.records) or allow more time"
        log.warning(
            "group %s: %s (max.poll.interval.ms), so this member leaves the group; %s",
            self._settings.group_id, reason, advice,
        )  # fmt: skip
        self._when_over(reason, now_ms)


class _Beat(Exchange[HeartbeatResponse]):
    """Exchange of one heartbeat, sent as `who`."""

    def __init__(self, heartbeat: Heartbeat, who: GroupIdentity, timeout_ms: int) -> None:
        super().__init__(api_keys.HEARTBEAT, decode_heartbeat_response, timeout_ms)
        self.heartbeat = heartbeat
        self.who = who

    def build(self, version: int) -> Message:
        return heartbeat_request(self.who, version)

    def on_response(self, response: HeartbeatResponse, now_ms: int) -> None:
        self.heartbeat.on_over(now_ms)
        self.heartbeat.owner.on_beat(int(response.error_code), self.who, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.heartbeat.on_over(now_ms)
        self.heartbeat.owner.on_beat_failed(error, self.who, now_ms)

"""The client's core: one deterministic object that is turned, like the broker.

    outputs = core.turn(events, now_ms, now_wall_ms);  wait until core.next_due_ms() at most

A turn handles the events, runs the tasks that are due, and sends the requests that may leave.  It
never waits, reads no clock and calls no code outside; two runs with the same calls give the same
outputs.  Producers, consumers and admin clients add their own parts to this core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tarry.base.doors import Random
from tarry.base.limits import STALL_MS
from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Metadata
from tarry.client.core.operation import ErrandOperation, Notice, Operations
from tarry.client.core.outgoing import check_topic
from tarry.client.core.refresh import Refresh
from tarry.client.core.reminder import Reminder
from tarry.client.core.routing import Routing
from tarry.client.core.topic_query import TopicQuery
from tarry.client.errors import ClientClosed
from tarry.client.settings import ClientSettings
from tarry.link.errand import A, Call, Errand, Errands, Steps
from tarry.link.errors import ClientError, timed_out
from tarry.link.events import LinkEvent, Output
from tarry.link.tasks import Tasks


class ClientCore:
    """Core of every client: connections, metadata, tasks, calls, operations; and the turn.

    Between turns a user may begin operations and give the core orders.  These calls do not wait,
    and take the time as an argument where it matters.
    """

    # Words for the warning about trouble that lasts.
    what_waits = "a request waits"

    def __init__(self, settings: ClientSettings, random: Random, now_ms: int) -> None:
        self.settings = settings
        self.random = random
        self.is_closed = False
        self.tasks = Tasks(now_ms)
        self.operations = Operations(self.tasks)
        self.connections = Connections(settings, self.tasks, random)
        self.metadata = Metadata()
        self.refresh = Refresh(self.connections, self.metadata, settings.metadata_age_ms_max)
        routing = Routing(self.connections, self.metadata, self.refresh)
        self.errands = Errands(self.connections, routing)
        self.turned_ms = now_ms
        # Calendar time of the last turn, in ms.
        self.turned_wall_ms = 0
        self._planned_ms = now_ms
        self.reminder = Reminder(self.tasks, self.trouble, self.what_waits)
        self._wants_refresh = False

    def turn(
        self, events: Sequence[LinkEvent], now_ms: int, now_wall_ms: int
    ) -> list[Output | Notice]:
        """Handle the events, run due tasks, send requests, and give notice of operations that may
        continue."""
        self._refresh_if_wanted(now_ms)
        self.turned_ms = now_ms
        self.turned_wall_ms = now_wall_ms
        for event in events:
            self.connections.handle(event, now_ms)
        # If the process was stopped, some of what arrived meanwhile may not be read yet.  So
        # deadlines that passed in the gap are checked in the next turn, after one more read.
        is_stalled = now_ms - self._planned_ms > STALL_MS
        if not (is_stalled and events):
            self.tasks.advance(now_ms)
        self.work(now_ms)
        self.operations.look(now_ms)
        self._refresh_if_wanted(now_ms)
        self.reminder.work(self.is_waiting, now_ms)
        due_ms = self.next_due_ms()
        self._planned_ms = now_ms if due_ms is None else max(due_ms, now_ms)
        return [*self.connections.take_outputs(), *self.operations.take_notices()]

    def work(self, now_ms: int) -> None:
        """Send the requests that may leave now; defined by subclasses."""

    def next_due_ms(self) -> int | None:
        """Return the latest time of the next turn if there is no event; None if there is none."""
        return self.tasks.next_due_ms()

    def begin_call(self, call: Call[Any, Any], timeout_ms: int, now_ms: int) -> None:
        """Send a call to the cluster; `call.is_done` is set at its end."""
        self.errands.ask(call, timeout_ms, now_ms)

    def begin_errand(self, steps: Steps[A], timeout_ms: int, now_ms: int) -> ErrandOperation[A]:
        """Make several calls for one answer."""
        errand = Errand(steps)
        self.errands.begin(errand, timeout_ms, now_ms)
        return self.operations.begin(ErrandOperation(self.operations, errand), None, now_ms)

    def begin_topic_query(self, topic: str, timeout_ms: int, now_ms: int) -> TopicQuery:
        """Look up the partitions of a topic."""
        check_topic(topic)
        self.track(topic)
        query = TopicQuery(self.operations, self.metadata, topic, self.topic_error)
        return self.operations.begin(query, timeout_ms, now_ms)

    def topic_error(
        self, topic: str, waited_ms: int, now_ms: int, partition: int | None = None
    ) -> ClientError:
        """Return why a topic, or a partition of it, is still unknown after `waited_ms`."""
        reason = self.refresh.last_error
        if reason is None and not self.metadata.knows(topic):
            reason = ClientError(self.connections.silence(now_ms) or "no answer has come yet")
        if reason is not None:
            return timed_out(f"no broker described topic {topic!r}", waited_ms, reason)
        return self.metadata.error_of(topic, now_ms, partition)

    def track(self, topic: str) -> None:
        """Ask for the metadata of this topic, now and as long as it is in use."""
        if self.metadata.track(topic):
            self.want_refresh()

    def want_refresh(self) -> None:
        """Let the next turn ask for metadata."""
        self._wants_refresh = True

    def _refresh_if_wanted(self, now_ms: int) -> None:
        if self._wants_refresh:
            self._wants_refresh = False
            self.refresh.want(now_ms)

    @property
    def is_waiting(self) -> bool:
        """True while an operation waits for the cluster, so that trouble with the cluster is worth
        a warning."""
        return self.errands.are_waiting

    def trouble(self, now_ms: int) -> str:
        """Return why the cluster cannot be reached at the moment; "" if nothing seems wrong."""
        error = self.refresh.last_error
        return str(error) if error is not None else self.connections.silence(now_ms)

    # --- Turns while no user's call waits

    @property
    def has_work(self) -> bool:
        """True if work has to be done before the client may be closed."""
        return False

    @property
    def unattended_due_ms(self) -> int | None:
        """Monotonic time at which a turn is needed although no user's call waits, in ms; None if
        there is none."""
        return None

    @property
    def has_callbacks(self) -> bool:
        """True if calls to the user's functions are due, which are made outside of any turn."""
        return False

    def needs_turns(self, now_ms: int) -> bool:
        """Return whether turns have to continue although no user's call waits."""
        return False

    def disown(self) -> None:
        """Hand out nothing any more, because this is a copy in a forked child."""

    def close(self, now_ms: int) -> None:
        """Close the connections; operations that wait fail with ClientClosed."""
        self.is_closed = True
        self.reminder.stop()
        error = ClientClosed("the client was closed")
        self.errands.fail_all(error)
        self.connections.close(error, now_ms)
        self.operations.fail_all(error)

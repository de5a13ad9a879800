"""The broker: one deterministic object, driven by `turn`.

A turn handles events, writes each touched log once, begins a flush round, answers, completes what
waits and advances the timer, in that order, so that what has arrived counts before anything
expires.  It never blocks, starts no thread, reads no clock.  Hot: every request passes here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from mypy_extensions import i64

from tarry.base.doors import (
    CONNECTED,
    DISCONNECTED,
    DRAINED,
    ETCD,
    FLUSHED,
    RECEIVED,
    STOP_REQUESTED,
    Disk,
    Event,
    LogLevels,
    Random,
    Transport,
)
from tarry.base.errors import ProtocolViolation, StorageError
from tarry.base.limits import (
    ANSWER_BYTES_PER_TURN_MAX,
    COMPLETIONS_PER_TURN_MAX,
    POLL_MS_MAX,
    STALL_MS,
    TIMER_MOVES_PER_TURN_MAX,
)
from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.connection import Connection
from tarry.broker.coordinator.coordinators import Coordinators
from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.delayed.fetch import Fetches
from tarry.broker.delayed.produce import Produces
from tarry.broker.delayed.recompressions import Recompressions
from tarry.broker.dispatch import handle_frame
from tarry.broker.duties.peer_watch import PeerWatch
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.flushes import Flushes
from tarry.broker.membership import ClusterMembership, PeerConnections
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.cluster_view import ClusterView
from tarry.broker.metadata.hosting import Hosting
from tarry.broker.metadata.removals import Removals
from tarry.broker.metadata.retries import Retries
from tarry.broker.part import Part, Parts, WaitingPart
from tarry.broker.route import Route
from tarry.broker.shutdown import Shutdown
from tarry.broker.topics import Topics
from tarry.cluster.producer_ids import ProducerIds
from tarry.cluster.state import ClusterState
from tarry.cluster.store import MetadataStore
from tarry.log.logs import Logs
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")


class Doors:
    """The doors of one broker, and who listens to what happens in it."""

    def __init__(
        self,
        disk: Disk,
        transport: Transport,
        random: Random,
        levels: LogLevels,
        probe: Probe | None = None,
    ) -> None:
        self.disk = disk
        self.transport = transport
        self.random = random
        self.levels = levels
        self.probe = probe if probe is not None else Probe()


class Broker:
    """Broker of one id.  Made by `lifecycle.start`, which recovers what the disk holds.

    `endpoints` gives the address to tell a client by the listener that it came through.
    `membership` and all of replication are begun by `cluster_start`, and None without a cluster;
    `attend_leading` looks at the lease before anything else in a turn.
    """

    def __init__(
        self,
        doors: Doors,
        settings: Settings,
        logs: Logs,
        store: MetadataStore,
        turn: Turn,
        timer: TimingWheel | None = None,
    ) -> None:
        self.disk: Disk = doors.disk
        self.transport: Transport = doors.transport
        self.random: Random = doors.random
        self.levels: LogLevels = doors.levels
        self.probe: Probe = doors.probe
        self.settings = settings
        self.logs = logs
        self.store = store
        self.cluster: ClusterState = store.state
        self.broker_id: int = settings.node_id
        self.endpoints: dict[str, tuple[str, int]] = {}
        self.this_turn = turn
        self._turn_due_ms = turn.now_ms + POLL_MS_MAX
        self.timer = TimingWheel(turn.now_ms) if timer is None else timer
        self.membership: ClusterMembership | None = None
        self.peers: PeerConnections | None = None
        self.follower: Part | None = None
        self.replica_leader: Part | None = None
        self.attend_leading: Callable[[], None] | None = None
        self.answers = Answers(self.this_turn, self.transport, self.timer, self.probe)
        self.topics = Topics()
        # Filled by `lifecycle`: handlers are bound to parts of this broker.
        self.routes: dict[int, Route[Any]] = {}
        self.flushes = Flushes(self.disk, logs.trouble, self.probe)
        self.parts = Parts()
        self.recompressions = self.parts.add(Recompressions(self.this_turn, self.answers))
        self.groups = self.parts.add(
            GroupCoordinator(
                GroupContext(
                    self.this_turn, self.timer, self.flushes, settings, self.probe, self.cluster
                )
            )
        )
        self.coordinators = Coordinators()
        self.coordinators.register(self.groups)
        self.record_deletions = self.parts.add(
            RecordDeletions(self.this_turn, self.timer, self.parts)
        )
        self.produces = self.parts.add(Produces(self.timer))
        self.fetches = self.parts.add(Fetches(self.answers))
        self.shutdown = Shutdown(self.answers, self.parts, self.flushes, self.topics, logs)
        self.hosting = self._make_hosting()
        metadata = self.parts.add(WaitingPart(self.timer, "Metadata"))
        self.changes = MetadataChanges(
            self.this_turn, metadata, store, self.hosting, settings, self.random
        )
        self.cluster_view = ClusterView(store.state, settings, self.endpoints, self.topics)
        self.producer_ids = ProducerIds(store)
        # Duties that go by the calendar, and last the one that finishes what they begin: who moves
        # the calendar on by hand has them done.
        self.calendar_duties: list[TimerEntry] = []

    def _make_hosting(self) -> Hosting:
        retries = Retries(self.this_turn, self.timer)
        hosting = Hosting(
            self.cluster,
            self.settings,
            self.topics,
            self.logs,
            self.flushes,
            removals=Removals(
                self.broker_id, self.store, self.topics, self.logs, self.flushes, retries
            ),
            retries=retries,
            random=self.random,
            listener=self.coordinators,
            on_closed=self.record_deletions.on_start_moved,
            fail=self.shutdown.fail,
        )
        hosting.role_listeners.append(self.coordinators)
        return hosting

    # -- the turn

    def turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None:
        """Handle what happened.  `now_ms` is monotonic, `now_wall_ms` the calendar."""
        if self.shutdown.is_parting:
            self._go_on_parting(events, now_ms)
            return
        self._take_turn(events, now_ms, now_wall_ms)
        if self.shutdown.is_over:
            self.shutdown.part(now_ms)

    def _take_turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None:
        self._attend(now_ms, now_wall_ms)
        self.probe.on_turn(len(events), now_ms)
        answers = self.answers
        parts = self.parts
        for connection in answers.take_to_process():
            if not connection.is_closed:
                self._process(connection)
        for event in events:
            self._handle(event)
            if self.shutdown.is_over:
                return
        parts.step()
        self._write()
        if self.shutdown.is_over:
            return
        answers.send()
        parts.complete(COMPLETIONS_PER_TURN_MAX)
        for entry in self.timer.advance(self.this_turn.now_ms, TIMER_MOVES_PER_TURN_MAX):
            entry.expire()
        answers.send()
        self.shutdown.maybe_finish()
        # Deadlines that this turn had no room for are overdue, but no turn was due before it.
        self._turn_due_ms = max(now_ms, min(self.next_due_ms(), now_ms + POLL_MS_MAX))

    def next_due_ms(self) -> int:
        """Return when the next turn is due though nothing happens, on the monotonic clock."""
        if self.shutdown.is_parting:
            return self.shutdown.parting_due_ms
        turn = self.this_turn
        now_ms = turn.monotonic_ms()
        if self.has_work_left():
            return now_ms
        due_ms = self.timer.next_due_ms()
        if due_ms is None:
            return now_ms + POLL_MS_MAX
        return due_ms + turn.stalled_ms

    def has_work_left(self) -> bool:
        """True if a turn without an event would do something at once."""
        return (
            self.answers.has_work_left()
            or self.flushes.has_work_left()
            or self.parts.has_work_left()
        )

    def _attend(self, now_ms: int, now_wall_ms: int) -> None:
        # A process that was stopped could hear nobody: what it slept through counts for no
        # deadline, so that it evicts nobody and times out nothing that arrived meanwhile.
        turn = self.this_turn
        late_ms = now_ms - self._turn_due_ms
        if late_ms > STALL_MS:
            turn.stalled_ms += late_ms
            logger.warning("the process did not run for %d ms: no time-out counts it", late_ms)
        turn.now_ms = now_ms - turn.stalled_ms
        turn.now_wall_ms = now_wall_ms
        if self.attend_leading is not None:
            self.attend_leading()
        if late_ms > STALL_MS:
            self.parts.on_stall()

    def _handle(self, event: Event) -> None:
        kind = event.kind
        if kind == RECEIVED:
            connection = self.answers.connections.get(event.connection_id)
            if connection is not None:
                connection.feed(event.data)
                self._process(connection)
            elif self.peers is not None:
                self.peers.on_event(event)
        elif kind == FLUSHED:
            self._on_flushed(event)
        elif kind == CONNECTED:
            self._on_connected(event)
        elif kind == DRAINED:
            connection = self.answers.connections.get(event.connection_id)
            if connection is not None:
                connection.unsent = 0
                connection.active_ms = self.this_turn.now_ms
                self._process(connection)
        elif kind == DISCONNECTED:
            connection = self.answers.connections.get(event.connection_id)
            if connection is not None:
                self.answers.forget(connection)
            elif self.peers is not None:
                self.peers.on_event(event)
        elif kind == STOP_REQUESTED:
            if self.membership is None:
                self.shutdown.begin()
            else:
                self.membership.stop()
        elif kind == ETCD and self.membership is not None:
            self.membership.on_event(event)

    # -- connections

    def _on_connected(self, event: Event) -> None:
        if event.is_outgoing:
            if self.peers is not None:
                self.peers.on_event(event)
            return
        if self.shutdown.is_begun:
            self.transport.close(event.connection_id)
            return
        settings = self.settings
        connection = Connection(
            event.connection_id, event.listener, event.peer, settings.socket_request_max_bytes
        )
        self.answers.connections[connection.id] = connection
        PeerWatch(self.answers, connection, settings.connections_max_idle_ms).watch()

    def _process(self, connection: Connection) -> None:
        """Handle the whole frames that have arrived, until the peer must take answers first.

        What is left when the connection has had its share of the turn comes with the next one.
        """
        held_max: i64 = connection.held + ANSWER_BYTES_PER_TURN_MAX
        try:
            while not connection.is_blocked() and not self.shutdown.is_begun:
                if connection.held >= held_max or connection.is_held:
                    break
                if self.recompressions.is_spent():
                    self.answers.process_later(connection)
                    break
                position: i64 = connection.next_frame(self.this_turn.now_ms)
                if position < 0:
                    break
                handle_frame(
                    self.routes,
                    self.answers,
                    connection,
                    connection.data,
                    position,
                    connection.position,
                )
                if connection.is_closed:
                    return
        except ProtocolViolation as violation:
            self.answers.close(connection, str(violation))
            return
        self.answers.regulate_reading(connection)

    # -- logs

    def _write(self) -> None:
        self.flushes.write()
        if self.flushes.lacks_files:
            self.flushes.give_files_back(self.topics.replicas())
        self.parts.settle()
        try:
            self.flushes.maybe_begin()
        except StorageError as error:
            self.shutdown.fail_flush(str(error))
        self.flushes.tell_moved(self.parts)

    def _on_flushed(self, event: Event) -> None:
        if event.error:
            self.shutdown.fail_flush(event.error)
            return
        self.flushes.on_flushed(event.flush_id)
        self.flushes.tell_moved(self.parts)

    # -- the end

    def _go_on_parting(self, events: list[Event], now_ms: int) -> None:
        membership = self.membership
        assert membership is not None
        for event in events:
            if event.kind == ETCD:
                membership.on_last_event(event)
        self.shutdown.part(now_ms)

    @property
    def is_ready(self) -> bool:
        """True once clients may come: in a cluster, when the others know that it serves."""
        return self.membership is None or self.membership.is_serving

    @property
    def is_stopped(self) -> bool:
        """True if the last turn is over."""
        return self.shutdown.is_over and not self.shutdown.is_parting

    @property
    def stop_reason(self) -> str:
        """Reason why the broker stopped; "" after a clean stop."""
        return self.shutdown.reason

"""The broker: one deterministic object, driven by `turn`.

A turn handles events, writes each touched log once, begins a flush round, answers, completes
waiting operations, and advances the timer, in that order, so that what has arrived counts before
anything expires.  It never blocks, starts no thread and reads no clock.  Hot: every request passes
here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
from tarry.base.errors import StorageError
from tarry.base.limits import (
    COMPLETIONS_PER_TURN_MAX,
    ELEMENTS_PER_TURN_MAX,
    LARGE_REQUESTS_LOOKED_AT,
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
from tarry.broker.delayed.long_answers import LongAnswers
from tarry.broker.delayed.produce import Produces
from tarry.broker.delayed.recompressions import Recompressions
from tarry.broker.dispatch import Dispatch
from tarry.broker.duties.peer_watch import PeerWatch
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.flushes import Flushes
from tarry.broker.group_kinds import served_kinds
from tarry.broker.kafka_connection import KafkaConnection
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.cluster_view import ClusterView
from tarry.broker.metadata.hosting import Hosting
from tarry.broker.metadata.leader_hints import LeaderHints
from tarry.broker.metadata.removals import Removals
from tarry.broker.metadata.retries import Retries
from tarry.broker.part import Parts, WaitingPart
from tarry.broker.peers.peers import Peers
from tarry.broker.replication.calendars import Calendars
from tarry.broker.replication.cuts import Cuts
from tarry.broker.replication.follower import ReplicaFollower
from tarry.broker.replication.placement import Placement
from tarry.broker.route import Route
from tarry.broker.scheduling.scheduling import Scheduling
from tarry.broker.shutdown import Shutdown
from tarry.broker.topics import Topics
from tarry.cluster.decisions.producer_ids import ProducerIds
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.store import MetadataStore
from tarry.log.logs import Logs
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")


class Doors:
    """The doors of one broker, and the probe that observes it."""

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


# Function that serves requests of a kind: it is called once, may add parts, and returns its routes.
Service = Callable[["Broker"], list[Route[Any]]]
# Constructor of a connection with another protocol; it takes the answers, id, listener and peer.
MakeConnection = Callable[[Answers, int, str, str], Connection]


class Broker:
    """Broker of one id; `lifecycle.start_broker` makes one after recovering the disk's data.

    `protocols` gives constructors of connections, by listener, for listeners that do not speak
    Kafka's protocol.  A broker of a cluster joins its `neighbours` in `cluster_start`.
    """

    def __init__(
        self,
        doors: Doors,
        settings: Settings,
        logs: Logs,
        store: MetadataStore,
        turn: Turn,
        timer: TimingWheel,
        *,
        neighbours: Neighbours,
        services: Sequence[Service],
        protocols: Mapping[str, MakeConnection],
    ) -> None:
        self.disk: Disk = doors.disk
        self.transport: Transport = doors.transport
        self.random: Random = doors.random
        self.levels: LogLevels = doors.levels
        self.probe: Probe = doors.probe
        self.settings = settings
        self.logs, self.store = logs, store
        self.cluster: ClusterState = store.state
        self.broker_id: int = settings.node_id
        self.this_turn = turn
        self._turn_due_ms = turn.now_ms + POLL_MS_MAX
        self.timer = timer
        self.neighbours, self.calendars = neighbours, Calendars(turn)
        self.answers = Answers(turn, self.transport, self.timer, self.probe, settings)
        self.topics = Topics()
        self._protocols = protocols
        self.flushes = Flushes(self.disk, logs.trouble, self.probe)
        self.parts = Parts()
        self.recompressions = self.parts.add(Recompressions(self.this_turn, self.answers))
        self.long_answers = self.parts.add(LongAnswers(self.this_turn, self.answers))
        groups = GroupContext(
            turn, self.timer, self.flushes, settings, self.probe, self.cluster, kinds=served_kinds()
        )
        self.groups = self.parts.add(GroupCoordinator(groups))
        self.coordinators = Coordinators(self.groups)
        self.record_deletions = self.parts.add(RecordDeletions(turn, self.timer, self.parts))
        self.cluster_view = ClusterView(store.state, settings, self.topics, neighbours)
        hints = LeaderHints(self.cluster_view)
        self.produces = self.parts.add(Produces(self.timer, hints))
        self.fetches = self.parts.add(Fetches(self.answers, hints))
        self.scheduling = self.parts.add(self._make_scheduling())
        self.shutdown = Shutdown(
            self.answers, self.parts, self.flushes, self.topics, logs, neighbours
        )
        self.routes: dict[int, Route[Any]] = {}
        self.dispatch = Dispatch(self.routes, self.long_answers, self.shutdown)
        self.peers = self._make_peers()
        self.hosting = self.parts.add(self._make_hosting())
        metadata = self.parts.add(WaitingPart(self.timer, "Metadata"))
        self.changes = MetadataChanges(self.long_answers, metadata, store, settings, self.random)
        self.producer_ids = ProducerIds(store)
        # Duties that use the calendar, in the order in which they have to run: each may finish work
        # of those before it.
        self.calendar_duties: list[TimerEntry] = []
        if neighbours.is_member:
            self._follow()
        self._serve(services)

    def _make_peers(self) -> Peers:
        peers = Peers(
            self.settings,
            self.cluster,
            self.this_turn,
            self.timer,
            self.transport,
            self.random,
            answers=self.answers,
            dispatch=self.dispatch,
        )
        self.parts.add_listening(peers)
        return peers

    def _make_scheduling(self) -> Scheduling:
        return Scheduling(
            self.this_turn,
            self.timer,
            self.flushes,
            self.settings,
            on_start_asked=self.record_deletions.watch_start,
        )

    def _make_hosting(self) -> Hosting:
        retries = Retries(self.this_turn, self.timer)
        return Hosting(
            self.store,
            self.settings,
            self.topics,
            self.logs,
            self.flushes,
            removals=Removals(
                self.broker_id, self.store, self.topics, self.logs, self.flushes, retries
            ),
            retries=retries,
            random=self.random,
            neighbours=self.neighbours,
            parts=self.parts,
            on_closed=self.record_deletions.on_start_moved,
            on_companion=self.scheduling.begin,
            fail=self.shutdown.fail,
        )

    def _follow(self) -> None:
        """Follow the partitions that other brokers lead."""
        settings, turn, deletions = self.settings, self.this_turn, self.record_deletions
        cuts = Cuts(turn, self.flushes, deletions.hasten, deletions.request)
        placement = Placement(
            settings,
            self.cluster,
            turn,
            self.flushes,
            self.peers,
            cuts,
            calendars=self.calendars,
        )
        self.parts.add(ReplicaFollower(turn, self.flushes, placement))
        self.neighbours.follow(placement)

    def _serve(self, services: Sequence[Service]) -> None:
        for service in services:
            for route in service(self):
                self.routes[route.api_key] = route

    # -- the turn

    def turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None:
        """Handle events.  `now_ms` is monotonic time, `now_wall_ms` is the calendar."""
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
        self._process_waiting()
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
        # Overdue deadlines for which this turn had no room make the next turn due, but not before
        # now.
        self._turn_due_ms = max(now_ms, min(self.next_due_ms(), now_ms + POLL_MS_MAX))

    def next_due_ms(self) -> int:
        """Return the monotonic time at which the next turn is due without an event, in ms."""
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
        # A process that was stopped could not receive anything.  The time for which it did not run
        # counts for no deadline, so that no member is evicted and no request times out because of
        # it.
        turn = self.this_turn
        late_ms = now_ms - self._turn_due_ms
        if late_ms > STALL_MS:
            turn.stalled_ms += late_ms
            logger.warning("the process did not run for %d ms: no time-out counts it", late_ms)
        turn.now_ms = now_ms - turn.stalled_ms
        turn.now_wall_ms = now_wall_ms
        turn.requests = 0
        turn.parked = 0
        self.timer.set_time(turn.now_ms)
        self.neighbours.attend()
        if late_ms > STALL_MS:
            self.parts.on_stall()

    def _handle(self, event: Event) -> None:
        kind = event.kind
        if kind == RECEIVED:
            connection = self.answers.connections.get(event.connection_id)
            if connection is not None:
                connection.feed(event.data)
                self.answers.process(connection)
            else:
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
                self.answers.process(connection)
        elif kind == DISCONNECTED:
            connection = self.answers.connections.get(event.connection_id)
            if connection is not None:
                self.answers.forget(connection)
            else:
                self.peers.on_event(event)
        elif kind == STOP_REQUESTED:
            if self.neighbours.membership is None:
                self.shutdown.begin()
            else:
                self.neighbours.membership.stop()
        elif kind == ETCD and self.neighbours.membership is not None:
            self.neighbours.membership.on_event(event)

    # -- connections

    def _process_waiting(self) -> None:
        """Handle the frames that wait, until this turn may handle no more."""
        answers = self.answers
        left = answers.count_to_process()
        while left > 0 and not self.this_turn.is_spent():
            left -= 1
            connection = answers.next_to_process()
            if not connection.is_closed:
                self.answers.process(connection)
        left = min(answers.count_put_off(), LARGE_REQUESTS_LOOKED_AT)
        while left > 0 and self.this_turn.elements_decoded < ELEMENTS_PER_TURN_MAX:
            left -= 1
            connection = answers.next_put_off()
            if not connection.is_closed:
                self.answers.process(connection)

    def _on_connected(self, event: Event) -> None:
        if event.is_outgoing:
            self.peers.on_event(event)
            return
        if self.shutdown.is_begun or self.neighbours.must_send_away():
            self.transport.close(event.connection_id)
            return
        settings = self.settings
        connection: Connection
        other = self._protocols.get(event.listener)
        if other is None:
            connection = KafkaConnection(
                self.dispatch,
                event.connection_id,
                event.listener,
                event.peer,
                settings.socket_request_max_bytes,
            )
        else:
            connection = other(self.answers, event.connection_id, event.listener, event.peer)
        self.answers.connections[connection.id] = connection
        PeerWatch(self.answers, connection, settings.connections_max_idle_ms).watch()

    # -- logs

    def _write(self) -> None:
        self.flushes.write()
        if self.flushes.lacks_files:
            self.flushes.give_files_back(self.topics.logs())
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
        membership = self.neighbours.membership
        assert membership is not None
        for event in events:
            if event.kind == ETCD:
                membership.on_last_event(event)
        self.shutdown.part(now_ms)

    @property
    def is_ready(self) -> bool:
        """True once clients may connect: in a cluster, when the other brokers know that this one
        serves.
        """
        return self.neighbours.membership is None or self.neighbours.membership.is_serving

    @property
    def logs_opened(self) -> int:
        """Number of logs that were opened or created so far, closed ones included."""
        return self.logs.opened

    @property
    def is_stopped(self) -> bool:
        """True if the last turn is over."""
        return self.shutdown.is_over and not self.shutdown.is_parting

    @property
    def stop_reason(self) -> str:
        """Reason why the broker stopped; "" after a clean stop."""
        return self.shutdown.reason

"""The broker: one deterministic object, driven by `turn`.

A turn handles events, writes each touched log once, begins a flush round, answers, completes what
waits and advances the timer, in that order, so that what has arrived counts before anything
expires.  It never blocks, starts no thread, reads no clock.  Hot: every request passes here.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from tarry.base.doors import (
    CONNECTED,
    DISCONNECTED,
    DRAINED,
    FLUSHED,
    RECEIVED,
    STOP_REQUESTED,
    Disk,
    Event,
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
from tarry.base.repeated import RepeatedFaults
from tarry.base.settings import Settings
from tarry.broker.connection import Connection
from tarry.broker.coordinator.coordinator import Coordinator
from tarry.broker.delayed.produce import DelayedProduce
from tarry.broker.dispatch import encode_answer, handle_frame
from tarry.broker.flush_rounds import FlushListener, FlushRounds
from tarry.broker.metadata_reactions import MetadataReactions
from tarry.broker.metadata_writes import METADATA_KEY, MetadataLogOwner, MetadataWrite, propose
from tarry.broker.peer_watch import PeerWatch
from tarry.broker.purgatories import new_purgatory
from tarry.broker.recompressions import Recompressions
from tarry.broker.record_deletions import RecordDeletions
from tarry.broker.request import RequestContext
from tarry.broker.routes import Route, make_routes
from tarry.broker.shutdown import maybe_finish_stop
from tarry.cluster.embedded import EmbeddedStore
from tarry.cluster.records import MetadataRecord
from tarry.cluster.state import ClusterState
from tarry.log.logs import Logs
from tarry.log.owner import LogOwner
from tarry.partition.leader import Clock
from tarry.partition.state import Partition, PartitionKey
from tarry.partition.topic import HostedTopic
from tarry.protocol.message import Message
from tarry.purgatory.purgatory import Purgatory
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")

# A stopping broker waits so long for flushes and for peers that take their answers.  Closing their
# connections takes the runtime a second more, and all of it is to be done in five.
STOP_MS_MAX: Final = 3_500


class Doors:
    """The doors of one broker, and who listens to what happens in it."""

    def __init__(
        self, disk: Disk, transport: Transport, random: Random, probe: Probe | None = None
    ) -> None:
        self.disk = disk
        self.transport = transport
        self.random = random
        self.probe = probe if probe is not None else Probe()


class Broker:
    """One broker id.  Made by `lifecycle.start`, which recovers what the disk holds.

    `endpoints` gives the address to tell a client by the listener that it came through.
    """

    def __init__(
        self,
        doors: Doors,
        settings: Settings,
        logs: Logs,
        store: EmbeddedStore,
        now_ms: int,
        now_wall_ms: int,
    ) -> None:
        self.disk: Disk = doors.disk
        self.transport: Transport = doors.transport
        self.random: Random = doors.random
        self.probe: Probe = doors.probe
        self.settings = settings
        self.logs = logs
        self.store = store
        self.cluster: ClusterState = store.state
        self.broker_id: int = settings.node_id
        self.fetch_max_bytes: int = settings.fetch_max_bytes
        self.frame_bytes_max: int = settings.socket_request_max_bytes
        self.connections_max_idle_ms: int = settings.connections_max_idle_ms
        self.endpoints: dict[str, tuple[str, int]] = {}
        # `now_ms` is attended time: the monotonic clock less what the process slept through.
        self.now_ms = now_ms
        self.now_wall_ms = now_wall_ms
        self.clock = Clock(now_ms, now_wall_ms)
        self.stalled_ms = 0
        self._turn_due_ms = now_ms + POLL_MS_MAX
        self.timer = TimingWheel(now_ms)
        self.purgatories: list[Purgatory] = []
        self.produce_purgatory = new_purgatory(self, "Produce")
        self.fetch_purgatory = new_purgatory(self, "Fetch")
        self.metadata_purgatory = new_purgatory(self, "Metadata")
        self.connections: dict[int, Connection] = {}
        self.topics: dict[str, HostedTopic] = {}
        self.topics_by_id: dict[bytes, HostedTopic] = {}
        self.routes: dict[int, Route] = make_routes()
        self.faults = RepeatedFaults(logger)
        self.flushes = FlushRounds(self.disk, logs.trouble)
        self.flush_listeners: dict[int, FlushListener] = {}
        self.metadata_owner: LogOwner = MetadataLogOwner(self, store)
        self.reactions = MetadataReactions(self)
        self.coordinator = Coordinator(self)
        self.record_deletions = RecordDeletions(self)
        self.produce_number: i64 = 0
        self.recompressions = Recompressions(self)
        self._unsettled: list[DelayedProduce] = []
        self._to_send: list[Connection] = []
        self._to_process: list[Connection] = []
        self._produce_keys: dict[PartitionKey, None] = {}
        self._fetch_keys: dict[PartitionKey, None] = {}
        self._is_metadata_to_check = False
        self.is_stopping = False
        self.is_stopped = False
        self.stop_reason = ""
        self.stop_deadline_ms = 0

    # -- the turn

    def turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None:
        """Handle what happened.  `now_ms` is monotonic, `now_wall_ms` the calendar."""
        self._attend(now_ms, now_wall_ms)
        self.probe.on_turn(len(events), now_ms)
        self._process_unblocked()
        for event in events:
            self._handle(event)
            if self.is_stopped:
                return
        self.recompressions.step()
        self._write()
        if self.is_stopped:
            return
        self._send()
        self._complete()
        self._expire()
        self._send()
        if self.is_stopping:
            maybe_finish_stop(self)
        # Deadlines that this turn had no room for are overdue, but no turn was due before it.
        self._turn_due_ms = max(now_ms, min(self.next_due_ms(), now_ms + POLL_MS_MAX))

    def next_due_ms(self) -> int:
        """When the next turn is due though nothing happens, on the monotonic clock."""
        now_ms = self.now_ms + self.stalled_ms
        if self.has_work_left():
            return now_ms
        due_ms = self.timer.next_due_ms()
        if due_ms is None:
            return now_ms + POLL_MS_MAX
        return due_ms + self.stalled_ms

    def has_work_left(self) -> bool:
        """True if a turn without an event would do something at once."""
        return (
            len(self._fetch_keys) > 0
            or len(self._produce_keys) > 0
            or len(self._to_process) > 0
            or len(self._to_send) > 0
            or len(self._unsettled) > 0
            or len(self.flushes.touched) > 0
            or (self.flushes.flush_id < 0 and len(self.flushes.dirty) > 0)
            or self._is_metadata_to_check
            or self.recompressions.has_work_left()
            or self.coordinator.has_work_left()
            or self.record_deletions.has_work_left()
        )

    def _attend(self, now_ms: int, now_wall_ms: int) -> None:
        # A process that was stopped could hear nobody: what it slept through counts for no
        # deadline, so that it evicts nobody and times out nothing that arrived meanwhile.
        late_ms = now_ms - self._turn_due_ms
        if late_ms > STALL_MS:
            self.stalled_ms += late_ms
            logger.warning("the process did not run for %d ms: no time-out counts it", late_ms)
        self.now_ms = now_ms - self.stalled_ms
        self.now_wall_ms = now_wall_ms
        self.clock.now_ms = self.now_ms
        self.clock.wall_ms = now_wall_ms
        if late_ms > STALL_MS:
            self.coordinator.on_stall()

    def _handle(self, event: Event) -> None:
        kind = event.kind
        if kind == RECEIVED:
            connection = self.connections.get(event.connection_id)
            if connection is not None:
                connection.feed(event.data)
                self._process(connection)
        elif kind == FLUSHED:
            self._on_flushed(event.flush_id, event.error)
        elif kind == CONNECTED:
            self._on_connected(event)
        elif kind == DRAINED:
            connection = self.connections.get(event.connection_id)
            if connection is not None:
                connection.unsent = 0
                connection.active_ms = self.now_ms
                self._process(connection)
        elif kind == DISCONNECTED:
            connection = self.connections.pop(event.connection_id, None)
            if connection is not None:
                self._forget(connection)
        elif kind == STOP_REQUESTED:
            self.request_stop()

    # -- connections

    def _on_connected(self, event: Event) -> None:
        if self.is_stopping:
            self.transport.close(event.connection_id)
            return
        connection = Connection(
            event.connection_id, event.listener, event.peer, self.frame_bytes_max
        )
        self.connections[connection.id] = connection
        PeerWatch(self, connection).watch()

    def _process(self, connection: Connection) -> None:
        """Handle the whole frames that have arrived, until the peer must take answers first.

        What is left when the connection has had its share of the turn comes with the next one.
        """
        held_max: i64 = connection.held + ANSWER_BYTES_PER_TURN_MAX
        try:
            while not connection.is_blocked() and not self.is_stopping:
                if connection.held >= held_max or connection.is_held:
                    break
                if self.recompressions.is_spent():
                    self.process_later(connection)
                    break
                position: i64 = connection.next_frame(self.now_ms)
                if position < 0:
                    break
                handle_frame(self, connection, connection.data, position, connection.position)
                if connection.is_closed:
                    return
        except ProtocolViolation as violation:
            self.close_connection(connection, str(violation))
            return
        self.regulate_reading(connection)

    def regulate_reading(self, connection: Connection) -> None:
        """Read nothing behind frames that wait, so that they do not become ever more."""
        is_blocked = connection.is_blocked() or connection.has_unhandled()
        if is_blocked != connection.is_reading_paused:
            connection.is_reading_paused = is_blocked
            if is_blocked:
                self.transport.pause_reading(connection.id)
            else:
                connection.resume_frame(self.now_ms)
                self.transport.resume_reading(connection.id)

    def process_later(self, connection: Connection) -> None:
        if connection.has_unhandled() and not connection.is_queued_to_process:
            connection.is_queued_to_process = True
            self._to_process.append(connection)

    def _process_unblocked(self) -> None:
        waiting = self._to_process
        if not waiting:
            return
        self._to_process = []
        for connection in waiting:
            connection.is_queued_to_process = False
            if not connection.is_closed:
                self._process(connection)

    def close_connection(self, connection: Connection, reason: str) -> None:
        """Close because of what the peer did; one line in the log, summed up when repeated."""
        if connection.is_closed:
            return
        self.faults.report(connection.peer, reason, self.now_ms)
        self.let_go(connection, reason)

    def let_go(self, connection: Connection, reason: str) -> None:
        """Close a connection whose peer did nothing wrong, as when it is silent."""
        self.probe.on_connection_closed(connection.peer, reason)
        self.connections.pop(connection.id, None)
        self._take_answers(connection)
        self.transport.close(connection.id)
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        waiting = connection.waiting_contexts()
        connection.drop()
        for context in waiting:
            operation = context.operation
            if operation is not None:
                operation.force_complete()
        watch = connection.watch
        if watch is not None:
            self.timer.cancel(watch)
            connection.watch = None

    # -- answers

    def answer(self, context: RequestContext, response: Message) -> None:
        """Encode the answer into its slot; it leaves when those before it have."""
        encode_answer(context, response)
        self.queue_to_send(context.connection)

    def queue_to_send(self, connection: Connection) -> None:
        """Something of this connection was answered."""
        if not connection.is_queued_to_send:
            connection.is_queued_to_send = True
            self._to_send.append(connection)

    def _send(self) -> None:
        queue = self._to_send
        if not queue:
            return
        self._to_send = []
        for connection in queue:
            connection.is_queued_to_send = False
            if connection.is_closed:
                continue
            self._take_answers(connection)
            if connection.has_unhandled() and not connection.is_queued_to_process:
                if not connection.is_blocked():
                    self.process_later(connection)
            elif connection.is_reading_paused:
                self.regulate_reading(connection)

    def _take_answers(self, connection: Connection) -> None:
        connection.release_slots()
        chunks = connection.out
        if chunks:
            connection.out = []
            connection.unsent = self.transport.send(connection.id, chunks)

    # -- logs

    def settle_after_write(self, operation: DelayedProduce) -> None:
        """A produce was appended to tails; it goes on when they are written."""
        self._unsettled.append(operation)

    def _write(self) -> None:
        flushes = self.flushes
        flushes.write()
        self._settle()
        self.coordinator.settle()
        try:
            flushes.maybe_begin()
        except StorageError as error:
            self._fail_flush(str(error))
        self._note_advanced()
        if self._is_metadata_to_check:
            self._check_metadata()

    def _settle(self) -> None:
        unsettled = self._unsettled
        if not unsettled:
            return
        self._unsettled = []
        for operation in unsettled:
            operation.fail_what_was_not_written()
            if not operation.try_complete():
                operation.context_waits()
                self.produce_purgatory.try_complete_else_watch(operation, operation.keys())

    def _note_advanced(self) -> None:
        advanced = self.flushes.advanced
        if not advanced:
            return
        self.flushes.advanced = []
        for owner in advanced:
            assert isinstance(owner, Partition)
            self.touch_keys(owner)
            self.coordinator.on_advanced(owner)

    def touch_keys(self, partition: Partition) -> None:
        """Who waits for this partition looks again in this turn's step of completions."""
        self._produce_keys[partition.key] = None
        self._fetch_keys[partition.key] = None

    def _on_flushed(self, flush_id: int, error: str) -> None:
        flushes = self.flushes
        if error:
            self._fail_flush(error)
            return
        if flush_id == flushes.flush_id:
            self.probe.on_flush(len(flushes.owners), error)
            flushes.end()
            self._note_advanced()
            return
        listener = self.flush_listeners.pop(flush_id, None)
        if listener is not None:
            listener.on_flushed(flush_id)

    def _fail_flush(self, error: str) -> None:
        # fsync may have dropped the pages that it could not write: trying again would prove
        # nothing, so the broker stops and recovery decides what is there.
        self.fail(
            f"a flush failed ({error}); what was not flushed may be lost, so the broker "
            "stops; check the disk and start it again"
        )

    # -- completions

    def _complete(self) -> None:
        self.coordinator.complete()
        self.record_deletions.complete()
        budget = self.complete_keys(
            self.produce_purgatory, self._produce_keys, COMPLETIONS_PER_TURN_MAX
        )
        if not self._fetch_keys:
            return
        # Producers are answered before the readers that their records wake.
        self._send()
        self.complete_keys(self.fetch_purgatory, self._fetch_keys, max(budget, 1))

    def complete_keys(
        self, purgatory: Purgatory, keys: dict[PartitionKey, None], budget: int
    ) -> int:
        """Check each key that was touched; who is left at the end of the budget comes next turn."""
        for key in list(keys):
            if budget <= 0:
                return 0
            completed = purgatory.check_and_complete(key, budget)
            budget -= completed
            if budget > 0:
                del keys[key]
        return budget

    def check_metadata_later(self) -> None:
        """What waits for metadata looks again once this turn's changes are made."""
        self._is_metadata_to_check = True

    def _check_metadata(self) -> None:
        self._is_metadata_to_check = False
        self.metadata_purgatory.check_and_complete(METADATA_KEY)

    def _expire(self) -> None:
        for entry in self.timer.advance(self.now_ms, TIMER_MOVES_PER_TURN_MAX):
            entry.expire()

    # -- metadata

    def propose(self, records: list[MetadataRecord], write: MetadataWrite) -> None:
        """Change the metadata; `write` completes when the records are durable and applied."""
        propose(self, records, write)

    def react(self, record: MetadataRecord) -> None:
        """An applied record changes what this broker hosts."""
        self.reactions.react(record)

    # -- the end

    def request_stop(self) -> None:
        """Take nothing new and answer what waits; `shutdown` then marks the clean end."""
        if self.is_stopping:
            return
        self.is_stopping = True
        self.stop_deadline_ms = self.now_ms + STOP_MS_MAX
        self.transport.stop_listening()
        self.coordinator.stop()
        for connection in list(self.connections.values()):
            for context in connection.waiting_contexts():
                operation = context.operation
                if operation is not None and context.is_fetch():
                    operation.force_complete()

    def fail(self, reason: str) -> None:
        """Stop at once, without the clean marker: nothing more is answered."""
        logger.critical("%s", reason)
        self.is_stopping = True
        self.stop(reason)

    def stop(self, reason: str) -> None:
        """This was the last turn; "" after a clean stop."""
        self.stop_reason = reason
        self.is_stopped = True

"""Peers: the one way in which a broker asks brokers something, other ones and itself.

Each user has an `Asker` with a name and time-outs of its own.  The requests of the askers' links go
to the transport; those to this broker go to its own dispatch, without a socket.  One entry of the
broker's timer stands for all deadlines and pauses of the links.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tarry.base.doors import DISCONNECTED, Event, Random, Transport, connected_to, renumbered
from tarry.base.limits import POLL_MS_MAX
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.answers import Answers
from tarry.broker.kafka_connection import FrameHandler
from tarry.broker.part import Part
from tarry.broker.peers.asker import Asker, Whereabouts
from tarry.broker.peers.own_connection import OWN_PEER, OwnConnection
from tarry.cluster.state.records import (
    BrokerDescribed,
    BrokerUnregistered,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
)
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import Change
from tarry.link.events import Address, Connect, Output, Resolve, Resolved, Send
from tarry.link.links import Links, LinkSettings
from tarry.link.tasks import Task, Tasks
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

# Pauses between two attempts to reach another broker, as Kafka's brokers make them, in ms.
_RECONNECT_MS: Final = 50
_RECONNECT_MS_MAX: Final = 1_000
_SETUP_MS: Final = 10_000

# Records after which a broker may have another address, or another life.
_MOVES: Final = (LifeChanged, LifeEnded, BrokerDescribed, BrokerUnregistered)

# Address that stands for this broker itself; no listener has this port.
_OWN_ADDRESS: Final = Address(OWN_PEER, 0)


class Peers(Part):
    """Peers of one broker, with itself; `dispatch` handles the questions to itself."""

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        turn: Turn,
        timer: TimingWheel,
        transport: Transport,
        random: Random,
        *,
        answers: Answers,
        dispatch: FrameHandler,
    ) -> None:
        self.tasks = Tasks(turn.now_ms)
        self.random = random
        self._settings = settings
        self._state = state
        self._turn = turn
        self._transport = transport
        self._answers = answers
        self._dispatch = dispatch
        self._askers: list[Asker] = []
        # Asker of each connection, and the link's number of it, by connection id.
        self._owners: dict[int, tuple[Asker, int]] = {}
        # Id of the newest connection to this broker itself; such ids are negative, the transport's
        # are not.
        self._last_own_id = 0
        # True while an asker's wishes are carried out; askers that have new ones meanwhile wait in
        # `_stirred`.
        self._is_carrying = False
        self._stirred: deque[Asker] = deque()
        self._alarm = Alarm(timer, turn, self.on_time)

    def asker(
        self, purpose: str, *, timeout_ms: int, backoff_ms: int, answer_bytes_max: int
    ) -> Asker:
        """Return a new asker, whose client id shows its purpose to the brokers.

        `timeout_ms` bounds connecting and each question.  `backoff_ms` is the pause before a retry.
        An answer of more than `answer_bytes_max` closes the connection.
        """
        settings = LinkSettings(
            client_id=f"broker-{self._settings.node_id}-{purpose}",
            request_timeout_ms=timeout_ms,
            connection_setup_timeout_ms=min(_SETUP_MS, timeout_ms),
            reconnect_backoff_ms=_RECONNECT_MS,
            reconnect_backoff_ms_max=_RECONNECT_MS_MAX,
            retry_backoff_ms=max(backoff_ms, 1),
            retry_backoff_ms_max=max(backoff_ms, 1),
            connection_idle_ms_max=self._settings.connections_max_idle_ms,
        )
        links = Links(settings, self.tasks, self.random)
        asker = Asker(self, links, self._turn, answer_bytes_max)
        self._askers.append(asker)
        self._arm()
        return asker

    def place_of(self, broker_id: int) -> Whereabouts | None:
        """Return the address and life of a broker; None if they are not known."""
        known = self._state.brokers.get(broker_id)
        broker_epoch = -1 if known is None else known.broker_epoch
        if broker_id == self._settings.node_id:
            return Whereabouts(_OWN_ADDRESS, broker_epoch)
        found = None if known is None else known.endpoints.get(self._settings.inter_broker_listener)
        return None if found is None else Whereabouts(Address(*found), broker_epoch)

    # -- the store's reports, and the end

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Close the connections to brokers that have another address or another life."""
        for record in records:
            if isinstance(record, _MOVES):
                for asker in self._askers:
                    asker.check_place(record.broker_id)

    def on_refused(self, change: Change) -> None:
        """Do nothing: a refused change concerns no connection."""

    def stop(self) -> None:
        for asker in self._askers:
            asker.close()

    # -- time

    def schedule(self, task: Task, deadline_ms: int) -> None:
        """Run a task at a time, such as the end of a pause before a question is asked again."""
        self.tasks.schedule(task, deadline_ms)
        self._arm()

    def on_time(self) -> None:
        """Run the tasks that are due, and set the alarm for the next one."""
        self.tasks.advance(self._turn.now_ms)
        for asker in self._askers:
            self.carry_out(asker)
        self._arm()

    def _arm(self) -> None:
        now_ms = self._turn.now_ms
        due_ms = self.tasks.next_due_ms()
        wanted_ms = now_ms + POLL_MS_MAX if due_ms is None else due_ms
        if wanted_ms <= now_ms:
            wanted_ms = now_ms + 1
        alarm = self._alarm
        if not alarm.is_pending or alarm.deadline_ms > wanted_ms or alarm.deadline_ms <= now_ms:
            alarm.arm(wanted_ms - now_ms)

    # -- events and wishes of links

    def on_event(self, event: Event) -> None:
        """Take an event of a connection that this broker has made."""
        owner = self._owners.get(event.connection_id)
        if owner is None:
            return
        asker, number = owner
        if event.kind == DISCONNECTED:
            self._forget(asker, number)
        asker.links.handle(renumbered(event, number), self._turn.now_ms)
        self.carry_out(asker)

    def carry_out(self, asker: Asker) -> None:
        """Do what an asker's links have asked for, in their order."""
        stirred = self._stirred
        if self._is_carrying:
            stirred.append(asker)
            return
        self._is_carrying = True
        while True:
            while outputs := asker.links.take_outputs():
                for output in outputs:
                    self._carry(asker, output)
            if not stirred:
                break
            asker = stirred.popleft()
        self._is_carrying = False
        self._arm()

    def _carry(self, asker: Asker, output: Output) -> None:
        number = output.connection_id
        if isinstance(output, Send):
            self._send(asker, number, output.data)
        elif isinstance(output, Resolve):
            # The transport looks host names up by itself.
            asker.links.handle(Resolved(number, [output.address]), self._turn.now_ms)
        elif isinstance(output, Connect):
            self._connect(asker, number, output.address)
        else:
            self._close(asker, number)

    def _connect(self, asker: Asker, number: int, address: Address) -> None:
        if address == _OWN_ADDRESS:
            self._connect_to_itself(asker, number)
            return
        connection_id = self._transport.connect(address.host, address.port)
        asker.ids[number] = connection_id
        self._owners[connection_id] = (asker, number)

    def _connect_to_itself(self, asker: Asker, number: int) -> None:
        self._last_own_id -= 1
        settings = self._settings
        connection = OwnConnection(
            self._dispatch,
            self._last_own_id,
            settings.inter_broker_listener,
            settings.socket_request_max_bytes,
            self.on_event,
        )
        self._answers.connections[connection.id] = connection
        asker.ids[number] = connection.id
        self._owners[connection.id] = (asker, number)
        self.on_event(connected_to(connection.id, OWN_PEER))

    def _send(self, asker: Asker, number: int, data: bytes) -> None:
        connection_id = asker.ids.get(number)
        if connection_id is None:
            return
        if connection_id > 0:
            unsent = self._transport.send(connection_id, [data])
        else:
            own = self._answers.connections[connection_id]
            own.feed(data)
            self._answers.process(own)
            own.release()
            unsent = own.queued_bytes
        if unsent:
            asker.unsent[number] = unsent
        elif asker.unsent:
            asker.unsent.pop(number, None)

    def _close(self, asker: Asker, number: int) -> None:
        connection_id = self._forget(asker, number)
        if connection_id < 0:
            self._answers.forget(self._answers.connections[connection_id])
        elif connection_id:
            self._transport.close(connection_id)

    def _forget(self, asker: Asker, number: int) -> int:
        asker.unsent.pop(number, None)
        connection_id = asker.ids.pop(number, 0)
        self._owners.pop(connection_id, None)
        return connection_id

"""Links of a broker to other brokers: what links ask for goes to the transport, and back.

One entry of the broker's timer stands for all their deadlines and pauses.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import CONNECTED, DISCONNECTED, RECEIVED, Event, Random, Transport
from tarry.base.limits import POLL_MS_MAX
from tarry.base.turn import Turn
from tarry.broker.membership import PeerConnections
from tarry.link.events import Connect, LinkEvent, Output, Resolve, Resolved, Send
from tarry.link.links import Links, LinkSettings
from tarry.link.tasks import Tasks
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

# As Kafka's brokers: between attempts to reach another one.
_RECONNECT_MS: Final = 50
_RECONNECT_MS_MAX: Final = 1_000
_SETUP_MS: Final = 10_000


class PeerLinks(PeerConnections):
    """The links, their tasks, and which connection of the transport is whose.

    Whoever has used a link calls `carry_out` before the turn goes on.
    """

    def __init__(
        self,
        broker_id: int,
        turn: Turn,
        timer: TimingWheel,
        transport: Transport,
        random: Random,
        *,
        timeout_ms: int,
        backoff_ms: int,
        idle_ms: int,
    ) -> None:
        self._turn = turn
        self._timer = timer
        self._transport = transport
        self.tasks = Tasks(turn.now_ms)
        settings = LinkSettings(
            client_id=f"broker-{broker_id}-replica",
            request_timeout_ms=timeout_ms,
            connection_setup_timeout_ms=min(_SETUP_MS, timeout_ms),
            reconnect_backoff_ms=_RECONNECT_MS,
            reconnect_backoff_ms_max=_RECONNECT_MS_MAX,
            retry_backoff_ms=max(backoff_ms, 1),
            retry_backoff_ms_max=max(backoff_ms, 1),
            connection_idle_ms_max=idle_ms,
        )
        self.links = Links(settings, self.tasks, random)
        # A link's number of a connection, and the transport's.
        self._ids: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        # What is asked for while outputs are carried out comes behind them.
        self._is_carrying = False
        self._alarm = _LinkAlarm(turn.now_ms + POLL_MS_MAX, self)
        timer.add(self._alarm)

    @property
    def count(self) -> int:
        """Connections that are there or being made."""
        return len(self._ids)

    def on_event(self, event: Event) -> bool:
        """Take an event of the transport; false if it concerns none of these connections."""
        number = self._numbers.get(event.connection_id)
        if number is None:
            return False
        kind = event.kind
        if kind == DISCONNECTED:
            self._forget(number)
        if kind in (CONNECTED, RECEIVED, DISCONNECTED):
            told = Event(kind)
            told.connection_id = number
            told.data = event.data
            told.error = event.error
            self._handle(told)
        return True

    def on_time(self) -> None:
        """Do what is due, and come again when the next thing is."""
        self.tasks.advance(self._turn.now_ms)
        self.carry_out()
        self._arm()

    def carry_out(self) -> None:
        """Do what links have asked for, in its order."""
        if self._is_carrying:
            return
        self._is_carrying = True
        while outputs := self.links.take_outputs():
            for output in outputs:
                self._carry(output)
        self._is_carrying = False
        self._arm()

    def _carry(self, output: Output) -> None:
        number = output.connection_id
        if isinstance(output, Resolve):
            # The transport looks names up by itself.
            self.links.handle(Resolved(number, [output.address]), self._turn.now_ms)
        elif isinstance(output, Connect):
            self._connect(number, output.address.host, output.address.port)
        elif isinstance(output, Send):
            if number in self._ids:
                self._transport.send(self._ids[number], [output.data])
        else:
            connection_id = self._forget(number)
            if connection_id:
                self._transport.close(connection_id)

    def _handle(self, event: LinkEvent) -> None:
        self.links.handle(event, self._turn.now_ms)
        self.carry_out()

    def _connect(self, number: int, host: str, port: int) -> None:
        self._forget(number)
        connection_id = self._transport.connect(host, port)
        self._ids[number] = connection_id
        self._numbers[connection_id] = number

    def _forget(self, number: int) -> int:
        connection_id = self._ids.pop(number, 0)
        self._numbers.pop(connection_id, None)
        return connection_id

    def _arm(self) -> None:
        now_ms = self._turn.now_ms
        due_ms = self.tasks.next_due_ms()
        wanted_ms = now_ms + POLL_MS_MAX if due_ms is None else max(due_ms, now_ms + 1)
        alarm = self._alarm
        if not alarm.is_pending or alarm.deadline_ms > wanted_ms or alarm.deadline_ms <= now_ms:
            self._timer.reschedule(alarm, wanted_ms)


class _LinkAlarm(TimerEntry):
    """Timer's entry for whatever is due next on any link."""

    def __init__(self, deadline_ms: int, links: PeerLinks) -> None:
        super().__init__(deadline_ms)
        self._links = links

    def expire(self) -> None:
        self._links.on_time()

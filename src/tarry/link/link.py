"""Link: one broker as seen by the side that sends requests, over one connection after another.

    Disconnected -> Resolving -> Connecting -> Negotiating (ApiVersions) -> Ready -> Disconnected

A request begins the connection, with the look-up of the broker's name.  Requests go out in order
and are answered in order.  Invariant: every exchange given to `send` ends once, by its answer or by
a failure; exchanges that wait for the connection fail with it.  A late answer closes the
connection, because none behind it can come either.  A connection that is unused for long is closed
without a failure, and the next request makes another.  A long answer may be decoded in steps, one a
turn; the answers behind it wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tarry.base.errors import UNSUPPORTED_VERSION, ProtocolViolation, error_name
from tarry.link.errors import (
    BrokerUnreachable,
    ClientError,
    ConnectionLost,
    InvalidRequest,
    RequestTimedOut,
    UnsupportedVersion,
)
from tarry.link.events import Address, Close, Connect, Resolve, Send
from tarry.link.exchange import Exchange
from tarry.link.frames import ANSWER_BYTES_MAX, FrameSplitter
from tarry.link.pauses import backoff_ms
from tarry.link.tasks import Task
from tarry.link.versions import VersionTable, decode_versions, version_table, versions_request
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersionsResponse
from tarry.wire.reader import MalformedData, Reader

if TYPE_CHECKING:
    from tarry.link.links import Links

DISCONNECTED: Final = 0
RESOLVING: Final = 1
CONNECTING: Final = 2
NEGOTIATING: Final = 3
READY: Final = 4

# First version of ApiVersions to try.  From version 5 on the request names the broker (KIP-1242),
# which a link does not, and an older broker would have to be asked twice.
VERSION_ASKED_FIRST: Final = 4

# Missing reaction of the peer in each state of an attempt to connect, for error texts.
WAITS_FOR: Final = ("", "its name was not looked up", "it took no connection", "no answer came")

# Shortest time between two checks of a connection in use, whatever the limit of idleness is.
IDLE_LOOK_MS: Final = 1_000

# A frame below this size is decoded at once: it has some thousand elements.
STEP_FRAME_BYTES: Final = 64 * 1024

# An attempt to connect that lasts longer is reported to callers that wait.
SLOW_MS: Final = 400


class Link:
    """Link to one broker, or to an address whose broker is unknown (a negative id)."""

    def __init__(
        self,
        owner: Links,
        broker_id: int,
        address: Address,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        self.owner = owner
        self.broker_id = broker_id
        self.address = address
        self.state = DISCONNECTED
        # Largest answer; a longer one ends the connection.
        self.answer_bytes_max = answer_bytes_max
        self.connection_id = 0
        self.failures = 0
        self.versions: VersionTable = {}
        self.last_error = ""
        self.last_failure: ClientError | None = None
        self._began_ms = 0
        # Time at which the last request left or the last answer came.
        self._used_ms = 0
        # Called when the connection is lost, after its exchanges have failed.
        self.when_lost: Callable[[int], None] | None = None
        self._retry_at_ms = 0
        self._throttled_until_ms = 0
        self._throttle_ms = 0
        self._addresses: list[Address] = []
        self._waiting: deque[Exchange[Any]] = deque()
        self._in_flight: deque[Exchange[Any]] = deque()
        self._frames = FrameSplitter(self.answer_bytes_max)
        # Answers that are not decoded yet; the first may be partly decoded.
        self._answers: deque[bytes] = deque()
        self._steps: Generator[None, None, Any] | None = None
        self._decode = Task(self._decode_on)
        self._correlation_id = 0
        self._deadline = Task(self._check_deadlines)
        self._setup_deadline = Task(self._give_up_connecting)
        self._resume = Task(self._go_on)
        self._idleness = Task(self._close_if_idle)

    @property
    def in_flight(self) -> int:
        """Number of requests that were given to this link and have no answer yet."""
        return len(self._in_flight) + len(self._waiting)

    def is_in_backoff(self, now_ms: int) -> bool:
        return self.state == DISCONNECTED and now_ms < self._retry_at_ms

    def __str__(self) -> str:
        if self.broker_id < 0:
            return f"bootstrap server {self.address}"
        return f"broker {self.broker_id} at {self.address}"

    # --- Requests

    def send(self, exchange: Exchange[Any], now_ms: int) -> None:
        """Send the request now, or once there is a connection that is not throttled."""
        if self._is_idle(now_ms):
            # The core took no turn in time; the broker or a firewall may have closed the
            # connection.
            self._close_quietly()
        exchange.deadline_ms = now_ms + exchange.timeout_ms
        self.owner.tasks.schedule_earlier(self._deadline, exchange.deadline_ms)
        if self.state == READY and not self._waiting and now_ms >= self._throttled_until_ms:
            self._transmit(exchange, now_ms)
            return
        self._waiting.append(exchange)
        if self.state == DISCONNECTED:
            self._begin(now_ms)
        elif self.state == READY:
            self.owner.tasks.schedule(self._resume, max(now_ms, self._throttled_until_ms))

    def _transmit(self, exchange: Exchange[Any], now_ms: int) -> None:
        self._used_ms = now_ms
        try:
            version = self._version_for(exchange)
            self._write(exchange, version, exchange.build(version))
        except UnsupportedVersion as error:
            exchange.on_failure(error, now_ms)
            return
        except (TypeError, ValueError, OverflowError) as flaw:
            # Catch the error of this request: it must not end the turn of the others.
            name = api_keys.APIS[exchange.api_key].name
            exchange.on_failure(InvalidRequest(f"{name} cannot be sent: {flaw}"), now_ms)
            return
        if not exchange.has_response:
            exchange.on_sent(now_ms)

    def _write(self, exchange: Exchange[Any], version: int, message: Message) -> None:
        correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        client_id = self.owner.settings.client_id
        frame = encode_request(exchange.api_key, version, correlation_id, client_id, message)
        self._correlation_id = correlation_id
        exchange.version = version
        exchange.correlation_id = correlation_id
        if exchange.has_response:
            self._in_flight.append(exchange)
        self.owner.put(Send(self.connection_id, frame))

    def _version_for(self, exchange: Exchange[Any]) -> int:
        """Return the newest version that both sides know and that can express the request."""
        ours = api_keys.APIS[exchange.api_key]
        theirs = self.versions.get(exchange.api_key)
        if theirs is None and exchange.version_unlisted >= 0:
            return exchange.version_unlisted
        if theirs is None:
            raise UnsupportedVersion(f"{self} does not know the request {ours.name}")
        newest = min(ours.version_max, theirs[1], exchange.version_max())
        if newest < max(ours.version_min, theirs[0]):
            raise UnsupportedVersion(
                f"{self} takes {ours.name} in versions {theirs[0]} to {theirs[1]}, this client "
                f"speaks {ours.version_min} to {min(ours.version_max, exchange.version_max())}"
            )
        return newest

    # --- The way to Ready

    def _begin(self, now_ms: int) -> None:
        if now_ms < self._retry_at_ms:
            self.owner.tasks.schedule(self._resume, self._retry_at_ms)
            return
        self.state = RESOLVING
        self._began_ms = now_ms
        self.connection_id = self.owner.new_connection_id(self)
        self.owner.put(Resolve(self.connection_id, self.address))
        timeout_ms = self.owner.settings.connection_setup_timeout_ms
        self.owner.tasks.schedule(self._setup_deadline, now_ms + timeout_ms)

    def _go_on(self, now_ms: int) -> None:
        """Connect again, or send waiting requests, because a backoff or a throttle is over."""
        if self.state == DISCONNECTED and self._waiting:
            self._begin(now_ms)
        elif self.state == READY:
            self._send_waiting(now_ms)

    def on_resolved(self, addresses: list[Address], error: str, now_ms: int) -> None:
        if not addresses:
            self.fail(self._unreachable(error or "no address"), now_ms)
            return
        self._addresses = addresses[1:]
        self.state = CONNECTING
        self.owner.put(Connect(self.connection_id, addresses[0]))

    def on_connected(self, now_ms: int) -> None:
        self.state = NEGOTIATING
        self._negotiate(VERSION_ASKED_FIRST)

    def _negotiate(self, version: int) -> None:
        timeout_ms = self.owner.settings.connection_setup_timeout_ms
        exchange = _Negotiation(self, timeout_ms)
        exchange.deadline_ms = self._setup_deadline.deadline_ms
        self._write(exchange, version, exchange.build(version))

    def on_api_versions(self, response: ApiVersionsResponse, version: int, now_ms: int) -> None:
        table = version_table(response)
        if response.error_code == UNSUPPORTED_VERSION and version > 0:
            # The answer is in version 0 and names the broker's range; older brokers leave it empty.
            newest = table.get(api_keys.API_VERSIONS, (0, 0))[1]
            self._negotiate(min(newest, version - 1))
            return
        if response.error_code != 0:
            name = error_name(response.error_code)
            self.fail(BrokerUnreachable(f"{self} refuses ApiVersions: {name}"), now_ms)
            return
        self.versions = table
        self.state = READY
        self.owner.made += 1
        self.failures = 0
        self.last_failure = None
        self.owner.tasks.cancel(self._setup_deadline)
        self._used_ms = now_ms
        if self.owner.settings.connection_idle_ms_max >= 0:
            self._look_at_idleness_after(self.owner.settings.connection_idle_ms_max, now_ms)
        self._send_waiting(now_ms)

    def _send_waiting(self, now_ms: int) -> None:
        while self._waiting and self.state == READY:
            if now_ms < self._throttled_until_ms:
                self.owner.tasks.schedule(self._resume, self._throttled_until_ms)
                return
            self._transmit(self._waiting.popleft(), now_ms)

    def _give_up_connecting(self, now_ms: int) -> None:
        waited_ms = self.owner.settings.connection_setup_timeout_ms
        reason = f"{self._waiting_for()} within {waited_ms} ms"
        self.owner.put(Close(self.connection_id))
        self.fail(self._unreachable(reason), now_ms)

    def _waiting_for(self) -> str:
        return self._frames.progress or WAITS_FOR[self.state]

    def _unreachable(self, reason: str) -> BrokerUnreachable:
        return BrokerUnreachable(
            f"cannot connect to {self.address}{self.owner.origin_of(self)}: {reason}"
        )

    def waits_for(self, now_ms: int) -> str:
        """Return the trouble of an attempt to connect that takes long; empty if there is none."""
        waited_ms = now_ms - self._began_ms
        if not RESOLVING <= self.state <= NEGOTIATING or waited_ms < SLOW_MS:
            return ""
        return str(self._unreachable(f"{self._waiting_for()} for {waited_ms} ms"))

    # --- Answers

    def on_received(self, data: bytes, now_ms: int) -> None:
        self._used_ms = now_ms
        try:
            self._answers.extend(self._frames.feed(data))
            if self._steps is None:
                self._take_answers(now_ms)
        except ProtocolViolation as violation:
            self._refuse(violation, now_ms)

    def _decode_on(self, now_ms: int) -> None:
        """Take the next step of the answer that is being decoded."""
        try:
            self._take_answers(now_ms)
        except ProtocolViolation as violation:
            self._refuse(violation, now_ms)

    def _refuse(self, violation: ProtocolViolation, now_ms: int) -> None:
        self.owner.put(Close(self.connection_id))
        self.fail(ConnectionLost(f"{self}: {violation}"), now_ms)

    def _take_answers(self, now_ms: int) -> None:
        """Hand out the answers that have come, until one needs more steps."""
        while self._answers:
            if not self._in_flight:
                raise ProtocolViolation("the broker answered what nobody asked")
            exchange = self._in_flight[0]
            try:
                is_whole, response = self._decoded(exchange, self._answers[0])
            except MalformedData as flaw:
                name = api_keys.APIS[exchange.api_key].name
                raise ProtocolViolation(f"its answer to {name} cannot be read: {flaw}") from None
            if not is_whole:
                self.owner.tasks.schedule(self._decode, now_ms)
                return
            self._answers.popleft()
            self._in_flight.popleft()
            self._on_response(exchange, response, now_ms)

    def _decoded(self, exchange: Exchange[Any], frame: bytes) -> tuple[bool, Any]:
        """Decode an answer, or one step of it; return whether it is complete, and the answer."""
        if self._steps is None:
            reader = Reader(frame)
            correlation_id = decode_response_header(reader, exchange.api_key, exchange.version)
            if correlation_id != exchange.correlation_id:
                raise ProtocolViolation(
                    f"it answered request {correlation_id}, and the answer to request "
                    f"{exchange.correlation_id} was due"
                )
            if exchange.decode_in_steps is None or len(frame) < STEP_FRAME_BYTES:
                return True, exchange.decode(reader, exchange.version)
            self._steps = exchange.decode_in_steps(reader, exchange.version)
        try:
            next(self._steps)
        except StopIteration as end:
            self._steps = None
            return True, end.value
        return False, None

    def _on_response(self, exchange: Exchange[Any], response: Any, now_ms: int) -> None:
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.owner.throttled_ms += throttle_ms
            self._throttle_ms = throttle_ms
            # The broker has answered at once; the client must pause for the throttle time
            # (KIP-219).
            self._throttled_until_ms = max(self._throttled_until_ms, now_ms + throttle_ms)
        exchange.on_response(response, now_ms)

    # --- The end

    def on_disconnected(self, error: str, now_ms: int) -> None:
        if self.state == CONNECTING and self._addresses:
            self.owner.put(Connect(self.connection_id, self._addresses.pop(0)))
            return
        reason = error or "the broker closed the connection"
        if self.state == READY:
            self.fail(ConnectionLost(f"{self}: {reason}"), now_ms)
            return
        if self.state == NEGOTIATING:
            reason = f"{reason} before its first answer, as one that wants TLS does"
        self.fail(self._unreachable(reason), now_ms)

    def close(self, error: ClientError, now_ms: int) -> None:
        """Close the connection from this side; do nothing if there is none."""
        if self.state != DISCONNECTED:
            self.owner.put(Close(self.connection_id))
        self.fail(error, now_ms)

    def fail(self, error: ClientError, now_ms: int) -> None:
        """Fail all exchanges of the connection, oldest first, because it is lost."""
        was_ready = self.state == READY
        if was_ready:
            self.owner.lost += 1
        elif self.state != DISCONNECTED:
            self.owner.failed += 1
        self.state = DISCONNECTED
        self.last_error = str(error)
        self.last_failure = error
        self.failures += 1
        settings = self.owner.settings
        self._retry_at_ms = now_ms + backoff_ms(
            settings.reconnect_backoff_ms,
            settings.reconnect_backoff_ms_max,
            self.failures,
            self.owner.random,
        )
        self._frames = FrameSplitter(self.answer_bytes_max)
        self._answers = deque()
        self._steps = None
        tasks = (self._deadline, self._setup_deadline, self._resume, self._idleness, self._decode)
        for task in tasks:
            self.owner.tasks.cancel(task)
        in_flight, waiting = self._in_flight, self._waiting
        self._in_flight, self._waiting = deque(), deque()
        self.owner.forget(self.connection_id)
        for exchange in in_flight:
            exchange.on_failure(error, now_ms)
        unsent = BrokerUnreachable(str(error)) if was_ready else error
        for exchange in waiting:
            exchange.on_failure(unsent, now_ms)
        self.owner.on_lost(self, now_ms)

    def _is_idle(self, now_ms: int) -> bool:
        """Return True if a connection without open requests was unused for too long."""
        idle_ms_max = self.owner.settings.connection_idle_ms_max
        is_unused = self.state == READY and not self._in_flight and not self._waiting
        return is_unused and 0 <= idle_ms_max < now_ms - self._used_ms

    def _close_if_idle(self, now_ms: int) -> None:
        """Close the connection if it is idle; otherwise check again when it may be."""
        if self._is_idle(now_ms):
            self._close_quietly()
            return
        idle_ms_max = self.owner.settings.connection_idle_ms_max
        is_unused = not self._in_flight and not self._waiting
        left_ms = self._used_ms + idle_ms_max - now_ms if is_unused else idle_ms_max
        self._look_at_idleness_after(left_ms if is_unused else max(left_ms, IDLE_LOOK_MS), now_ms)

    def _look_at_idleness_after(self, left_ms: int, now_ms: int) -> None:
        # Only more than the limit makes a connection idle, so add 1 ms.
        self.owner.tasks.schedule(self._idleness, now_ms + left_ms + 1)

    def _close_quietly(self) -> None:
        """Close a connection without open requests: this is no failure, and no sign about the
        cluster."""
        self.owner.put(Close(self.connection_id))
        self.owner.forget(self.connection_id)
        self.state = DISCONNECTED
        self._frames = FrameSplitter(self.answer_bytes_max)
        for task in (self._deadline, self._resume, self._idleness):
            self.owner.tasks.cancel(task)

    def _check_deadlines(self, now_ms: int) -> None:
        """Close the connection if an answer is late, and arm the next deadline."""
        # An answer that has come and is not decoded yet is not late.
        for exchange in islice(self._in_flight, len(self._answers), None):
            if exchange.deadline_ms <= now_ms:
                name = api_keys.APIS[exchange.api_key].name
                half = self._frames.progress
                reason = f"{self} did not answer {name} within {exchange.timeout_ms} ms"
                self.close(RequestTimedOut(f"{reason}: {half}" if half else reason), now_ms)
                return
        late = [one for one in self._waiting if one.deadline_ms <= now_ms]
        for exchange in late:
            if exchange not in self._waiting:
                # An exchange before it has closed the link, which ended all that waited.
                continue
            # The request was never sent, so the connection stays in order.
            self._waiting.remove(exchange)
            exchange.on_failure(BrokerUnreachable(self._why_unsent(exchange, now_ms)), now_ms)
        unanswered = islice(self._in_flight, len(self._answers), None)
        deadlines = [one.deadline_ms for one in (*unanswered, *self._waiting)]
        if deadlines:
            self.owner.tasks.schedule(self._deadline, min(deadlines))

    def _why_unsent(self, exchange: Exchange[Any], now_ms: int) -> str:
        """Return why a request was not sent in time."""
        if self.state != READY:
            return self.last_error or f"{self} took no request for {exchange.timeout_ms} ms"
        return f"{self} asked for a pause of {self._throttle_ms} ms (quota)"


class _Negotiation(Exchange[ApiVersionsResponse]):
    """Exchange that asks for the API versions of the broker."""

    def __init__(self, link: Link, timeout_ms: int) -> None:
        super().__init__(api_keys.API_VERSIONS, decode_versions, timeout_ms)
        self.link = link

    def build(self, version: int) -> Message:
        return versions_request()

    def on_response(self, response: ApiVersionsResponse, now_ms: int) -> None:
        self.link.on_api_versions(response, self.version, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        """Do nothing: the link itself has failed and informs the exchanges that wait."""

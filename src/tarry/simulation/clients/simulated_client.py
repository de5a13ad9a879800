"""Simulated client: one client with one connection, opened anew whenever it is lost.

Requests are answered in their order; a request that is not answered within its wait and some
patience makes the client close the connection, as real clients do.  `ScriptedClient` runs a
generator that yields queries and pauses, for clients that do one thing after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.simulation.clients.context import RunContext
from tarry.simulation.connection import ClientSocket
from tarry.simulation.exchange import SLACK_MS, ObservedExchange
from tarry.wire.reader import Reader

# Time that a client waits beyond the time that it allows the broker to wait.
PATIENCE_MS: Final = 4_000
_BACKOFF_MS_MAX: Final = 80

OnAnswer = Callable[[ObservedExchange, Message], None]
OnLost = Callable[[ObservedExchange], None]
Decode = Callable[[Reader, int], Message]


class Query:
    """Request with what is needed to send it and to understand its answer."""

    def __init__(
        self, api_key: int, version: int, request: Message, decode: Decode, wait_ms: int = 0
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.request = request
        self.decode = decode
        self.wait_ms = wait_ms
        self.waits_for: list[tuple[bytes, int, int]] = []
        self.is_answer_expected = True
        # Time that the liveness checker grants beyond `wait_ms`.
        self.slack_ms = SLACK_MS
        # True if the broker starts all waits again after a stall of its process.
        self.is_stall_forgiven = False
        # Called with the exchange as soon as the request is on its way.
        self.on_sent: OnLost | None = None


class _PendingQuery:
    """Query that waits for its answer."""

    __slots__ = ("deadline_ms", "exchange", "on_answer", "on_lost", "query")

    def __init__(
        self, query: Query, exchange: ObservedExchange, on_answer: OnAnswer, on_lost: OnLost
    ) -> None:
        self.query = query
        self.exchange = exchange
        self.on_answer = on_answer
        self.on_lost = on_lost
        self.deadline_ms = 0


class SimulatedClient:
    """Client of the broker."""

    def __init__(self, context: RunContext, name: str) -> None:
        self.context = context
        self.name = name
        self._socket: ClientSocket | None = None
        self._pending: deque[_PendingQuery] = deque()
        self._buffer = bytearray()
        self._correlation_id = 0
        # True if the time-out of a request counts from the answer to the request before it.
        self.is_patient = False

    @property
    def socket(self) -> ClientSocket | None:
        return self._socket

    @property
    def is_connected(self) -> bool:
        return self._socket is not None and self._socket.is_connected

    def start(self) -> None:
        """Begin to act; the first connection is made at once."""
        self._connect()

    def ready(self) -> None:
        """Send requests on a connection that was just opened.  Subclasses override it."""

    def ask(self, query: Query, on_answer: OnAnswer, on_lost: OnLost) -> ObservedExchange:
        """Send a request; one of the two functions is called later, once."""
        assert self._socket is not None
        frame, exchange = self._prepare(query, on_answer, on_lost)
        self._socket.send(frame, exchange)
        if query.on_sent is not None:
            query.on_sent(exchange)
        return exchange

    def ask_together(self, asked: list[tuple[Query, OnAnswer, OnLost]]) -> None:
        """Send requests in one write."""
        assert self._socket is not None
        frames = [self._prepare(*each) for each in asked]
        self._socket.send_together([*frames])
        for (query, _on_answer, _on_lost), (_frame, exchange) in zip(asked, frames, strict=True):
            if query.on_sent is not None:
                query.on_sent(exchange)

    def _prepare(
        self, query: Query, on_answer: OnAnswer, on_lost: OnLost
    ) -> tuple[bytes, ObservedExchange]:
        context = self.context
        self._correlation_id += 1
        exchange = ObservedExchange(query.api_key, query.version, self._correlation_id)
        exchange.is_answer_expected = query.is_answer_expected
        exchange.wait_ms = query.wait_ms
        exchange.slack_ms = query.slack_ms
        exchange.is_stall_forgiven = query.is_stall_forgiven
        exchange.waits_for = query.waits_for
        frame = encode_request(
            query.api_key, query.version, self._correlation_id, self.name, query.request
        )
        if query.is_answer_expected:
            pending = _PendingQuery(query, exchange, on_answer, on_lost)
            pending.deadline_ms = context.clock.now_ms + query.wait_ms + PATIENCE_MS
            self._pending.append(pending)
            if len(self._pending) == 1:
                self._watch()
        return frame, exchange

    def hang_up(self) -> None:
        """Close the connection from this side."""
        if self._socket is not None:
            self._socket.close()
            self._lose_connection()

    # --- The socket's owner.

    def on_connected(self) -> None:
        self.ready()

    def on_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[4:end])
            del self._buffer[:end]
            self._take_answer(body)

    def on_closed(self) -> None:
        self._lose_connection()

    def _take_answer(self, body: bytes) -> None:
        context = self.context
        if not self._pending:
            context.history.violate(f"{self.name} got an answer to nothing it had asked")
            self.hang_up()
            return
        pending = self._pending.popleft()
        query = pending.query
        reader = Reader(body)
        correlation_id = decode_response_header(reader, query.api_key, query.version)
        context.trace.add(
            context.clock.now_ms,
            f"{self.name} answer {query.api_key} v{query.version} "
            f"#{correlation_id} {len(body)} bytes",
        )
        context.trace.add_bytes(body)
        if correlation_id != pending.exchange.correlation_id:
            context.history.violate(
                f"{self.name} asked #{pending.exchange.correlation_id} and got the answer to "
                f"#{correlation_id}"
            )
            self._pending.appendleft(pending)
            self.hang_up()
            return
        answer = query.decode(reader, query.version)
        if reader.remaining():
            context.history.violate(
                f"{reader.remaining()} bytes follow the answer to API key {query.api_key} "
                f"version {query.version}"
            )
        if self.is_patient and self._pending:
            # The next request had to wait for this answer: its time-out starts now.
            head = self._pending[0]
            head.deadline_ms = context.clock.now_ms + head.query.wait_ms + PATIENCE_MS
        pending.on_answer(pending.exchange, answer)

    # --- Losing and making connections.

    def _connect(self) -> None:
        if self._socket is None:
            self._socket = self.context.network.connect(self)

    def _lose_connection(self) -> None:
        self._socket = None
        self._buffer.clear()
        lost = list(self._pending)
        self._pending.clear()
        for pending in lost:
            pending.on_lost(pending.exchange)
        self.context.clock.after(5 + self.context.random.randrange(_BACKOFF_MS_MAX), self._connect)

    def _watch(self) -> None:
        """Plan a look at the time when the oldest query should have been answered."""
        if self._pending:
            now_ms = self.context.clock.now_ms
            due_ms = max(self._pending[0].deadline_ms, now_ms)
            self.context.clock.after(due_ms - now_ms + 1, self._check_patience)

    def _check_patience(self) -> None:
        if not self._pending:
            return
        if self._pending[0].deadline_ms <= self.context.clock.now_ms:
            self.context.trace.add(self.context.clock.now_ms, f"{self.name} loses its patience")
            self.hang_up()
        else:
            self._watch()


class Delay:
    """Step of a script: a pause."""

    def __init__(self, duration_ms: int) -> None:
        self.duration_ms = duration_ms


class QueryOutcome:
    """Result of a query: the answer, or None when the connection was lost before."""

    def __init__(self, exchange: ObservedExchange, answer: Message | None) -> None:
        self.exchange = exchange
        self.answer = answer


T = TypeVar("T")
Steps = Generator[Query | Delay, QueryOutcome | None, T]
Script = Steps[None]


class ScriptedClient(SimulatedClient):
    """Client that asks one thing at a time."""

    def __init__(self, context: RunContext, name: str) -> None:
        super().__init__(context, name)
        self.is_done = False
        self._script: Script = self.script()
        self._step: Query | Delay | None = None
        self._is_waiting_for_connection = True

    def script(self) -> Script:
        """Ask one query after the other.  For subclasses."""
        raise NotImplementedError

    def ready(self) -> None:
        if self._is_waiting_for_connection:
            self._is_waiting_for_connection = False
            if self._step is None:
                self._advance(None)
            else:
                self._do_step()

    def _advance(self, outcome: QueryOutcome | None) -> None:
        try:
            if self._step is None:
                self._step = next(self._script)
            else:
                self._step = self._script.send(outcome)
        except StopIteration:
            self.is_done = True
            return
        self._do_step()

    def _do_step(self) -> None:
        step = self._step
        if isinstance(step, Delay):
            self.context.clock.after(step.duration_ms, self._resume)
        elif not self.is_connected:
            self._is_waiting_for_connection = True
        elif step is not None:
            self.ask(step, self._on_answer, self._on_lost)

    def _resume(self) -> None:
        self._advance(None)

    def _on_answer(self, exchange: ObservedExchange, answer: Message) -> None:
        self._advance(QueryOutcome(exchange, answer))

    def _on_lost(self, exchange: ObservedExchange) -> None:
        self._advance(QueryOutcome(exchange, None))


class RunClient(ScriptedClient):
    """Scripted client with a context of its own, whose violations go to the history of `run`.

    The run also says when all is quiet.
    """

    def __init__(self, context: RunContext, name: str, run: RunContext) -> None:
        super().__init__(context, name)
        context.history = run.history
        self.run = run

"""An actor: one client with one connection, which it makes anew whenever it is lost.

Requests are answered in their order; a request that is not answered within its wait and some
patience makes the actor close the connection, as real clients do.  `ScriptedActor` runs a
generator that yields questions and pauses, for actors that do one thing after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.simulation.connection import ClientSocket
from tarry.simulation.exchange import SLACK_MS, Exchange
from tarry.simulation.workload.stage import Stage
from tarry.wire.reader import Reader

# How long an actor waits beyond what it allows the broker to wait.
PATIENCE_MS: Final = 4_000
_BACKOFF_MS_MAX: Final = 80

OnAnswer = Callable[[Exchange, Message], None]
OnLost = Callable[[Exchange], None]
Decode = Callable[[Reader, int], Message]


class Question:
    """A request with what is needed to send it and to understand its answer."""

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
        # What the liveness checker grants beyond `wait_ms`; its default if not set.
        self.slack_ms = SLACK_MS
        # The broker begins all waiting anew when its own process was stopped.
        self.is_stall_forgiven = False
        # Hears of the exchange as soon as the request is on its way.
        self.on_sent: OnLost | None = None


class _Pending:
    """A question that waits for its answer."""

    __slots__ = ("deadline_ms", "exchange", "on_answer", "on_lost", "question")

    def __init__(
        self, question: Question, exchange: Exchange, on_answer: OnAnswer, on_lost: OnLost
    ) -> None:
        self.question = question
        self.exchange = exchange
        self.on_answer = on_answer
        self.on_lost = on_lost
        self.deadline_ms = 0


class Actor:
    """A client of the broker."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self._socket: ClientSocket | None = None
        self._pending: deque[_Pending] = deque()
        self._buffer = bytearray()
        self._correlation_id = 0
        # The time of a request counts from the answer to the one before it.
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
        """The connection is there: ask something.  For subclasses."""

    def ask(self, question: Question, on_answer: OnAnswer, on_lost: OnLost) -> Exchange:
        """Send a request; one of the two functions is called later, once."""
        assert self._socket is not None
        frame, exchange = self._prepare(question, on_answer, on_lost)
        self._socket.send(frame, exchange)
        if question.on_sent is not None:
            question.on_sent(exchange)
        return exchange

    def ask_together(self, asked: list[tuple[Question, OnAnswer, OnLost]]) -> None:
        """Send requests in one write."""
        assert self._socket is not None
        frames = [self._prepare(*each) for each in asked]
        self._socket.send_together([*frames])
        for (question, _on_answer, _on_lost), (_frame, exchange) in zip(asked, frames, strict=True):
            if question.on_sent is not None:
                question.on_sent(exchange)

    def _prepare(
        self, question: Question, on_answer: OnAnswer, on_lost: OnLost
    ) -> tuple[bytes, Exchange]:
        stage = self.stage
        self._correlation_id += 1
        exchange = Exchange(question.api_key, question.version, self._correlation_id)
        exchange.is_answer_expected = question.is_answer_expected
        exchange.wait_ms = question.wait_ms
        exchange.slack_ms = question.slack_ms
        exchange.is_stall_forgiven = question.is_stall_forgiven
        exchange.waits_for = question.waits_for
        frame = encode_request(
            question.api_key, question.version, self._correlation_id, self.name, question.request
        )
        if question.is_answer_expected:
            pending = _Pending(question, exchange, on_answer, on_lost)
            pending.deadline_ms = stage.clock.now_ms + question.wait_ms + PATIENCE_MS
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
        stage = self.stage
        if not self._pending:
            stage.history.violate(f"{self.name} got an answer to nothing it had asked")
            self.hang_up()
            return
        pending = self._pending.popleft()
        question = pending.question
        reader = Reader(body)
        correlation_id = decode_response_header(reader, question.api_key, question.version)
        stage.trace.add(
            stage.clock.now_ms,
            f"{self.name} answer {question.api_key} v{question.version} "
            f"#{correlation_id} {len(body)} bytes",
        )
        stage.trace.add_bytes(body)
        if correlation_id != pending.exchange.correlation_id:
            stage.history.violate(
                f"{self.name} asked #{pending.exchange.correlation_id} and got the answer to "
                f"#{correlation_id}"
            )
            self._pending.appendleft(pending)
            self.hang_up()
            return
        answer = question.decode(reader, question.version)
        if reader.remaining():
            stage.history.violate(
                f"{reader.remaining()} bytes follow the answer to API key {question.api_key} "
                f"version {question.version}"
            )
        if self.is_patient and self._pending:
            # What stood behind this one has waited for it, as it should.
            head = self._pending[0]
            head.deadline_ms = stage.clock.now_ms + head.question.wait_ms + PATIENCE_MS
        pending.on_answer(pending.exchange, answer)

    # --- Losing and making connections.

    def _connect(self) -> None:
        if self._socket is None:
            self._socket = self.stage.network.connect(self)

    def _lose_connection(self) -> None:
        self._socket = None
        self._buffer.clear()
        lost = list(self._pending)
        self._pending.clear()
        for pending in lost:
            pending.on_lost(pending.exchange)
        self.stage.clock.after(5 + self.stage.random.randrange(_BACKOFF_MS_MAX), self._connect)

    def _watch(self) -> None:
        """Come back when the oldest question should have been answered."""
        if self._pending:
            now_ms = self.stage.clock.now_ms
            due_ms = max(self._pending[0].deadline_ms, now_ms)
            self.stage.clock.after(due_ms - now_ms + 1, self._check_patience)

    def _check_patience(self) -> None:
        if not self._pending:
            return
        if self._pending[0].deadline_ms <= self.stage.clock.now_ms:
            self.stage.trace.add(self.stage.clock.now_ms, f"{self.name} loses its patience")
            self.hang_up()
        else:
            self._watch()


class Pause:
    """A step of a script: wait so long."""

    def __init__(self, duration_ms: int) -> None:
        self.duration_ms = duration_ms


class Outcome:
    """What became of a question: the answer, or None when the connection was lost before."""

    def __init__(self, exchange: Exchange, answer: Message | None) -> None:
        self.exchange = exchange
        self.answer = answer


T = TypeVar("T")
Steps = Generator[Question | Pause, Outcome | None, T]
Script = Steps[None]


class ScriptedActor(Actor):
    """An actor that asks one thing at a time."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        self.is_done = False
        self._script: Script = self.script()
        self._step: Question | Pause | None = None
        self._is_waiting_for_connection = True

    def script(self) -> Script:
        """What this actor does.  For subclasses."""
        raise NotImplementedError

    def ready(self) -> None:
        if self._is_waiting_for_connection:
            self._is_waiting_for_connection = False
            if self._step is None:
                self._advance(None)
            else:
                self._do_step()

    def _advance(self, outcome: Outcome | None) -> None:
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
        if isinstance(step, Pause):
            self.stage.clock.after(step.duration_ms, self._resume)
        elif not self.is_connected:
            self._is_waiting_for_connection = True
        elif step is not None:
            self.ask(step, self._on_answer, self._on_lost)

    def _resume(self) -> None:
        self._advance(None)

    def _on_answer(self, exchange: Exchange, answer: Message) -> None:
        self._advance(Outcome(exchange, answer))

    def _on_lost(self, exchange: Exchange) -> None:
        self._advance(Outcome(exchange, None))

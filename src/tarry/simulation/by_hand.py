"""Broker driven by a test: one turn at a time, frames in, answers out, no network, no chance.

For tests that ask one query of the broker.  The disk is the simulated one, so flushes end when
the test says so and a crash loses what was not flushed.
"""

from __future__ import annotations

import random
from typing import Final

from tarry.base import doors
from tarry.base.doors import Chunk, FileRegion
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import StartBroker, start_broker
from tarry.protocol.frames import encode_request
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.protocol.registry import MESSAGES
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.reader import Reader

START_MS: Final = 1_000_000
START_WALL_MS: Final = 1_800_000_000_000


class RecordingTransport:
    """Transport that keeps what is sent, by connection; if `stuck`, it counts it as unsent too."""

    def __init__(self) -> None:
        self.sent: dict[int, bytes] = {}
        self.unsent: dict[int, int] = {}
        self.stuck: dict[int, bool] = {}
        self.paused: dict[int, bool] = {}
        self.closed: dict[int, bool] = {}
        self.is_listening = True

    def connect(self, host: str, port: int) -> int:
        raise AssertionError(f"nobody connects to {host}:{port} here")

    def send(self, connection_id: int, chunks: list[Chunk]) -> int:
        data = b"".join(
            chunk.file.read(chunk.position, chunk.size)
            if isinstance(chunk, FileRegion)
            else bytes(chunk)
            for chunk in chunks
        )
        self.sent[connection_id] = self.sent.get(connection_id, b"") + data
        if self.stuck.get(connection_id):
            self.unsent[connection_id] = self.unsent.get(connection_id, 0) + len(data)
        return self.unsent.get(connection_id, 0)

    def stop_listening(self) -> None:
        self.is_listening = False

    def pause_reading(self, connection_id: int) -> None:
        self.paused[connection_id] = True

    def resume_reading(self, connection_id: int) -> None:
        self.paused[connection_id] = False

    def close(self, connection_id: int) -> None:
        self.closed[connection_id] = True


class BrokerByHand:
    """Broker with its disk and clock.  `turn` runs one turn, `settle` all that are due now."""

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        seed: int = 1,
        *,
        start: StartBroker = start_broker,
    ) -> None:
        self._start = start
        self.settings = Settings(settings or {})
        self.random = random.Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.now_ms = START_MS
        self.now_wall_ms = START_WALL_MS
        self._connection_ids = 0
        self.start()

    def start(self) -> None:
        """Start, or start again on what the disk holds."""
        self.transport = RecordingTransport()
        self.broker: Broker = self._start(
            self.disk, self.transport, self.random, self.settings, self.now_ms, self.now_wall_ms
        )

    def turn(self, *events: doors.Event, after_ms: int = 0) -> None:
        """Run a turn of the broker, `after_ms` later than the last."""
        self.now_ms += after_ms
        self.now_wall_ms += after_ms
        self.broker.turn(list(events), self.now_ms, self.now_wall_ms)

    def settle(self, turns_max: int = 1_000) -> None:
        """Complete flushes and take turns until nothing is left to do now."""
        for _ in range(turns_max):
            events = self.disk.complete_flushes()
            self.turn(*events)
            if self.broker.is_stopped:
                return
            if events or self.disk.pending_flushes():
                continue
            if not self.broker.has_work_left() and self.broker.flushes.is_idle():
                return
        raise AssertionError("the broker does not come to rest")

    def crash(self) -> None:
        """Lose power and start again."""
        self.disk.crash()
        self.start()

    def stop(self) -> None:
        """Stop cleanly."""
        self.turn(doors.stop_requested())
        self.settle()
        assert self.broker.is_stopped

    def connect(self) -> ClientByHand:
        """Open a new connection."""
        self._connection_ids += 1
        self.turn(doors.connected(self._connection_ids, "PLAINTEXT", "10.0.0.1:1"))
        return ClientByHand(self, self._connection_ids)


class ClientByHand:
    """Connection to a broker that a test drives by hand."""

    def __init__(self, hand: BrokerByHand, connection_id: int) -> None:
        self.hand = hand
        self.connection_id = connection_id
        self._asked: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._read = 0

    @property
    def is_closed(self) -> bool:
        """True if the broker closed the connection."""
        return self.hand.transport.closed.get(self.connection_id, False)

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes and take one turn."""
        self.hand.turn(doors.received(self.connection_id, data))

    def encode(self, api_key: int, version: int, request: Message) -> bytes:
        """Encode a frame with the next correlation id."""
        self._correlation_id += 1
        self._asked[self._correlation_id] = (api_key, version)
        return encode_request(api_key, version, self._correlation_id, "by-hand", request)

    def send(self, api_key: int, version: int, request: Message) -> None:
        """Send one request and take one turn."""
        self.send_bytes(self.encode(api_key, version, request))

    def answers(self) -> list[Message]:
        """Return the answers that came since the last call, in their order."""
        data = self.hand.transport.sent.get(self.connection_id, b"")
        found: list[Message] = []
        while self._read + 4 <= len(data):
            size = int.from_bytes(data[self._read : self._read + 4], "big")
            start = self._read + 4
            assert start + size <= len(data), "half an answer"
            correlation_id = int.from_bytes(data[start : start + 4], "big")
            api_key, version = self._asked.pop(correlation_id)
            reader = Reader(data, start, start + size)
            assert decode_response_header(reader, api_key, version) == correlation_id
            found.append(MESSAGES[api_key].decode_response(reader, version))
            assert reader.remaining() == 0
            self._read = start + size
        return found

    def ask(self, api_key: int, version: int, request: Message) -> Message:
        """Send one request, let the broker come to rest, and return its only answer."""
        self.send(api_key, version, request)
        self.hand.settle()
        answers = self.answers()
        assert len(answers) == 1, f"{len(answers)} answers"
        return answers[0]

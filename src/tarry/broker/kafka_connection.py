"""Connection that speaks Kafka's protocol: it cuts bytes into frames and orders the answers.

Bytes arrive in pieces of any size.  A frame's memory grows with the bytes that have arrived, and
not with the length that it claims.  Each request takes a slot; an answer leaves when all slots
before it are answered (docs/explanation/protocol-traps.md, 16).  A request is handled when those
before it are answered, so that it sees their effects (19); `must_next_wait` has the exceptions.  A
connection also handles no further request while its peer has too much to take: `is_blocked`.  Hot:
every request passes here.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64, mypyc_attr

from tarry.base.doors import Chunk
from tarry.base.errors import ProtocolViolation
from tarry.base.limits import FRAME_PIECES_MAX, REQUESTS_IN_FLIGHT_MAX, UNSENT_BYTES_MAX
from tarry.broker.connection import Connection
from tarry.protocol import api_keys
from tarry.purgatory.operation import DelayedOperation

# Length of the longest beginning that shows a foreign protocol, and of the shortest request header.
HEADER_BYTES_MIN: Final = 8

# Number of bytes at the beginning of a frame with its length and its API key.
API_KEY_END: Final = 6

# A part of a frame below this size is a piece: its object takes as much memory as its bytes.
SMALL_PIECE_BYTES: Final = 1_024

_FOREIGN: Final = (
    (b"GET ", "HTTP"),
    (b"POST", "HTTP"),
    (b"HEAD", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"OPTI", "HTTP"),
    (b"PRI ", "HTTP/2"),
    (b"\x16\x03\x01", "TLS"),
    (b"\x16\x03\x02", "TLS"),
    (b"\x16\x03\x03", "TLS"),
    (b"SSH-", "SSH"),
)


def foreign_protocol(start: bytes) -> str:
    """Return the name of the protocol that a frame's first four bytes show; "" if it is none
    known.
    """
    for prefix, name in _FOREIGN:
        if start.startswith(prefix):
            return name
    return ""


@mypyc_attr(allow_interpreted_subclasses=True)
class Slot:
    """The place of one answer among the answers of a connection."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        # Operation that answers the request later; it is cancelled when the peer disconnects.
        self.operation: DelayedOperation | None = None
        self.is_answered = False
        self.chunks: list[Chunk] | None = None
        self.size: i64 = 0


class FrameHandler:
    """Handler of the frames of all connections that speak Kafka's protocol."""

    def handle_frames(self, connection: KafkaConnection) -> None:
        """Handle the complete frames that have arrived, until the peer must take answers first."""
        raise NotImplementedError


class KafkaConnection(Connection):
    """Connection of a client; `data[position:end]` has arrived and is not handled yet."""

    def __init__(
        self, handler: FrameHandler, connection_id: int, listener: str, peer: str, bytes_max: int
    ) -> None:
        super().__init__(connection_id, listener, peer)
        self.handler = handler
        self.frame_bytes_max = bytes_max
        # open: the handler of ApiVersions sets it
        self.client_software = ""
        # Bytes that are not handled yet: a buffer with whole frames, or the parts of one unfinished
        # frame.
        self.data: bytes = b""
        self.position: i64 = 0
        self.parts: list[bytes] = []
        # Number of parts at the front that pieces were joined into.
        self.parts_joined: i64 = 0
        self.parts_size: i64 = 0
        self.parts_needed: i64 = 0
        self.slots: list[Slot] = []
        self.first_slot: i64 = 0
        # Number of requests that are handled and not answered: one, or several of one API.
        self.waiting: i64 = 0
        # Bytes of finished answers that wait for the answers before them.
        self.held: i64 = 0
        # Number of requests and answers of this connection that are made in steps.  Several commits
        # may be, but no other request is handled before all of them are done.
        self._holds: i64 = 0
        # Bytes of the frame that is handled in steps; later frames may have arrived behind it.
        self.held_frame_bytes: i64 = 0

    # -- bytes in

    def feed(self, data: bytes) -> None:
        """Receive bytes that have arrived; `next_frame` finds the whole frames."""
        if self.parts_size == 0 and self.position >= len(self.data):
            self.data = data
            self.position = 0
            return
        if self.parts_size == 0:
            # Whole frames wait here while the connection is blocked.
            self._begin_parts()
        self.parts.append(data)
        self.parts_size += len(data)
        if self.parts_size >= self.parts_needed:
            self._join_parts()
        elif (
            len(data) < SMALL_PIECE_BYTES and len(self.parts) - self.parts_joined > FRAME_PIECES_MAX
        ):
            self._join_pieces()

    def process(self) -> None:
        self.handler.handle_frames(self)

    def has_part(self) -> bool:
        return self.parts_size > 0

    def _begin_parts(self) -> None:
        rest = self.data[self.position :]
        self.parts.append(rest)
        self.parts_size = len(rest)
        self.parts_needed = 0
        self.data = b""
        self.position = 0

    def _join_pieces(self) -> None:
        joined = b"".join(self.parts[self.parts_joined :])
        del self.parts[self.parts_joined :]
        self.parts.append(joined)
        self.parts_joined += 1

    def _join_parts(self) -> None:
        joined = b"".join(self.parts) if len(self.parts) > 1 else self.parts[0]
        self.parts = []
        self.parts_joined = 0
        self.parts_size = 0
        self.data = joined
        self.position = 0

    def next_frame(self, now_ms: int) -> i64:
        """Return the position behind the length field of the next whole frame; -1 if none is whole.

        The frame is `data[returned:self.position]` then.  Raises `ProtocolViolation` for a length
        that no request has.
        """
        if self.parts_size > 0:
            return -1
        available: i64 = len(self.data) - self.position
        if available < 4:
            if available > 0:
                self._wait_for(4, now_ms)
            return -1
        size: i64 = i64(read_i32_be(self.data, self.position))
        if size < HEADER_BYTES_MIN or size > self.frame_bytes_max:
            raise ProtocolViolation(self._bad_length(size))
        if available < size + 4:
            # Wait for the API key first: a frame of some APIs need not wait for answers.
            self._wait_for(size + 4 if available >= API_KEY_END else API_KEY_END, now_ms)
            return -1
        position = self.position + 4
        self.position = position + size
        self.begun_ms = -1
        self.active_ms = now_ms
        return position

    def put_frame_back(self, position: i64) -> None:
        """Let the frame that `next_frame` returned last be returned again."""
        self.position = position - 4

    def must_next_wait(self) -> bool:
        """Return true if the next frame, whole or not, has to wait until all requests are answered.

        A produce behind produces need not wait, nor a commit of offsets behind commits.  They are
        done in the order of the log, no decision about the second depends on whether the first is
        durable, and their answers concern only themselves.
        """
        if len(self.data) - self.position < API_KEY_END:
            return False
        key: int = read_i16_be(self.data, self.position + 4)
        if key == self.slots[-1].api_key and key in (api_keys.PRODUCE, api_keys.OFFSET_COMMIT):
            return False
        # A frame of an impossible length does not wait: it closes the connection at once.
        size: i64 = i64(read_i32_be(self.data, self.position))
        return HEADER_BYTES_MIN <= size <= self.frame_bytes_max

    def _wait_for(self, needed: i64, now_ms: int) -> None:
        self._begin_parts()
        self.parts_needed = needed
        if self.begun_ms < 0:
            self.begun_ms = now_ms

    def _bad_length(self, size: i64) -> str:
        start = self.data[self.position : self.position + 4]
        name = foreign_protocol(start)
        if name:
            return f"these are {name} bytes on a Kafka port"
        if size < HEADER_BYTES_MIN:
            return f"a frame of {size} bytes is no request"
        return (
            f"a frame of {size} bytes is over socket.request.max.bytes ({self.frame_bytes_max}); "
            "raise that setting if such requests are meant"
        )

    def trim(self) -> i64:
        # The bytes of a frame that is handled in steps count until its last step.
        size: i64 = len(self.data)
        left = size - self.position
        if self._holds > 0:
            if self.held_frame_bytes == 0:
                self.held_frame_bytes = self.position
            return self.held_frame_bytes + left + self.parts_size
        self.held_frame_bytes = 0
        if size > 0 and left * 2 <= size:
            # A frame of 100 MB must not stay in memory because of the first bytes of the next one.
            self.data = self.data[self.position :] if left else b""
            self.position = 0
        return left + self.parts_size

    def hold(self) -> None:
        """Begin a hold: no further frame is handled until `end_hold` was called for each hold."""
        self._holds += 1

    def end_hold(self) -> None:
        """End one hold; others may be left."""
        self._holds -= 1

    def is_held(self) -> bool:
        """Return whether frames have to wait for a request or an answer that is made in steps."""
        return self._holds > 0

    # -- answers out

    def is_blocked(self) -> bool:
        return (
            self.unsent + self.held >= UNSENT_BYTES_MAX
            or len(self.slots) - self.first_slot >= REQUESTS_IN_FLIGHT_MAX
            or (self.waiting > 0 and self.must_next_wait())
        )

    def has_unhandled(self) -> bool:
        # True if `next_frame` has bytes to examine, since a slot may be free now.
        return self.parts_size == 0 and self.position < len(self.data)

    def open_slot(self, slot: Slot) -> None:
        """Give an answer its place behind the answers to earlier requests."""
        self.slots.append(slot)
        self.waiting += 1

    def release(self) -> None:
        slots = self.slots
        first: i64 = self.first_slot
        count: i64 = len(slots)
        while first < count:
            slot = slots[first]
            if not slot.is_answered:
                break
            if slot.chunks is not None:
                self.out.extend(slot.chunks)
                self.held -= slot.size
                self.unsent += slot.size
                slot.chunks = None
            first += 1
        if first == count:
            slots.clear()
            first = 0
        elif first >= 64:
            del slots[:first]
            first = 0
        self.first_slot = first

    def has_unanswered(self) -> bool:
        return len(self.slots) > self.first_slot

    def waiting_slots(self) -> list[Slot]:
        """Return the slots without an answer, oldest first."""
        return [slot for slot in self.slots[self.first_slot :] if not slot.is_answered]

    def drop(self) -> None:
        waiting = self.waiting_slots()
        super().drop()
        self.data = b""
        self.position = 0
        self.parts = []
        self.parts_joined = 0
        self.parts_size = 0
        self.slots = []
        self.first_slot = 0
        self.waiting = 0
        for slot in waiting:
            operation = slot.operation
            if operation is not None:
                operation.force_complete()

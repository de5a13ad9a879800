"""gRPC over one HTTP/2 connection, without sockets: bytes in, messages and ends of calls out.

The wire form is gRPC's (PROTOCOL-HTTP2): a message is a flag byte, a length of four bytes and
bytes of protobuf; a call ends with trailers that have `grpc-status`.  The package `h2` does HTTP/2.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Final
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import msgspec

# Status of gRPC for success.
OK: Final = 0

# Largest message; a peer that announces a longer one is no etcd, or hostile.
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024

# Bytes that a peer may send before they are acknowledged, on all calls of a link together.
_WINDOW_BYTES: Final = 4 * 1024 * 1024

_PREFIX: Final = struct.Struct(">BI")


class LinkBroken(Exception):
    """Error of a peer that violates gRPC; the text says how."""


class CallMessage(msgspec.Struct, frozen=True):
    """Message that was received on a call."""

    stream_id: int
    data: bytes


class CallEnded(msgspec.Struct, frozen=True):
    """End of a call: gRPC's status, 0 for success, and its text."""

    stream_id: int
    status: int
    text: str


class _Stream:
    """State of a call under way: bytes to send, and the begin of a message received."""

    __slots__ = ("inbox", "is_closing", "outbox", "sent_bytes", "status", "text")

    def __init__(self) -> None:
        self.outbox = b""
        # Number of its bytes that were sent: a peer that opens the window byte by byte causes no
        # copies.
        self.sent_bytes = 0
        self.is_closing = False
        self.inbox = bytearray()
        # gRPC's status from headers or trailers; -1 if there was none yet.
        self.status = -1
        self.text = ""


class GrpcLink:
    """Calls of one connection; after each method `take` returns the bytes to send."""

    def __init__(self, authority: str, scheme: str) -> None:
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self._connection = h2.connection.H2Connection(config)
        self._connection.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
            },
        )
        self._connection.initiate_connection()
        self._connection.increment_flow_control_window(_WINDOW_BYTES)
        self._authority = authority
        self._scheme = scheme
        self._streams: dict[int, _Stream] = {}
        # False once the peer accepts no more calls.
        self.is_open = True

    def begin(self, path: str, headers: list[tuple[str, str]]) -> int:
        """Begin a call and return its stream's id; `LinkBroken` if the peer accepts no call."""
        connection = self._connection
        fields = [
            (":method", "POST"),
            (":scheme", self._scheme),
            (":path", path),
            (":authority", self._authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *headers,
        ]
        try:
            stream_id = connection.get_next_available_stream_id()
            connection.send_headers(stream_id, fields)
        except h2.exceptions.H2Error as error:
            # The peer limits the number of calls under way, even to none.
            raise LinkBroken(f"the peer takes no call: {error}") from error
        self._streams[stream_id] = _Stream()
        return stream_id

    def send(self, stream_id: int, message: bytes, *, is_last: bool) -> None:
        """Send a message on a call, as many bytes of it as the peer's window allows now."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        rest = stream.outbox[stream.sent_bytes :]
        stream.outbox = rest + _PREFIX.pack(0, len(message)) + message
        stream.sent_bytes = 0
        stream.is_closing = is_last
        self._send_rest(stream_id, stream)

    def cancel(self, stream_id: int) -> None:
        """Ask the peer to stop a call; no event of it follows."""
        if self._streams.pop(stream_id, None) is not None:
            self._reset(stream_id, h2.errors.ErrorCodes.CANCEL)

    def take(self) -> bytes:
        """Return the bytes to send now."""
        data = self._connection.data_to_send()
        assert isinstance(data, bytes)
        return data

    def receive(self, data: bytes) -> list[CallMessage | CallEnded]:
        """Return the events in received bytes; `LinkBroken` if they are invalid."""
        found: list[CallMessage | CallEnded] = []
        try:
            for event in self._connection.receive_data(data):
                self._handle(event, found)
        except (h2.exceptions.H2Error, ValueError) as error:
            # The package raises ValueError for a text that is not UTF-8.
            raise LinkBroken(f"the peer does not speak HTTP/2 as it should: {error}") from error
        return found

    def _handle(self, event: h2.events.Event, found: list[CallMessage | CallEnded]) -> None:
        match event:
            case h2.events.DataReceived():
                self._connection.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id
                )
                self._gather(event.stream_id, event.data, found)
            case h2.events.ResponseReceived() | h2.events.TrailersReceived():
                self._read_status(event.stream_id, event.headers)
            case h2.events.StreamEnded():
                self._end(event.stream_id, found)
            case h2.events.StreamReset():
                if self._streams.pop(event.stream_id, None) is not None:
                    text = f"the peer has reset the call (HTTP/2 error {event.error_code})"
                    found.append(CallEnded(event.stream_id, -1, text))
            case h2.events.WindowUpdated():
                self._on_window(event.stream_id or 0)
            case h2.events.RemoteSettingsChanged():
                self._on_window(0)
            case h2.events.ConnectionTerminated():
                self.is_open = False

    def _gather(self, stream_id: int, data: bytes, found: list[CallMessage | CallEnded]) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        inbox = stream.inbox
        inbox += data
        while len(inbox) >= _PREFIX.size:
            flag, size = _PREFIX.unpack_from(inbox)
            if flag or size > MESSAGE_BYTES_MAX:
                raise LinkBroken(f"the peer begins a message of {size} bytes with flag {flag}")
            end = _PREFIX.size + size
            if len(inbox) < end:
                break
            found.append(CallMessage(stream_id, bytes(inbox[_PREFIX.size : end])))
            del inbox[:end]

    def _read_status(self, stream_id: int, headers: object) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        assert isinstance(headers, list)
        fields = dict(headers)
        http_status = fields.get(":status", "200")
        if "grpc-status" in fields:
            text = fields["grpc-status"]
            stream.status = int(text) if text.isdecimal() and len(text) < 4 else -1
            stream.text = unquote(fields.get("grpc-message", ""))
        elif http_status != "200":
            stream.text = f"the peer answers with HTTP status {http_status}"

    def _end(self, stream_id: int, found: list[CallMessage | CallEnded]) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is None:
            return
        text = stream.text
        if stream.status < 0 and not text:
            text = "the peer has ended the call without a status"
        found.append(CallEnded(stream_id, stream.status, text))
        if stream.outbox or not stream.is_closing:
            # The peer has ended a call on which more bytes could be sent.
            self._reset(stream_id, h2.errors.ErrorCodes.NO_ERROR)

    def _reset(self, stream_id: int, error_code: h2.errors.ErrorCodes) -> None:
        # The bytes just received may have closed the stream, or the connection.
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self._connection.reset_stream(stream_id, error_code)

    def _on_window(self, stream_id: int) -> None:
        waiting = list(self._streams) if stream_id == 0 else [stream_id]
        for each in waiting:
            stream = self._streams.get(each)
            if stream is not None and stream.outbox:
                self._send_rest(each, stream)

    def _send_rest(self, stream_id: int, stream: _Stream) -> None:
        # The bytes just received may have closed the stream, or the connection: then nothing more
        # can be sent, and the next event reports the end of the call, or of the link.
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self._send_parts(stream_id, stream)

    def _send_parts(self, stream_id: int, stream: _Stream) -> None:
        connection = self._connection
        while stream.outbox:
            room = min(
                connection.local_flow_control_window(stream_id),
                connection.max_outbound_frame_size,
            )
            if room <= 0:
                return
            part = stream.outbox[stream.sent_bytes : stream.sent_bytes + room]
            stream.sent_bytes += len(part)
            if stream.sent_bytes == len(stream.outbox):
                stream.outbox, stream.sent_bytes = b"", 0
            is_end = stream.is_closing and not stream.outbox
            connection.send_data(stream_id, part, end_stream=is_end)

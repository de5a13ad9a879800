"""What `tarry produce` does with its input, and its report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from tarry.cli.input import InputRecord, Shape, open_inputs, read_pieces, record_of_json
from tarry.cli.patience import Patience
from tarry.cli.running import fail
from tarry.cli.tables import count_of
from tarry.client.errors import BufferFull, DeliveryTimedOut
from tarry.client.sync.producer import HeadersGiven, Producer

# Ctrl-C sends what was read, but does not wait for a cluster that is gone.
FLUSH_SECONDS_INTERRUPTED: Final = 5.0

# How often somebody looks whether records get out.
LOOK_SECONDS: Final = 0.5


class Sending:
    """Counts what is sent; stops at a limit."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        partition: int | None,
        count_max: int | None,
        patience: Patience,
        *,
        tee: bool = False,
    ) -> None:
        self.producer = producer
        self.topic = topic
        self.partition = partition
        self.count_max = count_max
        self.patience = patience
        self.tee = tee
        self.count = 0
        self.size = 0
        self.seconds = 0.0

    @property
    def is_full(self) -> bool:
        return self.count_max is not None and self.count >= self.count_max

    def run(self, send_all: Callable[[], None]) -> bool:
        """Send everything and wait until it is acknowledged.  True: the user interrupted; what
        was read by then is sent all the same."""
        started = time.monotonic()
        is_interrupted = False
        try:
            send_all()
        except KeyboardInterrupt:
            is_interrupted = True
        self._flush(FLUSH_SECONDS_INTERRUPTED if is_interrupted else None)
        self.seconds = time.monotonic() - started
        return is_interrupted

    def _flush(self, seconds_max: float | None) -> None:
        """Wait for the acknowledgements, as long as there is progress."""
        if seconds_max is not None:
            self.producer.flush(seconds_max)
            return
        while True:
            try:
                self.producer.flush(LOOK_SECONDS)
            except DeliveryTimedOut:
                self.look()
            else:
                return

    def look(self) -> None:
        """Tell why nothing gets out; end the command when that has lasted too long."""
        producer = self.producer
        try:
            self.patience.look(
                producer.settled, is_waiting=producer.is_waiting, trouble=producer.trouble
            )
        except DeliveryTimedOut as error:
            # Closing would wait again.
            producer.abort()
            fail(str(error))

    def _send(
        self,
        value: bytes | None,
        key: bytes | None = None,
        headers: HeadersGiven | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Wait for room as long as there is progress."""
        while True:
            try:
                self.producer.send(
                    self.topic,
                    value,
                    key=key,
                    headers=headers,
                    partition=self.partition,
                    timestamp=timestamp,
                )
            except BufferFull:
                self.look()
            else:
                return

    def report(self) -> str:
        """`1,000 records, 0.1 MB in 0.02 s: 50,000 records/s, 5.0 MB/s`."""
        seconds = max(self.seconds, 0.001)
        megabytes = self.size / 1e6
        return (
            f"{count_of(self.count, 'record')}, {megabytes:,.1f} MB in {seconds:,.2f} s: "
            f"{self.count / seconds:,.0f} records/s, {megabytes / seconds:,.1f} MB/s"
        )

    def send_pieces(self, pieces: list[bytes], shape: Shape) -> None:
        """Pieces of the input as records, up to the limit."""
        if self.count_max is not None:
            pieces = pieces[: self.count_max - self.count]
        send, headers = self._send, shape.headers
        if shape.key is None and shape.key_delimiter is None and not shape.empty_is_null:
            for piece in pieces:
                send(piece, None, headers)
        else:
            for piece in pieces:
                key, value = shape.split(piece)
                send(value, key, headers)
        self.count += len(pieces)
        self.size += sum(map(len, pieces))
        if self.tee and pieces:
            sys.stdout.buffer.write(shape.delimiter.join([*pieces, b""]))
            sys.stdout.buffer.flush()

    def send_record(self, record: InputRecord) -> None:
        self._send(record.value, record.key, record.headers, record.timestamp)
        self.count += 1
        self.size += len(record.value or b"") + len(record.key or b"")


def send_pieces(sending: Sending, files: tuple[str, ...], shape: Shape) -> None:
    """Lines, or what else the delimiter makes."""
    for stream in open_inputs(files):
        for pieces in read_pieces(stream, shape.delimiter, sending.look):
            sending.send_pieces(pieces, shape)
            if sending.is_full:
                return


def send_whole(sending: Sending, files: tuple[str, ...], shape: Shape) -> None:
    """Each file as one record."""
    for stream in open_inputs(files):
        if sending.is_full:
            return
        sending.send_pieces([stream.read()], shape)


def send_json(sending: Sending, files: tuple[str, ...], shape: Shape) -> None:
    """Lines as `tarry consume --json` prints them; the user's key and headers fill gaps."""
    for stream in open_inputs(files):
        for lines in read_pieces(stream, b"\n", sending.look):
            for line in lines:
                if sending.is_full:
                    return
                if line.strip():
                    record = record_of_json(line, sending.count + 1)
                    sending.send_record(
                        record._replace(
                            key=shape.key if record.key is None else record.key,
                            headers=record.headers or shape.headers,
                        )
                    )

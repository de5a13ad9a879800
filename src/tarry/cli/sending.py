"""What `tarry produce` does with its input, and its report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import click

from tarry.cli.input import InputRecord, Shape, open_inputs, read_pieces, record_of_json
from tarry.cli.tables import count_of
from tarry.client.errors import DeliveryTimedOut
from tarry.client.sync.producer import Producer

# Ctrl-C sends what was read, but does not wait for a cluster that is gone.
FLUSH_SECONDS_INTERRUPTED: Final = 5.0

# How long a flush may take before anybody wonders.
FLUSH_SECONDS_QUIET: Final = 3.0


class Sending:
    """Counts what is sent; stops at a limit."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        partition: int | None,
        count_max: int | None,
        *,
        tee: bool = False,
    ) -> None:
        self.producer = producer
        self.topic = topic
        self.partition = partition
        self.count_max = count_max
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
        """Wait for the acknowledgements; if that takes long, say once why."""
        if seconds_max is not None:
            self.producer.flush(seconds_max)
            return
        is_told = False
        while True:
            try:
                self.producer.flush(FLUSH_SECONDS_QUIET)
            except DeliveryTimedOut:
                # `delivery.timeout.ms` ends this: what is late then fails, and flush raises it.
                if not is_told and self.producer.trouble:
                    click.echo(f"tarry: waiting: {self.producer.trouble}", err=True)
                    is_told = True
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
        send, topic, partition, headers = (
            self.producer.send,
            self.topic,
            self.partition,
            shape.headers,
        )
        if shape.key is None and shape.key_delimiter is None and not shape.empty_is_null:
            for piece in pieces:
                send(topic, piece, headers=headers, partition=partition)
        else:
            for piece in pieces:
                key, value = shape.split(piece)
                send(topic, value, key=key, headers=headers, partition=partition)
        self.count += len(pieces)
        self.size += sum(map(len, pieces))
        if self.tee and pieces:
            sys.stdout.buffer.write(shape.delimiter.join([*pieces, b""]))
            sys.stdout.buffer.flush()

    def send_record(self, record: InputRecord) -> None:
        self.producer.send(
            self.topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=self.partition,
            timestamp=record.timestamp,
        )
        self.count += 1
        self.size += len(record.value or b"") + len(record.key or b"")


def send_pieces(sending: Sending, files: tuple[str, ...], shape: Shape) -> None:
    """Lines, or what else the delimiter makes."""
    for stream in open_inputs(files):
        for pieces in read_pieces(stream, shape.delimiter):
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
        for lines in read_pieces(stream, b"\n"):
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

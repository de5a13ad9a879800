"""Sending for `tarry produce`: what it does with its input, and its report."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from tarry.base.errors import TarryError
from tarry.cli.input import PIECE_BYTES_MAX, BadInput, InputRecord, InputSource, Shape, read_pieces
from tarry.cli.packing import Form, Misfit
from tarry.cli.patience import Patience
from tarry.cli.record_input import RecordReader
from tarry.cli.status_line import StatusLine
from tarry.cli.streams import sentence_of
from tarry.cli.tables import count_of
from tarry.client import HeadersGiven, Producer
from tarry.client.errors import BufferFull, DeliveryTimedOut, UnknownTopic

# Time that sending goes on after Ctrl-C: a cluster that is gone is not waited for.
FLUSH_SECONDS_INTERRUPTED: Final = 5.0

# Time between two checks whether records are acknowledged.
LOOK_SECONDS: Final = 0.5

# Time after which progress is shown: a shorter command shows none.
PROGRESS_SECONDS: Final = 1.0


class SendingFailed(TarryError):
    """Failure to send everything; says how much was sent."""


class RecordTarget(NamedTuple):
    """Target of records, and how their keys and values are packed."""

    topic: str
    partition: int | None = None
    # True if a record that names a topic or partition is sent there.
    keeps_places: bool = False
    key_form: Form | None = None
    value_form: Form | None = None
    timestamp: int | None = None

    def packed(self, record: InputRecord, where: str) -> InputRecord:
        """Pack key and value of the record as bytes of their forms."""
        return record._replace(
            key=_packed("key", self.key_form, record.key, where),
            value=_packed("value", self.value_form, record.value, where),
        )

    @property
    def is_plain(self) -> bool:
        """True if records are sent as they are."""
        return self.key_form is None and self.value_form is None


class Sending:
    """Counts what is sent; stops at a limit."""

    def __init__(
        self,
        producer: Producer,
        target: RecordTarget,
        count_max: int | None,
        patience: Patience,
        *,
        tee: bool = False,
        quiet: bool = False,
    ) -> None:
        self.producer = producer
        self.target = target
        self.count_max = count_max
        self.patience = patience
        self.tee = tee
        self.count = 0
        self.size = 0
        self.seconds = 0.0
        # Bytes of the input, if all of it is in files, else 0; and how many of them were read.
        self.size_max = 0
        # Show no line where the input is typed or copied: they use the same terminal.
        has_line = not quiet and not tee and not sys.stdin.isatty()
        self._line = StatusLine() if has_line else None
        self._started = time.monotonic()
        self._topics = {target.topic: None}
        self._has_given_up = False

    @property
    def is_full(self) -> bool:
        return self.count_max is not None and self.count >= self.count_max

    def run(self, send_all: Callable[[], None]) -> bool:
        """Send everything and wait until it is acknowledged.  True: the user interrupted; what
        was read by then is sent all the same.  Raises SendingFailed with how far it came."""
        self._started = time.monotonic()
        failure: TarryError | OSError | None = None
        is_interrupted = False
        try:
            try:
                send_all()
            except KeyboardInterrupt:
                is_interrupted = True
            except (TarryError, OSError) as error:
                failure = error
            if not self._has_given_up:
                self._flush(FLUSH_SECONDS_INTERRUPTED if is_interrupted else None)
        except TarryError as error:
            failure = failure or error
        except KeyboardInterrupt:
            # A second Ctrl-C: do not wait any more.
            self.producer.abort()
            failure = failure or SendingFailed("interrupted before all records were acknowledged")
        finally:
            self._clear()
        self.seconds = time.monotonic() - self._started
        if failure is not None:
            raise SendingFailed(f"{_sentence(failure)}; {self.outcome()}")
        return is_interrupted

    def outcome(self) -> str:
        """`2,000 records were sent, 1,500 of them acknowledged`."""
        verb = "was" if self.count == 1 else "were"
        sent = f"{count_of(self.count, 'record')} {verb} sent"
        if self.producer.settings.acks == 0:
            return f"{sent}, without acknowledgement (acks=0)"
        acknowledged = self.producer.acknowledged
        if acknowledged == self.count:
            return f"{sent} and acknowledged" if self.count else "no record was sent"
        return f"{sent}, {acknowledged:,} of them acknowledged"

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
        """Report trouble if no records are acknowledged; give up when it has lasted too long."""
        producer = self.producer
        try:
            if self.patience.look(
                producer.settled,
                is_waiting=producer.is_waiting,
                trouble=producer.trouble,
                before=self._clear,
            ):
                return
        except DeliveryTimedOut:
            self._has_given_up = True
            # Abort: a close would wait once more.
            producer.abort()
            raise
        self._show_progress()

    def _show_progress(self) -> None:
        line = self._line
        elapsed = time.monotonic() - self._started
        if line is None or not line.is_live or elapsed < PROGRESS_SECONDS or not self.count:
            return
        text = f"{count_of(self.count, 'record')}, {self.size / 1e6:,.1f} MB"
        if self.size_max:
            # The share is a little too small: delimiters are not counted as read.
            text += f", {min(self.size / self.size_max, 1):.0%}"
        line.show(f"{text}, {self.producer.acknowledged:,} acknowledged")

    def _clear(self) -> None:
        if self._line is not None:
            self._line.clear()

    def _send(self, record: InputRecord) -> None:
        """Wait for room as long as there is progress."""
        target = self.target
        topic, partition = target.topic, target.partition
        if target.keeps_places:
            if record.topic is not None:
                topic = record.topic
                self._check_topic(topic)
            partition = record.partition if partition is None else partition
        timestamp = target.timestamp if record.timestamp is None else record.timestamp
        self._put((topic, partition, timestamp), record.value, record.key, record.headers)

    def _put(
        self,
        where: tuple[str, int | None, int | None],
        value: bytes | None,
        key: bytes | None,
        headers: HeadersGiven | None,
    ) -> None:
        topic, partition, timestamp = where
        while True:
            try:
                self.producer.send(
                    topic,
                    value,
                    key=key,
                    headers=headers,
                    partition=partition,
                    timestamp=timestamp,
                )
            except BufferFull:
                self.look()
            else:
                return

    def _check_topic(self, topic: str) -> None:
        if topic not in self._topics:
            known_topic(self.producer, topic, self.patience.seconds_max)
            self._topics[topic] = None

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
        target, headers = self.target, shape.headers
        where = (target.topic, target.partition, target.timestamp)
        if target.is_plain:
            for piece in pieces:
                key, value = shape.split(piece)
                self._put(where, value, key, headers)
                self.count += 1
                self.size += len(piece)
        else:
            for piece in pieces:
                key, value = shape.split(piece)
                self.send_record(InputRecord(value, key, headers))
        if self.tee and pieces:
            sys.stdout.buffer.write(shape.delimiter.join([*pieces, b""]))
            sys.stdout.buffer.flush()

    def send_record(self, record: InputRecord) -> None:
        if not self.target.is_plain:
            record = self.target.packed(record, f"record {self.count + 1}")
        self._send(record)
        self.count += 1
        self.size += len(record.value or b"") + len(record.key or b"")


def known_topic(producer: Producer, topic: str, timeout: float) -> None:
    """Wait until the topic is known.  Raises UnknownTopic with the way to make it."""
    try:
        producer.partition_count(topic, timeout)
    except UnknownTopic as error:
        raise UnknownTopic(
            f"{error}; make it with: tarry topics create {shlex.quote(topic)}"
        ) from None


def _packed(what: str, form: Form | None, content: bytes | None, where: str) -> bytes | None:
    if form is None or content is None:
        return content
    try:
        return form.pack(content)
    except Misfit as error:
        raise BadInput(f"{where}: the {what} {error}") from None


def _sentence(error: TarryError | OSError) -> str:
    if isinstance(error, BrokenPipeError):
        return "the reader of the output has gone"
    return sentence_of(error) if isinstance(error, OSError) else str(error)


def send_pieces(sending: Sending, sources: list[InputSource], shape: Shape) -> None:
    """Lines, or what else the delimiter makes."""
    for source in sources:
        for pieces in read_pieces(source.open(), shape.delimiter, sending.look):
            sending.send_pieces(pieces, shape)
            if sending.is_full:
                return
        source.close()


def send_whole(sending: Sending, sources: list[InputSource], shape: Shape) -> None:
    """Send each file as one record."""
    for source in sources:
        if sending.is_full:
            return
        content = source.open().read(PIECE_BYTES_MAX + 1)
        if len(content) > PIECE_BYTES_MAX:
            raise BadInput(
                f"{source.name} has more than the {PIECE_BYTES_MAX} bytes that a record can have"
            )
        sending.send_pieces([content], shape)
        source.close()


def send_records(
    sending: Sending, sources: list[InputSource], shape: Shape, read: RecordReader
) -> None:
    """Records of JSON, CSV or a template; the user's key and headers fill gaps."""
    for source in sources:
        for record in read(source, sending.look):
            if sending.is_full:
                return
            sending.send_record(shape.filled(record))
        source.close()

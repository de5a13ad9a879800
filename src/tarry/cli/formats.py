"""Formats of records on output: kcat's letters, JSON, and plain values with delimiters.

A format is compiled once into pieces; a record is the join of what they give.  All output is
bytes: keys and values pass as they are, or as a `Dress` makes them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from tarry.cli.dress import PLAIN, Dress
from tarry.cli.escapes import BadEscape, read_escape
from tarry.records.record import Record

# Function that renders a record, given its topic, its partition and the record, as bytes.
Renderer = Callable[[str, int, Record], bytes]

LETTERS: Final = "%t %p %o %k %s %S %K %R %T %T{iso} %T{%H:%M:%S} %h %%"

ISO: Final = "iso"


class BadFormat(ValueError):
    """A format that is not valid; the text says where."""


def compile_format(text: str, null: bytes = b"", dress: Dress = PLAIN) -> Renderer:
    """`%t [%p] at %o: %k = %s\\n` as a function; `null` stands for null keys and values."""
    pieces: list[Renderer] = []
    literal = bytearray()
    position = 0
    while position < len(text):
        if text[position] == "\\":
            try:
                escaped, position = read_escape(text, position)
            except BadEscape as error:
                raise BadFormat(str(error)) from None
            literal += escaped
        elif text[position] == "%":
            letter = text[position + 1 : position + 2]
            position += 2
            if letter == "%":
                literal += b"%"
                continue
            if literal:
                pieces.append(_constant(bytes(literal)))
                literal.clear()
            layout = ""
            if letter == "T" and text[position : position + 1] == "{":
                layout, position = _braces(text, position)
            pieces.append(_time_piece(layout) if layout else _piece(letter, null, dress))
        else:
            literal += text[position].encode(errors="surrogateescape")
            position += 1
    if literal:
        pieces.append(_constant(bytes(literal)))
    return _joined(pieces)


def _joined(pieces: list[Renderer]) -> Renderer:
    if len(pieces) == 1:
        return pieces[0]

    def render(topic: str, partition: int, record: Record) -> bytes:
        return b"".join([piece(topic, partition, record) for piece in pieces])

    return render


def _constant(content: bytes) -> Renderer:
    return lambda topic, partition, record: content


def _braces(text: str, position: int) -> tuple[str, int]:
    """Return the text in the braces and the position behind them."""
    end = text.find("}", position)
    if end <= position + 1:
        raise BadFormat("%T{ needs iso or a format of strftime, and }: %T{iso}, %T{%H:%M:%S}")
    return text[position + 1 : end], end + 1


def _time_piece(layout: str) -> Renderer:
    return lambda topic, partition, record: time_text(record.timestamp, layout).encode()


def time_text(time_ms: int, layout: str) -> str:
    """Write a time in the user's own zone: ISO with its offset from UTC, or as strftime makes it;
    empty for a record without a time, and the number where the calendar has no such day.
    """
    if time_ms < 0:
        return ""
    try:
        moment = datetime.fromtimestamp(time_ms // 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
    moment = moment.replace(microsecond=time_ms % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds") if layout == ISO else moment.strftime(layout)


def _piece(letter: str, null: bytes, dress: Dress) -> Renderer:
    """Return the renderer of one letter of kcat's."""

    def or_null(content: bytes | None) -> bytes:
        return null if content is None else content

    pieces: dict[str, Renderer] = {
        "t": lambda topic, partition, record: topic.encode(),
        "p": lambda topic, partition, record: b"%d" % partition,
        "o": lambda topic, partition, record: b"%d" % record.offset,
        "k": lambda topic, partition, record: or_null(dress.key(record.key)),
        "s": lambda topic, partition, record: or_null(dress.value(record.value)),
        "K": lambda topic, partition, record: b"%d" % _size(record.key),
        "S": lambda topic, partition, record: b"%d" % _size(record.value),
        "R": lambda topic, partition, record: _size(record.value).to_bytes(4, "big", signed=True),
        "T": lambda topic, partition, record: b"%d" % record.timestamp,
        "h": lambda topic, partition, record: headers_text(record, null, dress),
    }
    if letter not in pieces or not letter:
        raise BadFormat(f"invalid letter %{letter} of a format; there are {LETTERS}")
    return pieces[letter]


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def headers_text(record: Record, null: bytes, dress: Dress = PLAIN) -> bytes:
    """`name=value,name=value`."""
    return b",".join(
        [
            dress.header(name.encode())
            + b"="
            + (null if content is None else dress.header(content))
            for name, content in record.headers
        ]
    )


KEY: Final = "key"
VALUE: Final = "value"
HEADERS: Final = "headers"


class JsonRenderer:
    """A line of JSON for each record.  What is not UTF-8 stands in base64 under `..._base64`.

    `only` leaves one of key, value and headers."""

    def __init__(self, dress: Dress = PLAIN, only: str | None = None) -> None:
        self._dress = dress
        self._only = only

    def __call__(self, topic: str, partition: int, record: Record) -> bytes:
        only = self._only
        line: dict[str, object] = {
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
        }
        if only is None or only == KEY:
            _put(line, "key", self._dress.key(record.key))
        if only is None or only == VALUE:
            _put(line, "value", self._dress.value(record.value))
        if only is None or only == HEADERS:
            line["headers"] = [_header(name, content) for name, content in record.headers]
        return msgspec.json.encode(line) + b"\n"


json_renderer: Final = JsonRenderer()


def _header(name: str, content: bytes | None) -> dict[str, object]:
    header: dict[str, object] = {"name": name}
    _put(header, "value", content)
    return header


def _put(line: dict[str, object], name: str, content: bytes | None) -> None:
    if content is None:
        line[name] = None
        return
    try:
        line[name] = content.decode()
    except UnicodeDecodeError:
        line[f"{name}_base64"] = base64.b64encode(content).decode()


class PlainRenderer:
    """Values with a delimiter behind each; keys and offsets before them on request."""

    def __init__(
        self,
        delimiter: bytes,
        key_delimiter: bytes | None,
        *,
        with_offset: bool = False,
        null: bytes = b"",
        dress: Dress = PLAIN,
    ) -> None:
        self.delimiter = delimiter
        self.key_delimiter = key_delimiter
        self.with_offset = with_offset
        self.null = null
        self.dress = dress

    @property
    def is_values_only(self) -> bool:
        """True if there are nothing but values and delimiters: whole groups are joined at once."""
        return self.key_delimiter is None and not self.with_offset and self.dress.is_plain

    def render_values(self, records: list[Record]) -> bytes:
        null = self.null
        values = [null if record.value is None else record.value for record in records]
        values.append(b"")
        return self.delimiter.join(values)

    def __call__(self, topic: str, partition: int, record: Record) -> bytes:
        separator = self.key_delimiter if self.key_delimiter is not None else b"\t"
        pieces: list[bytes] = []
        if self.with_offset:
            pieces.append(b"%d%b" % (record.offset, separator))
        if self.key_delimiter is not None:
            key = self.dress.key(record.key)
            pieces.append((self.null if key is None else key) + separator)
        value = self.dress.value(record.value)
        pieces.append(self.null if value is None else value)
        pieces.append(self.delimiter)
        return b"".join(pieces)

"""Records as CSV with a header row, both ways.

Columns of a record: topic, partition, offset, timestamp, key, value, headers.  Bytes pass as they
are: CSV has no encoding of its own, so each byte is read and written as one character.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from tarry.cli.dress import PLAIN, Dress
from tarry.cli.formats import headers_text
from tarry.cli.input import BadInput, InputRecord
from tarry.cli.units import OFFSET_MAX, PARTITION_MAX, whole_number
from tarry.records.record import Record

COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

# Encoding in which any byte is one character.
BYTES: Final = "latin-1"

# Longest field: the default of the csv module, 128 KiB, is less than a record may have.
FIELD_CHARACTERS_MAX: Final = 2**31 - 1

Row = tuple[int, list[str]]


class CsvWriter:
    """Renders records as rows; the header row goes out before the first."""

    def __init__(self, null: bytes = b"", dress: Dress = PLAIN) -> None:
        self._null = null
        self._dress = dress
        self._buffer = io.StringIO(newline="")
        self._writer = csv.writer(self._buffer, lineterminator="\n")

    @property
    def head(self) -> bytes:
        return ",".join(COLUMNS).encode() + b"\n"

    def __call__(self, topic: str, partition: int, record: Record) -> bytes:
        self._writer.writerow(
            [
                topic,
                partition,
                record.offset,
                record.timestamp,
                self._text(self._dress.key(record.key)),
                self._text(self._dress.value(record.value)),
                headers_text(record, self._null, self._dress).decode(BYTES),
            ]
        )
        row = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return row.encode(BYTES)

    def _text(self, content: bytes | None) -> str:
        return (self._null if content is None else content).decode(BYTES)


class Header(NamedTuple):
    """Header row of CSV: where each part of a record stands."""

    names: list[str]
    key_column: str | None

    @property
    def is_of_records(self) -> bool:
        """True if there is a column for the value; otherwise each row becomes an object of JSON."""
        return "value" in self.names


def rows_of(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[Row]:
    """Rows with the number of the line that each begins in."""
    csv.field_size_limit(FIELD_CHARACTERS_MAX)
    counter = _Lines(lines)
    reader = csv.reader(counter, strict=True)
    while True:
        counter.first = 0
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise BadInput(f"{name} line {counter.first}: not valid CSV: {error}") from None
        if row is None:
            return
        if row:
            yield counter.first, row


class _Lines:
    """Lines for the reader, with the number of the first that a row took."""

    def __init__(self, lines: Iterable[tuple[int, bytes]]) -> None:
        self._lines = iter(lines)
        self.first = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        self.first = self.first or number
        return line.decode(BYTES) + "\n"


def header_of(row: list[str], where: str, key_column: str | None) -> Header:
    """Read the header row; refuse names of columns that would be misunderstood."""
    # Remove the byte order mark that Excel writes.
    names = [_utf8(name, where) for name in row]
    names[0] = names[0].removeprefix("\ufeff")
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{where}: the header row has the column {name!r} twice")
    header = Header(names, key_column)
    if header.is_of_records:
        if key_column is not None:
            raise BadInput(f"{where}: --key-column is for rows without a column named value")
        for name in names:
            if name not in COLUMNS:
                raise BadInput(
                    f"{where}: unknown column {name!r} beside value; the columns are "
                    f"{', '.join(COLUMNS)}"
                )
    elif key_column is not None and key_column not in names:
        raise BadInput(f"{where}: no column {key_column!r}; there are {', '.join(names)}")
    return header


def record_of_row(header: Header, row: list[str], where: str) -> InputRecord:
    if len(row) != len(header.names):
        raise BadInput(
            f"{where}: {len(row)} columns, and the header row has {len(header.names)}; "
            "is a comma not in quotes?"
        )
    cells = dict(zip(header.names, row, strict=True))
    if not header.is_of_records:
        key = None if header.key_column is None else cells[header.key_column].encode(BYTES)
        texts = {name: _utf8(cell, where) for name, cell in cells.items()}
        return InputRecord(msgspec.json.encode(texts), key)
    return InputRecord(
        cells["value"].encode(BYTES),
        cells["key"].encode(BYTES) if "key" in cells else None,
        headers_of(cells.get("headers", "").encode(BYTES), where),
        _number(cells.get("timestamp", ""), "timestamp", where),
        _utf8(cells.get("topic", ""), where) or None,
        _number(cells.get("partition", ""), "partition", where),
    )


def headers_of(text: bytes, where: str) -> list[tuple[str, bytes | None]]:
    """`name=value,name=value`."""
    found: list[tuple[str, bytes | None]] = []
    for part in text.split(b",") if text else ():
        name, equals, content = part.partition(b"=")
        if not equals:
            raise BadInput(f"{where}: write headers as name=value,name=value")
        try:
            found.append((name.decode(), content))
        except UnicodeDecodeError:
            raise BadInput(f"{where}: the header name {name!r} is not valid UTF-8") from None
    return found


def _utf8(text: str, where: str) -> str:
    try:
        return text.encode(BYTES).decode()
    except UnicodeDecodeError:
        raise BadInput(f"{where}: {text!r} is not valid UTF-8") from None


def _number(text: str, name: str, where: str) -> int | None:
    if not text or text == "-1":
        return None
    largest = PARTITION_MAX if name == "partition" else OFFSET_MAX
    number = whole_number(text, largest)
    if number is None:
        raise BadInput(f"{where}: {name} {text[:40]!r} is not a whole number up to {largest}")
    return number

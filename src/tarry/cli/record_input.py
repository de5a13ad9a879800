"""Input of `tarry produce` whose lines are more than a key and a value: JSON, CSV, templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tarry.cli.input import InputRecord, InputSource, read_pieces

Look = Callable[[], None]
# Function that reads all records of one input.
RecordReader = Callable[[InputSource, Look], Iterator[InputRecord]]

NEWLINE: Final = b"\n"


def _lines(source: InputSource, delimiter: bytes, look: Look) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1 on."""
    number = 0
    for lines in read_pieces(source.open(), delimiter, look):
        for line in lines:
            number += 1
            yield number, line


def json_reader() -> RecordReader:
    """Return a reader of JSON objects, one a line."""
    from tarry.cli.records_json import objects_of, record_of_json

    def read(source: InputSource, look: Look) -> Iterator[InputRecord]:
        for number, text in objects_of(_lines(source, NEWLINE, look)):
            yield record_of_json(text, f"{source.name} line {number}")

    return read


def csv_reader(key_column: str | None) -> RecordReader:
    """Return a reader of CSV rows; each file has a header row of its own."""
    from tarry.cli.records_csv import header_of, record_of_row, rows_of

    def read(source: InputSource, look: Look) -> Iterator[InputRecord]:
        header = None
        for number, row in rows_of(_lines(source, NEWLINE, look), source.name):
            where = f"{source.name} line {number}"
            if header is None:
                header = header_of(row, where, key_column)
            else:
                yield record_of_row(header, row, where)

    return read


def template_reader(layout: str, delimiter: bytes) -> RecordReader:
    """Return a reader of lines whose parts a template names."""
    from tarry.cli.template import Template

    template = Template(layout)

    def read(source: InputSource, look: Look) -> Iterator[InputRecord]:
        for number, line in _lines(source, template.delimiter or delimiter, look):
            yield template.record_of(line, f"{source.name} line {number}")

    return read

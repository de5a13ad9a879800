"""Lines of a file that `tarry schedule load` reads: records with when they are due, and their ids.

An object of JSON or a row of CSV is a record as `tarry produce` takes it, with two fields more:
`due`, and `id` if it has one.  Each line is read for itself: a bad one is named, and the next one
is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any, Final, NamedTuple

from tarry.base.limits import SCHEDULE_ID_BYTES_MAX
from tarry.base.schedule_headers import (
    DELIVER_AFTER,
    DELIVER_AT,
    RECURRENCE_NAMES,
    SCHEDULE_CANCEL,
    SCHEDULE_ID,
)
from tarry.cli.input import BadInput, InputRecord, read_pieces
from tarry.cli.places import BadPlace, parse_time_ms
from tarry.cli.records_csv import BYTES, Header, header_of, record_of_row, rows_of
from tarry.cli.records_json import object_of_json, objects_of, record_of_object

DUE: Final = "due"
ID: Final = "id"

_OURS: Final = (DELIVER_AT, DELIVER_AFTER, SCHEDULE_ID, SCHEDULE_CANCEL)

# No time has more characters.
_DUE_CHARS_MAX: Final = 64

# Milliseconds since 1970 up to the year 10000, as the broker takes them.
DUE_MS_MAX: Final = 253_402_300_799_999


class LoadedLine(NamedTuple):
    """Line of the input: a record with its headers, or the reason why it is not valid."""

    number: int
    record: InputRecord | None
    due_ms: int = 0
    reason: str = ""


def json_lines(stream: IO[bytes], now_wall_ms: int) -> Iterator[LoadedLine]:
    """Read objects of JSON, a line each."""
    for number, text in objects_of(_numbered(stream)):
        try:
            yield _of_object(number, text, now_wall_ms)
        except (ValueError, BadInput) as error:
            yield LoadedLine(number, None, reason=_reason(error, number))


def csv_lines(stream: IO[bytes], now_wall_ms: int) -> Iterator[LoadedLine]:
    """Read rows of CSV below a header row; a row that breaks its quotes ends the file."""
    rows = rows_of(_numbered(stream), "the file")
    header: Header | None = None
    columns: list[str] = []
    number = 0
    while True:
        try:
            found = next(rows, None)
        except BadInput as error:
            yield LoadedLine(number + 1, None, reason=str(error))
            return
        if found is None:
            return
        number, row = found
        try:
            if header is not None:
                yield _of_row(number, columns, header, row, now_wall_ms)
                continue
            columns = [name.strip() for name in row]
            columns[0] = columns[0].encode(BYTES).decode("utf-8-sig", "replace")
            header = _header_of(columns, number)
        except (ValueError, BadInput) as error:
            yield LoadedLine(number, None, reason=_reason(error, number))
            if header is None:
                return


def _numbered(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    for lines in read_pieces(stream, b"\n"):
        for line in lines:
            number += 1
            yield number, line


def _of_object(number: int, text: bytes, now_wall_ms: int) -> LoadedLine:
    found = object_of_json(text)
    due = found.pop(DUE, None)
    schedule_id = found.pop(ID, None)
    if isinstance(due, bool) or not isinstance(due, str | int):
        raise ValueError(f"{DUE} is missing: milliseconds since 1970, a time, or +10m")
    if schedule_id is not None and not isinstance(schedule_id, str):
        raise ValueError(f"{ID} is no text; put it in quotes")
    record = record_of_object(found, _where(number), (DUE, ID))
    return _loaded(number, record, str(due), schedule_id, now_wall_ms)


def _header_of(columns: list[str], number: int) -> Header:
    if DUE not in columns:
        raise BadInput(f"line {number}: the header row has no column {DUE!r}: {', '.join(columns)}")
    others = [name for name in columns if name not in (DUE, ID)]
    if not others:
        raise BadInput(f"line {number}: the header row has no column beside {DUE} and {ID}")
    return header_of([name.encode().decode(BYTES) for name in others], _where(number), None)


def _of_row(
    number: int, columns: list[str], header: Header, row: list[str], now_wall_ms: int
) -> LoadedLine:
    if len(row) != len(columns):
        raise ValueError(
            f"{len(row)} columns, and the header row has {len(columns)}; is a comma not in quotes?"
        )
    cells: dict[str, Any] = dict(zip(columns, row, strict=True))
    others = [cells[name] for name in columns if name not in (DUE, ID)]
    record = record_of_row(header, others, _where(number))
    schedule_id = cells.get(ID, "").encode(BYTES).decode() or None
    return _loaded(number, record, cells[DUE].strip(), schedule_id, now_wall_ms)


def _loaded(
    number: int, record: InputRecord, due: str, schedule_id: str | None, now_wall_ms: int
) -> LoadedLine:
    if len(due) > _DUE_CHARS_MAX:
        raise ValueError(
            f"{DUE}: invalid time of {len(due):,} characters: {due[:_DUE_CHARS_MAX]!r}…"
        )
    try:
        due_ms = parse_time_ms(due, now_wall_ms)
    except BadPlace as error:
        raise ValueError(f"{DUE}: {error}") from None
    if due_ms > DUE_MS_MAX:
        raise ValueError(f"{DUE}: {due} lies behind the year 9999")
    headers = list(record.headers or [])
    for name, _ in headers:
        if name in _OURS:
            raise ValueError(f"the header {name} is set by the fields {DUE} and {ID}")
        if name in RECURRENCE_NAMES:
            raise ValueError(f"the header {name} cannot stand beside the field {DUE}")
    headers.append((DELIVER_AT, b"%d" % due_ms))
    if schedule_id is not None:
        encoded = schedule_id.encode()
        if not 0 < len(encoded) <= SCHEDULE_ID_BYTES_MAX:
            raise ValueError(f"{ID} has {len(encoded)} bytes; 1 to {SCHEDULE_ID_BYTES_MAX} will do")
        headers.append((SCHEDULE_ID, encoded))
    return LoadedLine(number, record._replace(headers=headers), due_ms)


def _where(number: int) -> str:
    return f"line {number}"


def _reason(error: Exception, number: int) -> str:
    """Return the sentence without the number of the line, which is printed beside it."""
    return str(error).removeprefix(f"{_where(number)}: ")


Lines = Iterable[LoadedLine]

"""`tarry log dump`: what the files of a stopped broker's logs hold."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.cli.running import EXIT_FAILED, fail, json_option, quietly
from tarry.cli.tables import bad, print_json_line, printable, printable_path, strong
from tarry.cli.topic_offsets import time_text

if TYPE_CHECKING:
    from tarry.runtime.dump import Row

EXAMPLES: Final = """
\b
Examples:
  tarry log dump ./tarry-data/orders-0                  batches, indexes, snapshots, checkpoints
  tarry log dump ./tarry-data/orders-0 --records        the records of each batch as well
  tarry log dump ./tarry-data/orders-0/00000000000000000000.index
  tarry log dump ./tarry-data/__consumer_offsets-7 --decode    committed offsets and groups
  tarry log dump ./tarry-data/__cluster_metadata-0 --decode    topics, settings, brokers
  tarry log dump ./tarry-data/orders-0 --json | jq 'select(.kind == "batch" and (.is_valid | not))'

\b
The broker has to be stopped.  Exit code: 1 if a file cannot be read to its end, or a batch does
not match its CRC.
"""


@click.command("dump", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path())
@click.option("--records", is_flag=True, help="Print the records of each batch.")
@click.option(
    "--decode", is_flag=True, help="Print what records of groups and of the metadata log mean."
)
@json_option
@quietly
def dump_command(paths: tuple[str, ...], *, records: bool, decode: bool, as_json: bool) -> None:
    """Print batches, index entries, snapshots and checkpoints of a stopped broker's files."""
    from tarry.runtime.dump import dump_file
    from tarry.runtime.inspection import hold, open_file

    is_broken = False
    printer = _JsonPrinter() if as_json else _TextPrinter()
    for path in paths:
        with hold(path):
            for name in _files(path):
                printer.begin(printable_path(name))
                for row in dump_file(open_file(name), records=records, decode=decode):
                    is_broken |= row["kind"] == "flaw" or row.get("is_valid") is False
                    printer.print(row)
    if is_broken:
        sys.exit(EXIT_FAILED)


def _files(path: str) -> Iterator[str]:
    """Yield the file itself, or those below a directory that can be shown."""
    from tarry.runtime.dump import is_dumpable

    if not os.path.isdir(path):
        yield path
        return
    found = False
    for directory, below, names in os.walk(path, onerror=_refuse):
        below.sort()
        for name in sorted(names):
            if is_dumpable(name):
                found = True
                yield os.path.join(directory, name)
    if not found:
        fail(f"{printable_path(path)} holds no files of a log")


def _refuse(error: OSError) -> None:
    raise error


class _JsonPrinter:
    """A line of JSON a row; each names its file."""

    def __init__(self) -> None:
        self._file = ""

    def begin(self, name: str) -> None:
        self._file = name

    def print(self, row: Row) -> None:
        line: dict[str, Any] = {"file": self._file, "kind": row["kind"]}
        for key, value in row.items():
            if key in ("key", "value"):
                _put(line, key, value)
            elif key == "headers":
                line[key] = [_header(name, content) for name, content in value]
            else:
                line[key] = value
        print_json_line(line)


def _header(name: str, content: bytes | None) -> dict[str, Any]:
    header: dict[str, Any] = {"name": name}
    _put(header, "value", content)
    return header


def _put(line: dict[str, Any], name: str, content: bytes | None) -> None:
    """Put bytes into a row as `tarry consume --json` does: text, or base64 for what is no UTF-8."""
    try:
        line[name] = None if content is None else content.decode()
    except UnicodeDecodeError:
        assert content is not None
        line[f"{name}_base64"] = base64.b64encode(content).decode()


# Columns of each kind of rows: title, field, fixed width, since rows are printed one by one.
_BATCH: Final = (
    ("offset", "base_offset", 10),
    ("last", "last_offset", 10),
    ("records", "records", 7),
    ("position", "position", 10),
    ("size", "size", 8),
    ("codec", "codec", 6),
    ("epoch", "leader_epoch", 5),
    ("producer", "producer_id", 8),
    ("p.epoch", "producer_epoch", 7),
    ("sequence", "base_sequence", 8),
    ("crc", "crc", 8),
    ("largest time", "max_timestamp", 29),
)
_COLUMNS: Final[dict[str, Sequence[tuple[str, str, int]]]] = {
    "batch": _BATCH,
    "index": (("offset", "offset", 12), ("position", "position", 12)),
    "timeindex": (("offset", "offset", 12), ("time", "timestamp", 29)),
    "producer": (
        ("producer", "producer_id", 8),
        ("p.epoch", "producer_epoch", 7),
        ("first seq.", "first_sequence", 10),
        ("last seq.", "last_sequence", 10),
        ("last offset", "last_offset", 12),
        ("offset delta", "offset_delta", 12),
        ("time", "timestamp", 29),
    ),
    "epoch": (("leader epoch", "leader_epoch", 12), ("start offset", "start_offset", 12)),
}


class _TextPrinter:
    """Tables, a title above each; records stand indented below their batch."""

    def __init__(self) -> None:
        self._titled = ""
        self._is_first = True

    def begin(self, name: str) -> None:
        if not self._is_first:
            click.echo()
        self._is_first = False
        self._titled = ""
        click.echo(strong(name))

    def print(self, row: Row) -> None:
        kind = row["kind"]
        if kind == "flaw":
            click.echo(f"{bad('damaged')}: {_place(row)}{row['problem']}")
        elif kind == "record":
            click.echo(_record_text(row))
        elif kind in _COLUMNS:
            columns = _COLUMNS[kind]
            if self._titled != kind:
                self._titled = kind
                click.echo(strong("  ".join(title.rjust(width) for title, _, width in columns)))
            cells = [_cell(field, row[field]).rjust(width) for _, field, width in columns]
            click.echo("  ".join([*cells, *_marks(row)]).rstrip())
        else:
            told = {key: printable(_plain(value)) for key, value in row.items() if key != "kind"}
            facts = [f"{key}: {text}" for key, text in told.items()]
            click.echo("  ".join(facts))


def _place(row: Row) -> str:
    if row["offset"] < 0:
        return ""
    at = "" if row["position"] < 0 else f" at position {row['position']}"
    return f"offset {row['offset']}{at}: "


def _cell(field: str, value: Any) -> str:
    if field in ("max_timestamp", "timestamp"):
        return time_text(value)
    return f"{value:08x}" if field == "crc" else str(value)


def _marks(row: Row) -> list[str]:
    """Fields that only some batches have."""
    if row["kind"] != "batch":
        return []
    marks = {
        "transactional": row["is_transactional"],
        "control": row["is_control"],
        "LogAppendTime": row["timestamp_type"] == "LogAppendTime",
        f"delete horizon {time_text(row['delete_horizon_ms'] or -1)}": row["delete_horizon_ms"],
    }
    words = [word for word, is_so in marks.items() if is_so]
    return words if row["is_valid"] else [*words, bad("the CRC does not match")]


def _record_text(row: Row) -> str:
    facts = [f"  | offset {row['offset']}", time_text(row["timestamp"])]
    if row["sequence"] >= 0:
        facts.append(f"sequence {row['sequence']}")
    decoded = row.get("decoded")
    if decoded is not None:
        facts += [f"{key}={printable(_plain(value))}" for key, value in decoded.items()]
    else:
        facts += [f"key={_content(row['key'])}", f"value={_content(row['value'])}"]
    facts += [f"{printable(name)}={_content(content)}" for name, content in row["headers"]]
    return "  ".join(facts)


def _content(content: bytes | None) -> str:
    """Bytes as one word of a line, with escapes for what is not printable."""
    if content is None:
        return "null"
    text = content.decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_plain(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(one)}" for key, one in value.items()) + "}"
    return "null" if value is None else str(value)

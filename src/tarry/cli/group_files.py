"""Files of committed offsets, in the form of Kafka's own script: lines of CSV.

`topic,partition,offset` of one group, `group,topic,partition,offset` of several; what
`tarry groups export` and `kafka-consumer-groups --export` write, `reset-offsets --from-file` of
both takes.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping

from tarry.base.errors import TarryError
from tarry.base.ids import TopicPartition

# Largest file of offsets: a cluster of Kafka has 200,000 partitions at most.
FILE_BYTES_MAX = 256 * 1024 * 1024


class BadOffsetsFile(TarryError):
    """A file of offsets that cannot be read; the text says where and why."""


def offsets_csv(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Write offsets as lines of CSV, with the group's name in front if there are several groups."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, places in offsets.items():
        for (topic, partition), offset in places.items():
            row: list[object] = [topic, partition, offset]
            writer.writerow(row if len(offsets) == 1 else [group, *row])
    return text.getvalue()


def read_offsets_file(path: str, group: str) -> dict[TopicPartition, int]:
    """Read the offsets of one group from a file; `-` is stdin."""
    return parse_offsets(_content(path), path, group)


def _content(path: str) -> str:
    if path == "-":
        data = sys.stdin.buffer.read(FILE_BYTES_MAX)
    else:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadOffsetsFile(f"{path} is not text in UTF-8") from None


def parse_offsets(content: str, path: str, group: str) -> dict[TopicPartition, int]:
    """Parse the offsets of a group in lines of CSV; a wrong line is refused with its number."""
    found: dict[TopicPartition, int] = {}
    others: dict[str, None] = {}
    for number, row in enumerate(csv.reader(content.splitlines()), 1):
        if not row:
            continue
        at, offset, named = _parsed(row, path, number)
        if named not in (None, group):
            others[named or ""] = None
            continue
        if found.setdefault(at, offset) != offset:
            raise BadOffsetsFile(
                f"{path}, line {number}: {at[0]} [{at[1]}] has another offset further up"
            )
    if not found:
        hint = f"; it has those of {_named(others)}: use --from-group" if others else ""
        raise BadOffsetsFile(f"{path} has no offsets of group {group!r}{hint}")
    return found


def _parsed(row: list[str], path: str, number: int) -> tuple[TopicPartition, int, str | None]:
    fields = [field.strip() for field in row]
    is_whole = len(fields) in (3, 4) and all(
        field.isascii() and field.isdigit() for field in fields[-2:]
    )
    if not is_whole or not fields[-3]:
        raise BadOffsetsFile(
            f"{path}, line {number}: write topic,partition,offset (or group,topic,partition,offset)"
        )
    named = fields[0] if len(fields) == 4 else None
    return (fields[-3], int(fields[-2])), int(fields[-1]), named


def _named(groups: Iterable[str]) -> str:
    names = list(groups)
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"

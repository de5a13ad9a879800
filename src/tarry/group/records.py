"""Records of groups in `__consumer_offsets`: Kafka's own formats.

A key begins with a number that names its kind, a value with the version of its fields.  A record
without a value is a tombstone.  Offsets have their own records, and so has each kind of group:
`Kinds.decode` finds the decoder by the number.

An unknown number belongs to something that Tarry lacks (newer group protocols); the record is
skipped, as in Kafka.  An unknown version, or malformed bytes, raise `CorruptData`, because a guess
could lose offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec

from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import STRING_BYTES_MAX

# First version whose strings and arrays are compact and which may have tagged fields.
FLEXIBLE_VERSION: Final = 4

# Value in place of a time that is unknown.
NO_TIMESTAMP: Final = -1


class GroupRecord(msgspec.Struct, frozen=True):
    """Record of a group.  `kind` names the kind of group that it belongs to; "" for offsets.

    A tombstone does not begin a group of its kind.
    """

    kind: ClassVar[str] = ""
    is_tombstone: ClassVar[bool] = False

    group_id: str

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value; the value of a tombstone is None."""
        raise NotImplementedError

    def apply_to(self, group: Any) -> None:
        """Apply the record to the durable part of the group, which is of this record's kind."""
        raise NotImplementedError


# Decoder of a record: gets a reader behind the key's number, and the value.
Decoder = Callable[[Reader, bytes | None], GroupRecord]


def can_be_written(*texts: str | None) -> bool:
    """Return True if these texts fit the records' strings, whose length has 15 bits."""
    return all(text is None or len(text.encode()) <= STRING_BYTES_MAX for text in texts)


def nullable_string(reader: Reader, flexible: bool) -> str | None:
    return reader.compact_nullable_string() if flexible else reader.nullable_string()


def version_of(reader: Reader, version_max: int, what: str) -> int:
    version = reader.i16()
    if not 0 <= version <= version_max:
        raise MalformedData(
            f"{what} of version {version}, this Tarry reads 0 to {version_max}; if a newer "
            "release wrote it, start that one"
        )
    return version

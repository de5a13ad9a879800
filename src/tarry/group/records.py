"""Records of groups, as they lie in `__consumer_offsets`: Kafka's own formats.

A key begins with a number that says its kind, a value with the version of its fields.  A record
without a value is a tombstone.  Offsets have records of their own, and so has each kind of group:
`Kinds.decode` knows them by the number.

A number that is not known belongs to something that Tarry does not have (newer group protocols);
the record is passed over, as Kafka does.  A version that is not known, or bytes that are not what
they claim, raise `CorruptData`: to guess could lose offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec

from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import STRING_BYTES_MAX

# From here on strings and arrays are compact and tagged fields may follow.
FLEXIBLE_VERSION: Final = 4

# Instead of a time: not known.
NO_TIMESTAMP: Final = -1


class GroupRecord(msgspec.Struct, frozen=True):
    """Record of a group.  `kind` names the kind of group that it belongs to; offsets are of any.

    A tombstone begins no group of its kind.
    """

    kind: ClassVar[str] = ""
    is_tombstone: ClassVar[bool] = False

    group_id: str

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value; no value for a tombstone."""
        raise NotImplementedError

    def apply_to(self, group: Any) -> None:
        """Change the durable part of the group, which is of this record's kind."""
        raise NotImplementedError


# Reads what follows the number in a key, and the value of that key.
Decoder = Callable[[Reader, bytes | None], GroupRecord]


def can_be_written(*texts: str | None) -> bool:
    """Return true if these texts fit the records' strings, whose length has 15 bits."""
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

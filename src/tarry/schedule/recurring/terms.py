"""Terms of a recurring record, as its headers say them and its note keeps them.  Hot."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i64_be
from mypy_extensions import i16, i64, u8

from tarry.base.errors import CorruptData
from tarry.wire.reader import Reader

MISFIRE_ONCE: Final = "once"
MISFIRE_SKIP: Final = "skip"
MISFIRE_ALL: Final = "all"
# Kinds of misfire: a note has the index of one in this order.
MISFIRES: Final = (MISFIRE_ONCE, MISFIRE_SKIP, MISFIRE_ALL)

# End or count of terms that have none.
UNBOUNDED: Final = -1

_SIZE_MIN: Final = 29


class RecurrenceTerms:
    """Terms of a recurring record: `cron` and `zone` as they were written.

    The record was defined at `since_ms`, is due at `end_ms` at the latest and has `count` instances
    at most; `end_ms` and `count` may be `UNBOUNDED`.
    """

    def __init__(
        self, cron: str, zone: str, since_ms: int, *, end_ms: int, count: int, misfire: str
    ) -> None:
        self.cron = cron
        self.zone = zone
        self.since_ms = since_ms
        self.end_ms = end_ms
        self.count = count
        self.misfire = misfire

    @property
    def size(self) -> int:
        """Bytes that the terms take in a note, at most."""
        return _SIZE_MIN + 4 * (len(self.cron) + len(self.zone))

    def write(self, value: BytesWriter) -> None:
        """Write the terms into a note."""
        write_i64_be(value, self.since_ms)
        write_i64_be(value, self.end_ms)
        write_i64_be(value, self.count)
        value.append(u8(MISFIRES.index(self.misfire)))
        for text in (self.cron, self.zone):
            encoded = text.encode()
            write_i16_be(value, i16(len(encoded)))
            value.write(encoded)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecurrenceTerms) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return self.since_ms

    def __repr__(self) -> str:
        return f"RecurrenceTerms{self._facts()}"

    def _facts(self) -> tuple[str, str, int, int, int, str]:
        return (self.cron, self.zone, self.since_ms, self.end_ms, self.count, self.misfire)


class NotedRecurrence:
    """Recurring body in a checkpoint: its last due time below c, and its instances below c."""

    def __init__(self, s_offset: int, last_ms: int, count: int) -> None:
        self.s_offset = s_offset
        self.last_ms = last_ms
        self.count = count


def read_terms(value: Reader) -> RecurrenceTerms:
    """Read the terms that `RecurrenceTerms.write` has written; `MalformedData`, `CorruptData`."""
    since_ms = int(value.i64())
    end_ms = int(value.i64())
    count = int(value.i64())
    misfire: i64 = value.i8()
    if misfire < 0 or misfire >= len(MISFIRES):
        raise CorruptData(f"the misfire {misfire} of a recurring record")
    cron = value.string()
    zone = value.string()
    return RecurrenceTerms(
        cron, zone, since_ms, end_ms=end_ms, count=count, misfire=MISFIRES[misfire]
    )

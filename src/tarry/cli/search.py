"""Search of `tarry consume`: which records a pattern is found in."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from tarry.records.record import Record


class BadPattern(ValueError):
    """A pattern that Python's `re` does not take; the text says why."""


class Search:
    """Keeps the records in whose key or value `anywhere` is found, and in whose key `key` is."""

    def __init__(self, anywhere: str | None, key: str | None) -> None:
        self._anywhere = _compiled(anywhere)
        self._key = _compiled(key)

    @property
    def patterns(self) -> Sequence[re.Pattern[bytes]]:
        """Patterns that are searched for; the output marks what they find."""
        return [one for one in (self._anywhere, self._key) if one is not None]

    def found(self, records: list[Record]) -> list[Record]:
        """Find the records that match; null has nothing to be found in."""
        return [record for record in records if self._matches(record)]

    def _matches(self, record: Record) -> bool:
        key, value = record.key, record.value
        if self._key is not None and (key is None or not self._key.search(key)):
            return False
        search = self._anywhere
        if search is None:
            return True
        return (key is not None and bool(search.search(key))) or (
            value is not None and bool(search.search(value))
        )


def _compiled(text: str | None) -> re.Pattern[bytes] | None:
    if text is None:
        return None
    try:
        # Search for the bytes of the command line, whatever the encoding is.
        return re.compile(os.fsencode(text))
    except re.error as error:
        raise BadPattern(f"invalid pattern {text!r}: {error}") from None

"""Values that are text: one column, `text`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tarry.spark.steps.formats.values import BadValue, Decoded, decode_rows


class TextDecoder:
    """Decoder of UTF-8."""

    def __init__(self) -> None:
        self.fields = pa.struct([("text", pa.string())])

    def decode_all(self, values: Sequence[bytes | str | None]) -> Decoded:
        """Decode the values of a batch."""
        return decode_rows(self, values)

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the text."""
        try:
            return {"text": value.decode()}
        except UnicodeDecodeError as flaw:
            raise BadValue(f"the value is no UTF-8 at byte {flaw.start}") from None

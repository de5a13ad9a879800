"""Message: the base of every generated request and response."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.wire.writer import Writer

# Id of a topic or directory that has none yet, as in Kafka.
ZERO_UUID: Final = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:
    """A request or response; `encode` appends its fields, without any header."""

    def encode(self, writer: Writer, version: i64) -> None:
        raise NotImplementedError

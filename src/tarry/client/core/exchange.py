"""Exchange: one request to one broker and its answer, or the reason why there is none.

Whoever wants something of a broker subclasses it.  The connection calls `build` once the version
is known, and then exactly one of `on_response` and `on_failure`, possibly before `send` returns.
Repeating is not the connection's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tarry.client.errors import ClientError
from tarry.protocol.message import Message
from tarry.wire.reader import Reader

VERSION_UNLIMITED: Final = 1 << 15

# A generated function, such as `decode_metadata_response`.
Decoder = Callable[[Reader, int], Message]


class Exchange:
    """To be subclassed.  `deadline_ms` and `version` are the connection's to set."""

    # False: the broker sends no answer (a produce with acks=0); `on_response(None)` follows at
    # once when the request was handed over.
    has_response = True

    def __init__(self, api_key: int, decode: Decoder, timeout_ms: int) -> None:
        self.api_key = api_key
        self.decode = decode
        self.timeout_ms = timeout_ms
        self.deadline_ms = 0
        self.version = -1
        self.correlation_id = -1

    def version_max(self) -> int:
        """The newest version in which this request can be said; for requests that need a name
        where new versions only take an id."""
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        raise NotImplementedError

    # The answer's class belongs to the API of the exchange, which only the subclass knows.
    def on_response(self, response: Any, now_ms: int) -> None:
        raise NotImplementedError

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        raise NotImplementedError

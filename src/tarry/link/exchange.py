"""Exchange: one request to one broker and its answer, or the reason why there is none.

The part of the product that wants something of a broker subclasses it.  The link calls `build`
once the version is known, and then exactly one of `on_response`, `on_sent` and `on_failure`,
possibly before `send` returns.  Repeating is the errand's business, not the link's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, Generic, TypeVar

from tarry.link.errors import ClientError
from tarry.protocol.message import Message
from tarry.wire.reader import Reader

VERSION_UNLIMITED: Final = 1 << 15

R = TypeVar("R")

# A generated function, such as `decode_heartbeat_response`.
Decoder = Callable[[Reader, int], R]

# A function that decodes a bounded share each time that its generator is asked, and returns the
# answer in the end.
StepDecoder = Callable[[Reader, int], Generator[None, None, R]]


class Exchange(Generic[R]):
    """Exchange of one request and its answer, of class `R`; to be subclassed.

    The link sets `deadline_ms`, `version` and `correlation_id`.
    """

    # False: the broker sends no answer (a produce with acks=0); `on_sent` follows at once when
    # the request was handed over.
    has_response = True

    # Version in which a broker is asked that does not name the API in ApiVersions; -1: it is not
    # asked.  Tarry's own APIs are not named.
    version_unlisted = -1

    def __init__(self, api_key: int, decode: Decoder[R], timeout_ms: int) -> None:
        self.api_key = api_key
        self.decode = decode
        # Used instead of `decode` for a long answer, where there is one.
        self.decode_in_steps: StepDecoder[R] | None = None
        self.timeout_ms = timeout_ms
        self.deadline_ms = 0
        self.version = -1
        self.correlation_id = -1

    def version_max(self) -> int:
        """Return the newest version in which this request can be said; for requests that need a
        name where new versions only take an id."""
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        """Return the request.  Raises UnsupportedVersion if this version cannot say it."""
        raise NotImplementedError

    def on_response(self, response: R, now_ms: int) -> None:
        raise NotImplementedError

    def on_sent(self, now_ms: int) -> None:
        """Take note that a request without an answer was handed over."""

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        raise NotImplementedError

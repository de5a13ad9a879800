"""Exchange: one request to one broker and its answer, or the reason why there is none.

The user of a link subclasses it.  The link calls `build` once the version is known, and then
exactly one of `on_response`, `on_sent` and `on_failure`, possibly before `send` returns.  A link
does not repeat an exchange; errands do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, Generic, TypeVar

from tarry.link.errors import ClientError
from tarry.protocol.message import Message
from tarry.wire.reader import Reader

VERSION_UNLIMITED: Final = 1 << 15

R = TypeVar("R")

# Generated decoder of a response, such as `decode_heartbeat_response`.
Decoder = Callable[[Reader, int], R]

# Decoder of a response in steps: a generator that decodes a bounded share at each step, and returns
# the response at the end.
StepDecoder = Callable[[Reader, int], Generator[None, None, R]]


class Exchange(Generic[R]):
    """Exchange of one request and its answer, of class `R`; to be subclassed.

    The link sets `deadline_ms`, `version` and `correlation_id`.
    """

    # False: the broker sends no answer (a produce with acks=0); `on_sent` is called as soon as
    # the request is handed over.
    has_response = True

    # Version to use with a broker whose ApiVersions answer lacks the API, as it lacks Tarry's own
    # APIs; -1: the request fails instead.
    version_unlisted = -1

    def __init__(self, api_key: int, decode: Decoder[R], timeout_ms: int) -> None:
        self.api_key = api_key
        self.decode = decode
        # Decoder for a long answer, used in place of `decode`; None if there is none.
        self.decode_in_steps: StepDecoder[R] | None = None
        self.timeout_ms = timeout_ms
        self.deadline_ms = 0
        self.version = -1
        self.correlation_id = -1

    def version_max(self) -> int:
        """Return the newest version that can express this request; for a request that needs a name
        where newer versions only take an id."""
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        """Return the request.  Raises UnsupportedVersion if this version cannot express it."""
        raise NotImplementedError

    def on_response(self, response: R, now_ms: int) -> None:
        raise NotImplementedError

    def on_sent(self, now_ms: int) -> None:
        """Note that a request without an answer was handed over."""

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        raise NotImplementedError

"""Route: how one API is served.  Hot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from tarry.broker.access import Access
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.wire.reader import Reader

Q = TypeVar("Q", bound=Message)


class Route(Generic[Q]):
    """Handler, decoder, versions and access of one API, typed by its request.

    `version_advertised_min` is -1 if it equals `version_min`.  ApiVersions leaves out an API that
    is not `is_advertised`, which Kafka's clients have no use for.
    """

    def __init__(
        self,
        api_key: int,
        version_min: int,
        version_max: int,
        access: Access,
        decode: Callable[[Reader, int], Q],
        handle: Callable[[RequestContext, Q], Message | None],
        *,
        version_advertised_min: int = -1,
        is_advertised: bool = True,
    ) -> None:
        self.api_key = api_key
        self.access = access
        self.is_advertised = is_advertised
        self.decode = decode
        self.handle = handle
        self.version_min = version_min
        self.version_max = version_max
        self.version_advertised_min = (
            version_min if version_advertised_min < 0 else version_advertised_min
        )

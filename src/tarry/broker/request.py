"""A request on its way: what its handler knows of it, and the place of its answer.  Hot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from tarry.base.doors import Chunk
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.broker import Broker
    from tarry.broker.connection import Connection


class RequestContext:
    """One request of one connection.  Its answer is given once, at once or later."""

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id: str | None = None
        # What waits to answer it, so that it can be given up when the peer goes away.
        self.operation: DelayedOperation | None = None
        self.is_answered = False
        self.chunks: list[Chunk] | None = None
        self.size: i64 = 0

    def respond(self, response: Message) -> None:
        """Give the answer: a response message of this request's API."""
        if not self.connection.is_closed:
            self.broker.answer(self, response)

    def is_fetch(self) -> bool:
        """True for a fetch: one that waits may be answered with what is there."""
        return self.api_key == api_keys.FETCH

    def respond_nothing(self) -> None:
        """The request wants no answer (produce with acks=0)."""
        self.is_answered = True
        connection = self.connection
        if not connection.is_closed:
            connection.waiting -= 1
            self.broker.queue_to_send(connection)

    def report(self, reason: str, kind: str = "") -> None:
        """Log that the peer sent something bad though it is answered; summed up by kind."""
        self.broker.faults.report(self.connection.peer, reason, self.broker.now_ms, kind)

    def close_connection(self, reason: str) -> None:
        """Drop the connection: the only way to refuse what has no answer."""
        self.broker.close_connection(self.connection, reason)

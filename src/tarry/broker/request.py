"""A request on its way: what its handler knows of it, and the place of its answer.  Hot."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.broker.answers import Answers
from tarry.broker.kafka_connection import KafkaConnection, Slot
from tarry.protocol.message import Message
from tarry.protocol.pieced import PiecedResponse


@mypyc_attr(allow_interpreted_subclasses=True)
class RequestContext(Slot):
    """Request of one connection, in its context.  Its answer is given once, at once or later."""

    def __init__(
        self,
        answers: Answers,
        connection: KafkaConnection,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        super().__init__(api_key, api_version, correlation_id)
        self.answers = answers
        self.connection = connection
        self.client_id: str | None = None
        # How many array elements the request has.
        self.elements: i64 = 0

    @property
    def now_ms(self) -> int:
        """The time of the turn that is under way."""
        return self.answers.turn.now_ms

    def respond(self, response: Message) -> None:
        """Give the answer: a response message of this request's API."""
        connection = self.connection
        if not connection.is_closed:
            self.answers.put(connection, self, response)

    def respond_in_pieces(self, response: PiecedResponse) -> None:
        """Give the answer: a response of this request's API, encoded already."""
        connection = self.connection
        if not connection.is_closed:
            self.answers.put_pieces(connection, self, response)

    def respond_nothing(self) -> None:
        """End a request that wants no answer (produce with acks=0)."""
        connection = self.connection
        if not connection.is_closed:
            self.answers.put_nothing(connection, self)

    def report(self, reason: str, kind: str = "") -> None:
        """Log that the peer sent something bad though it is answered; summed up by kind."""
        self.answers.report(self.connection, reason, kind)

    def close_connection(self, reason: str) -> None:
        """Drop the connection: the only way to refuse what has no answer."""
        self.answers.close(self.connection, reason)

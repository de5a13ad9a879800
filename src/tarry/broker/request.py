"""A request that is being answered: what its handler knows of it, and the slot of its answer.
Hot.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.broker.answers import Answers
from tarry.broker.kafka_connection import KafkaConnection, Slot
from tarry.protocol.message import Message
from tarry.protocol.pieced import PiecedResponse


@mypyc_attr(allow_interpreted_subclasses=True)
class RequestContext(Slot):
    """Request of one connection, with its surroundings.  It is answered once, now or later."""

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
        # Number of array elements in the request.
        self.elements: i64 = 0

    @property
    def now_ms(self) -> int:
        """The attended time of the present turn, in ms."""
        return self.answers.turn.now_ms

    def respond(self, response: Message) -> None:
        """Answer with a response message of this request's API."""
        connection = self.connection
        if not connection.is_closed:
            self.answers.put(connection, self, response)

    def respond_in_pieces(self, response: PiecedResponse) -> None:
        """Answer with a response of this request's API that is encoded already."""
        connection = self.connection
        if not connection.is_closed:
            self.answers.put_pieces(connection, self, response)

    def respond_nothing(self) -> None:
        """End a request without an answer (produce with acks=0)."""
        connection = self.connection
        if not connection.is_closed:
            self.answers.put_nothing(connection, self)

    def report(self, reason: str, kind: str = "") -> None:
        """Log that the peer sent something wrong although it is answered; lines are summed up by
        kind.
        """
        self.answers.report(self.connection, reason, kind)

    def close_connection(self, reason: str) -> None:
        """Close the connection, which is the only way to refuse a request without an answer."""
        self.answers.close(self.connection, reason)

"""A second protocol on a broker's loop: a connection that sends back what it receives."""

from __future__ import annotations

from typing import Final

from tarry.broker.answers import Answers
from tarry.broker.connection import Connection

ECHO: Final = "ECHO"


class EchoConnection(Connection):
    def __init__(self, answers: Answers, connection_id: int, listener: str, peer: str) -> None:
        super().__init__(connection_id, listener, peer)
        self.answers = answers

    def feed(self, data: bytes) -> None:
        self.active_ms = self.answers.turn.now_ms
        self.out.append(data)
        self.answers.send_later(self)

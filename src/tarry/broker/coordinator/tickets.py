"""Tickets: requests that a coordinator answers later, which its state knows by numbers.

Each such request is answered once.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.broker.request import RequestContext

A = TypeVar("A")

# Ticket of an append for which no request waits.
NO_TICKET: Final = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Asked(Generic[A]):
    """Request whose answer comes from a coordinator's state.  A subclass makes the response."""

    def __init__(self, context: RequestContext) -> None:
        self.context = context

    def answer(self, answer: A) -> None:
        """Answer the request."""
        raise NotImplementedError

    def refuse(self, error_code: int) -> None:
        """Answer with this error in each place of the response; only requests that append need
        this.
        """
        raise NotImplementedError


class Tickets:
    """Requests that wait for an answer, by ticket."""

    def __init__(self) -> None:
        self._newest = NO_TICKET
        self._asked: dict[int, Asked[Any]] = {}

    def issue(self, asked: Asked[Any]) -> int:
        """Return a new ticket for a request."""
        self._newest += 1
        self._asked[self._newest] = asked
        return self._newest

    def answer(self, ticket: int, answer: object) -> None:
        """Give a request its answer; do nothing if it was answered already."""
        asked = self._asked.pop(ticket, None)
        if asked is not None:
            asked.answer(answer)

    def time_out(self, ticket: int) -> None:
        """Answer a request whose records did not become durable in time.

        Kafka turns REQUEST_TIMED_OUT into this code: clients look for the coordinator again and
        repeat their request there.  REQUEST_TIMED_OUT reaches the application instead.
        """
        asked = self._asked.pop(ticket, None)
        if asked is not None:
            asked.refuse(errors.COORDINATOR_NOT_AVAILABLE)

    @property
    def waiting(self) -> int:
        """Number of requests that wait for an answer."""
        return len(self._asked)

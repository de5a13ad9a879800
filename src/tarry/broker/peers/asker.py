"""Asker: one user of the seam, with a connection of its own to each broker that it asks.

A question is an `Exchange`: a request, and what is to be done with its answer or with the error in
its place.  It ends once, by one of the two, possibly before `ask` returns, and at the latest when
its time-out is over.

* Questions of one asker to one broker leave in the order of `ask`, and are answered in it.  One
  that the broker takes long to answer holds up those behind it, so a user with such questions has
  an asker for them alone.  Between askers, and between brokers, there is no order.
* One late answer, or one larger than the asker takes, closes the connection: what was asked behind
  it fails too.  A failure after the request has left does not say whether it was carried out.
* What is under way fails when the broker's address or its life has changed, and when this broker
  stops.  The next question goes to where the broker is then.
* So many questions to one broker are under way at once, and so many bytes of them; more fail at
  once.  Nobody repeats a question but its asker.

A question to this broker itself obeys the same rules.  It is answered in the same turn, unless a
client's request would have to wait there too: for its deadline, its log, or a later turn's share.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from tarry.base.limits import QUESTIONS_UNDER_WAY_MAX, UNSENT_BYTES_MAX
from tarry.base.turn import Turn
from tarry.link.errors import ClientError
from tarry.link.events import Address
from tarry.link.exchange import Exchange
from tarry.link.link import Link
from tarry.link.links import Links


class UnknownBroker(ClientError):
    """Error of a question to a broker without a known address; nothing was sent."""

    is_retriable = True


class TooMuchAsked(ClientError):
    """Error of a question beyond what may be under way to one broker; nothing was sent."""

    is_retriable = True


class AskerClosed(ClientError):
    """Error of a question of a broker that stops; nothing was sent."""


class Whereabouts(NamedTuple):
    """Place where a broker is asked, and the broker epoch of its life (-1: it has none)."""

    address: Address
    broker_epoch: int


class Wires(Protocol):
    """Wires of all askers: `Peers`, seen from below."""

    def place_of(self, broker_id: int) -> Whereabouts | None:
        """Return where a broker is asked; None if that is not known."""

    def carry_out(self, asker: Asker) -> None:
        """Do what the asker's links have asked for."""


class Asker:
    """Asker of any broker.  Made by `Peers.asker`."""

    def __init__(self, wires: Wires, links: Links, turn: Turn, answer_bytes_max: int) -> None:
        self.links = links
        # Of a connection, by the link's number of it: the id, and the bytes of questions that its
        # peer had not taken when the last one was sent.
        self.ids: dict[int, int] = {}
        self.unsent: dict[int, int] = {}
        self._wires = wires
        self._turn = turn
        self._answer_bytes_max = answer_bytes_max
        self._to: dict[int, tuple[Link, Whereabouts]] = {}
        self._is_closed = False

    def ask(self, broker_id: int, question: Exchange[Any]) -> None:
        """Ask a broker, which may be this one."""
        now_ms = self._turn.now_ms
        try:
            link = self._link_to(broker_id)
        except ClientError as refusal:
            question.on_failure(refusal, now_ms)
        else:
            link.send(question, now_ms)
        self._wires.carry_out(self)

    def _link_to(self, broker_id: int) -> Link:
        """Return the link to a broker; raise the reason why nothing more is asked of it now."""
        found = self._to.get(broker_id)
        if found is None:
            return self._open(broker_id)
        link = found[0]
        under_way = link.in_flight
        if under_way:
            if under_way >= QUESTIONS_UNDER_WAY_MAX:
                raise TooMuchAsked(f"{link} has not answered {under_way} questions")
            # The count is that of the last send: once all of it is answered, it has been taken.
            unsent = self.unsent.get(link.connection_id, 0)
            if unsent >= UNSENT_BYTES_MAX:
                raise TooMuchAsked(f"{link} has not taken {unsent} bytes of questions")
        return link

    def _open(self, broker_id: int) -> Link:
        if self._is_closed:
            raise AskerClosed("this broker stops, and asks nothing more")
        place = self._wires.place_of(broker_id)
        if place is None:
            raise UnknownBroker(f"broker {broker_id} has no address that is known here")
        link = self.links.dedicated(broker_id, place.address, self._answer_bytes_max)
        self._to[broker_id] = (link, place)
        return link

    def retry_pause_ms(self, failures: int) -> int:
        """Return how long to wait after the `failures`th failed question in a row."""
        return self.links.retry_pause_ms(failures)

    def hang_up(self, broker_id: int, reason: str) -> None:
        """Close the connection to a broker: what is under way fails, and is not awaited."""
        found = self._to.pop(broker_id, None)
        if found is not None:
            self.links.release(found[0], reason, self._turn.now_ms)
            self._wires.carry_out(self)

    def hang_up_all(self, reason: str) -> None:
        """Close the connections to all brokers."""
        for broker_id in list(self._to):
            self.hang_up(broker_id, reason)

    def check_place(self, broker_id: int) -> None:
        """Hang up if the broker is not any more where it was, or lives another life."""
        found = self._to.get(broker_id)
        if found is not None and found[1] != self._wires.place_of(broker_id):
            self.hang_up(broker_id, "it has moved, or its life is over")

    def close(self) -> None:
        """Ask nothing more; what is under way fails."""
        self._is_closed = True
        self.hang_up_all("this broker stops")

"""Asker: one user of `Peers`, with a connection of its own to each broker that it asks.

A question is an `Exchange`: a request, and what is done with its answer or with an error in its
place.  It ends once, by one of the two, possibly before `ask` returns, and at the latest when its
time-out is over.

* Questions of one asker to one broker are sent in the order of `ask`, and answered in that order.
A question that the broker answers late holds up those behind it, so a user of such questions has an
asker for them alone.  Between askers, and between brokers, there is no order.  * An answer that is
late, or larger than the asker takes, closes the connection, and the questions behind it fail too.
A failure after the request has left does not say whether it was carried out.  * Questions under way
fail when the broker's address or life changes, and when this broker stops.  The next question goes
to the broker's new address.  * The questions under way to one broker are bounded in number and
bytes; further ones fail at once.  Only the asker itself repeats a question.

A question to this broker itself obeys the same rules.  It is answered in the same turn, unless a
client's request would also have to wait: for its deadline, its log, or a later turn.
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
    """Address of a broker, and the broker epoch of its life; -1 if it has none."""

    address: Address
    broker_epoch: int


class Wires(Protocol):
    """Wires of all askers: what an asker needs of `Peers`."""

    def place_of(self, broker_id: int) -> Whereabouts | None:
        """Return the address and life of a broker; None if they are not known."""

    def carry_out(self, asker: Asker) -> None:
        """Do what the asker's links have asked for."""


class Asker:
    """Asker of any broker; `Peers.asker` makes one."""

    def __init__(self, wires: Wires, links: Links, turn: Turn, answer_bytes_max: int) -> None:
        self.links = links
        # By the link's number of a connection: the connection's id, and the bytes of questions that
        # its peer had not taken at the last send.
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
        """Return the link to a broker; raise an error if nothing more may be asked of it now."""
        found = self._to.get(broker_id)
        if found is None:
            return self._open(broker_id)
        link = found[0]
        under_way = link.in_flight
        if under_way:
            if under_way >= QUESTIONS_UNDER_WAY_MAX:
                raise TooMuchAsked(f"{link} has not answered {under_way} questions")
            # `unsent` is from the last send, and a link without questions under way has nothing
            # unsent.
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
        """Return the pause after a number of failed questions in a row, in ms."""
        return self.links.retry_pause_ms(failures)

    def hang_up(self, broker_id: int, reason: str) -> None:
        """Close the connection to a broker; the questions under way fail."""
        found = self._to.pop(broker_id, None)
        if found is not None:
            self.links.release(found[0], reason, self._turn.now_ms)
            self._wires.carry_out(self)

    def hang_up_all(self, reason: str) -> None:
        """Close the connections to all brokers."""
        for broker_id in list(self._to):
            self.hang_up(broker_id, reason)

    def check_place(self, broker_id: int) -> None:
        """Close the connection if the broker has another address or another life than before."""
        found = self._to.get(broker_id)
        if found is not None and found[1] != self._wires.place_of(broker_id):
            self.hang_up(broker_id, "it has moved, or its life is over")

    def close(self) -> None:
        """Refuse all further questions; those under way fail."""
        self._is_closed = True
        self.hang_up_all("this broker stops")

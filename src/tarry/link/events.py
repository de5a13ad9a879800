"""Events and outputs of links: the input that links get, and the orders that they give.

Events are `Resolved`, and CONNECTED, RECEIVED and DISCONNECTED of base/doors with the connection
ids that the links gave.  Outputs are `Resolve`, `Connect`, `Send` and `Close`.  The owner of the
links carries the outputs out in their order: a face of the client by its sockets, a broker by its
transport.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.doors import Event
from tarry.base.listeners import host_and_port

RESOLVED: Final = 101


class Address(NamedTuple):
    """A host (name or number, without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


class Resolved:
    """Result of a name look-up: addresses in the order to try them; if there are none, `error`."""

    __slots__ = ("addresses", "connection_id", "error", "kind")

    def __init__(self, connection_id: int, addresses: list[Address], error: str = "") -> None:
        self.kind = RESOLVED
        self.connection_id = connection_id
        self.addresses = addresses
        self.error = error


class Resolve:
    """Order to look the host up; ends as `Resolved`."""

    __slots__ = ("address", "connection_id")

    def __init__(self, connection_id: int, address: Address) -> None:
        self.connection_id = connection_id
        self.address = address


class Connect:
    """Order to connect to a numeric address; ends as CONNECTED or DISCONNECTED."""

    __slots__ = ("address", "connection_id")

    def __init__(self, connection_id: int, address: Address) -> None:
        self.connection_id = connection_id
        self.address = address


class Send:
    """Order to send the bytes."""

    __slots__ = ("connection_id", "data")

    def __init__(self, connection_id: int, data: bytes) -> None:
        self.connection_id = connection_id
        self.data = data


class Close:
    """Order to drop the connection in any state; later events of it are ignored."""

    __slots__ = ("connection_id",)

    def __init__(self, connection_id: int) -> None:
        self.connection_id = connection_id


LinkEvent = Event | Resolved
Output = Resolve | Connect | Send | Close

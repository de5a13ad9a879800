"""What a client core is told and what it asks for.

Told (events): `Resolved`, and of base/doors CONNECTED, RECEIVED and DISCONNECTED with the
connection ids that the core gave.  Asked for (outputs): `Resolve`, `Connect`, `Send`, `Close`;
and `operation.Notice` for whoever waits.  A face does sockets and waiting, and nothing else.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Event
from tarry.client.settings import Address

RESOLVED: Final = 101


class Resolved:
    """A name was looked up: the addresses in the order to try; none means `error`."""

    __slots__ = ("addresses", "connection_id", "error", "kind")

    def __init__(self, connection_id: int, addresses: list[Address], error: str = "") -> None:
        self.kind = RESOLVED
        self.connection_id = connection_id
        self.addresses = addresses
        self.error = error


class Resolve:
    """Look the host up; ends as `Resolved`."""

    __slots__ = ("address", "connection_id")

    def __init__(self, connection_id: int, address: Address) -> None:
        self.connection_id = connection_id
        self.address = address


class Connect:
    """Connect to a numeric address; ends as CONNECTED or DISCONNECTED."""

    __slots__ = ("address", "connection_id")

    def __init__(self, connection_id: int, address: Address) -> None:
        self.connection_id = connection_id
        self.address = address


class Send:
    """Send the bytes, in the order of the outputs."""

    __slots__ = ("connection_id", "data")

    def __init__(self, connection_id: int, data: bytes) -> None:
        self.connection_id = connection_id
        self.data = data


class Close:
    """Forget the connection, whatever it is doing; no event of it counts any more."""

    __slots__ = ("connection_id",)

    def __init__(self, connection_id: int) -> None:
        self.connection_id = connection_id


ClientEvent = Event | Resolved
Output = Resolve | Connect | Send | Close

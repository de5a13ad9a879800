"""Errors of links.  Each text is a sentence for the user: what happened, where, what to do.

`is_retriable` says whether the same request may succeed later without a change.
"""

from __future__ import annotations

from tarry.base.errors import TarryError


class ClientError(TarryError):
    """Base of all errors of the side that sends requests."""

    is_retriable = False


class BrokerUnreachable(ClientError):
    """Error of a connection that could not be made; nothing was sent."""

    is_retriable = True


class ConnectionLost(ClientError):
    """A connection ended with this request under way; the broker may have done it or not."""

    is_retriable = True


class RequestTimedOut(ConnectionLost):
    """The broker did not answer in time, so its connection was closed."""


class UnsupportedVersion(ClientError):
    """The broker and this client share no version of an API."""


class InvalidRequest(ClientError):
    """An argument is of a type or a size that no request can carry; nothing was sent."""


class TimedOut(ClientError):
    """Error of a wait that did not end in the time given."""

    is_retriable = True


def timed_out(what: str, waited_ms: int, reason: Exception | None) -> TimedOut:
    """Return the error of `what`, which did not happen in time, with what stood in its way.

    If a broker could not be reached, the text begins with that, because it explains the rest.
    """
    waited = f"{waited_ms / 1000:g} s"
    if isinstance(reason, BrokerUnreachable):
        return TimedOut(f"{reason} (tried for {waited}); is a broker running there?")
    because = f": {reason}" if reason is not None else ""
    return TimedOut(f"{what} within {waited}{because}")

"""Sentences about requests that cannot be answered: the client, the API, and the client's words.

The connection is closed, as by Kafka.  The client's own message for that gives no reason, so the
line in the broker's log has both the client's words and the API.
"""

from __future__ import annotations

from typing import Any, Final

from tarry.broker.route import Route
from tarry.protocol.api_names import api_name

# Words of clients for a closed connection, by the software name that they give in ApiVersions.
_WORDS: Final = {
    "apache-kafka-java": "DisconnectException",
    "librdkafka": "Disconnected",
    "sarama": "EOF",
    "kgo": "EOF",
}


def api_sentence(api_key: int, client_id: str | None, software: str) -> str:
    """Return the sentence that an API is not served."""
    return f"{api_name(api_key)} is not served here; {_what_follows(client_id, software)}"


def version_sentence(
    route: Route[Any], api_version: int, client_id: str | None, software: str
) -> str:
    """Return the sentence that a version of an API is not served."""
    return (
        f"version {api_version} of {api_name(route.api_key)} is not served; {route.version_min} to "
        f"{route.version_max} are; {_what_follows(client_id, software)}"
    )


def _what_follows(client_id: str | None, software: str) -> str:
    client = "a client without an id" if client_id is None else f"client {client_id[:80]}"
    if software:
        client += f" ({software[:60]})"
    told = _WORDS.get(software.partition(" ")[0], "a lost connection")
    return f"the connection of {client} is closed, and it will tell of {told}"

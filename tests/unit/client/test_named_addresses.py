"""Addresses that brokers name and no system takes: told like others that are not reached."""

from __future__ import annotations

import pytest

from tarry.client.face.streams import Streams
from tarry.client.settings import ClientSettings
from tarry.link.events import Address, Resolve, Resolved


class NoLookups(Streams):
    """Streams whose look-ups find nothing."""

    def look_up(self, output: Resolve) -> None:
        self.events.append(Resolved(output.connection_id, [], "not looked up here"))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (Address("127.0.0.1", 70_000), "70000 is no port, which is a number from 1 to 65535"),
        (Address("127.0.0.1", -1), "-1 is no port, which is a number from 1 to 65535"),
        (Address("localhost", 0), "0 is no port, which is a number from 1 to 65535"),
        (Address("broker\0.example", 9092), "'broker\\x00.example' is no name of a host"),
    ],
)
def test_an_address_that_no_system_takes_is_one_that_cannot_be_reached(
    address: Address, sentence: str
) -> None:
    streams = NoLookups(ClientSettings(bootstrap_servers="127.0.0.1:9092"))

    streams.perform([Resolve(7, address)])

    (event,) = streams.take_events()
    assert isinstance(event, Resolved)
    assert (event.connection_id, event.addresses, event.error) == (7, [], sentence)

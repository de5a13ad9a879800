"""`max.connection.creation.rate`: room for connections, by the time that has passed."""

from __future__ import annotations

import pytest

from tarry.base.settings import Settings
from tarry.runtime.connection_rate import ConnectionRate


def rate_of(rate: int, **texts: str) -> ConnectionRate:
    keys = {key.replace("_", "."): value for key, value in texts.items()}
    return ConnectionRate(Settings({"max.connection.creation.rate": str(rate), **keys}), 0)


@pytest.mark.parametrize("rate", [0, 1, 7, 100, 3_000])
def test_in_the_long_run_no_more_connections_come_than_the_rate_allows(rate: int) -> None:
    limited = rate_of(rate)
    accepted = 0

    for now_ms in range(0, 60_000, 3):
        for _ in range(min(limited.room(now_ms), 64)):
            limited.spend()
            accepted += 1

    assert rate * 58 <= accepted <= rate * 61 + 6


def test_a_wait_ends_when_there_is_room() -> None:
    limited = rate_of(3)
    now_ms = 0
    while limited.room(now_ms):
        limited.spend()

    now_ms += limited.wait_ms(now_ms)

    assert limited.room(now_ms - 1) == 0
    assert limited.room(now_ms) == 1


def test_the_listener_of_the_brokers_does_not_wait_for_the_clients() -> None:
    two = "PLAINTEXT://127.0.0.1:9092,BROKERS://127.0.0.1:9093"
    apart = rate_of(
        5,
        listeners=two,
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        inter_broker_listener_name="BROKERS",
    )

    assert (apart.applies_to("PLAINTEXT"), apart.applies_to("BROKERS")) == (True, False)
    assert rate_of(5).applies_to("PLAINTEXT")
    assert not rate_of(2**31 - 1).applies_to("PLAINTEXT")

"""Listeners: names, several of them, advertised ones, IPv6, and what is refused."""

from __future__ import annotations

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.listeners import BrokerListener
from tarry.base.settings import Settings


def listeners(**texts: str) -> list[BrokerListener]:
    return Settings({key.replace("_", "."): text for key, text in texts.items()}).open_listeners


def test_the_default_is_this_machine_only() -> None:
    (only,) = listeners()

    assert (only.name, only.host, only.port) == ("PLAINTEXT", "127.0.0.1", 9092)
    assert (only.advertised_host, only.advertised_port) == ("127.0.0.1", 9092)


def test_two_listeners_advertise_two_names() -> None:
    inside, outside = listeners(
        listeners="INSIDE://127.0.0.1:9092, outside://0.0.0.0:9093",
        advertised_listeners="OUTSIDE://broker.example:19093",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    )

    assert (inside.name, inside.advertised_host, inside.advertised_port) == (
        "INSIDE",
        "127.0.0.1",
        9092,
    )
    assert (outside.name, outside.host) == ("OUTSIDE", "0.0.0.0")
    assert (outside.advertised_host, outside.advertised_port) == ("broker.example", 19093)


def test_an_ipv6_address_stands_in_brackets() -> None:
    (only,) = listeners(listeners="PLAINTEXT://[::1]:9092")

    assert (only.host, only.port) == ("::1", 9092)


def test_port_0_is_advertised_as_the_port_that_the_system_gave() -> None:
    first, second = listeners(
        listeners="A://127.0.0.1:0,B://127.0.0.1:0",
        advertised_listeners="B://name:5",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
    )

    first.bound(40_001)
    second.bound(40_002)

    assert (first.port, first.advertised_port) == (40_001, 40_001)
    assert (second.port, second.advertised_port) == (40_002, 5)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_wildcard_without_an_advertised_address_is_refused_with_the_line_to_write(
    host: str,
) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        listeners(listeners=f"PLAINTEXT://{host}:9092")

    line = "write advertised.listeners=PLAINTEXT://your.host.name:9092"
    assert line in str(refusal.value)


def test_a_wildcard_may_not_be_advertised() -> None:
    with pytest.raises(InvalidSetting, match="stands for every address"):
        listeners(
            listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://0.0.0.0:9092"
        )


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"listeners": "127.0.0.1:9092"}, "write NAME://host:port"),
        ({"listeners": "PLAINTEXT://localhost"}, "write NAME://host:port"),
        ({"listeners": "://localhost:1"}, "write NAME://host:port"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "in brackets"),
        ({"listeners": "PLAINTEXT://localhost:65536"}, "from 0 to 65535"),
        ({"listeners": "PLAINTEXT://localhost:-1"}, "from 0 to 65535"),
        ({"listeners": "PLAINTEXT://localhost:" + "9" * 5000}, "from 0 to 65535"),
        ({"listeners": "PLAINTEXT://a b:9092"}, "invalid host name"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "used twice"),
        ({"listeners": ""}, "no listener for clients"),
        ({"listeners": "SSL://localhost:9092"}, "not supported"),
        ({"listeners": "SASL_PLAINTEXT://localhost:9092"}, "not supported"),
        ({"listeners": "EXTERNAL://localhost:9092"}, "add EXTERNAL:PLAINTEXT to listener.sec"),
        (
            {
                "listeners": "EXTERNAL://localhost:9092",
                "listener.security.protocol.map": "EXTERNAL:SASL_SSL",
            },
            "not supported",
        ),
        (
            {
                "listeners": "EXTERNAL://localhost:9092",
                "listener.security.protocol.map": "EXTERNAL:TCP",
            },
            "unknown security protocol TCP",
        ),
        (
            {
                "listeners": "PLAINTEXT://a:1,B://a:1",
                "listener.security.protocol.map": "B:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            },
            "the same address",
        ),
        ({"advertised.listeners": "OTHER://a:1"}, "no listener of its name"),
        (
            {"listeners": "CONTROLLER://a:1", "controller.listener.names": "CONTROLLER"},
            "no listener for clients",
        ),
    ],
)
def test_what_cannot_be_opened_is_refused_in_a_sentence(texts: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings(texts)

    assert words in str(refusal.value)


def test_listeners_of_the_controller_are_not_opened_whatever_they_ask_for() -> None:
    settings = Settings(
        {
            "listeners": "PLAINTEXT://localhost:9092,ctl://:9093",
            "controller.listener.names": "CTL",
            "listener.security.protocol.map": "CTL:SASL_SSL,PLAINTEXT:PLAINTEXT",
        }
    )

    assert [one.name for one in settings.open_listeners] == ["PLAINTEXT"]
    assert settings.closed_listeners == ["CTL"]

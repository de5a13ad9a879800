"""Listeners: the addresses that a broker opens, and those that it advertises to clients.

This module parses texts, and refuses with a sentence what cannot work.  `runtime` opens the
listeners; for a port of 0 it calls `bound` with the port that it got, before the broker is made.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import InvalidSetting

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WILDCARDS: Final = ("", "0.0.0.0", "::")
_PORT_MAX: Final = 65_535


class ListenerAddress:
    """`NAME://host:port`; an IPv6 host without its brackets."""

    __slots__ = ("host", "name", "port")

    def __init__(self, name: str, host: str, port: int) -> None:
        self.name = name
        self.host = host
        self.port = port

    @property
    def is_wildcard(self) -> bool:
        return self.host in _WILDCARDS

    def __str__(self) -> str:
        return f"{self.name}://{host_and_port(self.host, self.port)}"


class BrokerListener:
    """Address to open, and the one that is advertised to clients who connected through it."""

    __slots__ = ("advertised_host", "advertised_port", "host", "name", "port")

    def __init__(self, address: ListenerAddress, advertised: ListenerAddress) -> None:
        self.name = address.name
        self.host = address.host
        self.port = address.port
        self.advertised_host = advertised.host
        self.advertised_port = advertised.port

    @property
    def is_loopback(self) -> bool:
        """True if only programs of this machine can reach it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def bound(self, port: int) -> None:
        """Note the port that the system chose for a port of 0."""
        self.port = port
        if self.advertised_port == 0:
            self.advertised_port = port


def host_and_port(host: str, port: int) -> str:
    """Write host and port as an address: IPv6 hosts in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_listeners(
    listeners: str, advertised_listeners: str, protocol_map: str, controller_names: str
) -> tuple[list[BrokerListener], list[str]]:
    """Return the listeners to open, and the names of KRaft's controller listeners, which are not
    opened.
    """
    controllers = [name.upper() for name in _parts(controller_names)]
    addresses = parse_addresses("listeners", listeners)
    _refuse_twice(addresses)
    opened = [address for address in addresses if address.name not in controllers]
    if not opened:
        raise InvalidSetting(
            f"listeners={listeners} leaves no listener for clients: write "
            "listeners=PLAINTEXT://127.0.0.1:9092"
        )
    protocols = _parse_protocols(protocol_map)
    for address in opened:
        _refuse_protocol(address.name, protocols)
    advertised = _advertised(opened, advertised_listeners, controllers)
    pairs = [BrokerListener(address, advertised[address.name]) for address in opened]
    return pairs, [address.name for address in addresses if address.name in controllers]


def parse_addresses(key: str, text: str) -> list[ListenerAddress]:
    """Parse `NAME://host:port`, several with commas; names are unique, in upper case."""
    addresses: list[ListenerAddress] = []
    for part in _parts(text):
        address = _parse_address(key, part)
        if any(address.name == other.name for other in addresses):
            raise InvalidSetting(f"{key}={text}: the name {address.name} is used twice")
        addresses.append(address)
    return addresses


def _parse_address(key: str, part: str) -> ListenerAddress:
    name, separator, rest = part.partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or not name or not colon:
        raise InvalidSetting(f"{key}={part}: write NAME://host:port, as PLAINTEXT://127.0.0.1:9092")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise InvalidSetting(f"{key}={part}: write an IPv6 address in brackets, [{host}]:{port}")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= _PORT_MAX):
        raise InvalidSetting(f"{key}={part}: invalid port; write a number from 0 to {_PORT_MAX}")
    if not all(c.isascii() and (c.isalnum() or c in "-._:%") for c in host):
        raise InvalidSetting(f"{key}={part}: invalid host name")
    return ListenerAddress(name.upper(), host, int(port))


def _parse_protocols(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for part in _parts(text):
        name, _, protocol = part.partition(":")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _refuse_twice(addresses: list[ListenerAddress]) -> None:
    for index, address in enumerate(addresses):
        for other in addresses[:index]:
            if address.port == other.port != 0 and address.host == other.host:
                raise InvalidSetting(
                    f"{other} and {address} are the same address: give each listener its own port"
                )


def _refuse_protocol(name: str, protocols: dict[str, str]) -> None:
    protocol = protocols.get(name, name if name in _PROTOCOLS else "")
    if not protocol:
        raise InvalidSetting(
            f"listener {name} has no security protocol: add {name}:PLAINTEXT to "
            "listener.security.protocol.map"
        )
    if protocol not in _PROTOCOLS:
        raise InvalidSetting(
            f"listener.security.protocol.map: unknown security protocol {protocol}; write PLAINTEXT"
        )
    if protocol != "PLAINTEXT":
        raise InvalidSetting(
            f"listener {name} asks for {protocol}, which is not supported: Tarry has no TLS and no "
            f"authentication yet; write {name}:PLAINTEXT in listener.security.protocol.map"
        )


def _advertised(
    opened: list[ListenerAddress], text: str, controllers: list[str]
) -> dict[str, ListenerAddress]:
    """Return the advertised address by name; a listener without an entry advertises its own."""
    advertised = {address.name: address for address in opened}
    for address in parse_addresses("advertised.listeners", text):
        if address.name in controllers:
            continue
        if address.name not in advertised:
            raise InvalidSetting(
                f"advertised.listeners={address} has no listener of its name; listeners has "
                f"{', '.join(one.name for one in opened)}"
            )
        advertised[address.name] = address
    open_ones = [address for address in advertised.values() if address.is_wildcard]
    if open_ones:
        line = ",".join(str(_named(address)) for address in advertised.values())
        raise InvalidSetting(
            f"{open_ones[0]} stands for every address of this machine, and clients must be told "
            f"one of them: write advertised.listeners={line} with the name that they know"
        )
    return advertised


def _named(address: ListenerAddress) -> ListenerAddress:
    return (
        ListenerAddress(address.name, "your.host.name", address.port)
        if address.is_wildcard
        else address
    )


def _parts(text: str) -> list[str]:
    return [part for part in (p.strip() for p in text.split(",")) if part]

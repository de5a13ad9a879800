"""Hosts as limits and sums count them.

One IPv6 host has a network of 2^64 addresses and may use another one for each connection, so a /64
counts as one host.  An IPv4 address written as IPv6 (`::ffff:10.0.0.1`) counts as IPv4.
"""

from __future__ import annotations

import ipaddress
from typing import Final

_NETWORK_BITS: Final = 64


def counted_host(host: str) -> str:
    """Return the counted form of a host: an IPv4 address, a /64 of IPv6, or the name unchanged.

    A host may be in brackets or name its interface (`fe80::1%eth0`).
    """
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), _NETWORK_BITS), strict=False))


def host_of(peer: str) -> str:
    """Return the host of "host:port"; an IPv6 host keeps its brackets."""
    host, colon, port = peer.rpartition(":")
    return host if colon and port.isdigit() else peer

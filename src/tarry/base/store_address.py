"""Address of the metadata store that several brokers share: members of etcd, and a prefix."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.errors import InvalidSetting
from tarry.base.setting import shown

EMBEDDED: Final = "embedded"
# Scheme -> True if the connection uses TLS.
_SCHEMES: Final = {"etcd://": False, "etcds://": True}
_PORT_DEFAULT: Final = 2_379
_PORT_MAX: Final = 65_535

_EXAMPLE: Final = "metadata.store=etcd://127.0.0.1:2379/demo"


class StoreFiles(NamedTuple):
    """Files for TLS and the login at etcd; "" if one is not needed.

    `ca`: authorities of etcd's certificate, by default those of the system; `certificate` and `key`
    are shown to etcd; `credentials` holds one line, user:password.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    credentials: str = ""


class StoreAddress(NamedTuple):
    """Members of etcd as host and port, and the prefix of all keys, with "/" at both ends."""

    members: list[tuple[str, int]]
    prefix: str
    is_tls: bool

    @property
    def text(self) -> str:
        """List of the members, for a sentence."""
        return ", ".join(f"{host}:{port}" for host, port in self.members)


def parse_store_address(text: str) -> StoreAddress | None:
    """Return the address that a setting names; None for the embedded store."""
    if text == EMBEDDED:
        return None
    scheme = text[: text.find("://") + len("://")]
    if scheme not in _SCHEMES:
        raise InvalidSetting(
            f"metadata.store={shown(text)}: it is {EMBEDDED}, or members of etcd and a prefix, as "
            f"in {_EXAMPLE}"
        )
    members, _, prefix = text[len(scheme) :].partition("/")
    parts = [part for part in prefix.split("/") if part]
    if not parts:
        raise InvalidSetting(
            f"metadata.store={shown(text)} names no prefix, by which etcd keeps this cluster apart "
            f"from others: write {_EXAMPLE}"
        )
    return StoreAddress(
        [_member(member, text) for member in members.split(",")],
        f"/{'/'.join(parts)}/",
        _SCHEMES[scheme],
    )


def _member(member: str, text: str) -> tuple[str, int]:
    host, colon, port = member.strip().rpartition(":")
    if not colon or (host.startswith("[") and member.endswith("]")):
        host, port = member.strip(), str(_PORT_DEFAULT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX:
        raise InvalidSetting(
            f"metadata.store={shown(text)}: '{shown(member)}' is no host:port; write {_EXAMPLE}"
        )
    return host, int(port)

"""The setting metadata.store: what it names, and what it refuses with which sentence."""

from __future__ import annotations

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.base.store_address import parse_store_address


def test_the_embedded_store_has_no_address() -> None:
    assert parse_store_address("embedded") is None
    assert Settings({}).store_address is None


@pytest.mark.parametrize(
    ("text", "members", "prefix"),
    [
        ("etcd://127.0.0.1:2379/demo", [("127.0.0.1", 2379)], "/demo/"),
        ("etcd://a:1,b:2/x/y/", [("a", 1), ("b", 2)], "/x/y/"),
        ("etcd://a/demo", [("a", 2379)], "/demo/"),
        ("etcd://[::1]:2379,[::2]/demo", [("::1", 2379), ("::2", 2379)], "/demo/"),
    ],
)
def test_an_address_has_members_and_a_prefix(
    text: str, members: list[tuple[str, int]], prefix: str
) -> None:
    address = Settings({"metadata.store": text}).store_address

    assert address is not None
    assert (address.members, address.prefix) == (members, prefix)


def test_an_address_says_whether_it_is_encrypted() -> None:
    addresses = [parse_store_address(f"{scheme}://a/demo") for scheme in ("etcd", "etcds")]

    assert [each.is_tls for each in addresses if each is not None] == [False, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("zookeeper", "it is embedded, or members of etcd"),
        ("", "it is embedded, or members of etcd"),
        ("etcd://a:1", "names no prefix"),
        ("etcd://a:1/", "names no prefix"),
        ("etcd://a:1//", "names no prefix"),
        ("etcd:///demo", "is no host:port"),
        ("etcd://a:1,/demo", "is no host:port"),
        ("etcd://a:0/demo", "is no host:port"),
        ("etcd://a:65536/demo", "is no host:port"),
        ("etcd://a:b/demo", "is no host:port"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example(text: str, sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=r"etcd://127\.0\.0\.1:2379/demo") as refusal:
        Settings({"metadata.store": text})

    assert sentence in str(refusal.value)

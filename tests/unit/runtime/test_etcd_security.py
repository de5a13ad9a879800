"""Files for TLS and passwords on the way to etcd: what is taken, and what is refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.base.store_address import StoreAddress, StoreFiles, parse_store_address
from tarry.runtime.etcd.security import make_tls, read_credentials


def address(scheme: str) -> StoreAddress:
    found = parse_store_address(f"{scheme}://etcd:2379/demo")
    assert found is not None
    return found


def test_the_settings_name_the_files() -> None:
    assert Settings({}).store_files == StoreFiles()
    assert Settings(
        {
            "metadata.store.ssl.ca.location": "/a",
            "metadata.store.ssl.certificate.location": "/b",
            "metadata.store.ssl.key.location": "/c",
            "metadata.store.credentials.location": "/d",
        }
    ).store_files == StoreFiles("/a", "/b", "/c", "/d")


def test_an_address_in_the_clear_has_no_tls() -> None:
    assert make_tls(address("etcd"), StoreFiles(credentials="/x")) is None


def test_tls_checks_the_certificate_and_the_name() -> None:
    context = make_tls(address("etcds"), StoreFiles())

    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("scheme", "files", "sentence"),
    [
        ("etcd", StoreFiles(ca="/x"), "write etcds://"),
        ("etcd", StoreFiles(certificate="/x"), "write etcds://"),
        ("etcds", StoreFiles(key="/x"), "a key without a certificate"),
        ("etcds", StoreFiles(ca="/absent"), "ssl.ca.location=/absent: No such file"),
        ("etcds", StoreFiles(ca=__file__), "it is no PEM file that fits"),
        ("etcds", StoreFiles(certificate="/absent"), "ssl.certificate.location=/absent: No such"),
        ("etcds", StoreFiles(certificate=__file__), "it is no PEM file that fits"),
    ],
)
def test_files_that_cannot_be_used_are_named(scheme: str, files: StoreFiles, sentence: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        make_tls(address(scheme), files)

    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"tarry:secret", ("tarry", "secret")),
        (b"tarry:secret\n", ("tarry", "secret")),
        (b"tarry:with:colon \r\n", ("tarry", "with:colon ")),
        (b"tarry:", ("tarry", "")),
    ],
)
def test_credentials_are_one_line(tmp_path: Path, content: bytes, found: tuple[str, str]) -> None:
    file = tmp_path / "credentials"
    file.write_bytes(content)

    assert read_credentials(StoreFiles(credentials=str(file))) == found
    assert read_credentials(StoreFiles()) is None


@pytest.mark.parametrize("content", [b"", b"tarry", b":secret", b"a:b\nc:d", b"\xff:x"])
def test_other_files_are_no_credentials(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "credentials"
    file.write_bytes(content)

    with pytest.raises(InvalidSetting, match="not one line user:password"):
        read_credentials(StoreFiles(credentials=str(file)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"credentials\.location=.*No such file"):
        read_credentials(StoreFiles(credentials=str(tmp_path / "absent")))

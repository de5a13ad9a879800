"""TLS and passwords for etcd, from the files that the settings name."""

from __future__ import annotations

import ssl
from typing import Final

from tarry.base.errors import InvalidSetting
from tarry.base.store_address import StoreAddress, StoreFiles
from tarry.runtime.refusal import reason_of

# ALPN protocols: gRPC runs over HTTP/2, and etcd requires that name.
_PROTOCOLS: Final = ["h2"]
_CREDENTIALS_BYTES_MAX: Final = 4_096


def make_tls(address: StoreAddress, files: StoreFiles) -> ssl.SSLContext | None:
    """Return the TLS context; None if the address is not encrypted.

    `InvalidSetting` names the file that cannot be used.
    """
    if not address.is_tls:
        if files.ca or files.certificate or files.key:
            raise InvalidSetting(
                "a certificate is named for etcd, and metadata.store begins with etcd://, which "
                "is not encrypted: write etcds://"
            )
        return None
    if files.key and not files.certificate:
        raise InvalidSetting(
            "metadata.store.ssl.key.location names a key without a certificate: name that in "
            "metadata.store.ssl.certificate.location"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(_PROTOCOLS)
    try:
        if files.ca:
            context.load_verify_locations(files.ca)
        else:
            context.load_default_certs()
    except (ssl.SSLError, OSError) as error:
        raise _unusable("ssl.ca", files.ca, error) from None
    if files.certificate:
        try:
            # The empty pass phrase keeps Python from asking for one on the terminal.
            context.load_cert_chain(files.certificate, files.key or None, lambda: b"")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise _unusable("ssl.certificate", files.certificate, error) from None
    return context


def read_credentials(files: StoreFiles) -> tuple[str, str] | None:
    """Return user and password of etcd; None if no file is named."""
    path = files.credentials
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            text = file.read(_CREDENTIALS_BYTES_MAX).decode().strip("\r\n")
    except OSError as error:
        raise _unusable("credentials", path, error) from None
    except UnicodeDecodeError:
        text = ""
    user, colon, password = text.partition(":")
    if not user or not colon or "\n" in text:
        raise InvalidSetting(
            f"metadata.store.credentials.location={path}: it is not one line user:password"
        )
    return user, password


def _unusable(key: str, path: str, error: Exception) -> InvalidSetting:
    if isinstance(error, ssl.SSLError):
        reason = f"it is no PEM file that fits ({error.reason or error})"
    else:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
    return InvalidSetting(f"metadata.store.{key}.location={path}: {reason}")

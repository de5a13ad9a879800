"""A real etcd that speaks TLS alone, asks for a certificate, and knows users with passwords."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import pytest
from tests.support.cluster.etcd_server import EtcdServer
from tests.support.patience import PATIENCE_S, tries

USER: Final = "tarry"
PASSWORD: Final = "pass:word"
_ROOT_PASSWORD: Final = "root"


class SecuredEtcd(EtcdServer):
    """Its user may read and write what lies below one prefix, and nothing else."""

    def __init__(self, directory: Path, prefix: str) -> None:
        super().__init__(directory)
        if shutil.which("openssl") is None:
            pytest.skip("no openssl, which makes the certificates")
        self.prefix = prefix
        self.scheme = "https"
        self.ca, self.certificate, self.key = (
            directory / name for name in ("ca.pem", "one.pem", "one.key")
        )
        self.credentials = directory / "credentials"
        self.credentials.write_text(f"{USER}:{PASSWORD}\n")
        self.other_ca = directory / "other.pem"
        self._make_authority(self.other_ca, directory / "other.key")
        self._make_authority(self.ca, directory / "ca.key")
        self._make_certificate(directory)
        self.words = [
            *("--cert-file", str(self.certificate), "--key-file", str(self.key)),
            *("--trusted-ca-file", str(self.ca), "--client-cert-auth"),
        ]

    def _make_authority(self, certificate: Path, key: Path) -> None:
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=authority", "-keyout", str(key), "-out", str(certificate)),
        )

    def _make_certificate(self, directory: Path) -> None:
        """One for both sides, without a name that etcd could take for a user's."""
        request, extensions = directory / "one.csr", directory / "extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1\n")
        _openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=tests"),
            *("-keyout", str(self.key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", "2", "-CAcreateserial"),
            *("-CA", str(self.ca), "-CAkey", str(directory / "ca.key")),
            *("-extfile", str(extensions), "-out", str(self.certificate)),
        )

    def secure(self) -> None:
        """Make the users and ask for passwords from now on."""
        begin = self.prefix.encode()
        end = begin[:-1] + bytes([begin[-1] + 1])
        permission = {
            "permType": "READWRITE",
            "key": base64.b64encode(begin).decode(),
            "range_end": base64.b64encode(end).decode(),
        }
        for path, body in (
            ("user/add", {"name": "root", "password": _ROOT_PASSWORD}),
            ("role/add", {"name": "root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("user/add", {"name": USER, "password": PASSWORD}),
            ("role/add", {"name": "brokers"}),
            ("role/grant", {"name": "brokers", "perm": permission}),
            ("user/grant", {"user": USER, "role": "brokers"}),
            ("enable", {}),
        ):
            self._post(f"auth/{path}", body)

    def _post(self, path: str, body: dict[str, object]) -> None:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.certificate, self.key)
        request = urllib.request.Request(
            f"https://{self.address}/v3/{path}", json.dumps(body).encode(), method="POST"
        )
        for _ in tries():
            try:
                urllib.request.urlopen(request, timeout=PATIENCE_S, context=context).close()
            except urllib.error.HTTPError as error:
                # A member that has just started has no leader yet.
                assert error.code == 503, error.read()
            else:
                return


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=PATIENCE_S)

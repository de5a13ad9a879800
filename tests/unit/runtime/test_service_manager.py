"""What systemd is told through NOTIFY_SOCKET."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from tarry.runtime.service_manager import READY, STOPPING, notify


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.settimeout(PATIENCE_S)
        yield one


def test_each_state_is_one_datagram(
    manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.bind(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))

    notify(READY)
    notify(STOPPING)

    assert [manager.recv(100), manager.recv(100)] == [b"READY=1", b"STOPPING=1"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names without a directory")
def test_a_name_without_a_directory_is_reached(
    manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.bind(f"\0{tmp_path}")
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{tmp_path}")

    notify(READY)

    assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "/nobody/listens", "not a path", "@nobody", "/" * 200])
def test_nobody_who_listens_is_no_trouble(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)

    notify(READY)


def test_without_a_service_manager_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)

    notify(READY)

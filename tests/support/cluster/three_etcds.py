"""A real etcd of three members, which go on while two of them are there."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.support.broker_process import wait_until
from tests.support.cluster.etcd_server import EtcdServer
from tests.support.patience import PATIENCE_S


class ThreeEtcds:
    """Members 1 to 3, each with its data below `directory`."""

    def __init__(self, directory: Path) -> None:
        self.members: dict[int, EtcdServer] = {}
        for number in range(1, 4):
            own = directory / f"etcd-{number}"
            own.mkdir()
            self.members[number] = EtcdServer(own, f"etcd-{number}")
        everybody = {each.name: each.peer_address for each in self.members.values()}
        for each in self.members.values():
            each.members = everybody

    @property
    def address(self) -> str:
        """All of them, as `metadata.store` names them."""
        return ",".join(each.address for each in self.members.values())

    def start(self) -> None:
        """Start all at once, none can alone, and wait until one leads."""
        for each in self.members.values():
            each.begin()
        for each in self.members.values():
            each.wait_until_open()
        self.wait_for_leader()

    def wait_for_leader(self) -> int:
        """Wait until the members that run have a leader; its number."""
        return int(wait_until(self._leader, "a leader of etcd"))

    def _leader(self) -> str:
        for number, each in self.members.items():
            if each.process is not None and _leads(each.address):
                return str(number)
        return ""

    @contextlib.contextmanager
    def without(self, *numbers: int) -> Iterator[None]:
        """Kill these members for the time of the block."""
        for number in numbers:
            self.members[number].kill()
        try:
            yield
        finally:
            for number in numbers:
                self.members[number].begin()
            self.wait_for_leader()

    def close(self) -> None:
        for each in self.members.values():
            each.close()


def _leads(address: str) -> bool:
    """Whether this member leads, as it says itself; a member that is starting says nothing."""
    request = urllib.request.Request(
        f"http://{address}/v3/maintenance/status", b"{}", method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            status = json.load(answer)
    except OSError:
        return False
    return bool(status.get("leader")) and status["leader"] == status["header"]["member_id"]

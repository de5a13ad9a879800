"""Etcds under the contract suite: the simulated one, and a real one behind our client."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from random import Random

from tests.support.cluster.etcd_server import EtcdServer
from tests.support.patience import PATIENCE_S, tries

from tarry.base.etcd import (
    CallFailed,
    Etcd,
    EtcdAnswer,
    EtcdEvent,
    RevisionSeen,
    StatusRead,
    WatchEnded,
)
from tarry.runtime.etcd.client import EtcdClient
from tarry.runtime.etcd.socket_link import Endpoint
from tarry.runtime.look_ups import Found
from tarry.runtime.poller import make_poller
from tarry.runtime.reactor import Reactor
from tarry.simulation.etcd import SimulatedEtcd, SimulatedEtcdDoor


class EtcdSubject:
    """One store with a door to it, and what the door has told."""

    door: Etcd

    def __init__(self) -> None:
        self.answers: list[EtcdAnswer] = []

    def wait(self) -> None:
        """Let something happen."""
        raise NotImplementedError

    def end_of(self, call_id: int) -> EtcdAnswer:
        """The answer of a call."""
        for _ in tries():
            for answer in self.answers:
                if answer.call_id == call_id:
                    self.answers.remove(answer)
                    return answer
            self.wait()
        raise AssertionError(f"call {call_id} did not end; {self.answers}")

    def seen_until(self, watch_id: int, revision: int) -> list[RevisionSeen]:
        """What a watch tells until it has told of a revision."""
        found: list[RevisionSeen] = []
        while not found or found[-1].revision < revision:
            answer = self.end_of(watch_id)
            assert isinstance(answer, RevisionSeen), answer
            if answer.changes:
                found.append(answer)
        return found

    def end_of_watch(self, watch_id: int) -> WatchEnded:
        """The end of a watch, whatever it told before."""
        while True:
            answer = self.end_of(watch_id)
            if isinstance(answer, WatchEnded):
                return answer

    def compact(self, revision: int) -> None:
        raise NotImplementedError

    def outlive(self, ttl_ms: int) -> None:
        """Let so much time pass that a lease of this time ends."""
        raise NotImplementedError

    def lose_link(self) -> None:
        """Lose what is under way; the store can be reached again."""
        raise NotImplementedError

    def go_away(self) -> None:
        raise NotImplementedError

    def come_back(self) -> None:
        raise NotImplementedError

    def close(self) -> None: ...


class SimulatedSubject(EtcdSubject):
    def __init__(self, seed: int = 3) -> None:
        super().__init__()
        random = Random(seed)
        self.etcd = SimulatedEtcd(random)
        self.etcd.late_expiry_ms_max = 2_000
        self.door = self.simulated = SimulatedEtcdDoor(self.etcd, random, self.on_event)
        self.simulated.delay_ms_max = 30

    def on_event(self, event: EtcdEvent) -> None:
        self.answers.append(event.answer)

    def wait(self) -> None:
        self.etcd.advance(self.etcd.now_ms + 10)
        self.simulated.step()

    def compact(self, revision: int) -> None:
        self.etcd.compact(revision)

    def outlive(self, ttl_ms: int) -> None:
        self.etcd.advance(self.etcd.now_ms + ttl_ms + 2_001)

    def lose_link(self) -> None:
        self.simulated.cut()

    def go_away(self) -> None:
        self.simulated.go_away()

    def come_back(self) -> None:
        self.simulated.come_back()


def no_look_up(host: str, port: int, found: Found) -> None:
    raise AssertionError(f"{host} is a number")


class RealSubject(EtcdSubject):
    def __init__(self, directory: Path, release: str) -> None:
        super().__init__()
        self.server = EtcdServer(directory, release=release)
        self.server.start()
        self.reactor = Reactor(make_poller())
        self.door = self.client = EtcdClient(
            self.reactor, [Endpoint("127.0.0.1", self.server.port)], look_up=no_look_up
        )
        self._be_ready()

    def _be_ready(self) -> None:
        for _ in tries():
            if isinstance(self.end_of(self.door.begin_status()), StatusRead):
                break
        # A member that has just started has no leader yet.
        for _ in tries():
            if not isinstance(self.end_of(self.door.begin_read(b"x")), CallFailed):
                return

    def wait(self) -> None:
        for event in self.reactor.wait(100):
            assert isinstance(event, EtcdEvent)
            self.answers.append(event.answer)

    def compact(self, revision: int) -> None:
        """By etcd's JSON gateway: the door has no need of it."""
        body = json.dumps({"revision": revision, "physical": True}).encode()
        request = urllib.request.Request(
            f"http://{self.server.address}/v3/kv/compaction", body, method="POST"
        )
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()

    def outlive(self, ttl_ms: int) -> None:
        """A lease that nobody renews ends by itself; whoever waits for it waits for its keys."""

    def lose_link(self) -> None:
        self.server.kill()
        self.server.start()

    def go_away(self) -> None:
        self.server.kill()

    def come_back(self) -> None:
        self.server.start()
        self._be_ready()

    def close(self) -> None:
        self.client.close()
        self.server.close()
        self.reactor.close()

"""Largest requests against a real broker, beside 2,000 members of groups and an honest client.

    python -m tests.support.processes.hostile_requests [--brokers 3] [API ...]

One table, a line for each request: the most CPU that the loop of a broker took while an ApiVersions
of another connection waited (a bound of its longest turn, whatever else the machine does), the
longest such wait, the memory above the start, the answer.  Behind it the frames that are above the
bounds, the members that were refused, and with three brokers the lives that were lost.  The
frames go to the first broker; all are watched.  `TARRY_PURE=1` measures the interpreted form.
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import Final, NamedTuple

from tests.support.broker_process import BrokerProcess
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.largest_requests import largest_requests
from tests.support.patience import PATIENCE_S, tries

from tarry.base.limits import REQUEST_ELEMENTS_MAX
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.frames import encode_request
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.describe_groups import DescribeGroupsRequest
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    decode_find_coordinator_response,
)
from tarry.protocol.messages.heartbeat import HeartbeatRequest, decode_heartbeat_response
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    decode_join_group_response,
)
from tarry.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tarry.protocol.messages.sync_group import SyncGroupRequest
from tarry.wire.reader import Reader

MEMBERS = 2_000
SESSION_MS = 10_000
HEARTBEATS_AT_ONCE = 50
HEARTBEAT_EVERY_S = 0.05
ANSWER_S_MAX = 120.0

CPU_MS_MAX: Final = 150 if os.environ.get("TARRY_PURE") == "1" else 50
MIB_MAX: Final = 64

SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
LOST_LIFE: Final = "counts as dead to the cluster"


class Wire:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S_MAX)
        self.file = self.socket.makefile("rb")

    def send(self, key: int, version: int, request: Message) -> None:
        self.socket.sendall(encode_request(key, version, 1, "stranger", request))

    def receive(self) -> bytes:
        """Return an answer, or b"" from a closed connection."""
        try:
            head = self.file.read(4)
            return self.file.read(struct.unpack(">i", head)[0]) if len(head) == 4 else b""
        except OSError:
            return b""

    def ask(self, key: int, version: int, request: Message) -> bytes:
        self.send(key, version, request)
        return self.receive()

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Member:
    """Member of a group.  `sent_s` is when it last sent a heartbeat, or joined."""

    def __init__(self, group: str, member_id: str, generation_id: int) -> None:
        self.group = group
        self.member_id = member_id
        self.generation_id = generation_id
        self.sent_s = time.monotonic()
        self.is_refused = False


def shares(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    """Yield those that send at once, share by share: all of them, each in one share."""
    for start in range(0, len(members), HEARTBEATS_AT_ONCE):
        yield members[start : start + HEARTBEATS_AT_ONCE]


class Members(threading.Thread):
    """Members of a group each, which join and then heartbeat at its coordinator until the end.

    They share one connection, but none waits for the answer of another: what ends a session is the
    broker.  A member that was refused sends no more.
    """

    def __init__(self, port: int, groups: list[str]) -> None:
        super().__init__(daemon=True)
        self.wire = Wire(port)
        self.groups = groups
        self.members: list[Member] = []
        self.have_joined = threading.Event()
        # The members whose answers are awaited, in order; None is the end.
        self.asked: SimpleQueue[Member | None] = SimpleQueue()
        self.receiver = threading.Thread(target=self.receive_all, daemon=True)
        # Refused members by their error code.
        self.refused: Counter[int] = Counter()
        # The longest time between two heartbeats of a member, as they were sent.
        self.pause_s_max = 0.0
        self.is_over = False

    def run(self) -> None:
        self.join_all()
        self.have_joined.set()
        self.receiver.start()
        while not self.is_over:
            for members in shares(self.members):
                self.heartbeat(members)
                time.sleep(HEARTBEAT_EVERY_S)
        self.asked.put(None)
        self.receiver.join()
        self.wire.close()

    def join_all(self) -> None:
        told_s = time.monotonic()
        for group in self.groups:
            join = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol("range", b"m" * 100)],
            )
            reader = Reader(self.wire.ask(api_keys.JOIN_GROUP, 3, join), 4)
            joined = decode_join_group_response(reader, 3)
            assert joined.error_code == 0, joined.error_code
            member = Member(group, joined.member_id, joined.generation_id)
            sync = SyncGroupRequest(group, member.generation_id, member.member_id)
            self.wire.ask(api_keys.SYNC_GROUP, 0, sync)
            self.members.append(member)
            if time.monotonic() - told_s > SESSION_MS / 4_000:
                told_s = time.monotonic()
                self.heartbeat(self.members)
                while not self.asked.empty():
                    self.receive_one()

    def heartbeat(self, members: Sequence[Member]) -> None:
        for each in members:
            if each.is_refused:
                continue
            now_s = time.monotonic()
            self.pause_s_max = max(self.pause_s_max, now_s - each.sent_s)
            each.sent_s = now_s
            request = HeartbeatRequest(each.group, each.generation_id, each.member_id)
            self.wire.send(api_keys.HEARTBEAT, 0, request)
            self.asked.put(each)

    def receive_all(self) -> None:
        while self.receive_one():
            pass

    def receive_one(self) -> bool:
        """Receive the next answer; return whether there was one to come."""
        member = self.asked.get()
        if member is None:
            return False
        answer = decode_heartbeat_response(Reader(self.wire.receive(), 4), 0)
        if answer.error_code and not member.is_refused:
            self.refused[answer.error_code] += 1
            member.is_refused = True
        return True


class Honest(threading.Thread):
    """A client that asks again and again, and remembers its longest wait."""

    def __init__(self, broker: BrokerProcess) -> None:
        super().__init__(daemon=True)
        self.wire = Wire(broker.port)
        self.pid = broker.pid
        self.worst_s = 0.0
        self.worst_cpu_s = 0.0
        self.worst_kib = 0
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            cpu_s, start_s = loop_cpu_s(self.pid), time.perf_counter()
            self.wire.ask(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
            self.worst_s = max(self.worst_s, time.perf_counter() - start_s)
            self.worst_cpu_s = max(self.worst_cpu_s, loop_cpu_s(self.pid) - cpu_s)
            self.worst_kib = max(self.worst_kib, resident_kib(self.pid))
            time.sleep(0.002)
        self.wire.close()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def loop_cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


# Label, API key, version and request.
Frame = tuple[str, int, int, Message]


def of_the_finding(groups: int = MEMBERS) -> list[Frame]:
    """Make the frames that stopped a broker, as many of their elements as a request may have."""
    many = REQUEST_ELEMENTS_MAX
    again = [OffsetFetchRequestGroup(group_id="group-1", topics=None)] * many
    known = [f"group-{number % groups}" for number in range(many)]
    return [
        ("2 MB of empty keys", api_keys.FIND_COORDINATOR, 4,
         FindCoordinatorRequest(coordinator_keys=[""] * 2_000_000)),
        ("empty keys", api_keys.FIND_COORDINATOR, 4,
         FindCoordinatorRequest(coordinator_keys=[""] * many)),
        ("one group, all topics", api_keys.OFFSET_FETCH, 8, OffsetFetchRequest(groups=again)),
        ("empty names", api_keys.DESCRIBE_GROUPS, 5, DescribeGroupsRequest([""] * many)),
        ("one group 20,000 times", api_keys.DESCRIBE_GROUPS, 5,
         DescribeGroupsRequest(["group-1"] * 20_000)),
        ("all groups again and again", api_keys.DESCRIBE_GROUPS, 5,
         DescribeGroupsRequest(known)),
    ]  # fmt: skip


class Row(NamedTuple):
    """Row of the table."""

    api: str
    label: str
    size: int
    cpu_ms: float
    wait_ms: float
    mib: float
    answer: int
    took_s: float

    def is_above(self) -> bool:
        return self.cpu_ms > CPU_MS_MAX or self.mib > MIB_MAX

    def text(self) -> str:
        return (
            f"{'!' if self.is_above() else ' '} {self.api:28} {self.label:42} {self.size:9} "
            f"{self.cpu_ms:7.1f} {self.wait_ms:8.1f} {self.mib:6.1f} {self.answer:10} "
            f"{self.took_s:7.2f}"
        )


HEAD: Final = (
    f"  {'API':28} {'large in it':42} {'bytes':>9} {'CPU ms':>7} {'wait ms':>8} {'+MiB':>6} "
    f"{'answer':>10} {'s':>7}"
)


def measure(
    brokers: list[BrokerProcess], label: str, key: int, version: int, request: Message
) -> Row:
    frame = encode_request(key, version, 1, "stranger", request)
    watchers = [Honest(broker) for broker in brokers]
    before_kib = [resident_kib(broker.pid) for broker in brokers]
    for each in watchers:
        each.start()
    time.sleep(0.05)
    hostile = Wire(brokers[0].port)
    start_s = time.perf_counter()
    hostile.socket.sendall(frame)
    answer = hostile.receive()
    took_s = time.perf_counter() - start_s
    hostile.close()
    time.sleep(0.05)
    for each in watchers:
        each.is_over = True
    for each in watchers:
        each.join()
    above_kib = [max(0, w.worst_kib - kib) for w, kib in zip(watchers, before_kib, strict=True)]
    row = Row(
        APIS[key].name,
        label,
        len(frame),
        max(each.worst_cpu_s for each in watchers) * 1e3,
        max(each.worst_s for each in watchers) * 1e3,
        max(above_kib) / 1024,
        len(answer),
        took_s,
    )
    say(row.text())
    return row


def groups_by_port(port: int, count: int) -> dict[int, list[str]]:
    """Groups of the members by the port of their coordinator."""
    wire = Wire(port)
    names = [f"group-{number}" for number in range(count)]
    for _ in tries():
        reader = Reader(
            wire.ask(api_keys.FIND_COORDINATOR, 4, FindCoordinatorRequest("", 0, names)), 5
        )
        found = decode_find_coordinator_response(reader, 4).coordinators
        if found and all(each.error_code == 0 for each in found):
            break
    wire.close()
    by_port: dict[int, list[str]] = {}
    for each in found:
        by_port.setdefault(each.port, []).append(each.key)
    return by_port


@contextmanager
def serving(
    directory: Path, count: int, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[list[BrokerProcess]]:
    """Brokers that serve: one that is alone, or a cluster of three."""
    if count == 1:
        broker = BrokerProcess(directory)
        broker.start({**SETTINGS, **settings})
        try:
            yield [broker]
        finally:
            broker.close()
        return
    with BrokerCluster(directory, {**SETTINGS, **settings}) as cluster:
        yield list(cluster.brokers.values())


class Outcome(NamedTuple):
    """Outcome of a run: the measured requests, and what became of the clients beside them."""

    rows: list[Row]
    # Refused members by their error code, and the longest time between two heartbeats of a member.
    refused: Counter[int]
    pause_s: float
    # Brokers that counted as dead to their cluster.
    lost_lives: int


def beside_members(brokers: list[BrokerProcess], count: int, frames: Iterable[Frame]) -> Outcome:
    """Send each frame to the first broker, beside so many members and an honest client of each."""
    wire = Wire(brokers[0].port)
    orders = CreatableTopic(name="orders", num_partitions=2, replication_factor=len(brokers))
    wire.ask(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest([orders], timeout_ms=30_000))
    wire.close()
    members = [Members(port, groups) for port, groups in groups_by_port(wire.port, count).items()]
    for each in members:
        each.start()
    for each in members:
        assert each.have_joined.wait(PATIENCE_S)
    say(HEAD)
    rows = [measure(brokers, *frame) for frame in frames]
    for each in members:
        each.is_over = True
        each.join()
    return Outcome(
        rows,
        sum((each.refused for each in members), Counter[int]()),
        max(each.pause_s_max for each in members),
        sum(broker.log().count(LOST_LIFE) for broker in brokers),
    )


def frames(only: list[str]) -> Iterator[Frame]:
    """Make the frames of the finding and the largest requests, or those of some APIs."""
    if not only:
        yield from of_the_finding()
    for key, api in APIS.items():
        if not only or api.name in only:
            for label, request in largest_requests(key, api.version_max):
                yield label, key, api.version_max, request


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("apis", nargs="*", metavar="API")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory), asked.brokers) as brokers,
    ):
        outcome = beside_members(brokers, MEMBERS, frames(asked.apis))
        above = [row for row in outcome.rows if row.is_above()]
        say(
            f"{len(outcome.rows) - len(above)} of {len(outcome.rows)} frames take at most "
            f"{CPU_MS_MAX} ms of CPU in a turn and {MIB_MAX} MiB"
        )
        for row in above:
            say(f"above: {row.api} {row.label}: {row.cpu_ms:.0f} ms, {row.mib:.0f} MiB")
        say(
            f"{outcome.refused.total()} of {MEMBERS} members were refused, by error code: "
            f"{dict(outcome.refused)}; each sent a heartbeat every {outcome.pause_s:.1f} s or "
            f"sooner, its session is {SESSION_MS / 1000:.0f} s"
        )
        if len(brokers) > 1:
            say(f"{outcome.lost_lives} lives of {len(brokers)} brokers were lost")


if __name__ == "__main__":
    main()

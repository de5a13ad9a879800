"""Scenes of many partitions and many groups: how long a death lasts, and what an idle broker costs.

Each runs on a cluster of its own, with nothing else on the machine.  The first node leads, or
coordinates, all that is asked for and is killed, the worst case of its size; `--spread` lets
leaders be even, as they are by themselves.  A living node says what is led and served again; asking
takes time of the same cores, so that a figure may be too large by one question.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import struct
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import brokers
import peers
from cluster_frozen import frozen_figures
from cluster_nodes import (
    READY_S_MAX,
    REPLICAS,
    Cluster,
    Node,
    kafka_cluster,
    tarry_cluster,
    wait_for,
)
from confluent_kafka import admin as confluent_admin
from tests.support.interop.kafka_server import KafkaUnavailable
from tests.support.raw_client import RawClient

from tarry.protocol import api_keys
from tarry.protocol.headers import decode_response_header
from tarry.protocol.message import Message
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tarry.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.wire.reader import Reader

TOPIC: Final = "many"
METADATA_VERSION: Final = 12
FIND_VERSION: Final = 4
COMMIT_VERSION: Final = 8
FETCH_VERSION: Final = 8
OFFSET: Final = 17
# Groups of one request, and requests that are on their way together.
GROUPS_PER_REQUEST: Final = 500
REQUESTS_IN_FLIGHT: Final = 200
# Pause between two looks.
LOOK_S: Final = 0.05
LEASE_LOOK_S: Final = 0.01
# Pause before a death; and before an idle broker is looked at, since what a topic's making has left
# to do is done at leisure for a minute.
SETTLED_S: Final = 20
QUIET_S: Final = 90
IDLE_S: Final = 30
SETTINGS: Final = {"offsets.topic.num.partitions": "50"}


class Figures(NamedTuple):
    """Row of the table: its name, and the figures of one cluster as text."""

    name: str
    text: str


def ask_many(
    client: RawClient, api_key: int, version: int, asked: Sequence[Message]
) -> list[Message]:
    """Send requests together and read their answers."""
    answers: list[Message] = []
    for first in range(0, len(asked), REQUESTS_IN_FLIGHT):
        part = asked[first : first + REQUESTS_IN_FLIGHT]
        client.socket.sendall(b"".join(client.encode(api_key, version, each) for each in part))
        for _ in part:
            reader = Reader(client.read_exactly(struct.unpack(">i", client.read_exactly(4))[0]))
            decode_response_header(reader, api_key, version)
            answers.append(MESSAGES[api_key].decode_response(reader, version))
    return answers


@contextlib.contextmanager
def client_of(node: Node) -> Iterator[RawClient]:
    """Connect to one node."""
    with RawClient(int(node.address.rpartition(":")[2])) as client:
        yield client


def wait_for_lease_end(cluster: Cluster) -> float:
    """Return the time at which etcd ends the life of node 1; now where there is no etcd."""
    if not cluster.etcd:
        return time.monotonic()
    key = base64.b64encode(b"/bench/lives/1").decode()
    body = json.dumps({"key": key, "count_only": True}).encode()
    while True:
        request = urllib.request.Request(f"http://{cluster.etcd}/v3/kv/range", body)
        with urllib.request.urlopen(request, timeout=READY_S_MAX) as answer:
            if "count" not in json.load(answer):
                return time.monotonic()
        time.sleep(LEASE_LOOK_S)


# --- Partitions.


def create_many(cluster: Cluster, count: int, *, is_spread: bool) -> None:
    """Make a topic of so many partitions on all nodes, and wait until all are in sync."""
    admin = confluent_admin.AdminClient({"bootstrap.servers": cluster.addresses})
    wait_for(lambda: len(admin.list_topics(timeout=10).brokers) == len(REPLICAS), "three brokers")
    if is_spread:
        wanted = confluent_admin.NewTopic(TOPIC, count, replication_factor=len(REPLICAS))
    else:
        wanted = confluent_admin.NewTopic(TOPIC, count, replica_assignment=[REPLICAS] * count)
    for future in admin.create_topics(
        [wanted], operation_timeout=READY_S_MAX, request_timeout=READY_S_MAX
    ).values():
        future.result(READY_S_MAX)
    with client_of(cluster.nodes[1]) as client:
        wait_for(lambda: all(each == 3 for each in in_sync(client)), "replicas in sync")


def _partitions(client: RawClient) -> list[tuple[int, int]]:
    """Return leader and number of replicas in sync of each partition."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    answer = client.ask(api_keys.METADATA, METADATA_VERSION, request)
    assert isinstance(answer, MetadataResponse)
    (topic,) = answer.topics
    return [(each.leader_id, len(each.isr_nodes)) for each in topic.partitions]


def in_sync(client: RawClient) -> list[int]:
    """Return how many replicas of each partition are in sync, 0 without a leader."""
    return [count if leader >= 0 else 0 for leader, count in _partitions(client)]


def partitions_scene(cluster: Cluster, count: int, *, is_spread: bool) -> Figures:
    """Kill node 1, and tell when the last partition has another leader."""
    create_many(cluster, count, is_spread=is_spread)
    time.sleep(SETTLED_S)
    with client_of(cluster.nodes[1]) as client:
        killed = time.monotonic()
        cluster.nodes[0].end(signal.SIGKILL)
        ended = wait_for_lease_end(cluster)
        while True:
            leaders = [leader for leader, _ in _partitions(client)]
            if len(leaders) == count and not any(leader in (-1, 1) for leader in leaders):
                break
            if time.monotonic() - killed > READY_S_MAX:
                raise SystemExit(f"{cluster.name}: not all partitions are led again")
            time.sleep(LOOK_S)
        led = time.monotonic()
    where = "leaders even" if is_spread else "all led by the one killed"
    return Figures(f"{count:,} partitions, {where}", _told(cluster, killed, ended, led))


def _told(cluster: Cluster, killed: float, ended: float, done: float) -> str:
    text = f"{done - killed:.2f} s after the kill"
    return f"{text}, {done - ended:.2f} s after the lease" if cluster.etcd else text


# --- Groups.


def coordinators(client: RawClient, names: list[str]) -> dict[str, int]:
    """Return who coordinates each group, without those of which nobody knows."""
    asked = [
        FindCoordinatorRequest(coordinator_keys=names[first : first + GROUPS_PER_REQUEST])
        for first in range(0, len(names), GROUPS_PER_REQUEST)
    ]
    found: dict[str, int] = {}
    for answer in ask_many(client, api_keys.FIND_COORDINATOR, FIND_VERSION, asked):
        assert isinstance(answer, FindCoordinatorResponse)
        found.update(
            {each.key: each.node_id for each in answer.coordinators if each.error_code == 0}
        )
    return found


def choose_groups(client: RawClient, count: int, *, is_spread: bool) -> list[str]:
    """Return names of groups, all of which node 1 coordinates unless leaders are to be even."""
    names = [f"group-{number}" for number in range(count if is_spread else 5 * count)]
    wait_for(lambda: len(coordinators(client, names[:500])) == 500, "coordinators")
    found = coordinators(client, names)
    chosen = [name for name in names if is_spread or found.get(name) == 1][:count]
    assert len(chosen) == count, f"only {len(chosen)} groups"
    return chosen


def commit_all(cluster: Cluster, client: RawClient, names: list[str]) -> None:
    """Commit one offset of each group."""
    owners = coordinators(client, names)
    topic = OffsetCommitRequestTopic(
        TOPIC, [OffsetCommitRequestPartition(0, committed_offset=OFFSET)]
    )
    for number in REPLICAS:
        asked = [
            OffsetCommitRequest(name, topics=[topic]) for name in names if owners[name] == number
        ]
        with client_of(cluster.nodes[number - 1]) as owner:
            for answer in ask_many(owner, api_keys.OFFSET_COMMIT, COMMIT_VERSION, asked):
                assert isinstance(answer, OffsetCommitResponse)
                assert answer.topics[0].partitions[0].error_code == 0


def answered(client: RawClient, names: list[str]) -> list[str]:
    """Return the groups whose offset this node tells."""
    topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
    asked = [
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(name, topics=topics)
                for name in names[first : first + GROUPS_PER_REQUEST]
            ]
        )
        for first in range(0, len(names), GROUPS_PER_REQUEST)
    ]
    found: list[str] = []
    for answer in ask_many(client, api_keys.OFFSET_FETCH, FETCH_VERSION, asked):
        assert isinstance(answer, OffsetFetchResponse)
        for group in answer.groups:
            if group.error_code == 0:
                (told,) = group.topics[0].partitions
                assert told.committed_offset == OFFSET, f"{group.group_id} has lost its offset"
                found.append(group.group_id)
    return found


def groups_scene(cluster: Cluster, count: int, *, is_spread: bool) -> Figures:
    """Kill node 1, and tell when the last group's offset is told again."""
    create_many(cluster, 1, is_spread=False)
    with contextlib.ExitStack() as stack:
        clients = {
            number: stack.enter_context(client_of(cluster.nodes[number - 1])) for number in (2, 3)
        }
        names = choose_groups(clients[2], count, is_spread=is_spread)
        commit_all(cluster, clients[2], names)
        time.sleep(SETTLED_S)
        killed = time.monotonic()
        cluster.nodes[0].end(signal.SIGKILL)
        ended = wait_for_lease_end(cluster)
        left = dict.fromkeys(names)
        while left:
            owners = coordinators(clients[2], list(left))
            for number, client in clients.items():
                own = [name for name in left if owners.get(name) == number]
                for name in answered(client, own):
                    del left[name]
            if time.monotonic() - killed > READY_S_MAX:
                raise SystemExit(f"{cluster.name}: {len(left)} groups are not served again")
            if left:
                time.sleep(LOOK_S)
        served = time.monotonic()
    where = "coordinators even" if is_spread else "all at the one killed"
    return Figures(f"{count:,} groups, {where}", _told(cluster, killed, ended, served))


# --- Idle.


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"process {pid} is gone")


def idle_scene(cluster: Cluster, count: int, *, is_spread: bool) -> Figures:
    """Tell what a node takes with so many partitions to which nobody writes."""
    create_many(cluster, count, is_spread=is_spread)
    time.sleep(QUIET_S)
    before = [_cpu_s(node.pid) for node in cluster.nodes]
    time.sleep(IDLE_S)
    parts = [
        100 * (_cpu_s(node.pid) - was) / IDLE_S
        for node, was in zip(cluster.nodes, before, strict=True)
    ]
    memory = [_resident_mb(node.pid) for node in cluster.nodes]
    cpu = ", ".join(f"{part:.2f}" for part in parts)
    return Figures(
        f"idle, {count:,} partitions on each",
        f"{cpu} % of a core; {min(memory):.0f} to {max(memory):.0f} MB",
    )


def frozen_scene(cluster: Cluster, count: int, *, is_spread: bool) -> Figures:
    """Stop what keeps the metadata for a while, and tell for how long clients pause."""
    if count != 1 or not is_spread:
        raise SystemExit("scene frozen has a topic of its own: run it without --count")
    return Figures("metadata frozen for 20 s, longest gaps", frozen_figures(cluster))


Scene = Callable[..., Figures]
SCENES: Final[dict[str, tuple[Scene, int, bool]]] = {
    # How many by themselves, and whether leaders are even.
    "partitions": (partitions_scene, 2_000, False),
    "groups": (groups_scene, 10_000, False),
    "idle": (idle_scene, 2_000, True),
    "frozen": (frozen_scene, 1, True),
}


def run(
    directory: Path,
    names: list[str],
    *,
    count: int | None,
    is_spread: bool,
    rounds: int,
    with_kafka: bool,
) -> None:
    """Run scenes, each on clusters of its own, and print their figures."""
    print(peers.machine())
    print("| | Tarry (commit) |" + (" Apache Kafka |" if with_kafka else ""))
    print("|---|---|" + ("---|" if with_kafka else ""))
    for name in names:
        scene, usual, is_even = SCENES[name]
        for number in range(rounds):
            places = [tarry_cluster(directory / f"{name}-{number}", "commit", SETTINGS)]
            if with_kafka:
                place = directory / f"{name}-{number}-kafka"
                places.append(kafka_cluster(place, SETTINGS, has_keepers=name == "frozen"))
            row: list[Figures] = []
            for each in places:
                brokers.touch_memory()
                try:
                    with each as cluster:
                        row.append(scene(cluster, count or usual, is_spread=is_spread or is_even))
                except KafkaUnavailable as reason:
                    print(f"without Apache Kafka: {reason}", file=sys.stderr)
            print(f"| {row[0].name} | " + " | ".join(each.text for each in row) + " |", flush=True)

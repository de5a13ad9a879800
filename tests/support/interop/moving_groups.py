"""Groups whose coordinator is one broker of three, which goes and comes back while they read."""

from __future__ import annotations

import signal
from functools import partial
from typing import Final

from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.replicated import wait_until_in_sync
from tests.support.group_scene import KINDS
from tests.support.interop.group_laws import offences
from tests.support.interop.group_members import HEARTBEAT_MS, Event, Member, MemberProcess
from tests.support.interop.group_scene_of_clients import Scene
from tests.support.interop.java_groups import JavaGroups, JavaMember
from tests.support.interop.tarry_member import TarryMember
from tests.support.raw_client import RawClient

from tarry.base import errors
from tarry.client import Admin, Consumer
from tarry.group.classic.records import GroupMetadata
from tarry.group.offsets.records import OffsetCommitted
from tarry.protocol import api_keys
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

# Whose groups move: it goes, and as the preferred leader it gets them back.
COORDINATOR: Final = 1
OTHER: Final = 2
OFFSETS: Final = "__consumer_offsets"
OFFSETS_PARTITIONS: Final = 6
# Two to six members share them without a rest.
PARTITIONS: Final = 12
RECORDS: Final = 3
# Nobody is lost by a machine that is busy: a move costs no member.
SESSION_MS: Final = 60_000


class MovingGroup:
    """A group, its topic and its members by client."""

    def __init__(
        self, cluster: BrokerCluster, name: str, assignor: str, java: JavaGroups | None
    ) -> None:
        self.name = name
        self.assignor = assignor
        self._cluster = cluster
        self._java = java
        self.group = next_group(cluster, name)
        self.scene = Scene(cluster.addresses, f"moved-{name}", self.group, PARTITIONS)
        cluster.wait_until_known(self.scene.topic)

    def join(self, clients: list[str]) -> None:
        """Have a member of each of these clients join."""
        scene = self.scene
        words = [self._cluster.addresses, self.group, scene.topic, self.assignor]
        words += [str(SESSION_MS), str(HEARTBEAT_MS)]
        for number, client in enumerate(clients):
            name = f"{client} {number}"
            if client == "java":
                assert self._java is not None
                member: Member = JavaMember(name, scene.watch, self._java, words)
            elif client == "tarry consume":
                member = TarryMember(name, scene.watch, words)
            else:
                member = MemberProcess(name, scene.watch, client, words)
            scene.members.append(member)

    def changes(self) -> list[Event]:
        """What the members were given and lost so far."""
        return [
            event
            for member in self.scene.members
            for event in tuple(member.events)
            if event.what in ("assigned", "revoked", "lost", "left")
        ]

    def close(self) -> None:
        self.scene.close()


def coordinator_of(cluster: BrokerCluster, asked: int, group: str) -> int:
    """The broker that coordinates the group, as this one tells; -1 while it knows none."""
    request = FindCoordinatorRequest(coordinator_keys=[group])
    with RawClient(cluster.brokers[asked].port) as client:
        answer = client.ask(api_keys.FIND_COORDINATOR, 4, request)
    assert isinstance(answer, FindCoordinatorResponse)
    (found,) = answer.coordinators
    return found.node_id if found.error_code == errors.NONE else -1


def next_group(cluster: BrokerCluster, name: str) -> str:
    """A name of a group that belongs to the broker that is to go."""
    for number in range(1_000):
        group = f"{name}-{number}"
        wait_until(
            partial(is_coordinated, cluster, OTHER, group), f"a coordinator of group {group}"
        )
        if coordinator_of(cluster, OTHER, group) == COORDINATOR:
            return group
    raise AssertionError(f"broker {COORDINATOR} coordinates no group")


def is_coordinated(cluster: BrokerCluster, asked: int, group: str) -> str:
    return "yes" if coordinator_of(cluster, asked, group) >= 0 else ""


def are_coordinated(cluster: BrokerCluster, groups: list[MovingGroup], *, by_it: bool) -> str:
    """Whether all groups are with the one broker, or with others."""
    found = [coordinator_of(cluster, OTHER, each.group) for each in groups]
    return "yes" if all(each >= 0 and (each == COORDINATOR) == by_it for each in found) else ""


def go_on(groups: list[MovingGroup]) -> None:
    """Have every group read and commit more."""
    for each in groups:
        each.scene.write(RECORDS)
    for each in groups:
        each.scene.wait_until_all_is_read()
        each.scene.wait_until_all_is_committed()


def move_away(cluster: BrokerCluster, groups: list[MovingGroup], number: signal.Signals) -> None:
    """End the coordinator's broker, and wait until others have its groups."""
    if number == signal.SIGKILL:
        cluster.brokers[COORDINATOR].kill()
    else:
        assert cluster.brokers[COORDINATOR].stop(number) == 0
    wait_until(lambda: are_coordinated(cluster, groups, by_it=False), "other coordinators")
    go_on(groups)


def move_back(cluster: BrokerCluster, groups: list[MovingGroup]) -> None:
    """Start it again, and have it lead what it is the preferred leader of."""
    cluster.start_broker(COORDINATOR)
    for name in [OFFSETS, *(each.scene.topic for each in groups)]:
        wait_until_in_sync(cluster, name)
    with Admin(bootstrap_servers=cluster.brokers[OTHER].address) as admin:
        places = [(OFFSETS, index) for index in range(OFFSETS_PARTITIONS)]
        admin.elect_leaders(places, outcomes=True)
    wait_until(lambda: are_coordinated(cluster, groups, by_it=True), "the coordinator again")
    go_on(groups)


def offences_of(cluster: BrokerCluster, groups: list[MovingGroup]) -> list[str]:
    """What members, and the log of commits and generations, say against the laws of groups."""
    found = [f"{each.name}: {told}" for each in groups for told in offences(each.scene)]
    return found + offences_in_log(cluster, [each.group for each in groups])


def offences_in_log(cluster: BrokerCluster, groups: list[str]) -> list[str]:
    """Commits that go back, and generations that are used twice."""
    found: list[str] = []
    last: dict[tuple[str, int], int] = {}
    members: dict[tuple[str, int], list[str]] = {}
    generations: dict[str, int] = {}
    for key, value in records_of_groups(cluster):
        record = KINDS.decode(key, value)
        if record is None or record.group_id not in groups:
            continue
        if isinstance(record, OffsetCommitted):
            place = (record.group_id, record.partition)
            if record.offset < last.get(place, 0):
                found.append(f"{place} was committed at {last[place]}, then at {record.offset}")
            last[place] = record.offset
        elif isinstance(record, GroupMetadata):
            generation = record.generation_id
            if generation < generations.get(record.group_id, 0):
                found.append(f"generation {generation} of {record.group_id} came after a later one")
            generations[record.group_id] = generation
            ids = sorted(each.member_id for each in record.members)
            if ids and members.setdefault((record.group_id, generation), ids) != ids:
                found.append(f"generation {generation} of {record.group_id} had other members")
    if {group for group, _ in last} != set(groups):
        found.append(f"the log has commits of {sorted({group for group, _ in last})} only")
    return found


def records_of_groups(cluster: BrokerCluster) -> list[tuple[bytes, bytes | None]]:
    """Keys and values of all that coordinators have written, each partition in its order."""
    places = [(OFFSETS, index) for index in range(OFFSETS_PARTITIONS)]
    found: list[tuple[bytes, bytes | None]] = []
    with Consumer(bootstrap_servers=cluster.addresses, auto_offset_reset="earliest") as consumer:
        ends = consumer.end_offsets(places)
        consumer.assign(places)
        while any(consumer.position(*place) < end for place, end in ends.items()):
            for group in consumer.poll(1.0):
                found += [(record.key or b"", record.value) for record in group.records]
    return found

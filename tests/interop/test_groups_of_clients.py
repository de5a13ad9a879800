"""Groups of real clients: members join, die and leave, the broker dies, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_broker import GroupBroker
from tests.support.interop.group_laws import offences
from tests.support.interop.group_members import (
    HEARTBEAT_MS,
    SESSION_MS,
    KcatMember,
    Member,
    MemberProcess,
)
from tests.support.interop.group_scene_of_clients import Scene
from tests.support.interop.java_groups import JavaGroups, JavaMember

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    pytest.mark.slow,
]

# Two and three members share them without a rest.
PARTITIONS = 6

CLIENTS_AND_ASSIGNORS = (
    ("confluent-kafka", "range"),
    ("confluent-kafka", "cooperative-sticky"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "roundrobin"),
    ("java", "range"),
    ("java", "cooperative-sticky"),
    ("kcat", "roundrobin"),
    ("kcat", "cooperative-sticky"),
)

MakeMember = Callable[[Scene, str, str, str], Member]


@pytest.fixture
def make_scene(group_broker: GroupBroker) -> Iterator[Callable[[str], Scene]]:
    scenes: list[Scene] = []

    def make(name: str) -> Scene:
        scenes.append(Scene(group_broker.address, f"read-{name}", f"readers-{name}", PARTITIONS))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.close()


@pytest.fixture
def make_java() -> Iterator[Callable[[], JavaGroups]]:
    """Makes JVMs that a test may kill."""
    programs: list[JavaGroups] = []

    def make() -> JavaGroups:
        programs.append(JavaGroups())
        return programs[-1]

    yield make
    for program in programs:
        program.close()


@pytest.fixture
def make_member(
    request: pytest.FixtureRequest, group_broker: GroupBroker, make_java: Callable[[], JavaGroups]
) -> MakeMember:
    def make(scene: Scene, name: str, client: str, assignor: str) -> Member:
        words = [group_broker.address, scene.group, scene.topic, assignor]
        words += [str(SESSION_MS), str(HEARTBEAT_MS)]
        if client == "java":
            lasting: JavaGroups = request.getfixturevalue("java_groups")
            program = make_java() if name == "third" else lasting
            member: Member = JavaMember(name, scene.watch, program, words)
        elif client == "kcat":
            if shutil.which("kcat") is None:
                pytest.skip("kcat is not installed (apt install kcat)")
            member = KcatMember(name, scene.watch, words)
        else:
            member = MemberProcess(name, scene.watch, client, words)
        scene.members.append(member)
        return member

    return make


@pytest.mark.parametrize(("client", "assignor"), CLIENTS_AND_ASSIGNORS)
def test_members_come_and_die_and_leave_and_the_broker_dies_and_nothing_is_lost(
    group_broker, make_scene, make_member, client, assignor
):
    scene = make_scene(f"{client}-{assignor}")
    scene.write(10)

    first = make_member(scene, "first", client, assignor)
    second = make_member(scene, "second", client, assignor)
    scene.wait_until_shared_by(first, second)
    scene.write(10)
    third = make_member(scene, "third", client, assignor)
    scene.write(10)
    scene.wait_until_shared_by(first, second, third)
    scene.write(10)
    third.kill()
    scene.write(10)
    scene.wait_until_shared_by(first, second)
    group_broker.kill()
    group_broker.start()
    if client == "kcat":
        # It ends when all its brokers are gone; who needs it starts it again.
        first = make_member(scene, "first again", client, assignor)
        second = make_member(scene, "second again", client, assignor)
    scene.write(10)
    scene.wait_until_all_is_committed()
    first.leave()
    if client == "kcat":
        # It drops the record in its hands when it is told to go, after that counted as read.
        scene.wait_until_gone(first)
    scene.write(10)
    scene.wait_until_shared_by(second)
    scene.wait_until_all_is_committed()
    second.leave()
    scene.wait_until_gone(second)
    scene.write(10)
    last = make_member(scene, "last", client, assignor)
    scene.wait_until_shared_by(last)
    scene.wait_until_all_is_read()

    assert offences(scene) == []

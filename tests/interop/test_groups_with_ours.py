"""Groups of our members and of others: each client leads in turn, members die, the broker dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_broker import IS_KAFKA, GroupBroker
from tests.support.interop.group_laws import offences
from tests.support.interop.group_members import (
    HEARTBEAT_MS,
    SESSION_MS,
    Member,
    MemberProcess,
    owned,
)
from tests.support.interop.group_scene_of_clients import Scene
from tests.support.interop.java_groups import JavaGroups, JavaMember

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    pytest.mark.slow,
]

PARTITIONS = 6

MakeMember = Callable[[str, str], Member]


@pytest.fixture
def make_scene(group_broker: GroupBroker) -> Iterator[Callable[[str], Scene]]:
    scenes: list[Scene] = []

    def make(name: str) -> Scene:
        scenes.append(Scene(group_broker.address, f"ours-{name}", f"ours-{name}", PARTITIONS))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.close()


@pytest.fixture
def make_member(
    request: pytest.FixtureRequest, group_broker: GroupBroker
) -> Callable[[Scene, str], MakeMember]:
    def in_scene(scene: Scene, assignor: str) -> MakeMember:
        words = [group_broker.address, scene.group, scene.topic, assignor]
        words += [str(SESSION_MS), str(HEARTBEAT_MS)]

        def make(name: str, client: str) -> Member:
            if client == "java":
                program: JavaGroups = request.getfixturevalue("java_groups")
                member: Member = JavaMember(name, scene.watch, program, words)
            else:
                member = MemberProcess(name, scene.watch, client, words)
            scene.members.append(member)
            return member

        return make

    return in_scene


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_our_members_come_and_die_and_leave_and_the_broker_dies_and_nothing_is_lost(
    group_broker, make_scene, make_member, assignor
):
    scene = make_scene(assignor)
    make = make_member(scene, assignor)
    scene.write(10)

    first, second = make("first", "tarry"), make("second", "tarry")
    scene.wait_until_shared_by(first, second)
    third = make("third", "tarry")
    scene.write(10)
    scene.wait_until_shared_by(first, second, third)
    third.kill()
    scene.write(10)
    scene.wait_until_shared_by(first, second)
    if not IS_KAFKA:
        # Apache Kafka does not know the members any more when it comes back.  Ours keep what they
        # have until they hear of it, hand nothing out, and would count as second owners.
        group_broker.kill()
        group_broker.start()
    scene.write(10)
    scene.wait_until_all_is_committed()
    first.leave()
    scene.write(10)
    scene.wait_until_shared_by(second)
    scene.wait_until_all_is_committed()
    second.leave()
    scene.wait_until_gone(second)
    scene.write(10)
    scene.wait_until_shared_by(make("last", "tarry"))
    scene.wait_until_all_is_read()

    assert offences(scene) == []


@pytest.mark.parametrize(
    ("other", "assignor"),
    [
        ("confluent-kafka", "cooperative-sticky"),
        ("java", "range"),
        ("kafka-python", "cooperative-sticky"),
        ("aiokafka", "roundrobin"),
    ],
)
def test_we_and_others_lead_one_another_and_nothing_is_lost(
    make_scene, make_member, other, assignor
):
    scene = make_scene(f"{other}-{assignor}")
    make = make_member(scene, assignor)
    scene.write(10)

    # Who comes first leads: theirs, then ours when it has gone.
    theirs = make("theirs", other)
    scene.wait_until_shared_by(theirs)
    ours = make("ours", "tarry")
    scene.wait_until_shared_by(theirs, ours)
    scene.write(10)
    theirs.leave()
    scene.wait_until_shared_by(ours)
    scene.write(10)
    again = make("again", other)
    scene.wait_until_shared_by(ours, again)
    scene.write(10)
    third = make("third", "tarry")
    scene.wait_until_shared_by(ours, again, third)
    third.kill()
    scene.wait_until_shared_by(ours, again)
    scene.write(10)
    scene.wait_until_all_is_committed()
    scene.wait_until_all_is_read()

    assert offences(scene) == []


def test_members_of_all_clients_stick_to_what_they_had_and_nothing_is_lost(make_scene, make_member):
    scene = make_scene("sticky")
    make = make_member(scene, "sticky")
    scene.write(10)

    # Who has been there for longest leads, in most brokers' eyes.
    java = make("java", "java")
    scene.wait_until_shared_by(java)
    ours = make("ours", "tarry")
    scene.wait_until_shared_by(java, ours)
    kept = owned(ours)
    python = make("kafka-python", "kafka-python")
    scene.wait_until_shared_by(java, ours, python)
    assert owned(ours) < kept
    scene.write(10)
    java.leave()
    scene.wait_until_shared_by(ours, python)
    asyncio = make("aiokafka", "aiokafka")
    scene.wait_until_shared_by(ours, python, asyncio)
    scene.write(10)
    ours.leave()
    scene.wait_until_shared_by(python, asyncio)
    again = make("again", "tarry")
    scene.wait_until_shared_by(python, asyncio, again)
    python.leave()
    scene.wait_until_shared_by(asyncio, again)
    asyncio.leave()
    scene.wait_until_shared_by(again)
    scene.write(10)
    scene.wait_until_all_is_committed()
    scene.wait_until_all_is_read()

    assert offences(scene) == []

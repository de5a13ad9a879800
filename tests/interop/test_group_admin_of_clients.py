"""The admin calls of every real client about groups, offsets, settings, partitions and records."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_admin_faces import (
    FACES,
    Described,
    GroupAdminFace,
    JavaGroupAdmin,
    Refused,
)
from tests.support.interop.group_broker import GroupBroker
from tests.support.interop.group_members import HEARTBEAT_MS, SESSION_MS, MemberProcess
from tests.support.interop.group_scene_of_clients import Scene

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    # Old importlib calls of kafka-python, and sockets that clients leave to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "java")


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def admin(
    request: pytest.FixtureRequest, client: str, group_broker: GroupBroker
) -> Iterator[GroupAdminFace]:
    if client == "java":
        program = request.getfixturevalue("java_groups")
        face: GroupAdminFace = JavaGroupAdmin(group_broker.address, program)
    else:
        face = FACES[client](group_broker.address)
    yield face
    face.close()


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, client: str, group_broker: GroupBroker
) -> Iterator[Scene]:
    """Three partitions with five records each, and a group's name, of this test alone."""
    name = f"{client}-{request.function.__name__[5:25]}"
    scene = Scene(group_broker.address, name, f"group-{name}", 3)
    scene.write(5)
    yield scene
    scene.close()


def join(scene: Scene, broker: GroupBroker) -> MemberProcess:
    """A member that has read and committed everything."""
    words = [broker.address, scene.group, scene.topic, "range", str(SESSION_MS), str(HEARTBEAT_MS)]
    member = MemberProcess("member", scene.watch, "confluent-kafka", words)
    scene.members.append(member)
    scene.wait_until_shared_by(member)
    scene.wait_until_all_is_committed()
    return member


def test_a_group_is_listed_described_changed_and_deleted(admin, scene, group_broker):
    member = join(scene, group_broker)

    assert scene.group in admin.groups()
    assert admin.describe(scene.group) == Described("Stable", [[0, 1, 2]])
    assert admin.offsets(scene.group, scene.topic) == {0: 5, 1: 5, 2: 5}

    member.leave()
    scene.wait_until_empty()
    assert admin.describe(scene.group) == Described("Empty", [])

    with contextlib.suppress(NotImplementedError):
        admin.alter_offsets(scene.group, scene.topic, {0: 2})
        assert admin.offsets(scene.group, scene.topic) == {0: 2, 1: 5, 2: 5}
    with contextlib.suppress(NotImplementedError):
        admin.delete_offset(scene.group, scene.topic, 1)
        assert admin.offsets(scene.group, scene.topic) == {0: 2, 2: 5}
    with contextlib.suppress(NotImplementedError):
        admin.delete_group(scene.group)
        assert scene.group not in admin.groups()
        assert admin.offsets(scene.group, scene.topic) == {}


def test_what_would_disturb_a_living_group_is_refused(admin, scene, group_broker):
    join(scene, group_broker)

    with (
        contextlib.suppress(NotImplementedError),
        pytest.raises(Refused, match=r"nonemptygroup|groupnotempty"),
    ):
        admin.delete_group(scene.group)
    with contextlib.suppress(NotImplementedError), pytest.raises(Refused, match="unknownmember"):
        admin.alter_offsets(scene.group, scene.topic, {0: 2})
    with (
        contextlib.suppress(NotImplementedError),
        pytest.raises(Refused, match="groupsubscribedtotopic"),
    ):
        admin.delete_offset(scene.group, scene.topic, 1)
    assert admin.offsets(scene.group, scene.topic) == {0: 5, 1: 5, 2: 5}


def test_settings_partitions_and_records_of_a_topic_are_changed(admin, scene):
    admin.create_partitions(scene.topic, 5)

    assert admin.set_config(scene.topic, "retention.ms", "7200000") == "7200000"
    assert len(scene.asker.list_topics(scene.topic).topics[scene.topic].partitions) == 5
    assert admin.delete_records(scene.topic, 1, 3) == 3
    asked = confluent_kafka.TopicPartition(scene.topic, 1)
    assert scene.asker.get_watermark_offsets(asked, 30) == (3, 5)

"""What Kafka's own Java client asks of groups, settings, partitions and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_broker import GROUP_TEXTS, IS_KAFKA, GroupBroker
from tests.support.interop.group_laws import value_of
from tests.support.interop.group_members import HEARTBEAT_MS, SESSION_MS
from tests.support.interop.group_scene_of_clients import Scene
from tests.support.interop.java_face import JavaError
from tests.support.interop.java_groups import JavaGroups, JavaMember
from tests.support.interop.kafka_server import free_port
from tests.support.interop.request_recorder import RequestRecorder
from tests.support.patience import PATIENCE_S

from tarry.protocol import api_keys

pytestmark = pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}")

# The newest that this client has and we serve.
NEWEST_VERSIONS = {
    api_keys.OFFSET_COMMIT: 9,
    api_keys.OFFSET_FETCH: 9,
    api_keys.FIND_COORDINATOR: 6,
    api_keys.JOIN_GROUP: 9,
    api_keys.HEARTBEAT: 4,
    api_keys.LEAVE_GROUP: 5,
    api_keys.SYNC_GROUP: 5,
    api_keys.DESCRIBE_GROUPS: 6,
    api_keys.LIST_GROUPS: 5,
    api_keys.DELETE_RECORDS: 2,
    api_keys.DESCRIBE_LOG_DIRS: 5,
    api_keys.CREATE_PARTITIONS: 3,
    api_keys.DELETE_GROUPS: 2,
    api_keys.INCREMENTAL_ALTER_CONFIGS: 1,
    api_keys.OFFSET_DELETE: 0,
}

Ask = Callable[..., Any]


@pytest.fixture
def ask(group_broker: GroupBroker, java_groups: JavaGroups) -> Ask:
    def ask(do: str, **fields: Any) -> Any:
        return java_groups.ask(do, address=group_broker.address, **fields)

    return ask


@pytest.fixture
def make_scene(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Scene]]:
    """Makes a topic of two partitions with five records each, and a group's name."""
    scenes: list[Scene] = []

    def make(address: str) -> Scene:
        name = f"java-{request.function.__name__[5:30]}"
        scenes.append(Scene(address, name, f"group-{name}", 2))
        scenes[-1].write(5)
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.close()


def join(scene: Scene, program: JavaGroups, address: str, **settings: str) -> JavaMember:
    """A member that has read and committed everything."""
    words = [address, scene.group, scene.topic, "range", str(SESSION_MS), str(HEARTBEAT_MS)]
    member = JavaMember("member", scene.watch, program, words, settings)
    scene.members.append(member)
    scene.wait_until_shared_by(member)
    scene.wait_until_all_is_committed()
    return member


def leave(scene: Scene, member: JavaMember) -> None:
    member.leave()
    scene.wait_until_gone(member)
    scene.wait_until_empty()


def test_javas_admin_client_describes_resets_and_deletes(
    ask, make_scene, group_broker, java_groups
):
    scene = make_scene(group_broker.address)
    group, topic = scene.group, scene.topic
    member = join(scene, java_groups, group_broker.address)

    alive = ask("describe group", group=group)
    listed = ask("list groups", states=["Stable"])
    leave(scene, member)
    left = ask("list groups", states=["Empty"])
    ask("alter offsets", group=group, topic=topic, offsets=[[0, 1, "why: a trial"]])
    after_reset = ask("offsets", group=group)
    again = join(scene, java_groups, group_broker.address)
    leave(scene, again)
    ask("delete offsets", group=group, topic=topic, partition=1)
    after_delete = ask("offsets", group=group)
    ask("delete group", group=group)

    assert (alive["state"], alive["assignor"], alive["coordinator"]) == ("Stable", "range", 1)
    assert [(one[1], one[4]) for one in alive["members"]] == [("/127.0.0.1", [0, 1])]
    assert listed[group] == ["consumer", "Stable", "Classic"]
    assert left[group] == ["consumer", "Empty", "Classic"]
    assert sorted(after_reset) == [[topic, 0, 1, "why: a trial", -1], [topic, 1, 5, "", -1]]
    assert again.events[1].data[0] == [0, 1, "0/1"]
    assert [one[:3] for one in after_delete] == [[topic, 0, 5]]
    assert group not in ask("list groups")
    with pytest.raises(JavaError, match="GroupIdNotFoundException"):
        ask("delete group", group=group)


def test_a_static_member_is_removed_by_its_instance(ask, make_scene, group_broker, java_groups):
    scene = make_scene(group_broker.address)
    # It stays for as long as the test takes.
    settings = {"group.instance.id": "instance-1", "session.timeout.ms": f"{PATIENCE_S}000"}
    member = join(scene, java_groups, group_broker.address, **settings)

    named = ask("describe group", group=scene.group)["members"][0]
    member.leave()
    scene.wait_until_gone(member)
    # A static member says nothing when it goes.
    stays = ask("describe group", group=scene.group)["members"][0]
    ask("remove member", group=scene.group, instance="instance-1")

    assert (named[2], named[3][:11]) == ("instance-1", "instance-1-")
    assert stays == named
    assert ask("describe group", group=scene.group)["state"] == "Empty"


def test_settings_are_set_appended_subtracted_tried_and_unset(ask):
    ask("create topic", topic="java-settings", partitions=1, configs={"retention.ms": "1000000"})

    def change(*changes: list[str], **options: bool) -> Any:
        found = ask("alter configs", kind="TOPIC", name="java-settings", changes=changes, **options)
        return {key: found[key] for key in ("cleanup.policy", "retention.ms")}

    set_both = change(["SET", "retention.ms", "2000000"], ["APPEND", "cleanup.policy", "compact"])
    tried = change(["DELETE", "retention.ms", ""], **{"try": True})
    unset = change(["DELETE", "retention.ms", ""], ["SUBTRACT", "cleanup.policy", "delete"])

    assert set_both == {
        "cleanup.policy": ["delete,compact", "DYNAMIC_TOPIC_CONFIG"],
        "retention.ms": ["2000000", "DYNAMIC_TOPIC_CONFIG"],
    }
    assert tried == set_both
    assert unset == {
        "cleanup.policy": ["compact", "DYNAMIC_TOPIC_CONFIG"],
        "retention.ms": ["604800000", "DEFAULT_CONFIG"],
    }
    with pytest.raises(JavaError, match="InvalidConfigurationException"):
        change(["SET", "retention.ms", "soon"])


def test_log_directories_tell_the_size_of_every_partition(ask, make_scene, group_broker):
    scene = make_scene(group_broker.address)

    sizes = ask("log directories")

    for partition in range(2):
        directory = group_broker.data / f"{scene.topic}-{partition}"
        on_disk = sum(path.stat().st_size for path in directory.glob("*.log"))
        assert sizes[f"{scene.topic}-{partition}"] == on_disk


def test_a_member_hears_of_new_partitions_and_reads_them(
    ask, make_scene, group_broker, java_groups
):
    scene = make_scene(group_broker.address)
    member = join(scene, java_groups, group_broker.address, **{"metadata.max.age.ms": "300"})

    ask("create partitions", topic=scene.topic, count=4)
    scene.partitions = 4
    scene.wait_until_shared_by(member)
    # The scene's own producer still believes that there are two.
    producer = confluent_kafka.Producer({"bootstrap.servers": group_broker.address})
    producer.produce(scene.topic, value_of(3, 0), partition=3)
    producer.flush()
    scene.watch.wait_until(lambda: (3, 0) in scene.all_read(), scene.told)

    assert scene.all_read()[3, 0] == value_of(3, 0)


@pytest.mark.skipif(IS_KAFKA, reason="what Kafka serves is not ours to test")
def test_the_newest_versions_are_used(tmp_path, make_scene, java_groups):
    recorder = RequestRecorder()
    recorder.broker_port = free_port()
    broker = BrokerProcess(tmp_path)
    broker.start(
        {
            **GROUP_TEXTS,
            "listeners": f"PLAINTEXT://127.0.0.1:{recorder.broker_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{recorder.port}",
        }
    )
    address = f"127.0.0.1:{recorder.port}"

    def ask(do: str, **fields: Any) -> Any:
        return java_groups.ask(do, address=address, **fields)

    # Written by librdkafka straight to the broker, so that Java alone is recorded.
    scene = make_scene(broker.address)
    here = {"group": scene.group, "topic": scene.topic}
    member = join(scene, java_groups, address)
    scene.watch.wait_until(lambda: api_keys.HEARTBEAT in recorder.versions, scene.told)
    leave(scene, member)
    ask("list groups")
    ask("describe group", **here)
    ask("offsets", **here)
    ask("delete offsets", **here, partition=1)
    ask("delete group", **here)
    ask("delete records", **here, partition=0, offset=2)
    ask("create partitions", **here, count=3)
    ask("alter configs", kind="TOPIC", name=scene.topic, changes=[["SET", "retention.ms", "1000"]])
    ask("log directories")
    # First the way to the broker: the admin client goes on looking for it.
    recorder.close()
    broker.close()

    used = {key: max(versions) for key, versions in recorder.versions.items()}
    assert {key: used[key] for key in NEWEST_VERSIONS} == NEWEST_VERSIONS

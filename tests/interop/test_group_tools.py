"""Kafka's own tools about groups: over the wire, and on the records of the offsets topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_broker import GROUP_TEXTS, GroupBroker
from tests.support.interop.group_members import HEARTBEAT_MS, SESSION_MS, MemberProcess
from tests.support.interop.group_scene_of_clients import Scene
from tests.support.interop.java_groups import JavaGroups
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}")

TOOLS = "org.apache.kafka.tools"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
OFFSETS_TOPIC = "__consumer_offsets"


@pytest.fixture
def scene(request: pytest.FixtureRequest, group_broker: GroupBroker) -> Iterator[Scene]:
    """A group with one member that has read and committed five records of two partitions."""
    name = f"tools-{request.function.__name__[5:35]}"
    scene = Scene(group_broker.address, name, f"group-{name}", 2)
    scene.write(5)
    words = [group_broker.address, scene.group, scene.topic, "range"]
    words += [str(SESSION_MS), str(HEARTBEAT_MS)]
    member = MemberProcess("member", scene.watch, "confluent-kafka", words)
    scene.members.append(member)
    scene.wait_until_shared_by(member)
    scene.wait_until_all_is_committed()
    yield scene
    scene.close()


@pytest.fixture
def tell_groups(group_broker: GroupBroker, java_groups: JavaGroups) -> Callable[..., list[str]]:
    """Runs kafka-consumer-groups: the words of each line that it printed."""

    def run(*words: str) -> list[str]:
        # By itself the tool waits for five seconds.
        where = ("--bootstrap-server", group_broker.address, "--timeout", f"{PATIENCE_S}000")
        return [
            " ".join(line.split())
            for line in java_groups.tool(GROUPS, *where, *words).splitlines()
            if line.strip()
        ]

    return run


def leave(scene: Scene) -> None:
    scene.members[0].leave()
    scene.wait_until_empty()


def objects_in(printed: str) -> list[Any]:
    """The objects of JSON that a formatter wrote one behind the other, before its last sentence."""
    found = []
    position = max(printed.find("{"), 0)  # the first tool of a JVM may be warned of its logger
    while printed.startswith("{", position):
        one, position = json.JSONDecoder().raw_decode(printed, position)
        found.append(one)
        position += len(printed[position:]) - len(printed[position:].lstrip())
    return found


def partition_of(group: str) -> int:
    """The amount of Java's hash of the name, by the number of partitions."""
    value = 0
    for unit in group:
        value = (31 * value + ord(unit)) & 0xFFFFFFFF
    return min(value, (1 << 32) - value) % int(GROUP_TEXTS["offsets.topic.num.partitions"])


def test_the_groups_tool_lists_and_describes_a_living_group(scene, tell_groups):
    group, topic = scene.group, scene.topic

    listed = tell_groups("--list", "--state")
    offsets = tell_groups("--describe", "--group", group)
    members = tell_groups("--describe", "--group", group, "--members", "--verbose")
    state = tell_groups("--describe", "--group", group, "--state")

    assert f"{group} Stable" in listed
    for partition in range(2):
        found = [line for line in offsets if line.startswith(f"{group} {topic} {partition} ")]
        assert len(found) == 1
        assert found[0].startswith(f"{group} {topic} {partition} 5 5 0 rdkafka-")
        assert found[0].endswith("/127.0.0.1 rdkafka")
    assert members[1].startswith(f"{group} rdkafka-")
    assert members[1].endswith(f"/127.0.0.1 rdkafka 2 - {topic}:0,1 - -")
    assert state[1].endswith("range Stable 1")


def test_the_groups_tool_resets_and_deletes(scene, tell_groups):
    group, topic = scene.group, scene.topic
    leave(scene)
    reset = ["--reset-offsets", "--group", group, "--topic", f"{topic}:0", "--shift-by", "-2"]

    tried = tell_groups(*reset, "--dry-run")
    after_trial = scene.committed()
    tell_groups(*reset, "--execute")
    after_reset = scene.committed()
    tell_groups("--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    after_delete = scene.committed()
    deleted = tell_groups("--delete", "--group", group)

    assert f"{group} {topic} 0 3" in tried
    assert after_trial == [5, 5]
    assert after_reset == [3, 5]
    assert after_delete == [3, confluent_kafka.OFFSET_INVALID]
    assert deleted == [f"Deletion of requested consumer groups ('{group}') was successful."]
    assert group not in tell_groups("--list")


def test_kafkas_formatters_read_the_records_of_the_offsets_topic(scene, group_broker, java_groups):
    leave(scene)
    partition = partition_of(scene.group)
    asked = confluent_kafka.TopicPartition(OFFSETS_TOPIC, partition)

    def consumed(formatter: str) -> list[Any]:
        begin, end = scene.asker.get_watermark_offsets(asked, PATIENCE_S)
        printed = java_groups.tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", group_broker.address, "--topic", OFFSETS_TOPIC),
            *("--partition", str(partition), "--offset", str(begin)),
            *("--max-messages", str(end - begin), "--timeout-ms", "100000"),
            *("--formatter", f"{TOOLS}.consumer.{formatter}"),
        )
        found = objects_in(printed)
        return [one for one in found if one["key"]["data"]["group"] == scene.group]

    def members_by_record() -> list[int]:
        found = consumed("GroupMetadataMessageFormatter")
        return [len(one["value"]["data"]["members"]) for one in found]

    # The group is empty at once, and its record can be read when it is durable.
    scene.watch.wait_until(lambda: members_by_record()[-2:] == [1, 0], scene.told)
    offsets = consumed("OffsetsMessageFormatter")
    groups = consumed("GroupMetadataMessageFormatter")

    last = {
        line["key"]["data"]["partition"]: line["value"]["data"]["offset"]
        for line in offsets
        if line["key"]["data"]["topic"] == scene.topic
    }
    assert last == {0: 5, 1: 5}
    told = groups[-2]["value"]["data"]
    assert (told["protocolType"], told["protocol"]) == ("consumer", "range")
    assert told["leader"] == told["members"][0]["memberId"]


def test_dump_log_segments_decodes_the_offsets_topic(scene, group_broker, java_groups):
    leave(scene)
    directory = group_broker.data / f"{OFFSETS_TOPIC}-{partition_of(scene.group)}"
    files = ",".join(str(path) for path in sorted(directory.glob("*.log")))

    printed = java_groups.tool(
        "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", files
    )

    key = f'{{"type":"1","data":{{"group":"{scene.group}","topic":"{scene.topic}","partition":1}}}}'
    of_partition = [line for line in printed.splitlines() if f"key: {key}" in line]
    assert '"offset":5,' in of_partition[-1].partition("payload: ")[2]
    of_group = [
        line for line in printed.splitlines() if f'"data":{{"group":"{scene.group}"}}' in line
    ]
    assert '"protocolType":"consumer"' in of_group[-1]

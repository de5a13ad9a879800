"""Companion logs that come later than the logs of their partitions: on a change of settings, or
when the disk takes them at last."""

from __future__ import annotations

from tests.support.broker.broker_user import a_batch
from tests.support.cluster.cluster_user import ClusterUser
from tests.support.cluster.leader_scene import TOPIC, LeaderScene

from tarry.base import errors
from tarry.partition.replicated_log import COMPANION
from tarry.partition.topic import HostedTopic, has_companion
from tarry.protocol import api_keys
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.wire.reader import window_of

TOPIC_RESOURCE = 2


def hosted(scene: LeaderScene, broker_id: int) -> HostedTopic:
    broker = scene.nodes[broker_id].broker
    assert broker is not None
    return broker.topics[TOPIC]


def ends(scene: LeaderScene) -> list[int]:
    """Where the companion log ends at each broker; -1 where it is not there."""
    found: list[int] = []
    for broker_id in scene.nodes:
        replica = hosted(scene, broker_id).replica(0)
        assert replica is not None
        logs = replica.leadership.logs
        found.append(int(logs[COMPANION].log.log_end_offset) if has_companion(replica) else -1)
    return found


def delay_all(scene: LeaderScene) -> None:
    """Set the topic to delay every record by a minute."""
    values = [("delay.enable", "true"), ("delay.default.ms", "60000")]
    configs = [
        AlterableConfig(name=name, config_operation=0, value=value) for name, value in values
    ]
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    ClusterUser(scene.cluster).call(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)


def produce(scene: LeaderScene) -> int:
    """Write one record, acknowledged by all in sync; return the error code."""
    data = PartitionProduceData(index=0, records=window_of(a_batch(b"a")))
    asked = TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[asked])
    answer = ClusterUser(scene.cluster, 1).call(api_keys.PRODUCE, 11, request)
    return int(answer.responses[0].partition_responses[0].error_code)  # type: ignore[attr-defined]


def test_a_topic_that_begins_to_delay_has_what_waits_on_every_replica() -> None:
    scene = LeaderScene()
    wide = {"message.timestamp.after.max.ms": str(2**62), "min.insync.replicas": "3"}
    scene.create([[1, 2, 3]], wide)
    scene.until(lambda: scene.row().isr == [1, 2, 3] and scene.leads(1), "a leader")

    delay_all(scene)
    scene.until(lambda: -1 not in ends(scene), "companion logs")
    code = produce(scene)

    assert code == errors.NONE
    assert len(set(ends(scene))) == 1
    assert ends(scene)[0] > 0


def test_a_refused_companion_log_is_tried_again_after_a_change_of_roles() -> None:
    scene = LeaderScene()
    scene.create([[1, 2, 3]])
    topic = hosted(scene, 2)
    replica = topic.replica(0)
    assert replica is not None
    topic.has_companions = True
    topic.refuse(0)

    topic.place(replica.leadership)

    assert list(topic.refused) == [0]

"""The real Consumer over a scripted cluster: only its sockets and its clock are replaced."""

from __future__ import annotations

from typing import Any, TypeVar

from tests.support.client.hand_face import HandDriver
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.sync.base_consumer import BaseConsumer
from tarry.client.sync.consumer import Consumer

Face = TypeVar("Face", bound=BaseConsumer)


def consumer_of(cluster: ScriptedCluster, **arguments: Any) -> Consumer:
    """Make a consumer of this cluster, whose bootstrap server is its broker 1."""
    return face_of(Consumer, cluster, **arguments)


def face_of(face: type[Face], cluster: ScriptedCluster, **arguments: Any) -> Face:
    """Make a consumer of a class of its own likewise."""
    consumer = face({"bootstrap.servers": str(cluster.brokers[1])}, **arguments)
    consumer._driver.close()
    core = cluster.attach(GroupConsumerCore(consumer.settings, seeded_random(), cluster.now_ms))
    core.decoding = consumer._core.decoding
    consumer._driver = HandDriver(cluster, core)  # type: ignore[assignment]
    return consumer

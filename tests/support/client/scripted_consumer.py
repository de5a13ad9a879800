"""The real Consumer over a scripted cluster: only its sockets and its clock are replaced."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.hand_face import HandDriver
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.sync import consumer as consumer_module
from tarry.client.sync.consumer import Consumer


def consumer_of(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch, **arguments: Any
) -> Consumer:
    """Make a consumer of this cluster, whose bootstrap server is its broker 1."""
    monkeypatch.setattr(consumer_module, "monotonic_ms", lambda: cluster.now_ms)
    consumer = Consumer({"bootstrap.servers": str(cluster.brokers[1])}, **arguments)
    consumer._driver.close()
    core = cluster.attach(GroupConsumerCore(consumer.settings, seeded_random(), cluster.now_ms))
    consumer._driver = HandDriver(cluster, core)  # type: ignore[assignment]
    return consumer

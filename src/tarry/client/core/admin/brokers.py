"""What admin calls need to know of the cluster: its brokers, and who leads the partitions."""

from __future__ import annotations

from typing import Any, NamedTuple

from tarry.client.core.admin.calls import TopicList
from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Broker, Topic, brokers_of


class View(NamedTuple):
    """Brokers and topics as one answer told them."""

    brokers: dict[int, Broker]
    topics: dict[str, Topic]


class ClusterView(TopicList):
    """Result: a View with the named topics."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(names)

    def interpret(self, response: Any, version: int) -> Any:
        topics = super().interpret(response, version)
        return View(brokers_of(response.brokers), {topic.name: topic for topic in topics})

    def brokers(self, connections: Connections) -> dict[int, Broker]:
        """The brokers that were told, made known to the connections.  Raises why there are none."""
        if self.error is not None:
            raise self.error
        view: View = self.result
        for broker in view.brokers.values():
            connections.add_broker(broker.broker_id, broker.address)
        return view.brokers

"""Brokers and partition leaders of the cluster, for the calls of an admin client."""

from __future__ import annotations

from typing import NamedTuple

from tarry.client.core.connections import Connections
from tarry.client.core.metadata_answer import MetadataAnswer, read_in_steps, read_metadata
from tarry.client.core.refresh import metadata_request
from tarry.client.core.routing import ANYONE
from tarry.client.core.topic import BrokerMetadata, Topic
from tarry.link.errand import Call
from tarry.protocol import api_keys
from tarry.protocol.message import Message


class View(NamedTuple):
    """Brokers and topics as reported by one metadata answer."""

    brokers: dict[int, BrokerMetadata]
    topics: dict[str, Topic]


class ReadCluster(Call[MetadataAnswer, View]):
    """Result: a View with the named topics."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(api_keys.METADATA, read_metadata, ANYONE)
        self.decode_in_steps = read_in_steps
        self.names = names

    def build(self, version: int) -> Message:
        return metadata_request(self.names, version)

    def interpret(self, response: MetadataAnswer) -> View:
        return View(response.brokers, {one.name: one for one in response.topics})

    def brokers(self, connections: Connections) -> dict[int, BrokerMetadata]:
        """Return the brokers in the answer, and register their addresses with the connections.

        Raises the error of the call if it failed.
        """
        if self.error is not None:
            raise self.error
        for broker in self.result.brokers.values():
            connections.add_broker(broker.broker_id, broker.address)
        return self.result.brokers

"""A user of one broker of a simulated cluster: a request in one call, its answer returned."""

from __future__ import annotations

from tests.support.cluster.simulated_cluster import SimulatedCluster

from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.registry import MESSAGES
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, Script, ScriptedClient


class ClusterUser(ScriptedClient):
    """Client of broker `number`; the world goes on until what it asks is answered."""

    def __init__(self, cluster: SimulatedCluster, number: int = 1) -> None:
        node = cluster.nodes[number - 1]
        world = cluster.world
        super().__init__(
            RunContext(node.clock, node.network, world.random, world.trace), f"user{number}"
        )
        self._cluster = cluster
        self._queries: list[Query] = []
        self._answers: list[Message] = []
        self.start()

    def script(self) -> Script:
        while True:
            while self._queries:
                outcome = yield self._queries[0]
                if outcome is not None:
                    self._queries.pop(0)
                    self._answers.append(outcome.answer)
            yield Delay(5)

    def call(self, key: int, version: int, request: Message) -> Message:
        """Ask, and return the answer."""
        self.begin(key, version, request)
        self._cluster.run_until(lambda: self._answers, "an answer")
        return self._answers.pop()

    def begin(self, key: int, version: int, request: Message) -> None:
        """Ask, and wait for nothing."""
        decode = MESSAGES[key].decode_response
        self._queries.append(Query(key, version, request, decode, 30_000))

    @property
    def answers(self) -> list[Message]:
        """Answers to what was asked so."""
        return self._answers

    def create(self, name: str, *replicas: list[int]) -> None:
        """Create a topic whose partitions have these replicas."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(index, [*each]) for index, each in enumerate(replicas)
            ],
        )
        answer = self.call(19, 7, CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message

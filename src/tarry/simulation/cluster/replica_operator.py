"""Operator: gives partitions other replicas and other leaders, over and over."""

from __future__ import annotations

from typing import Final

from tarry.cluster.decisions.elections import PREFERRED
from tarry.cluster.state.state import TopicState
from tarry.cluster.state.topic_names import OFFSETS_TOPIC
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    decode_alter_partition_reassignments_response,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    TopicPartitions,
    decode_elect_leaders_response,
)
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, RunClient, Script
from tarry.simulation.cluster.replica_checker import ReplicaChecker

_TIMEOUT_MS: Final = 2_000


class ReplicaOperator(RunClient):
    """Client of one broker that asks it for reassignments, for their ends and for preferred
    leaders, until the run is quiet.

    A partition of `topic` keeps `replicas_min` replicas at least.
    """

    def __init__(
        self,
        context: RunContext,
        name: str,
        run: RunContext,
        checker: ReplicaChecker,
        topic: str,
        *,
        brokers: int,
        replicas_min: int,
        pause_ms_max: int,
    ) -> None:
        super().__init__(context, name, run)
        self._checker = checker
        self._topics = (topic, OFFSETS_TOPIC)
        self._broker_ids = range(1, brokers + 1)
        self._replicas_min = replicas_min
        self._pause_ms_max = pause_ms_max

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            yield Delay(1 + random.randrange(self._pause_ms_max))
            topics = [self._checker.state.topic(name) for name in self._topics]
            known = [each for each in topics if each is not None]
            if known:
                yield self._wish(known[random.randrange(len(known))])

    def _wish(self, topic: TopicState) -> Query:
        random = self.context.random
        count = len(topic.partitions)
        indexes = list(range(count)) if random.randrange(4) == 0 else [random.randrange(count)]
        kind = random.randrange(6)
        if kind == 0:
            places = None if random.randrange(2) else [TopicPartitions(topic.name, indexes)]
            elections = ElectLeadersRequest(PREFERRED, places, _TIMEOUT_MS)
            return Query(
                api_keys.ELECT_LEADERS, 2, elections, decode_elect_leaders_response, _TIMEOUT_MS
            )
        target: list[int] | None = None
        if kind > 1:
            brokers = random.sample(self._broker_ids, len(self._broker_ids))
            more = random.randrange(len(brokers) + 1 - self._replicas_min)
            target = brokers[: self._replicas_min + more]
        partitions = [ReassignablePartition(index, target) for index in indexes]
        return Query(
            api_keys.ALTER_PARTITION_REASSIGNMENTS,
            1,
            AlterPartitionReassignmentsRequest(
                _TIMEOUT_MS, True, [ReassignableTopic(topic.name, partitions)]
            ),
            decode_alter_partition_reassignments_response,
            _TIMEOUT_MS,
        )

"""A scripted cluster with replicas: brokers that die, partitions that move, elections."""

from __future__ import annotations

from typing import Any

from tests.support.client.scripted_cluster import Seen
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tarry.protocol.messages.unregister_broker import UnregisterBrokerResponse


class ReplicatedPartition:
    """A partition's replicas; `moving_to` while they are moved."""

    def __init__(self, replicas: list[int]) -> None:
        self.replicas = replicas
        self.isr = [*replicas]
        self.moving_to: list[int] | None = None


class ReplicaCluster(GroupCluster):
    """Brokers 1 to n; moves end after they were asked about `asks_until_moved` times."""

    def __init__(self, brokers: int = 3) -> None:
        super().__init__(brokers)
        self.dead: list[int] = []
        self.racks: dict[int, str] = {}
        self.partitions: dict[tuple[str, int], ReplicatedPartition] = {}
        self.asks_until_moved = 1
        self.asked = 0

    def replicated(self, name: str, *replicas: list[int]) -> None:
        """Have a topic with these replicas, the leader first."""
        topic = self.topic(name, partitions=len(replicas))
        for index, each in enumerate(replicas):
            topic.logs[index].leader_id = each[0]
            self.partitions[name, index] = ReplicatedPartition([*each])

    def die(self, broker_id: int) -> None:
        """Let a broker die: its partitions are led by the next in sync, or by nobody."""
        self.dead.append(broker_id)
        for (name, index), one in self.partitions.items():
            one.isr = [each for each in one.isr if each != broker_id]
            log = self.topics[name].logs[index]
            if log.leader_id == broker_id:
                log.leader_id = one.isr[0] if one.isr else -1

    def live(self, broker_id: int) -> None:
        """Let a broker live again, in sync with all."""
        self.dead.remove(broker_id)
        for (name, index), one in self.partitions.items():
            if broker_id in one.replicas:
                one.isr = [*one.isr, broker_id]
                log = self.topics[name].logs[index]
                log.leader_id = log.leader_id if log.leader_id >= 0 else broker_id

    def default(self, seen: Seen) -> Any:
        handler = {
            api_keys.ELECT_LEADERS: self._elect,
            api_keys.ALTER_PARTITION_REASSIGNMENTS: self._reassign,
            api_keys.LIST_PARTITION_REASSIGNMENTS: self._list_reassignments,
            api_keys.UNREGISTER_BROKER: self._unregister,
            api_keys.DESCRIBE_CLUSTER: self._describe_members,
        }.get(seen.api_key)
        return super().default(seen) if handler is None else handler(seen)

    def _topic_answer(self, name: str, version: int) -> Any:
        answer = super()._topic_answer(name, version)
        for partition in answer.partitions:
            one = self.partitions.get((name, partition.partition_index))
            if one is not None:
                target = one.moving_to or []
                stay = [each for each in one.replicas if each not in target]
                partition.replica_nodes = [*target, *stay]
                partition.isr_nodes = [*one.isr]
                if version >= 5:
                    partition.offline_replicas = [
                        each for each in one.replicas if each in self.dead
                    ]
        return answer

    def _describe_members(self, seen: Seen) -> DescribeClusterResponse:
        answer = DescribeClusterResponse(cluster_id="scripted", controller_id=1)
        for broker_id, address in self.brokers.items():
            one = DescribeClusterBroker(broker_id, address.host, address.port)
            one.rack = self.racks.get(broker_id)
            one.is_fenced = broker_id in self.dead
            answer.brokers.append(one)
        return answer

    def _elect(self, seen: Seen) -> ElectLeadersResponse:
        asked = seen.request.topic_partitions
        places = list(self.partitions)
        if asked is not None:
            places = [(each.topic, index) for each in asked for index in each.partitions]
        answer = ElectLeadersResponse()
        for name, index in places:
            one = self.partitions[name, index]
            log = self.topics[name].logs[index]
            living = [each for each in one.replicas if each not in self.dead]
            code, message = errors.NONE, None
            if seen.request.election_type == 1:
                if log.leader_id >= 0:
                    code = errors.ELECTION_NOT_NEEDED
                elif living:
                    log.leader_id = living[0]
                    one.isr = living[:1]
                else:
                    code, message = errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, "nobody serves"
            elif log.leader_id == one.replicas[0]:
                code = errors.ELECTION_NOT_NEEDED
            elif one.replicas[0] in one.isr:
                log.leader_id = one.replicas[0]
            else:
                code, message = errors.PREFERRED_LEADER_NOT_AVAILABLE, "it is not in sync"
            if asked is not None or code != errors.ELECTION_NOT_NEEDED:
                result = PartitionResult(index, code, message)
                answer.replica_election_results.append(ReplicaElectionResult(name, [result]))
        return answer

    def _reassign(self, seen: Seen) -> AlterPartitionReassignmentsResponse:
        answer = AlterPartitionReassignmentsResponse()
        for topic in seen.request.topics:
            told = ReassignableTopicResponse(topic.name)
            answer.responses.append(told)
            for each in topic.partitions:
                one = self.partitions[topic.name, each.partition_index]
                code, message = errors.NONE, None
                if each.replicas is None and one.moving_to is None:
                    code, message = errors.NO_REASSIGNMENT_IN_PROGRESS, "none is under way"
                elif each.replicas is not None and any(
                    broker_id not in self.brokers for broker_id in each.replicas
                ):
                    code, message = errors.INVALID_REPLICA_ASSIGNMENT, "an unknown broker"
                else:
                    one.moving_to = each.replicas
                told.partitions.append(
                    ReassignablePartitionResponse(each.partition_index, code, message)
                )
        return answer

    def _list_reassignments(self, seen: Seen) -> ListPartitionReassignmentsResponse:
        answer = ListPartitionReassignmentsResponse()
        moving = {place: one for place, one in self.partitions.items() if one.moving_to}
        if moving:
            self.asked += 1
        for (name, index), one in moving.items():
            target = one.moving_to or []
            if self.asked > self.asks_until_moved:
                one.replicas = one.isr = [*target]
                one.moving_to = None
                self.topics[name].logs[index].leader_id = target[0]
                continue
            stay = [each for each in one.replicas if each not in target]
            row = OngoingPartitionReassignment(index, [*target, *stay])
            row.adding_replicas = [each for each in target if each not in one.replicas]
            row.removing_replicas = [each for each in one.replicas if each not in target]
            answer.topics.append(OngoingTopicReassignment(name, [row]))
        return answer

    def _unregister(self, seen: Seen) -> UnregisterBrokerResponse:
        broker_id = seen.request.broker_id
        if broker_id not in self.brokers:
            return UnregisterBrokerResponse(0, errors.BROKER_ID_NOT_REGISTERED, "there is none")
        if broker_id not in self.dead:
            return UnregisterBrokerResponse(0, errors.INVALID_REQUEST, "it lives: stop it first")
        del self.brokers[broker_id]
        return UnregisterBrokerResponse(0, errors.NONE, None)

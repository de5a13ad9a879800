"""Answers of a peer: those of Apache Kafka, for the requests of a consumer without a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tarry.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tarry.simulation.replicas.cluster import PEER_IDS, TOPIC, TOPIC_ID, PeerCluster
from tarry.wire.reader import window_of

_APIS: Final = (api_keys.API_VERSIONS, api_keys.METADATA, api_keys.LIST_OFFSETS, api_keys.FETCH)
_EARLIEST: Final = -2
# Consumers are sent to a replica from this version of Fetch on (KIP-392).
_VERSION_WITH_RACK: Final = 11


class PeerAnswers:
    """Answers of one peer of the cluster."""

    def __init__(self, cluster: PeerCluster, peer_id: int) -> None:
        # True if the last answer to a fetch had nothing that its consumer waits for.
        self.is_bare = False
        self._cluster = cluster
        self._peer_id = peer_id
        # Each API has a request of another class, so the parameter is Any.
        self._answers: dict[int, Callable[[Any, int], Message]] = {
            api_keys.API_VERSIONS: self._api_versions,
            api_keys.METADATA: self._metadata,
            api_keys.LIST_OFFSETS: self._list_offsets,
            api_keys.FETCH: self._fetch,
        }

    def to(self, api_key: int, version: int, request: Message) -> Message:
        """Return the answer to a request, as things stand."""
        return self._answers[api_key](request, version)

    def _api_versions(self, request: Message, version: int) -> ApiVersionsResponse:
        apis = [(key, api_keys.APIS[key]) for key in _APIS]
        return ApiVersionsResponse(
            api_keys=[ApiVersion(key, api.version_min, api.version_max) for key, api in apis]
        )

    def _metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        cluster = self._cluster
        topic = MetadataResponseTopic(errors.NONE, TOPIC, TOPIC_ID)
        for index in range(len(cluster.logs)):
            leader_id, leader_epoch = cluster.known_leader(self._peer_id, index)
            topic.partitions.append(
                MetadataResponsePartition(
                    errors.NONE, index, leader_id, leader_epoch, list(PEER_IDS), list(PEER_IDS)
                )
            )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(peer_id, *cluster.addresses[peer_id], cluster.rack(peer_id))
                for peer_id in PEER_IDS
            ],
            cluster_id="peers",
            controller_id=PEER_IDS[0],
            topics=[topic],
        )

    def _list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        cluster = self._cluster
        response = ListOffsetsResponse()
        for topic in request.topics:
            answers = ListOffsetsTopicResponse(topic.name)
            response.topics.append(answers)
            for wanted in topic.partitions:
                index = wanted.partition_index
                log = cluster.logs[index]
                answer = ListOffsetsPartitionResponse(index, leader_epoch=log.leader_epoch)
                answers.partitions.append(answer)
                if cluster.leader_id(index) != self._peer_id:
                    answer.error_code = errors.NOT_LEADER_OR_FOLLOWER
                elif wanted.timestamp == _EARLIEST:
                    answer.offset = 0
                elif request.isolation_level:
                    answer.offset = log.stable_end(log.end_offset)
                else:
                    answer.offset = log.end_offset
        return response

    # --- Fetch

    def _fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        response = FetchResponse()
        self.is_bare = True
        for topic in request.topics:
            answers = FetchableTopicResponse(topic.topic, topic.topic_id)
            response.responses.append(answers)
            for wanted in topic.partitions:
                answer = self._fetch_one(request, wanted, version)
                answers.partitions.append(answer)
                has_records = answer.records is not None and answer.records.size > 0
                if has_records or answer.error_code or answer.preferred_read_replica >= 0:
                    self.is_bare = False
        return response

    def _fetch_one(
        self, request: FetchRequest, wanted: FetchPartition, version: int
    ) -> PartitionData:
        cluster = self._cluster
        index, offset = wanted.partition, wanted.fetch_offset
        log = cluster.logs[index]
        is_leader = cluster.leader_id(index) == self._peer_id
        if not is_leader and version < _VERSION_WITH_RACK:
            return PartitionData(index, errors.NOT_LEADER_OR_FOLLOWER, -1)
        end_offset = cluster.end_of(self._peer_id, index)
        if 0 <= wanted.current_leader_epoch < log.leader_epoch:
            return PartitionData(index, errors.FENCED_LEADER_EPOCH, -1)
        if offset > end_offset:
            return PartitionData(index, errors.OFFSET_OUT_OF_RANGE, -1)
        stable_end = log.stable_end(end_offset)
        answer = PartitionData(index, errors.NONE, end_offset, stable_end, 0)
        answer.records = window_of(b"")
        if is_leader:
            rack_id = request.rack_id if version >= _VERSION_WITH_RACK else ""
            answer.preferred_read_replica = cluster.preferred(self._peer_id, index, rack_id, offset)
            if answer.preferred_read_replica >= 0:
                return answer
        readable_end = stable_end if request.isolation_level else end_offset
        records, upper = log.read(offset, readable_end, wanted.partition_max_bytes)
        answer.records = window_of(records)
        if request.isolation_level:
            answer.aborted_transactions = [
                AbortedTransaction(one.producer_id, one.first_offset)
                for one in log.aborted(offset, upper, end_offset)
            ]
        return answer

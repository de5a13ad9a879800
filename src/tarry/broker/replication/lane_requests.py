"""Requests of a lane: fetches as a replica, and the question where the leader's logs begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tarry.broker.replication.followed import Followed
from tarry.broker.replication.follower_session import FollowerSession
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    ReplicaState,
    decode_fetch_response,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    decode_list_offsets_response,
)

# Asks for the first offset that the leader itself has (KIP-405).
EARLIEST_LOCAL: Final = -4


class ReplicaTerms:
    """Terms on which this broker asks others: who it is, and how much it takes at once."""

    def __init__(
        self,
        broker_id: int,
        *,
        timeout_ms: int,
        wait_ms_max: int,
        bytes_min: int,
        partition_bytes_max: int,
        response_bytes_max: int,
        backoff_ms: int,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = ""
        # With which this broker is registered: clients do not know it.
        self.directory_id = bytes(16)
        # Of the life of this broker, -1: it has none, and nobody is asked.
        self.broker_epoch = -1
        # The leader may wait before it answers.
        self.timeout_ms = max(timeout_ms, wait_ms_max + 1_000)
        self.wait_ms_max = wait_ms_max
        self.bytes_min = bytes_min
        self.partition_bytes_max = partition_bytes_max
        self.response_bytes_max = response_bytes_max
        self.backoff_ms = max(backoff_ms, 1)


class FetchEnds(NamedTuple):
    """Functions that take the ends of a fetch."""

    on_response: Callable[[FetchResponse, int], None]
    on_failure: Callable[[ClientError, int], None]


class ReplicaFetch(Exchange[FetchResponse]):
    """Fetch of whatever the session has to say when it leaves."""

    def __init__(self, terms: ReplicaTerms, session: FollowerSession, ends: FetchEnds) -> None:
        super().__init__(api_keys.FETCH, decode_fetch_response, terms.timeout_ms)
        self._terms = terms
        self._session = session
        self._ends = ends

    def build(self, version: int) -> FetchRequest:
        terms, session = self._terms, self._session
        topics, forgotten = session.take_topics(terms.directory_id)
        return FetchRequest(
            cluster_id=terms.cluster_id,
            replica_state=ReplicaState(terms.broker_id, terms.broker_epoch),
            max_wait_ms=terms.wait_ms_max,
            min_bytes=terms.bytes_min,
            max_bytes=terms.response_bytes_max,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )

    def on_response(self, response: FetchResponse, now_ms: int) -> None:
        self._ends.on_response(response, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._ends.on_failure(error, now_ms)


class StartsQuestion(Exchange[ListOffsetsResponse]):
    """Question where the leader's logs of some partitions begin."""

    def __init__(
        self,
        terms: ReplicaTerms,
        asked: list[Followed],
        on_response: Callable[[ListOffsetsResponse, int], None],
        on_failure: Callable[[ClientError, int], None],
    ) -> None:
        super().__init__(api_keys.LIST_OFFSETS, decode_list_offsets_response, terms.timeout_ms)
        self._broker_id = terms.broker_id
        self._topics: dict[str, ListOffsetsTopic] = {}
        for followed in asked:
            partition = followed.partition
            topic = self._topics.get(partition.topic)
            if topic is None:
                topic = self._topics[partition.topic] = ListOffsetsTopic(partition.topic)
            topic.partitions.append(
                ListOffsetsPartition(partition.index, partition.leader_epoch, EARLIEST_LOCAL)
            )
        self._on_response = on_response
        self._on_failure = on_failure

    def build(self, version: int) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            self._broker_id, topics=list(self._topics.values()), timeout_ms=self.timeout_ms
        )

    def on_response(self, response: ListOffsetsResponse, now_ms: int) -> None:
        self._on_response(response, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._on_failure(error, now_ms)

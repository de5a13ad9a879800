"""Requests of a lane: fetches of a replica, and the question where the leader's logs begin."""

from __future__ import annotations

from typing import Final

from tarry.broker.replication.followed import Followed
from tarry.broker.replication.follower_session import FollowerSession
from tarry.partition.replicated_log import wire_index
from tarry.protocol.messages.fetch import FetchRequest, ReplicaState
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

# Timestamp that asks for the first offset that the leader itself has (KIP-405).
EARLIEST_LOCAL: Final = -4


class ReplicaTerms:
    """Terms of this broker's requests as a follower: its identity, and how much it takes at
    once.
    """

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
        # Id of the directory with which this broker is registered.  Clients do not know it.
        self.directory_id = bytes(16)
        # Broker epoch of this broker's life; -1 if it has none, and then no leader is asked.
        self.broker_epoch = -1
        # The time-out exceeds the time for which the leader may let a fetch wait.
        self.timeout_ms = max(timeout_ms, wait_ms_max + 1_000)
        self.wait_ms_max = wait_ms_max
        self.bytes_min = bytes_min
        self.partition_bytes_max = partition_bytes_max
        self.response_bytes_max = response_bytes_max
        self.backoff_ms = max(backoff_ms, 1)


def fetch_request(terms: ReplicaTerms, session: FollowerSession) -> FetchRequest:
    """Return a fetch with all changes for which it has room; they count as known to the leader."""
    topics, forgotten = session.take_topics(terms.directory_id)
    return FetchRequest(
        cluster_id=terms.cluster_id,
        replica_state=ReplicaState(terms.broker_id, terms.broker_epoch),
        # The session has ends that only the next request reports: do not let them wait.
        max_wait_ms=0 if session.has_untold else terms.wait_ms_max,
        min_bytes=terms.bytes_min,
        max_bytes=terms.response_bytes_max,
        session_id=session.session_id,
        session_epoch=session.epoch,
        topics=topics,
        forgotten_topics_data=forgotten,
    )


def starts_request(terms: ReplicaTerms, asked: list[Followed]) -> ListOffsetsRequest:
    """Return the question where the leader's logs of some partitions begin."""
    topics: dict[str, ListOffsetsTopic] = {}
    for followed in asked:
        leadership = followed.partition.leadership
        topic = topics.get(leadership.topic)
        if topic is None:
            topic = topics[leadership.topic] = ListOffsetsTopic(leadership.topic)
        topic.partitions.append(
            ListOffsetsPartition(wire_index(followed.key), leadership.leader_epoch, EARLIEST_LOCAL)
        )
    return ListOffsetsRequest(
        terms.broker_id, topics=list(topics.values()), timeout_ms=terms.timeout_ms
    )

"""Hints about the present leader of a partition (KIP-951), in answers of a broker that is not it.

A client with a hint goes to the leader at once, without asking for metadata first.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.broker.metadata.cluster_view import ClusterView
from tarry.broker.request import RequestContext
from tarry.cluster.state.scheduled_topics import readable_topic
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages import fetch, produce

MOVED: Final = (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)
PRODUCE_VERSION_OF_HINTS: Final = 10
FETCH_VERSION_OF_LEADERS: Final = 12
FETCH_VERSION_OF_ENDPOINTS: Final = 16


class LeaderHints:
    """Source of the leaders that applied rows name, as long as these are alive."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def add_to_produce(self, context: RequestContext, response: produce.ProduceResponse) -> None:
        """Add the leaders of partitions that were refused because another broker leads them."""
        if context.api_version < PRODUCE_VERSION_OF_HINTS:
            return
        leaders: dict[int, None] = {}
        for topic in response.responses:
            for answer in topic.partition_responses:
                if answer.error_code not in MOVED:
                    continue
                row = self._row(topic.name, topic.topic_id, answer.index, answer.error_code)
                if row is not None:
                    answer.current_leader = produce.LeaderIdAndEpoch(
                        leader_id=row.leader_id, leader_epoch=row.leader_epoch
                    )
                    leaders[row.leader_id] = None
        for broker_id in leaders:
            one = self._view.endpoint(broker_id, context.connection.listener)
            response.node_endpoints.append(
                produce.NodeEndpoint(broker_id, one.host, one.port, one.rack)
            )

    def add_to_fetch(self, context: RequestContext, response: fetch.FetchResponse) -> None:
        """Add the leaders of partitions that were refused because another broker leads them."""
        if context.api_version < FETCH_VERSION_OF_LEADERS:
            return
        leaders: dict[int, None] = {}
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.error_code not in MOVED:
                    continue
                index, code = answer.partition_index, answer.error_code
                row = self._row(topic.topic, topic.topic_id, index, code)
                if row is not None:
                    answer.current_leader = fetch.LeaderIdAndEpoch(
                        leader_id=row.leader_id, leader_epoch=row.leader_epoch
                    )
                    leaders[row.leader_id] = None
        if context.api_version < FETCH_VERSION_OF_ENDPOINTS:
            return
        for broker_id in leaders:
            one = self._view.endpoint(broker_id, context.connection.listener)
            response.node_endpoints.append(
                fetch.NodeEndpoint(broker_id, one.host, one.port, one.rack)
            )

    def _row(self, name: str, topic_id: bytes, index: int, code: int) -> PartitionRow | None:
        """Return the row of a partition whose leader still has the life that the row names; else
        None.

        The answer never names its own broker as the leader of a partition that the broker refuses.
        """
        state = self._view.state
        topic = readable_topic(state, name, ZERO_UUID if name else topic_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        row = topic.partitions[index]
        if code == errors.NOT_LEADER_OR_FOLLOWER and row.leader_id == self._view.own_id:
            return None
        return row if self._view.leader(topic.hosted_name, index, row) >= 0 else None

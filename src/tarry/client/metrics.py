"""Metrics: typed snapshots of what a client has done.

Counts begin with the client and never decrease.  A snapshot needs no request and may be taken after
every poll.
"""

from __future__ import annotations

from typing import NamedTuple

from tarry.base.ids import TopicPartition


class ConnectionMetrics(NamedTuple):
    """Connections of one client: those that became ready (`made`), of these the ones that ended
    (`lost`), attempts that never became ready (`failed`), and the brokers that are not tried again
    yet (`in_backoff`)."""

    made: int
    lost: int
    failed: int
    in_backoff: int


class PlaceMetrics(NamedTuple):
    """A consumer's place in one partition: the offset that is handed out next, and the count of
    records behind it; -1 while either is not known."""

    position: int
    lag: int


class ConsumerMetrics(NamedTuple):
    """Snapshot of a consumer.

    `records` were decoded; `bytes` came in `fetches` answers about one partition each, compressed
    as they were.  `rebalances` are the assignments that the user was told, `commits` those that the
    group has taken, `commits_failed` the others.  The times are milliseconds since the last poll
    began, and since the coordinator last confirmed this member, by a heartbeat or a round; -1:
    never.
    """

    records: int
    bytes: int
    fetches: int
    places: dict[TopicPartition, PlaceMetrics]
    rebalances: int
    commits: int
    commits_failed: int
    poll_age_ms: int
    heartbeat_age_ms: int
    connections: ConnectionMetrics


class LatencyMetrics(NamedTuple):
    """Milliseconds from the first `send` of a batch to its acknowledgement, of the last 512
    batches; -1 before the first one."""

    p50_ms: int
    p90_ms: int
    p99_ms: int
    max_ms: int


class ProducerMetrics(NamedTuple):
    """Snapshot of a producer.

    `records` in `batches` were taken by brokers, with acks=0 sent; `bytes` is what these batches
    had on the wire, compressed.  `retries` are batches that were put back to be sent again,
    `failed` records that were not delivered.  `buffered` records, of `buffered_bytes`, are not done
    yet; `in_flight` requests have no answer yet.  `throttled_ms` is the sum of the pauses that
    brokers asked for.
    """

    records: int
    bytes: int
    batches: int
    retries: int
    failed: int
    buffered: int
    buffered_bytes: int
    in_flight: int
    throttled_ms: int
    latency: LatencyMetrics
    connections: ConnectionMetrics

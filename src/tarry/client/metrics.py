"""Metrics: what a client has done so far, in typed snapshots.

Counts begin with the client and never go back.  A snapshot costs no request and may be taken after
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

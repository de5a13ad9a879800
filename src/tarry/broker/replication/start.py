"""Start of the leader's side of replication, when the logs are recovered and a life has begun."""

from __future__ import annotations

from collections.abc import Callable

from tarry.broker.broker import Broker
from tarry.broker.replication.fetch_sessions import ReplicaSessions
from tarry.broker.replication.leader import ReplicaLeader
from tarry.broker.replication.leader_fetch import ReplicaFetchHandler
from tarry.cluster.rows.row_records import KnownRows


def begin_leading(broker: Broker, known: KnownRows, lease_left_ms: Callable[[], int]) -> None:
    """Let replicas follow what this broker leads; `lease_left_ms` returns how long its lease
    lasts.
    """
    settings, turn, topics, parts = broker.settings, broker.this_turn, broker.topics, broker.parts
    sessions = ReplicaSessions(broker.timer, broker.random)
    leader = ReplicaLeader(
        settings,
        turn,
        broker.timer,
        broker.store,
        known,
        parts=parts,
        flushes=broker.flushes,
        sessions=sessions,
        neighbours=broker.neighbours,
        lease_left_ms=lease_left_ms,
        on_start_moved=broker.record_deletions.on_start_moved,
    )
    parts.add(leader)
    parts.add(sessions)
    broker.store.listen(leader)
    fetches = ReplicaFetchHandler(topics, broker.cluster, turn, leader, sessions, settings)
    broker.neighbours.lead(leader, fetches)
    leader.begin([each.leadership for each in topics.replicas()])

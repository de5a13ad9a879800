"""Start of replication in a broker of a cluster, both sides."""

from __future__ import annotations

from collections.abc import Callable

from tarry.broker.broker import Broker
from tarry.broker.metadata.leader_hints import LeaderHints
from tarry.broker.replication.cuts import Cuts
from tarry.broker.replication.fetch_sessions import ReplicaSessions
from tarry.broker.replication.follower import ReplicaFollower
from tarry.broker.replication.leader import ReplicaLeader
from tarry.broker.replication.leader_fetch import ReplicaFetchHandler
from tarry.broker.replication.peer_links import PeerLinks
from tarry.cluster.row_records import KnownRows


def begin_following(broker: Broker) -> None:
    """Have a broker follow the partitions that others lead; before anything is hosted."""
    settings, turn, deletions = broker.settings, broker.this_turn, broker.record_deletions
    peers = PeerLinks(
        broker.broker_id,
        turn,
        broker.timer,
        broker.transport,
        broker.random,
        timeout_ms=settings.replica_socket_timeout_ms,
        backoff_ms=settings.replica_fetch_backoff_ms,
        idle_ms=settings.connections_max_idle_ms,
    )
    broker.peers = peers
    cuts = Cuts(turn, broker.flushes, deletions.hasten, deletions.request)
    follower = ReplicaFollower(settings, broker.cluster, turn, broker.flushes, peers, cuts)
    broker.follower = broker.parts.add(follower)
    # Before the coordinators, which load what is led.
    placement = follower.placement
    hosting = broker.hosting
    hosting.role_listeners.insert(0, placement)
    hosting.when_closed.append(placement.forget)
    hosting.when_lives_change.append(placement.react)


def begin_leading(broker: Broker, known: KnownRows, is_alive: Callable[[], bool]) -> None:
    """Let replicas follow what this broker leads.  `is_alive`: whether it has its lease."""
    settings = broker.settings
    leader = ReplicaLeader(
        broker.broker_id,
        broker.this_turn,
        broker.timer,
        broker.cluster,
        broker.parts,
        settings.replica_lag_time_max_ms,
    )
    sessions = ReplicaSessions(broker.timer, broker.random)
    handler = ReplicaFetchHandler(
        broker.topics, broker.cluster, broker.this_turn, leader, sessions, settings.fetch_max_bytes
    )
    handler.listener = settings.inter_broker_listener
    leader.news = sessions
    leader.is_alive = is_alive
    leader.own_epoch = broker.hosting.own_epoch
    leader.flush = broker.flushes.ask_for
    leader.on_start_moved = broker.record_deletions.on_start_moved
    broker.parts.add(leader)
    broker.parts.add(sessions)
    broker.replica_leader = leader
    broker.attend_leading = leader.attend
    # After the follower, which stops fetching and ends a cut; before the coordinators, which load.
    place = 0 if broker.follower is None else 1
    broker.hosting.role_listeners.insert(place, leader)
    broker.changes.replicas = leader
    hints = LeaderHints(broker.cluster_view)
    broker.fetches.of_replicas = handler.handle
    broker.fetches.add_hints = hints.add_to_fetch
    broker.produces.add_hints = hints.add_to_produce
    leader.join(broker.store, known)
    leader.begin(broker.topics.replicas())

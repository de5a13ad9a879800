"""Start of the follower's side of replication, in a broker of a cluster."""

from __future__ import annotations

from tarry.broker.broker import Broker
from tarry.broker.replication.cuts import Cuts
from tarry.broker.replication.follower import ReplicaFollower
from tarry.broker.replication.peer_links import PeerLinks


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

"""Start of a broker in a cluster: what `joining` has read takes the place of a store of its own."""

from __future__ import annotations

from tarry.base.doors import Disk, LogLevels, Random, Transport
from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import StartMetadata, start_broker
from tarry.broker.metadata.cluster_member import ClusterMember
from tarry.cluster.joining import Joining


def start_member(
    disk: Disk,
    transport: Transport,
    random: Random,
    settings: Settings,
    now_ms: int,
    now_wall_ms: int,
    *,
    joining: Joining,
    probe: Probe | None = None,
    levels: LogLevels | None = None,
) -> Broker:
    """Recover what the disk holds and begin a life; the broker `is_ready` once it serves.

    Recovery comes before the life, since it may last longer than a lease.  `TarryError` as of
    `start_broker`.
    """
    assert joining.life is not None
    broker = start_broker(
        disk,
        transport,
        random,
        settings,
        now_ms,
        now_wall_ms,
        probe=probe,
        levels=levels,
        shared=StartMetadata(joining.store, joining.turn_state, joining.timer),
    )
    joining.store.fail = broker.shutdown.fail
    broker.membership = ClusterMember(
        settings.node_id, joining.store, joining.life, broker.changes, broker.hosting
    )
    # Producers that come while etcd is away find ids.
    broker.producer_ids.reserve()
    return broker

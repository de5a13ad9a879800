"""Start of a broker in a cluster, with the shared metadata that `joining` has read."""

from __future__ import annotations

from functools import partial

from tarry.base.doors import Disk, LogLevels, Random, Transport
from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import StartMetadata, start_broker
from tarry.broker.membership.cluster_member import ClusterMember
from tarry.broker.membership.doubts import UnwholeLogs, find_doubts, find_older_rows
from tarry.broker.membership.elections import Elections
from tarry.broker.membership.other_views import OtherViews
from tarry.broker.membership.reassigning import Reassigning
from tarry.broker.replication.start import begin_leading
from tarry.cluster.etcd.joining import Joining


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
    boot_id: str = "",
) -> Broker:
    """Recover what the disk holds and begin a life; the broker `is_ready` once it serves.

    Recovery comes before the life, since it may last longer than a lease.  `boot_id` changes when
    the machine restarts; it is "" if the system does not tell it.  Raises a `TarryError` as
    `start_broker` does.
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
    joining.serve(broker.shutdown.fail)
    for record in find_older_rows(broker.topics, joining.store.state):
        joining.store.state.apply(record)
        broker.hosting.react(record)
    member = _begin_membership(broker, joining, boot_id)
    broker.neighbours.join(member, _views_of(broker, member))
    life = joining.life
    begin_leading(broker, joining.store.known, lambda: life.left_ms)
    joining.store.listen(broker.peers)
    joining.store.listen(Reassigning(settings.node_id, joining.store, broker.hosting.retries))
    joining.store.listen(member)
    # A reservation in advance: producers that come while etcd is away get ids.
    broker.producer_ids.reserve()
    return broker


def _begin_membership(broker: Broker, joining: Joining, boot_id: str) -> ClusterMember:
    """Begin the life of a broker whose logs are recovered."""
    assert joining.life is not None
    settings, flushes = broker.settings, broker.flushes
    store, turn, timer = joining.store, broker.this_turn, broker.timer
    doubts = find_doubts(
        broker.disk,
        settings,
        broker.logs,
        broker.topics,
        store.state,
        boot_id=boot_id,
        is_other_disk=joining.is_other_disk,
        then=flushes.then,
    )
    unwhole = UnwholeLogs(doubts, broker.topics)
    return ClusterMember(
        settings,
        store,
        joining.life,
        broker.changes,
        broker.hosting,
        turn=turn,
        timer=timer,
        topics=broker.topics,
        shutdown=broker.shutdown,
        elections=Elections(
            settings,
            store,
            flushes,
            unwhole=unwhole,
            unmade=broker.hosting.refused_places,
            turn=turn,
            timer=timer,
        ),
        doubts=doubts,
        unwhole=unwhole,
    )


def _views_of(broker: Broker, member: ClusterMember) -> OtherViews:
    """Return the views of a broker, which asks other brokers how they see it once its lease is
    over.
    """
    reason = "this broker counts as dead to the others"
    return OtherViews(
        broker.settings,
        broker.cluster,
        member,
        broker.peers,
        broker.this_turn,
        broker.timer,
        send_away=partial(broker.answers.send_all_away, reason),
    )

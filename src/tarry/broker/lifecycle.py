"""Start of a broker: recovery, before the first turn.

Like `shutdown` it may wait for the disk: nobody is served meanwhile.
"""

from __future__ import annotations

from tarry.base.doors import Disk, Random, Transport
from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.broker.broker import Broker, World
from tarry.broker.housekeeping import begin_duties
from tarry.cluster.embedded import open_store
from tarry.log.checkpoint_writer import CHECKPOINT_BYTES, CHECKPOINT_BYTES_LAZY
from tarry.log.logs import Logs


def start_broker(
    disk: Disk,
    transport: Transport,
    random: Random,
    settings: Settings,
    now_ms: int,
    now_wall_ms: int,
    *,
    probe: Probe | None = None,
) -> Broker:
    """Recover what the disk holds and return a broker that is ready for its first turn.

    `TarryError` with a sentence if the data cannot be used: damaged metadata, a newer format,
    data of another broker.
    """
    is_lazy = settings.flush_policy == "os"
    logs = Logs(disk, checkpoint_bytes=CHECKPOINT_BYTES_LAZY if is_lazy else CHECKPOINT_BYTES)
    logs.load()
    store = open_store(logs, broker_id=settings.node_id, random=random, now_wall_ms=now_wall_ms)
    world = World(disk, transport, random, probe)
    broker = Broker(world, settings, logs, store, now_ms, now_wall_ms)
    for listener in settings.open_listeners:
        broker.endpoints[listener.name] = (listener.advertised_host, listener.advertised_port)
    # Deletions that a crash interrupted come first, so that no directory has two owners.
    for deleted in list(broker.cluster.deleted_topics.values()):
        broker.reactions.remove_directories(deleted)
    broker.reactions.remove_leftovers()
    for topic in list(broker.cluster.topics.values()):
        broker.reactions.host(topic)
    logs.settle()
    for hosted in broker.topics.values():
        for partition in hosted.partitions:
            partition.begin_after_recovery()
    begin_duties(broker)
    return broker

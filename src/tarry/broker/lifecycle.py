"""Start of a broker: recovery, before the first turn.

A start may wait for the disk, as the shutdown may: no client is served meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from tarry.base.disk_trouble import INTERVAL_MS
from tarry.base.doors import Disk, LogLevels, Random, Transport
from tarry.base.probe import Probe
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.broker import Broker, Doors, MakeConnection, Service
from tarry.broker.duties.compactions import Compactions
from tarry.broker.duties.housekeeping import (
    Counters,
    Duty,
    DutyByCalendar,
    RecoveryPointRounds,
)
from tarry.broker.duties.log_walks import ProducerExpiry, RetentionWalk
from tarry.broker.events.event_log import EventLog
from tarry.broker.loggers import KeptLevels
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.routes import make_routes
from tarry.broker.schedule_routes import serve_schedules
from tarry.cluster.configs.dynamic_settings import take_over_changes
from tarry.cluster.lives.identity import refuse_members_directory
from tarry.cluster.store.embedded import open_store
from tarry.cluster.store.store import MetadataStore
from tarry.log.logs import Logs
from tarry.log.recovery.point_writer import RECOVERY_POINT_BYTES, RECOVERY_POINT_BYTES_LAZY
from tarry.partition.replicated_log import RECORDS, ReplicatedLog
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")

RECOVERY_POINT_INTERVAL_MS: Final = 5_000


# Services of every broker; each is called with the broker that is being made.
SERVICES: Final[Sequence[Service]] = (
    make_routes,
    serve_schedules,
)  # fmt: skip

# Function that starts a broker; all other choices are made already.
StartBroker = Callable[[Disk, Transport, Random, Settings, int, int], Broker]


class StartMetadata(NamedTuple):
    """A store of metadata, with the turn and the timer that have read it and that the broker
    uses.
    """

    store: MetadataStore
    turn: Turn
    timer: TimingWheel


def start_broker(
    disk: Disk,
    transport: Transport,
    random: Random,
    settings: Settings,
    now_ms: int,
    now_wall_ms: int,
    *,
    probe: Probe | None = None,
    levels: LogLevels | None = None,
    shared: StartMetadata | None = None,
    services: Sequence[Service] = SERVICES,
    protocols: Mapping[str, MakeConnection] = MappingProxyType({}),
) -> Broker:
    """Recover what the disk holds and return a broker that is ready for its first turn.

    Raises a `TarryError` if the data cannot be used: damaged metadata, a newer format, data of
    another broker.  `shared` is metadata that this broker shares with others, read before; without
    it the broker keeps its own.  Without `levels` the broker leaves the process's loggers
    unchanged.
    """
    is_lazy = settings.flush_policy == "os"
    logs = Logs(
        disk,
        recovery_point_bytes=RECOVERY_POINT_BYTES_LAZY if is_lazy else RECOVERY_POINT_BYTES,
        directory=settings.log_directory,
    )
    logs.load()
    if shared is None:
        refuse_members_directory(disk)
        turn = Turn(now_ms, now_wall_ms)
        own = open_store(logs, broker_id=settings.node_id, random=random, turn=turn)
        metadata = StartMetadata(own, turn, TimingWheel(now_ms))
    else:
        metadata = shared
    store, turn = metadata.store, metadata.turn
    take_over_changes(settings, store.state)
    doors = Doors(disk, transport, random, KeptLevels() if levels is None else levels, probe)
    neighbours = Neighbours(is_member=shared is not None)
    broker = Broker(
        doors,
        settings,
        logs,
        store,
        turn,
        metadata.timer,
        neighbours=neighbours,
        services=services,
        protocols=protocols,
    )
    if shared is None:
        own.write_through(broker.flushes.touch)
    broker.hosting.begin()
    _begin_duties(broker)
    if settings.events_enable:
        _begin_event_log(broker)
    _tell_recovery(logs)
    return broker


def _begin_duties(broker: Broker) -> None:
    """Add every duty to the broker's timer."""
    turn, timer, settings, topics = broker.this_turn, broker.timer, broker.settings, broker.topics
    retention = DutyByCalendar(
        turn,
        timer,
        settings.log_retention_check_interval_ms,
        RetentionWalk(turn, timer, topics).begin,
        "retention",
    )
    expiry_ms = settings.producer_id_expiration_check_interval_ms
    Duty(turn, timer, expiry_ms, ProducerExpiry(turn, timer, topics).begin)
    deletions = broker.record_deletions
    rounds = RecoveryPointRounds(turn, broker.logs, broker.flushes, deletions)
    begins_rounds = Duty(turn, timer, RECOVERY_POINT_INTERVAL_MS, rounds.begin)
    deletions.wait_for(begins_rounds)
    expiry = DutyByCalendar(
        turn,
        timer,
        settings.offsets_retention_check_interval_ms,
        broker.groups.expire_offsets,
        "the expiry of offsets",
    )
    broker.calendar_duties += [broker.scheduling.alarm, retention, expiry, begins_rounds]
    counters = Counters(broker.answers, broker.parts, broker.logs)
    Duty(turn, timer, INTERVAL_MS, counters.tell)
    Compactions(
        turn,
        timer,
        settings,
        topics,
        broker.flushes,
        is_loading=partial(_is_read, broker),
        shutdown=broker.shutdown,
    )


def _is_read(broker: Broker, log: ReplicatedLog) -> bool:
    """Return whether a log is being read to rebuild the state that it stores."""
    if broker.scheduling.is_reading(log.leadership):
        return True
    return log.which == RECORDS and broker.coordinators.is_loading_partition(log)


def _begin_event_log(broker: Broker) -> None:
    """Start the event log.  As the last part, it receives the ends of all other parts'
    operations.
    """
    turn, parts = broker.this_turn, broker.parts
    events = EventLog(
        broker.broker_id,
        turn,
        broker.topics,
        broker.flushes,
        broker.changes,
        broker.scheduling,
    )
    events.listen(parts.purgatories(), broker.groups.history)
    parts.add_listening(events)
    Duty(turn, broker.timer, broker.settings.events_interval_ms, events.append)


def _tell_recovery(logs: Logs) -> None:
    """Log in one line how the last life ended, and what recovery had to do for it."""
    reports = [log.recovery_report for log in logs.recovery_points.logs.values()]
    scanned = sum(report.scanned_bytes for report in reports)
    torn = sum(report.torn_bytes for report in reports)
    flawed = sum(1 for report in reports if report.flaw_reason)
    parts = [f"logs opened: {len(reports)}"]
    if logs.was_clean:
        parts.append("the last stop was clean")
    elif scanned or torn:
        parts.append("the last stop was not clean")
        parts.append(f"{scanned} bytes beyond the recovery points read again")
    if torn:
        parts.append(f"torn tails of {torn} bytes cut off")
    if flawed:
        parts.append(f"damaged logs: {flawed}")
    logger.info("%s", ", ".join(parts))

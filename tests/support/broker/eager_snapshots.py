"""Brokers that write a snapshot of their schedules whenever something was parked."""

from __future__ import annotations

from random import Random

from tarry.base.doors import Disk, Transport
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import start_broker


def start_eager(
    disk: Disk,
    transport: Transport,
    random: Random,
    settings: Settings,
    now_ms: int,
    now_wall_ms: int,
) -> Broker:
    """Start a broker as `start_broker` does."""
    broker = start_broker(disk, transport, random, settings, now_ms, now_wall_ms)
    broker.scheduling.snapshots.settings.offsets_min = 1
    return broker

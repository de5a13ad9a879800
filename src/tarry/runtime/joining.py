"""Joining of a cluster on a real machine: the link to etcd, and turns until etcd has answered."""

from __future__ import annotations

import logging
import random
from functools import partial
from pathlib import Path
from typing import Final

from tarry.base.errors import TarryError
from tarry.base.limits import POLL_MS_MAX
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.cluster_start import start_member
from tarry.cluster.etcd.joining import Joining
from tarry.runtime import clock
from tarry.runtime.etcd.packages import missing_package
from tarry.runtime.etcd.security import make_tls, read_credentials
from tarry.runtime.log_levels import ProcessLevels
from tarry.runtime.loop import Machine, StartBroker
from tarry.runtime.refusal import StartRefused
from tarry.runtime.signals import Signals

logger = logging.getLogger("tarry.runtime")

# Id that Linux draws at each start of the machine.
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# Time between two lines of the log while etcd does not answer.
TELL_MS: Final = 10_000


def join(machine: Machine, settings: Settings, signals: Signals) -> StartBroker[Broker] | None:
    """Wait for etcd and return the function that starts the broker; None after a stop request.

    `StartRefused` says why the cluster cannot be joined.
    """
    address = settings.store_address
    assert address is not None
    try:
        from tarry.runtime.etcd.client import Credentials, EtcdClient
        from tarry.runtime.etcd.socket_link import Endpoint
    except ImportError as error:
        raise StartRefused(
            f"metadata.store names etcd, and the package {missing_package(error)} is missing: "
            "pip install tarry[cluster]"
        ) from None
    members = [Endpoint(host, port) for host, port in address.members]
    try:
        tls = make_tls(address, settings.store_files)
        named = read_credentials(settings.store_files)
    except TarryError as error:
        raise StartRefused(str(error)) from None
    machine.look_ups.begin()
    client = EtcdClient(
        machine.reactor,
        members,
        look_up=machine.look_ups.look_up,
        tls=tls,
        credentials=None if named is None else Credentials(*named),
    )
    machine.closers.append(client.close)
    try:
        joining = Joining(
            client,
            machine.disk,
            random.SystemRandom(),
            settings,
            machine.clock.now_ms(),
            machine.clock.now_wall_ms(),
        )
        tell_ms = clock.now_ms() + TELL_MS
        while not joining.is_done:
            if signals.is_stop_requested:
                return None
            now_ms = machine.clock.now_ms()
            due_ms = joining.next_due_ms()
            wait_ms = POLL_MS_MAX if due_ms is None else min(max(due_ms - now_ms, 0), POLL_MS_MAX)
            events = machine.reactor.wait(wait_ms)
            joining.turn(events, machine.clock.now_ms(), machine.clock.now_wall_ms())
            if clock.now_ms() >= tell_ms:
                tell_ms = clock.now_ms() + TELL_MS
                logger.warning("waiting for etcd, the port is closed: %s", joining.obstacle)
    except TarryError as error:
        raise StartRefused(str(error)) from None
    return partial(start_member, joining=joining, levels=ProcessLevels(), boot_id=boot_id())


def boot_id() -> str:
    """Return an id that changes with each start of the machine; "" if it is unknown."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""

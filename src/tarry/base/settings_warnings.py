"""Warnings at the start about settings that are accepted and do less than their names promise."""

from __future__ import annotations

from typing import Final

from tarry.base.listeners import host_and_port
from tarry.base.settings import Settings
from tarry.base.settings_ignored import NO_SECURITY

# Kafka's keys that count replicas; a server.properties of three brokers has values above 1.
_REPLICA_KEYS: Final = (
    "default.replication.factor",
    "min.insync.replicas",
    "offsets.topic.replication.factor",
)


def warnings(settings: Settings) -> list[str]:
    """Return a sentence for each thing that a user who wrote these settings may not expect."""
    return [
        *_without_effect(settings),
        *_alone(settings),
        *_open_to_everybody(settings),
        *_shared_with_clients(settings),
    ]


def _without_effect(settings: Settings) -> list[str]:
    parts = [
        f"{', '.join(keys)} ({reason})"
        for reason, keys in settings.ignored.items()
        if reason != NO_SECURITY
    ]
    if settings.closed_listeners:
        names = ", ".join(settings.closed_listeners)
        parts.append(f"the listener {names} (named in controller.listener.names, not opened)")
    return [f"settings without effect here: {'; '.join(parts)}"] if parts else []


def _alone(settings: Settings) -> list[str]:
    if settings.store_address is not None:
        return []
    return [
        f"{key}={settings.get_int(key)} counts as 1: there is one broker, and it keeps one replica "
        "of each partition"
        for key in _REPLICA_KEYS
        if settings.is_given(key) and settings.get_int(key) > 1
    ]


def _open_to_everybody(settings: Settings) -> list[str]:
    """Warn that there is no access control, if the broker can be reached from elsewhere."""
    keys = settings.ignored.get(NO_SECURITY, [])
    listeners = settings.open_listeners
    if not keys and all(listener.is_loopback for listener in listeners):
        return []
    addresses = ", ".join(host_and_port(one.host, one.port) for one in listeners)
    useless = f"; settings without effect: {', '.join(keys)}" if keys else ""
    return [
        f"this broker is open to everybody who can reach {addresses}: Tarry has no TLS, "
        f"authentication or access control yet{useless}"
    ]


def _shared_with_clients(settings: Settings) -> list[str]:
    """Warn if brokers copy records through a listener that clients use as well."""
    listeners = settings.open_listeners
    if settings.store_address is None or all(one.is_loopback for one in listeners):
        return []
    name = settings.inter_broker_listener
    if any(one.name != name for one in listeners):
        return []
    return [
        f"clients and brokers share the listener {name}: whoever reads their traffic can pass for "
        "a broker that copies, and have records count as copied that are not; give the brokers a "
        "listener of their own (inter.broker.listener.name) in a network without clients"
    ]

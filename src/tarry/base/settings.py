"""The broker's settings: typed values by attribute, parsed once.

`Settings({"log.segment.bytes": "1048576"})` takes texts as a user writes them; a key that is not
named has its default.  A value that cannot work raises `InvalidSetting` here, before anything is
opened; its sentence names the place of the key, if `sources` has it.

Changes while the broker runs are two layers over the file: values for every broker of the cluster,
and over them those for this one.  `overlay` replaces both at once, so code that reads an attribute
when it needs it gets the change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from tarry.base.errors import InvalidSetting
from tarry.base.hosts import counted_host
from tarry.base.limits import QUEUED_BYTES_MAX
from tarry.base.listeners import BrokerListener, parse_listeners
from tarry.base.setting import (
    DEFAULT_ONLY,
    GONE,
    HONOURED,
    WITHOUT_EFFECT,
    Setting,
    Value,
    read_table,
    shown,
    value_text,
)
from tarry.base.setting_attributes import SettingAttributes
from tarry.base.settings_idle_table import IDLE_TABLE
from tarry.base.settings_ignored import REASONS, reason_without_effect
from tarry.base.settings_table import DEFAULT_ONLY_TABLE, GONE_TABLE, HONOURED_TABLE
from tarry.base.spelling import Spelling
from tarry.base.store_address import StoreAddress, StoreFiles, parse_store_address

SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        *read_table(HONOURED_TABLE, HONOURED),
        *read_table(DEFAULT_ONLY_TABLE, DEFAULT_ONLY),
        *read_table(GONE_TABLE, GONE),
    )
}

# Keys without effect whose changes are accepted and described all the same, as by Kafka.
IDLE_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row for row in read_table(IDLE_TABLE, WITHOUT_EFFECT)
}
for _row in IDLE_SETTINGS.values():
    _row.sentence = f"No effect: {REASONS[_row.key]}."

DESCRIBED_SETTINGS: Final[dict[str, Setting]] = {**SETTINGS, **IDLE_SETTINGS}

# Keys that may be changed while the broker runs: Kafka's, except the listeners, which stay as they
# were opened.
DYNAMIC_KEYS: Final = tuple(sorted(row.key for row in SETTINGS.values() if row.is_dynamic))

LOG_DIRECTORY_DEFAULT: Final = "./tarry-data"

# Layers that a value may come from, the strongest first.
LAYER_BROKER: Final = "broker"
LAYER_CLUSTER: Final = "cluster"
LAYER_FILE: Final = "file"

# Keys that are checked together; a sentence about one names the places of all.
_ADDRESS_KEYS: Final = (
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.listener.names",
)
# Keys that may change when the file is read again; hours may stand for milliseconds there.
_REREAD_KEYS: Final = frozenset(
    (
        *DYNAMIC_KEYS,
        *IDLE_SETTINGS,
        *(other for key in DYNAMIC_KEYS for other, _ in SETTINGS[key].behind),
        "logging.level",
    )
)
# Key that is read once at the start, by code of its own.
_DERIVED_APART: Final = ("node.id",)
_RETENTION_KEYS: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


class Settings(SettingAttributes):
    """Settings of a broker: every honoured key as an attribute (`settings.log_segment_bytes`)."""

    def __init__(
        self, texts: Mapping[str, str] | None = None, sources: Mapping[str, str] | None = None
    ) -> None:
        self._given: dict[str, Value] = {}
        # Changes while the broker runs: for every broker, and for this one.
        self._given_to_cluster: dict[str, Value] = {}
        self._given_to_broker: dict[str, Value] = {}
        self._sources = sources or {}
        # Reason -> keys that were given and have no effect.
        self.ignored: dict[str, list[str]] = {}
        for key in sorted(texts or {}):
            with self._blaming(key):
                self._take(key, (texts or {})[key])
        self._derive()
        with self._blaming("node.id", "broker.id"):
            self.node_id = self._node_id()
        with self._blaming("log.dirs", "log.dir"):
            self.log_directory = self._log_directory()
        # None if the broker keeps its metadata itself.
        self.store_address: StoreAddress | None
        with self._blaming("metadata.store"):
            self.store_address = parse_store_address(self.metadata_store)
        self.store_files = StoreFiles(
            self.metadata_store_ssl_ca_location or "",
            self.metadata_store_ssl_certificate_location or "",
            self.metadata_store_ssl_key_location or "",
            self.metadata_store_credentials_location or "",
        )
        self.open_listeners: list[BrokerListener]
        with self._blaming(*_ADDRESS_KEYS):
            self.open_listeners, self.closed_listeners = parse_listeners(
                self.get_text("listeners"),
                self.get_text("advertised.listeners"),
                self.get_text("listener.security.protocol.map"),
                self.get_text("controller.listener.names"),
            )
        with self._blaming("inter.broker.listener.name"):
            self.inter_broker_listener = self._inter_broker_listener()

    def _inter_broker_listener(self) -> str:
        """Return the name of the listener by which the brokers of a cluster connect to each
        other."""
        first = self.open_listeners[0].name
        name = (self.inter_broker_listener_name or first).upper()
        opened = [listener.name for listener in self.open_listeners]
        if self.store_address is not None and name not in opened:
            raise InvalidSetting(
                f"inter.broker.listener.name={name}: it must be one of listeners, which are "
                f"{', '.join(opened)}"
            )
        return name

    def advertised_addresses(self) -> dict[str, tuple[str, int]]:
        """Return the address to advertise to a client, by the name of its listener."""
        return {
            each.name: (each.advertised_host, each.advertised_port) for each in self.open_listeners
        }

    def _derive(self) -> None:
        """Derive every attribute from the layers."""
        for row in SETTINGS.values():
            if row.scope != GONE and row.key not in _DERIVED_APART:
                setattr(self, row.attribute, self.effective(row.key))
        if self.log_retention_ms < 0:
            self.log_retention_ms = -1
        elif self.log_retention_ms == 0:
            with self._blaming(*_RETENTION_KEYS):
                raise InvalidSetting("log.retention.ms=0: it must be at least 1, or -1 for ever")
        with self._blaming("queued.max.request.bytes", "socket.request.max.bytes"):
            self.queued_bytes_max = self._queued_bytes_max()
        with self._blaming("max.connections.per.ip.overrides"):
            self.connections_max_by_ip = _by_ip(self.max_connections_per_ip_overrides)

    def _queued_bytes_max(self) -> int:
        """Return the bytes that requests of all connections may hold before they are handled."""
        frame_bytes_max = self.socket_request_max_bytes
        if self.queued_max_request_bytes <= 0:
            return max(QUEUED_BYTES_MAX, 2 * frame_bytes_max)
        if self.queued_max_request_bytes < frame_bytes_max:
            raise InvalidSetting(
                f"queued.max.request.bytes={self.queued_max_request_bytes}: it must be at least "
                f"socket.request.max.bytes, which is {frame_bytes_max}"
            )
        return self.queued_max_request_bytes

    # -- changes while the broker runs

    def overlay(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Replace all changes made while running; `InvalidSetting` if one of them is invalid."""
        self._given_to_cluster = {key: _dynamic_value(key, cluster[key]) for key in cluster}
        self._given_to_broker = {key: _dynamic_value(key, broker[key]) for key in broker}
        self._derive()

    def take_over_given(self, fresh: Settings) -> list[str]:
        """Take over what `fresh` was given for keys that may change while the broker runs.

        Return the other keys with another value in `fresh`, which must wait for the next start.
        `InvalidSetting`, and nothing has changed, if the values do not go with the layers over
        them.
        """
        given = {key: value for key, value in self._given.items() if key not in _REREAD_KEYS}
        taken = {key: value for key, value in fresh._given.items() if key in _REREAD_KEYS}
        trial = copy.copy(self)
        trial._given = {**given, **taken}
        trial._derive()
        self._given = trial._given
        self._derive()
        others = sorted({*given, *fresh._given})
        return [key for key in others if self._given.get(key) != fresh._given.get(key)]

    def given_texts(self) -> dict[str, str]:
        """Return the texts of the settings given at the start, or read again since."""
        return {key: value_text(value) or "" for key, value in self._given.items()}

    def overlaid(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> Settings:
        """Return a copy of the settings with these layers, to find out whether they are valid."""
        trial = copy.copy(self)
        trial.overlay(cluster, broker)
        return trial

    def layers(self, key: str) -> list[tuple[str, Value]]:
        """Return the layers that give a value for this key alone, the strongest first; the default
        is no layer.
        """
        layers = (
            (LAYER_BROKER, self._given_to_broker),
            (LAYER_CLUSTER, self._given_to_cluster),
            (LAYER_FILE, self._given),
        )
        return [(layer, values[key]) for layer, values in layers if key in values]

    # -- single values

    def is_given(self, key: str) -> bool:
        """Return True if the key was set, even to its default."""
        return bool(self.layers(key))

    def get(self, key: str) -> Value:
        """Return the value of a key by itself, without falling back to another key."""
        # The order of `layers`, without a list of them: a start asks for every key.
        for values in (self._given_to_broker, self._given_to_cluster, self._given):
            if key in values:
                return values[key]
        return DESCRIBED_SETTINGS[key].default

    def get_int(self, key: str) -> int:
        value = self.effective(key)
        assert isinstance(value, int), key
        return value

    def get_text(self, key: str) -> str:
        """Return the effective value as Kafka writes it; "" for none."""
        return value_text(self.effective(key)) or ""

    def effective(self, key: str) -> Value:
        """Return the value in force: a `log.retention.hours` counts as `log.retention.ms`."""
        value = self.get(key)
        if value is not None:
            return value
        for other, factor in DESCRIBED_SETTINGS[key].behind:
            value = self.get(other)
            if isinstance(value, int):
                return value * factor
        return None

    @contextmanager
    def _blaming(self, *keys: str) -> Iterator[None]:
        """Add the places of these keys to the sentence of an `InvalidSetting` raised inside."""
        try:
            yield
        except InvalidSetting as error:
            places = [(key, self._sources[key]) for key in keys if key in self._sources]
            if not places:
                raise
            if len(places) == 1:
                told = places[0][1]
            else:
                told = ", ".join(f"{key}: {source}" for key, source in places)
            raise InvalidSetting(f"{error} ({told})") from None

    def _take(self, key: str, text: str) -> None:
        row = SETTINGS.get(key)
        if row is None:
            reason = reason_without_effect(key)
            if reason is None:
                raise InvalidSetting(_unknown(key))
            self.ignored.setdefault(reason, []).append(key)
            if key in IDLE_SETTINGS:
                # Any value is accepted; one that Kafka would refuse is not described.
                with suppress(InvalidSetting):
                    self._given[key] = IDLE_SETTINGS[key].parse(text)
            return
        if row.scope == GONE:
            raise InvalidSetting(f"{key} is not a setting any more: {row.sentence}")
        value = None if row.default is None and not text.strip() else row.parse(text)
        if row.scope == DEFAULT_ONLY and value != row.default:
            or_write = f" or write {key}={row.default_text}" if row.default_text else ""
            raise InvalidSetting(
                f"{key}={shown(text)} is not supported: {row.sentence} Leave it out{or_write}"
            )
        self._given[key] = value

    def _node_id(self) -> int:
        older = self.get_int("broker.id")
        newer = self.get_int("node.id")
        if older == -1:
            return newer
        if older < 0:
            raise InvalidSetting(f"broker.id={older}: it must be at least 0")
        if self.is_given("node.id") and newer != older:
            raise InvalidSetting(
                f"node.id={newer} and broker.id={older} are two names of one id: "
                "leave broker.id out"
            )
        return older

    def _log_directory(self) -> str:
        text = self.get_text("log.dirs") or self.get_text("log.dir") or LOG_DIRECTORY_DEFAULT
        names = [name for name in (part.strip() for part in text.split(",")) if name]
        if len(names) != 1:
            raise InvalidSetting(
                f"log.dirs={text}: Tarry keeps its data in one directory; "
                f"write log.dirs={names[0] if names else LOG_DIRECTORY_DEFAULT}"
            )
        return names[0]


def keys_behind(key: str) -> tuple[str, ...]:
    """Return the key and the keys that decide while it is not given, in their order."""
    row = DESCRIBED_SETTINGS.get(key)
    return (key,) if row is None else (key, *[other for other, _ in row.behind])


def why_not_dynamic(key: str) -> str:
    """Return why the key cannot be changed while the broker runs, as a sentence; "" if it can."""
    if key in DYNAMIC_KEYS or key in IDLE_SETTINGS:
        return ""
    row = SETTINGS.get(key)
    if row is not None and row.scope == GONE:
        return f"{key} is not a setting any more: {row.sentence}"
    if row is not None:
        return f"{key} cannot be changed while the broker runs: set it at the next start"
    reason = reason_without_effect(key)
    if reason is not None:
        return f"{key} has no effect here: {reason}"
    return _unknown(key)


def _dynamic_value(key: str, text: str) -> Value:
    fault = why_not_dynamic(key)
    if fault:
        raise InvalidSetting(fault)
    row = DESCRIBED_SETTINGS[key]
    value = row.parse(text)
    if row.scope == DEFAULT_ONLY and value != row.default:
        raise InvalidSetting(f"{key}={shown(text)} is not supported: {row.sentence}")
    return value


def _unknown(key: str) -> str:
    near = Spelling(sorted([*SETTINGS, *REASONS])).near(key)
    if near:
        return f"unknown setting {shown(key)}; did you mean {near}?"
    return (
        f"unknown setting {shown(key)}: Kafka (up to 4.4) and Tarry have none like it; leave it out"
    )


def _by_ip(text: str) -> dict[str, int]:
    """Parse `address:number` pairs; the address may be IPv6, so split at the last colon."""
    numbers: dict[str, int] = {}
    for part in (p.strip() for p in text.split(",")):
        if not part:
            continue
        address, _, number = part.rpartition(":")
        if not address or not (number.isascii() and number.isdigit() and len(number) <= 10):
            raise InvalidSetting(
                f"max.connections.per.ip.overrides={shown(text)}: write address:number"
            )
        numbers[counted_host(address)] = int(number)
    return numbers

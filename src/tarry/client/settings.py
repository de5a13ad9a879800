"""Settings of the client: Kafka's keys, one typed table, unknown keys refused.

Keys come as a mapping (`{"linger.ms": 5}`) or as arguments (`linger_ms=5`); the same key in both
forms is an error.  Durations are ints of milliseconds or text such as `"30s"`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final, NamedTuple

from tarry.base.errors import InvalidSetting
from tarry.link.events import Address
from tarry.link.links import LinkSettings

SettingValue = str | int | bool

COMMON: Final = "every client"
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"

INT32_MAX: Final = 2**31 - 1
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Key(NamedTuple):
    """One setting: `choices` for text, `minimum` and `maximum` for numbers."""

    name: str
    default: SettingValue
    owner: str
    reason: str
    minimum: int = 0
    maximum: int = INT32_MAX
    choices: tuple[str, ...] = ()


KEYS: Final[dict[str, Key]] = {
    key.name: key
    for key in (
        Key(
            "bootstrap.servers",
            "127.0.0.1:9092",
            COMMON,
            "addresses of brokers for the first connection, host:port,host:port",
        ),
        Key("client.id", "tarry", COMMON, "name of this client in the broker's log"),
        Key(
            "security.protocol",
            "PLAINTEXT",
            COMMON,
            "only PLAINTEXT; there is no TLS and no SASL yet",
            choices=("PLAINTEXT",),
        ),
        Key("request.timeout.ms", 30_000, COMMON, "longest wait for an answer of a broker", 1),
        Key("socket.connection.setup.timeout.ms", 10_000, COMMON, "longest attempt to connect", 1),
        Key("reconnect.backoff.ms", 50, COMMON, "pause after a failed connection; it doubles"),
        Key("reconnect.backoff.max.ms", 1_000, COMMON, "longest pause after a failed connection"),
        Key("retry.backoff.ms", 100, COMMON, "pause after a failed request; it doubles"),
        Key("retry.backoff.max.ms", 1_000, COMMON, "longest pause after a failed request"),
        Key("metadata.max.age.ms", 300_000, COMMON, "age at which metadata is asked for again", 1),
        Key(
            "default.api.timeout.ms", 60_000, COMMON, "longest call without a timeout of its own", 1
        ),
        Key("allow.auto.create.topics", True, COMMON, "a topic that is asked for may be created"),
        Key("close.timeout.ms", 5_000, COMMON, "how long `close` may take"),
        Key("send.buffer.bytes", -1, COMMON, "of the socket; -1: the system decides", -1),
        Key("receive.buffer.bytes", -1, COMMON, "of the socket; -1: the system decides", -1),
        Key(
            "acks",
            "all",
            PRODUCER,
            "replicas that must have a record before it is acknowledged; 0: no answer",
            choices=("all", "-1", "0", "1"),
        ),
        Key("enable.idempotence", True, PRODUCER, "a retry stores no record twice"),
        Key("linger.ms", 5, PRODUCER, "how long a batch waits for more records"),
        Key(
            "batch.size",
            16_384,
            PRODUCER,
            "largest batch in bytes; a full batch is sent at once",
            0,
            100 << 20,
        ),
        Key(
            "buffer.memory",
            32 << 20,
            PRODUCER,
            "memory in bytes for records that are not acknowledged yet",
            1024,
            1 << 40,
        ),
        Key(
            "compression.type",
            "none",
            PRODUCER,
            "how the producer compresses batches",
            choices=CODECS,
        ),
        Key("max.request.size", 1 << 20, PRODUCER, "largest record and request, in bytes", 1),
        Key("max.block.ms", 60_000, PRODUCER, "how long `send` may wait for room or metadata"),
        Key("delivery.timeout.ms", 120_000, PRODUCER, "after this a record is not delivered", 1),
        Key(
            "max.in.flight.requests.per.connection",
            5,
            PRODUCER,
            "requests sent without an answer; a broker recognizes 5 retried batches",
            1,
        ),
        Key("fetch.min.bytes", 1, CONSUMER, "an answer waits for this many bytes"),
        Key("fetch.max.wait.ms", 500, CONSUMER, "longest wait for fetch.min.bytes"),
        Key(
            "fetch.max.bytes",
            50 << 20,
            CONSUMER,
            "most bytes in one answer, and most bytes read ahead",
            1,
            200 << 20,
        ),
        Key(
            "max.partition.fetch.bytes",
            1 << 20,
            CONSUMER,
            "most bytes of one partition in an answer",
            1,
            200 << 20,
        ),
        Key("max.poll.records", 500, CONSUMER, "most records that one `poll` returns", 1),
        Key(
            "auto.offset.reset",
            "latest",
            CONSUMER,
            "where to begin if there is no committed offset, or it is not in the log",
            choices=("latest", "earliest", "none"),
        ),
        Key(
            "group.id",
            "",
            CONSUMER,
            "consumer group: its members share the partitions, it keeps the offsets",
        ),
        Key(
            "group.instance.id",
            "",
            CONSUMER,
            "name of a static member: a restart under it causes no rebalance",
        ),
        Key(
            "session.timeout.ms",
            45_000,
            CONSUMER,
            "a member without a heartbeat for longer than this is removed",
            1,
        ),
        Key("heartbeat.interval.ms", 3_000, CONSUMER, "how often a member sends a heartbeat", 1),
        Key(
            "heartbeat.mode",
            "thread",
            CONSUMER,
            "what sends heartbeats: a thread of its own, or `poll`",
            choices=("thread", "poll"),
        ),
        Key(
            "heartbeat.ramp",
            True,
            CONSUMER,
            "after a rebalance the first heartbeats come sooner: 100 ms, 200 ms, ...",
        ),
        Key(
            "max.poll.interval.ms",
            300_000,
            CONSUMER,
            "a member that calls `poll` later than this leaves the group",
            1,
        ),
        Key(
            "partition.assignment.strategy",
            "range,cooperative-sticky",
            CONSUMER,
            "assignors that the member supports, the preferred one first",
        ),
        Key("enable.auto.commit", True, CONSUMER, "finished records are committed automatically"),
        Key("auto.commit.interval.ms", 5_000, CONSUMER, "pause between automatic commits", 1),
    )
}

# Keys of other clients that have a twin here.
FOREIGN: Final = {
    "queue.buffering.max.messages": "buffer.memory bounds the bytes instead",
    "queue.buffering.max.kbytes": "use buffer.memory",
    "queue.buffering.max.ms": "use linger.ms",
    "message.timeout.ms": "use delivery.timeout.ms",
    "message.max.bytes": "use max.request.size",
    "metadata.broker.list": "use bootstrap.servers",
    "compression.codec": "use compression.type",
    "request.required.acks": "use acks",
    "batch.num.messages": "use batch.size",
    "fetch.wait.max.ms": "use fetch.max.wait.ms",
    "fetch.message.max.bytes": "use max.partition.fetch.bytes",
    "socket.timeout.ms": "use request.timeout.ms",
    "retries": "retries go on until delivery.timeout.ms",
    "enable.auto.offset.store": "a record is finished when the next one is asked for",
    "auto.commit.enable": "use enable.auto.commit",
    "group.protocol": "groups use the classic protocol",
}


def parse_settings(
    owner: str, given: Mapping[str, SettingValue], arguments: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """Every key of `owner` with its value; `InvalidSetting` for what cannot be meant."""
    merged: dict[str, SettingValue] = dict(given)
    for argument, value in arguments.items():
        name = argument.replace("_", ".")
        if name in merged:
            raise InvalidSetting(f"{name} is given twice, as a key and as the argument {argument}")
        merged[name] = value
    values = {key.name: key.default for key in KEYS.values() if key.owner in (COMMON, owner)}
    for name, value in merged.items():
        values[name] = _parse(_known(name, owner), value)
    return values


def _known(name: object, owner: str) -> Key:
    if not isinstance(name, str):
        raise InvalidSetting(f"{name!r:.60} is no setting's name: give a str")
    key = KEYS.get(name)
    if key is not None and key.owner in (COMMON, owner):
        return key
    if key is not None:
        raise InvalidSetting(f"{name} is a setting of a {key.owner}; this is a {owner}")
    if name in FOREIGN:
        raise InvalidSetting(f"{name} is not a setting of this client: {FOREIGN[name]}")
    near = difflib.get_close_matches(name, KEYS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidSetting(f"unknown setting {name}{hint}")


def _parse(key: Key, value: SettingValue) -> SettingValue:
    if isinstance(key.default, bool):
        return _parse_boolean(key, value)
    if isinstance(key.default, int):
        return _parse_int(key, value)
    text = _parse_text(key, value)
    if key.choices and text not in key.choices:
        raise InvalidSetting(f"{key.name}={text} is not one of {', '.join(key.choices)}")
    return text


# What a request can carry of a name.
TEXT_BYTES_MAX: Final = 32_767


def _parse_text(key: Key, value: SettingValue) -> str:
    # Acks are often given as a number.
    if not isinstance(value, str) and not (key.choices and type(value) is int):
        raise InvalidSetting(f"{key.name}={value!r:.60} is no text: give a str")
    text = str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidSetting(f"{key.name}={text!r:.60} cannot be encoded as UTF-8")
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise InvalidSetting(f"{key.name} is longer than {TEXT_BYTES_MAX} bytes")
    return text


def _parse_boolean(key: Key, value: SettingValue) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise InvalidSetting(f"{key.name}={value} is neither true nor false")


def _parse_int(key: Key, value: SettingValue) -> int:
    number = parse_duration_ms(value) if key.name.endswith(".ms") else _int(value)
    if number is None or isinstance(value, bool):
        raise InvalidSetting(f"{key.name}={value} is no whole number")
    if not key.minimum <= number <= key.maximum:
        raise InvalidSetting(
            f"{key.name}={value} is not between {key.minimum} and {key.maximum}: {key.reason}"
        )
    return number


def _int(value: SettingValue) -> int | None:
    try:
        return int(value)
    except ValueError:
        return None


def parse_duration_ms(value: SettingValue) -> int | None:
    """Milliseconds of `1500`, `"1500"`, `"1500ms"`, `"30s"`, `"5m"`, `"2h"`, `"1d"`."""
    number = _int(value)
    if number is not None:
        return number
    text = str(value).strip()
    for unit, unit_ms in UNITS_MS.items():
        count = _int(text[: -len(unit)]) if text.endswith(unit) else None
        if count is not None:
            return count * unit_ms
    return None


DEFAULT_PORT: Final = 9092


def parse_addresses(text: str) -> list[Address]:
    """`host:port,[::1]:port,host` as addresses; the port is 9092 where none is named."""
    addresses = [_parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise InvalidSetting("bootstrap.servers names no address, such as 127.0.0.1:9092")
    return addresses


def _parse_address(text: str) -> Address:
    host, colon, port_text = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port_text = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise InvalidSetting(f"write the address {text} as [host]:port")
    if not host or not port_text.isdigit() or not 0 < int(port_text) < 65_536:
        raise InvalidSetting(f"{text} is no address of the form host:port")
    return Address(host, int(port_text))


class ClientSettings:
    """What every client has."""

    owner = COMMON

    def __init__(
        self, given: Mapping[str, SettingValue] | None = None, **arguments: SettingValue
    ) -> None:
        self._values = parse_settings(self.owner, given or {}, arguments)
        self.bootstrap_servers = parse_addresses(self.text("bootstrap.servers"))
        self.client_id = self.text("client.id")
        self.request_timeout_ms = self.number("request.timeout.ms")
        self.link = LinkSettings(
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            connection_setup_timeout_ms=self.number("socket.connection.setup.timeout.ms"),
            reconnect_backoff_ms=self.number("reconnect.backoff.ms"),
            reconnect_backoff_ms_max=self.number("reconnect.backoff.max.ms"),
            retry_backoff_ms=self.number("retry.backoff.ms"),
            retry_backoff_ms_max=self.number("retry.backoff.max.ms"),
        )
        self.metadata_age_ms_max = self.number("metadata.max.age.ms")
        self.api_timeout_ms = self.number("default.api.timeout.ms")
        self.allow_auto_create_topics = self.flag("allow.auto.create.topics")
        self.close_timeout_ms = self.number("close.timeout.ms")
        self.send_buffer_bytes = self.number("send.buffer.bytes")
        self.receive_buffer_bytes = self.number("receive.buffer.bytes")

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def number(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool)
        return value


class ProducerSettings(ClientSettings):
    owner = PRODUCER

    def __init__(
        self, given: Mapping[str, SettingValue] | None = None, **arguments: SettingValue
    ) -> None:
        super().__init__(given, **arguments)
        acks = self.text("acks")
        self.acks = -1 if acks in ("all", "-1") else int(acks)
        self.linger_ms = self.number("linger.ms")
        self.batch_bytes = self.number("batch.size")
        self.buffer_bytes = self.number("buffer.memory")
        self.codec = CODECS.index(self.text("compression.type"))
        self.request_bytes_max = self.number("max.request.size")
        self.block_ms_max = self.number("max.block.ms")
        self.delivery_timeout_ms = self.number("delivery.timeout.ms")
        self.in_flight_max = self.number("max.in.flight.requests.per.connection")
        self.is_idempotent = self._resolve_idempotence(given or {}, arguments)
        least_ms = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least_ms:
            raise InvalidSetting(
                f"delivery.timeout.ms={self.delivery_timeout_ms} is less than linger.ms + "
                f"request.timeout.ms = {least_ms}, so no request could be repeated"
            )

    def _resolve_idempotence(
        self, given: Mapping[str, SettingValue], arguments: Mapping[str, SettingValue]
    ) -> bool:
        """As in Kafka: on by default, off if `acks` rules it out, an error if both are asked."""
        is_asked = "enable.idempotence" in given or "enable_idempotence" in arguments
        is_wanted = self.flag("enable.idempotence")
        if not is_wanted:
            return False
        flaw = ""
        if self.acks != -1:
            flaw = "acks=all"
        elif self.in_flight_max > IN_FLIGHT_IDEMPOTENT_MAX:
            flaw = f"max.in.flight.requests.per.connection <= {IN_FLIGHT_IDEMPOTENT_MAX}"
        if flaw and is_asked:
            raise InvalidSetting(f"enable.idempotence=true needs {flaw}")
        return not flaw


# Brokers know the last five batches of a producer.
IN_FLIGHT_IDEMPOTENT_MAX: Final = 5

RESET_NONE: Final = 0
RESET_EARLIEST: Final = 1


class ConsumerSettings(ClientSettings):
    owner = CONSUMER

    def __init__(
        self, given: Mapping[str, SettingValue] | None = None, **arguments: SettingValue
    ) -> None:
        super().__init__(given, **arguments)
        self.fetch_bytes_min = self.number("fetch.min.bytes")
        self.fetch_wait_ms_max = self.number("fetch.max.wait.ms")
        self.fetch_bytes_max = self.number("fetch.max.bytes")
        self.partition_bytes_max = self.number("max.partition.fetch.bytes")
        self.poll_records_max = self.number("max.poll.records")
        self.offset_reset = ("none", "earliest", "latest").index(self.text("auto.offset.reset"))
        self.group_id = self.text("group.id")
        self.instance_id = self.text("group.instance.id") or None
        self.session_timeout_ms = self.number("session.timeout.ms")
        self.heartbeat_interval_ms = self.number("heartbeat.interval.ms")
        self.has_keeper = self.text("heartbeat.mode") == "thread"
        self.heartbeat_ramp = self.flag("heartbeat.ramp")
        self.poll_interval_ms_max = self.number("max.poll.interval.ms")
        self.assignors = self.text("partition.assignment.strategy")
        self.auto_commit = self.flag("enable.auto.commit")
        self.auto_commit_interval_ms = self.number("auto.commit.interval.ms")
        if self.instance_id is not None and not self.group_id:
            raise InvalidSetting("group.instance.id names a member of a group: give group.id too")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidSetting(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms} is not less than "
                f"session.timeout.ms={self.session_timeout_ms}; a third of it is usual"
            )

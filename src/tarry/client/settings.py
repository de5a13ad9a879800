"""Settings of the client: Kafka's keys, one typed table, unknown keys refused.

Keys are given in a mapping (`{"linger.ms": 5}`) or as arguments (`linger_ms=5`); a key in both
forms is an error.  Durations are ints of milliseconds or text such as `"30s"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from tarry.base.errors import InvalidSetting
from tarry.base.setting import Setting, Value, read_table, shown
from tarry.base.spelling import Spelling
from tarry.client.settings_table import COMMON_TABLE, CONSUMER_TABLE, PRODUCER_TABLE
from tarry.link.events import Address
from tarry.link.links import LinkSettings

# Value of a setting; text such as "30s" may stand for a number.
SettingValue = str | int | bool | list[str] | tuple[str, ...]

# Function that chooses a partition, given topic, key and the number of partitions.
PartitionFunction = Callable[[str, bytes | None, int], int]

# Value of a producer's setting; `partitioner` may also be a function.
ProducerValue = SettingValue | PartitionFunction

COMMON: Final = "every client"
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

# Bound on the bytes of a text that a request can carry.
TEXT_BYTES_MAX: Final = 32_767

UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

# Settings by key; the scope of a row is the kind of client that has the key.
CLIENT_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        *read_table(COMMON_TABLE, COMMON),
        *read_table(PRODUCER_TABLE, PRODUCER),
        *read_table(CONSUMER_TABLE, CONSUMER),
    )
}


def parse_settings(
    owner: str, given: Mapping[str, SettingValue], arguments: Mapping[str, SettingValue]
) -> dict[str, Value]:
    """Return every key of `owner` with its value; raise `InvalidSetting` for an invalid or unknown
    one."""
    merged: dict[str, SettingValue] = dict(given)
    for argument, value in arguments.items():
        name = argument.replace("_", ".")
        if name in merged:
            raise InvalidSetting(f"{name} is given twice, as a key and as the argument {argument}")
        merged[name] = value
    rows = [row for row in CLIENT_SETTINGS.values() if row.scope in (COMMON, owner)]
    values = {row.key: row.default for row in rows}
    for name, value in merged.items():
        values[name] = _parse(_known(name, owner), value)
    return values


def _known(name: object, owner: str) -> Setting:
    if not isinstance(name, str):
        raise InvalidSetting(f"{name!r:.60} is no setting's name: give a str")
    row = CLIENT_SETTINGS.get(name)
    if row is not None and row.scope in (COMMON, owner):
        return row
    if row is not None:
        me = "an admin client" if owner == COMMON else f"a {owner}"
        raise InvalidSetting(f"{name} is a setting of a {row.scope}; this is {me}")
    # This import is made only after a mistake, so that a start does not load the table.
    from tarry.client.settings_foreign import foreign_hint

    foreign = foreign_hint(name)
    if foreign:
        raise InvalidSetting(f"{name} is not a setting of this client: {foreign}")
    near = Spelling(CLIENT_SETTINGS).near(name)
    hint = f"; did you mean {near}?" if near else ""
    raise InvalidSetting(f"unknown setting {shown(name)}{hint}")


def _parse(row: Setting, value: SettingValue) -> Value:
    """Return the value of a setting that is given as a Python value or as text."""
    if row.type in ("int", "long"):
        number = parse_duration_ms(value) if row.key.endswith(".ms") else _int(value)
        if number is None or isinstance(value, bool) or number.bit_length() > 64:
            raise InvalidSetting(f"{row.key}={value!r:.60}: it must be a whole number")
        return row.parse(str(number))
    if row.type == "boolean":
        if not isinstance(value, bool | str):
            raise InvalidSetting(f"{row.key}={value!r:.60}: it must be True or False")
        return row.parse(str(value))
    if row.key == "bootstrap.servers" and not isinstance(value, str):
        # A list of addresses stands for one text with commas.
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise InvalidSetting(
                f"bootstrap.servers={value!r:.60} is neither text nor a list of texts, such as "
                '["kafka-1:9092", "kafka-2:9092"]'
            )
        value = ",".join(value)
    # `acks` may be given as a number.
    if not isinstance(value, str) and not (row.check and type(value) is int):
        raise InvalidSetting(f"{row.key}={value!r:.60} is no text: give a str")
    text = str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidSetting(f"{row.key}={text!r:.60} cannot be encoded as UTF-8")
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise InvalidSetting(f"{row.key} is longer than {TEXT_BYTES_MAX} bytes")
    return row.parse(text) if row.check else text


def _int(value: SettingValue) -> int | None:
    try:
        # A float is refused: its fraction would be lost unnoticed.
        return int(value) if isinstance(value, int | str) else None
    except ValueError:
        return None


def parse_duration_ms(value: SettingValue) -> int | None:
    """Parse milliseconds from `1500`, `"1500"`, `"1500ms"`, `"30s"`, `"5m"`, `"2h"`, `"1d"`."""
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
    """Return the addresses in `host:port,[::1]:port,host`; the port is 9092 if none is given."""
    addresses = [_parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise InvalidSetting("bootstrap.servers names no address, such as 127.0.0.1:9092")
    return addresses


def _parse_address(text: str) -> Address:
    if "://" in text:
        raise InvalidSetting(
            f"{text} is no address of the form host:port: leave out what is before //"
        )
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
    """Settings that every client has."""

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
            connection_idle_ms_max=self.number("connections.max.idle.ms"),
        )
        self.metadata_age_ms_max = self.number("metadata.max.age.ms")
        self.api_timeout_ms = self.number("default.api.timeout.ms")
        self.allow_auto_create_topics = self.flag("allow.auto.create.topics")
        self.close_timeout_ms = self.number("close.timeout.ms")
        self.send_buffer_bytes = self.number("send.buffer.bytes")
        self.receive_buffer_bytes = self.number("receive.buffer.bytes")

    def common(self) -> dict[str, SettingValue]:
        """Return the settings that other kinds of clients have too."""
        common = {key for key, row in CLIENT_SETTINGS.items() if row.scope == COMMON}
        return cast(
            "dict[str, SettingValue]",
            {key: value for key, value in self._values.items() if key in common},
        )

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
        self, given: Mapping[str, ProducerValue] | None = None, **arguments: ProducerValue
    ) -> None:
        # The user's own partitioner; None if `partitioner` names one of ours.
        self.partition_function: PartitionFunction | None = None
        texts = self._without_function(given or {})
        text_arguments = self._without_function(arguments)
        super().__init__(texts, **text_arguments)
        acks = self.text("acks")
        self.acks = -1 if acks in ("all", "-1") else int(acks)
        self.linger_ms = self.number("linger.ms")
        self.batch_bytes = self.number("batch.size")
        self.buffer_bytes = self.number("buffer.memory")
        self.codec = CODECS.index(self.text("compression.type"))
        key = f"compression.{CODECS[self.codec]}.level"
        # Level of compression; None if the codec has no levels.
        self.codec_level = self.number(key) if key in CLIENT_SETTINGS else None
        self.partitioner = self.text("partitioner")
        self.request_bytes_max = self.number("max.request.size")
        self.block_ms_max = self.number("max.block.ms")
        self.delivery_timeout_ms = self.number("delivery.timeout.ms")
        self.in_flight_max = self.number("max.in.flight.requests.per.connection")
        self.is_idempotent = self._resolve_idempotence(texts, text_arguments)
        least_ms = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least_ms:
            raise InvalidSetting(
                f"delivery.timeout.ms={self.delivery_timeout_ms} is less than linger.ms + "
                f"request.timeout.ms = {least_ms}, so no request could be repeated"
            )

    def _without_function(self, given: Mapping[str, ProducerValue]) -> dict[str, SettingValue]:
        """Return the settings without a `partitioner` that is a function; keep that in an
        attribute."""
        rest = dict(given)
        function = rest.get("partitioner")
        if callable(function):
            self.partition_function = function
            del rest["partitioner"]
        return cast("dict[str, SettingValue]", rest)

    def _resolve_idempotence(
        self, given: Mapping[str, SettingValue], arguments: Mapping[str, SettingValue]
    ) -> bool:
        """Resolve idempotence by Kafka's rule: on by default, off if `acks` rules it out, an error
        if both are asked."""
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
        if flaw:
            # Imported with the first such producer, so that other programs do not load it.
            import logging

            logging.getLogger("tarry.client").info(
                "a Producer is not idempotent, since that needs %s: what is sent again may be "
                "stored twice",
                flaw,
            )
        return not flaw


# A broker remembers the last five batches of a producer.
IN_FLIGHT_IDEMPOTENT_MAX: Final = 5

# Isolation levels, as Fetch and ListOffsets encode them.
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class ConsumerSettings(ClientSettings):
    owner = CONSUMER

    def __init__(
        self, given: Mapping[str, SettingValue] | None = None, **arguments: SettingValue
    ) -> None:
        # Imported here, because producers do not need it.
        from tarry.client.offset_reset import parse_offset_reset

        super().__init__(given, **arguments)
        self.fetch_bytes_min = self.number("fetch.min.bytes")
        self.fetch_wait_ms_max = self.number("fetch.max.wait.ms")
        self.fetch_bytes_max = self.number("fetch.max.bytes")
        self.partition_bytes_max = self.number("max.partition.fetch.bytes")
        self.poll_records_max = self.number("max.poll.records")
        self.offset_reset = parse_offset_reset(self.text("auto.offset.reset"))
        is_committed = self.text("isolation.level") == "read_committed"
        self.isolation_level = READ_COMMITTED if is_committed else READ_UNCOMMITTED
        self.rack = self.text("client.rack")
        self.excludes_internal_topics = self.flag("exclude.internal.topics")
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

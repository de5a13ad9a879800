"""Access of a test to a broker, through real clients: make topics, send, read, wait.

Clients that are made here are closed with the access.  Every wait has a limit, and the error after
it says how much had come.  Faults do not affect the helpers' own clients: faults are for the code
that is tested.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, Unpack

from tarry.base.ids import TopicPartition
from tarry.client import (
    LATEST,
    Admin,
    Consumer,
    ConsumerRecord,
    Listener,
    NewTopic,
    Producer,
    Receipt,
    TimedOut,
    UnknownTopic,
)
from tarry.client.setting_arguments import ConsumerArguments, ProducerArguments
from tarry.client.settings import SettingValue
from tarry.link.errors import ClientError
from tarry.testing.settings import HELPER_ID, texts_of

# Time between two looks at a group.
LOOK_S: Final = 0.01

# Time-out of one request, for instance for a topic that the tested code has not created yet.
ASK_S: Final = 0.2

# States of a group whose members have their partitions, and of a group without members.
SETTLED: Final = ("Stable",)
VANISHED: Final = ("Empty", "Dead", "not there")

# Time that the clients have to leave their groups when a test is over.
CLOSE_S: Final = 0.5


class BrokerAccess:
    """Access to one broker; `bootstrap` is its address, for clients of any kind."""

    def __init__(self) -> None:
        self._producers: list[Producer] = []
        self._consumers: list[Consumer] = []
        self._admin: Admin | None = None
        self._sender: Producer | None = None
        self._asker: Admin | None = None

    @property
    def bootstrap(self) -> str:
        """Address of the broker, as `bootstrap.servers` takes it."""
        raise NotImplementedError

    # --- Topics

    def topic_name(self, name: str) -> str:
        """Return the name that the topic has in the broker."""
        return name

    def topic(self, name: str, partitions: int = 1, **configs: object) -> str:
        """Create a topic and return its name; `retention_ms=1000` is the setting `retention.ms`."""
        name = self.topic_name(name)
        topic = NewTopic(name, partitions, configs=texts_of(configs))
        self._helper.create_topics([topic])
        return name

    # --- Clients

    def producer(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> Producer:
        """Make a producer of `tarry.client`; records not sent when the test ends are dropped."""
        if not _names_servers(settings, arguments):
            arguments["bootstrap_servers"] = self.bootstrap
        producer = Producer(settings, **arguments)
        self._producers.append(producer)
        return producer

    def consumer(
        self,
        *what: str | re.Pattern[str] | Mapping[str, SettingValue] | None,
        listener: Listener | None = None,
        **arguments: Unpack[ConsumerArguments],
    ) -> Consumer:
        """Make a consumer of `tarry.client`, which reads from the first record unless
        `auto_offset_reset` says otherwise."""
        given = next((one for one in what if isinstance(one, Mapping)), None)
        if not _names_servers(given, arguments):
            arguments["bootstrap_servers"] = self.bootstrap
        if "auto.offset.reset" not in (given or {}):
            arguments.setdefault("auto_offset_reset", "earliest")
        names = [self.topic_name(one) if isinstance(one, str) else one for one in what]
        consumer = Consumer(*names, listener=listener, **arguments)
        self._consumers.append(consumer)
        return consumer

    @property
    def admin(self) -> Admin:
        """Administrator of `tarry.client`."""
        if self._admin is None:
            self._admin = Admin(bootstrap_servers=self.bootstrap)
        return self._admin

    @property
    def _helper(self) -> Admin:
        """Administrator that faults do not affect."""
        if self._asker is None:
            self._asker = Admin(bootstrap_servers=self.bootstrap, client_id=HELPER_ID)
        return self._asker

    # --- Records

    def send(
        self,
        topic: str,
        *values: bytes,
        key: bytes | None = None,
        partition: int | None = None,
    ) -> list[Receipt]:
        """Send one record for each value, and return their receipts when all are in the log."""
        if self._sender is None:
            self._sender = self.producer(client_id=HELPER_ID)
        name = self.topic_name(topic)
        receipts = [
            self._sender.send(name, value, key=key, partition=partition) for value in values
        ]
        return [receipt.result() for receipt in receipts]

    def records(self, topic: str, timeout: float = 10) -> list[ConsumerRecord]:
        """Return all records of a topic that are there now, by partition and offset."""
        name = self.topic_name(topic)
        end_s = time.monotonic() + timeout
        read: list[ConsumerRecord] = []
        with self._reader() as consumer:
            places = [(name, index) for index in consumer.partitions_of(name, timeout)]
            consumer.assign(places)
            ends = consumer.end_offsets(places, timeout)
            while any(consumer.position(place) < end for place, end in ends.items() if end > 0):
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    raise AssertionError(
                        f"of topic {name!r} {len(read)} records were read in {timeout:g} s, and not"
                        " all of them; give a longer timeout"
                    )
                read += _poll(consumer, left_s)
        return sorted(read, key=lambda record: (record.partition, record.offset))

    def wait_for_records(self, topic: str, count: int, timeout: float = 10) -> list[ConsumerRecord]:
        """Return the records of a topic once there are `count` or more; `timeout` is in seconds."""
        name = self.topic_name(topic)
        end_s = time.monotonic() + timeout
        read: list[ConsumerRecord] = []
        with self._reader() as consumer:
            while len(read) < count:
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    raise AssertionError(
                        f"topic {name!r} has {len(read)} of {count} records after {timeout:g} s"
                    )
                if consumer.assignment():
                    read += _poll(consumer, left_s)
                else:
                    # The tested code may create the topic with its first record.
                    with suppress(UnknownTopic, TimedOut):
                        indexes = consumer.partitions_of(name, min(left_s, ASK_S))
                        consumer.assign([(name, index) for index in indexes])
        return sorted(read, key=lambda record: (record.partition, record.offset))

    def _reader(self) -> Consumer:
        """Return a consumer without a group, which reads from the beginning, creates no topic."""
        return Consumer(
            bootstrap_servers=self.bootstrap,
            client_id=HELPER_ID,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        )

    # --- Groups

    def wait_for_lag(self, group: str, lag: int = 0, timeout: float = 10) -> None:
        """Wait until the group's lag is at most `lag` records.

        The lag counts the partitions for which the group has committed or which its members have.
        """
        end_s = time.monotonic() + timeout
        while True:
            found = self._lag(group, max(end_s - time.monotonic(), ASK_S))
            if found is not None and found <= lag:
                return
            if time.monotonic() >= end_s:
                how = "reads nothing" if found is None else f"has a lag of {found} records"
                raise AssertionError(
                    f"group {group!r} {how} after {timeout:g} s; a lag of {lag} was waited for"
                )
            time.sleep(LOOK_S)

    def wait_for_members(self, group: str, count: int, timeout: float = 10) -> None:
        """Wait until the group is stable with `count` members, after joins, leaves or deaths."""
        end_s = time.monotonic() + timeout
        while True:
            left_s = max(end_s - time.monotonic(), ASK_S)
            described = self._helper.describe_groups([group], left_s)[group]
            if not isinstance(described, ClientError):
                state, found = described.state, len(described.members)
            else:
                state, found = "not there", 0
            if found == count and state in (SETTLED if count else VANISHED):
                return
            if time.monotonic() >= end_s:
                raise AssertionError(
                    f"group {group!r} is {state} with {found} members after {timeout:g} s; "
                    f"{count} were waited for"
                )
            time.sleep(LOOK_S)

    def _lag(self, group: str, timeout: float) -> int | None:
        """Return how many records the group has not committed; None if it reads nothing yet."""
        committed = self._helper.group_offsets([group], timeout=timeout)[group]
        if isinstance(committed, ClientError):
            return None
        places: dict[TopicPartition, int] = {
            place: one.offset for place, one in committed.items() if one.offset >= 0
        }
        described = self._helper.describe_groups([group], timeout)[group]
        if not isinstance(described, ClientError):
            for member in described.members:
                for place in member.places or []:
                    places.setdefault(place, 0)
        if not places:
            return None
        ends = self._helper.offsets(dict.fromkeys(places, LATEST), timeout)
        lag = 0
        for place, found in ends.items():
            if not isinstance(found, ClientError):
                lag += max(found.offset - places[place], 0)
        return lag

    # --- The end

    def close_clients(self, timeout: float = CLOSE_S) -> None:
        """Close every client that was made here, whatever the broker does; a consumer has `timeout`
        seconds to leave its group.  An error of a callback is raised when all are closed."""
        closes: list[Callable[[], None]] = [partial(one.close, timeout) for one in self._consumers]
        closes += [one.abort for one in self._producers]
        closes += [one.close for one in (self._admin, self._asker) if one is not None]
        self._consumers, self._producers = [], []
        self._admin = self._asker = self._sender = None
        with ExitStack() as stack:
            for close in reversed(closes):
                stack.callback(_close_quietly, close)

    def close(self) -> None:
        """Close the clients, and the broker if it belongs to this access."""
        self.close_clients()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _close_quietly(close: Callable[[], None]) -> None:
    with suppress(ClientError):
        close()


def _names_servers(
    settings: Mapping[str, SettingValue] | None, arguments: Mapping[str, object]
) -> bool:
    """Return whether the settings of a client have the addresses of its cluster."""
    return "bootstrap.servers" in (settings or {}) or "bootstrap_servers" in arguments


def _poll(consumer: Consumer, timeout_s: float) -> list[ConsumerRecord]:
    """Return the records of one poll."""
    return [record for group in consumer.poll(timeout_s) for record in group]

"""Broker in a thread of the test's process: started in milliseconds, ended with the test."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from tarry.base.limits import TOPIC_NAME_CHARACTERS_MAX
from tarry.base.settings import Settings
from tarry.runtime.thread import BrokerThread
from tarry.testing.access import BrokerAccess
from tarry.testing.clock import BrokerClock, MovableClock
from tarry.testing.controls import FaultControls, Result
from tarry.testing.data import TemporaryData
from tarry.testing.faults import Faults
from tarry.testing.settings import TEST_SETTINGS, texts_of

# Characters of a test's name that go into the names of its topics; the topic's own name needs room.
TEST_NAME_CHARACTERS_MAX: Final = TOPIC_NAME_CHARACTERS_MAX // 2


class ThreadAccess(FaultControls, BrokerAccess):
    """Access to a broker in a thread, with its faults and its `clock`."""

    def __init__(self, thread: BrokerThread, clock: BrokerClock, faults: Faults) -> None:
        super().__init__()
        self.clock = clock
        self._thread = thread
        self._faults = faults

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._thread.port}"

    def on_faults(self, do: Callable[[Faults], Result]) -> Result:
        return self._thread.call(lambda _: do(self._faults))

    def __repr__(self) -> str:
        end = "" if self._thread.is_running else ", closed"
        return f"<{type(self).__name__} at {self.bootstrap}{end}>"


class Tarry(ThreadAccess):
    """Broker on a free port of 127.0.0.1 that keeps its data until `close`.

    `settings` are the broker's, by Kafka's keys.  The broker leaves the process's signal handlers,
    limits and loggers as they are.  `BrokerAccess` describes the helpers for tests, `FaultControls`
    the faults, and `clock` is a `BrokerClock`.
    """

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        self._data = TemporaryData()
        texts = {"log.dirs": self._data.path, **TEST_SETTINGS, **texts_of(settings or {})}
        clock = MovableClock()
        try:
            thread = BrokerThread(Settings(texts), clock)
        except BaseException:
            self._data.remove()
            raise
        super().__init__(thread, BrokerClock(thread, clock), thread.call(Faults))

    def for_test(self, test: str) -> TarrySession:
        """Return access to this broker for one test, whose name no other test has."""
        return TarrySession(self._thread, self.clock, self._faults, test)

    def close(self) -> None:
        """Close the clients that were made here, end the broker, and remove its data."""
        try:
            self.close_clients(0)
        finally:
            self._thread.stop()
            self._data.remove()


class TarrySession(ThreadAccess):
    """Access of one test to a broker that several tests use, one after the other.

    It has the same methods as `Tarry`.  The names of its topics begin with the test's name; other
    clients must use the name that `topic` returns.
    """

    def __init__(self, thread: BrokerThread, clock: BrokerClock, faults: Faults, test: str) -> None:
        super().__init__(thread, clock, faults)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", test)[-TEST_NAME_CHARACTERS_MAX:]
        self._prefix = f"{plain}-"

    def topic_name(self, name: str) -> str:
        return name if name.startswith(self._prefix) else f"{self._prefix}{name}"

    def close(self) -> None:
        """Close the clients that were made here and end the faults; the broker goes on."""
        self.close_clients()
        self.heal()

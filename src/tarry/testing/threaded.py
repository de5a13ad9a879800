"""Broker in a thread of the test's process: fresh in milliseconds, gone with the test."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from typing import Final

from tarry.base.limits import TOPIC_NAME_CHARACTERS_MAX
from tarry.base.settings import Settings
from tarry.runtime.thread import BrokerThread
from tarry.testing.access import BrokerAccess
from tarry.testing.clock import BrokerClock, MovableClock
from tarry.testing.faults import ApiFault, CutConnection, Faults, SlowAnswer, api_key_of
from tarry.testing.settings import TEST_SETTINGS, texts_of

# Of a test's name so much stands in the names of its topics; the topic's own name needs room.
TEST_NAME_CHARACTERS_MAX: Final = TOPIC_NAME_CHARACTERS_MAX // 2


class ThreadAccess(BrokerAccess):
    """Access to a broker in a thread, with its faults and its `clock`."""

    def __init__(self, thread: BrokerThread, clock: BrokerClock, faults: Faults) -> None:
        super().__init__()
        self.clock = clock
        self._thread = thread
        self._faults = faults

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._thread.port}"

    def fail(
        self,
        api: str,
        code: int | str,
        times: int | None = 1,
        *,
        topic: str | None = None,
        place: str | None = None,
    ) -> ApiFault:
        """Refuse the next requests of an API with an error code, by its number or Kafka's name.

        What is refused is not carried out.  `times=None` goes on until `heal`.  `topic` refuses
        this topic alone; `place` is the field of the answer, such as `topics.error_code`, where an
        answer has several.
        """
        name = None if topic is None else self.topic_name(topic)
        return self._begin(self._faults.failure(api, code, times, name, place))

    def delay(self, api: str, seconds: float, times: int | None = 1) -> ApiFault:
        """Carry the next requests of an API out, and answer them so many seconds later."""
        return self._begin(SlowAnswer(api_key_of(api), times, round(seconds * 1000)))

    def cut(
        self, api: str | None = None, times: int | None = 1, *, is_carried_out: bool = False
    ) -> ApiFault | None:
        """End every connection now; or, with an API, those through which its next requests come:
        before they are carried out, or in place of the answer."""
        if api is None:
            self._thread.call(lambda _: self._faults.cut_all())
            return None
        return self._begin(CutConnection(api_key_of(api), times, is_carried_out=is_carried_out))

    def heal(self) -> None:
        """End all faults."""
        self._thread.call(lambda _: self._faults.clear())

    def _begin(self, fault: ApiFault) -> ApiFault:
        self._thread.call(lambda _: self._faults.add(fault))
        return fault

    def __repr__(self) -> str:
        end = "" if self._thread.is_running else ", closed"
        return f"<{type(self).__name__} at {self.bootstrap}{end}>"


class Tarry(ThreadAccess):
    """Broker on a free port of 127.0.0.1 that keeps its data until `close`.

    `settings` are the broker's, by Kafka's keys.  The process keeps its signal handlers, limits
    and loggers.
    """

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="tarry-")
        texts = {"log.dirs": self._directory.name, **TEST_SETTINGS, **texts_of(settings or {})}
        clock = MovableClock()
        try:
            thread = BrokerThread(Settings(texts), clock)
        except BaseException:
            self._directory.cleanup()
            raise
        super().__init__(thread, BrokerClock(thread, clock), thread.call(Faults))

    def for_test(self, test: str) -> TarrySession:
        """Return access to this broker for one of several tests, by a name that no other has."""
        return TarrySession(self._thread, self.clock, self._faults, test)

    def close(self) -> None:
        """Close the clients that were made here, end the broker, and remove its data."""
        try:
            self.close_clients(0)
        finally:
            self._thread.stop()
            self._directory.cleanup()


class TarrySession(ThreadAccess):
    """Access of one test to a broker that several tests use, one after the other.

    Its topics carry the test's name; other clients take the name that `topic` returns.
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

"""Broker in a thread of the test's process: fresh in milliseconds, gone with the test."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from tarry.base.settings import Settings
from tarry.runtime.thread import BrokerThread
from tarry.testing.access import BrokerAccess
from tarry.testing.clock import BrokerClock, MovableClock
from tarry.testing.faults import ApiFault, CutConnection, Faults, SlowAnswer, api_key_of
from tarry.testing.settings import TEST_SETTINGS, texts_of


class Tarry(BrokerAccess):
    """Broker on a free port of 127.0.0.1 that keeps its data until `close`.

    `settings` are the broker's, by Kafka's keys.  The process keeps its signal handlers, limits
    and loggers.
    """

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory(prefix="tarry-")
        texts = {"log.dirs": self._directory.name, **TEST_SETTINGS, **texts_of(settings or {})}
        clock = MovableClock()
        try:
            self._thread = BrokerThread(Settings(texts), clock)
        except BaseException:
            self._directory.cleanup()
            raise
        self.clock = BrokerClock(self._thread, clock)
        self._faults = self._thread.call(Faults)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._thread.port}"

    # --- Faults

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

    # --- The end

    def close(self) -> None:
        """Close the clients that were made here, end the broker, and remove its data."""
        try:
            self.close_clients()
        finally:
            self._thread.stop()
            self._directory.cleanup()

    def __repr__(self) -> str:
        return f"<Tarry at {self.bootstrap}{'' if self._thread.is_running else ', closed'}>"

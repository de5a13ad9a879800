"""Broker in a thread of the test's process: fresh in milliseconds, gone with the test."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from tarry.base.settings import Settings
from tarry.runtime.thread import BrokerThread
from tarry.testing.access import BrokerAccess
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
        try:
            self._thread = BrokerThread(Settings(texts))
        except BaseException:
            self._directory.cleanup()
            raise

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._thread.port}"

    def close(self) -> None:
        """Close the clients that were made here, end the broker, and remove its data."""
        try:
            self.close_clients()
        finally:
            self._thread.stop()
            self._directory.cleanup()

    def __repr__(self) -> str:
        return f"<Tarry at {self.bootstrap}{'' if self._thread.is_running else ', closed'}>"

"""BaseProducer: what the synchronous producers share, whatever they send.

`Producer` adds sending of records, `ArrowProducer` sending of tables.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Self, Unpack

from tarry.client.core.arguments import check_settings, timeout_ms_of
from tarry.client.core.outgoing import check_topic
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import ClientForked
from tarry.client.face.at_exit import at_exit
from tarry.client.face.chance import SystemRandom
from tarry.client.face.producer import ProducerFace
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerSettings, ProducerValue
from tarry.client.sync.driver import Driver, Tell
from tarry.client.sync.receipt import Receipt
from tarry.link.errors import ClientError


class BaseProducer(ProducerFace):
    """Producer without `send`, to be subclassed."""

    _driver: Driver[ProducerCore]

    def __init__(
        self,
        settings: Mapping[str, ProducerValue] | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None:
        check_settings("Producer", settings)
        self.settings = made = ProducerSettings(settings, **arguments)
        self._driver = Driver(
            made,
            lambda driver: ProducerCore(made, SystemRandom(), driver.now_ms(), Receipt, driver),
            "tarry-sender",
            max(made.linger_ms, 1),
        )
        self._driver.close_when_forgotten(self, "a Producer")
        # Function that is called repeatedly while `partition_count` waits.
        self.on_wait: Tell | None = None
        # A program that ends without a close still delivers its records.
        self._driver.when_closed = at_exit(partial(_close_at_exit, self._driver))

    def partition_count(self, topic: str, timeout: float | None = None) -> int:
        """Return the number of partitions of a topic; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        begin = partial(self._core.begin_topic_query, topic)
        limit_ms = self.settings.block_ms_max
        return len(self._driver.perform(begin, timeout, limit_ms, tell=self.on_wait))

    # --- The end

    def flush(self, timeout: float | None = None) -> None:
        """Send all records now and wait for them, `delivery.timeout.ms` at most.  Raises
        `DeliveryFailed` for failed records whose receipts were not asked, TimedOut if some records
        are not done."""
        self._flush(timeout, self.settings.delivery_timeout_ms)

    def _flush(self, timeout: float | None, limit_ms: int) -> None:
        # A flush inside a call of `on_delivery` cannot wait for that very call.
        awaits = not self._driver.background.is_this_thread
        begin = partial(self._core.begin_flush, awaits_callbacks=awaits)
        self._driver.perform(begin, timeout, limit_ms)

    def close(self, timeout: float | None = None) -> None:
        """Flush and close; `timeout` defaults to `close.timeout.ms`.  Raises the error of the
        flush, but the producer is closed then too."""
        self._driver.check_parent()
        # An invalid time-out is raised before anything is closed, so that it costs no waiting
        # records.
        timeout_ms_of(timeout, 0)
        if not self._driver.is_closed:
            try:
                self._flush(timeout, self.settings.close_timeout_ms)
            finally:
                self.abort()

    def abort(self) -> None:
        """Close without waiting: records that are not acknowledged fail."""
        self._driver.check_parent()
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error_type is not None and issubclass(error_type, KeyboardInterrupt):
            # Ctrl-C ends the program without a wait for the network.
            with contextlib.suppress(ClientForked):
                self.abort()
            return
        if error is None:
            self.close()
        else:
            # Only the first error is to be seen; flush would raise a consequence of it.
            with contextlib.suppress(ClientError):
                self.close()


def _close_at_exit(driver: Driver[ProducerCore]) -> None:
    if not driver.is_closed:
        if not driver.background.is_abandoned:
            warnings.warn("a Producer was not closed", ResourceWarning, stacklevel=1)
        try:
            driver.perform(driver.core.begin_flush, None, driver.settings.close_timeout_ms)
        finally:
            driver.close()

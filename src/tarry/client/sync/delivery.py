"""Delivery: how the records of a producer get out, whoever waits for them.

Receipts hold it, so that `Producer(...).send(...).result()` works although nobody holds the
producer.  A producer that was dropped without `close` is abandoned: what it took is still sent,
then its connections are closed; when the interpreter ends before that, it is flushed, and that is
bounded by `close.timeout.ms`.
"""

from __future__ import annotations

import atexit
import warnings

from tarry.client.core.producer.batch import Receipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import DeliveryTimedOut
from tarry.client.settings import ProducerSettings
from tarry.client.sync.driver import Driver, monotonic_ms
from tarry.client.sync.sender_thread import SenderThread
from tarry.link.errors import TimedOut


class Delivery:
    """The core of a producer, its driver and its thread."""

    def __init__(self, settings: ProducerSettings, core: ProducerCore) -> None:
        self.settings = settings
        self.core = core
        self.driver = Driver(core, settings)
        self.thread = SenderThread(self.driver, core, settings.linger_ms)
        atexit.register(self._at_exit)

    def wait_for(self, receipt: Receipt, timeout: float | None) -> None:
        """Until the record is in the log.  Raises why it is not, or TimedOut."""
        core = self.core
        timeout_ms = self.settings.delivery_timeout_ms if timeout is None else int(timeout * 1000)
        if not receipt.is_done:
            with self.driver.lock:
                core.now_ms = monotonic_ms()
                core.hurry(receipt)
            if not self.driver.wait(lambda: receipt.is_done, timeout_ms):
                raise TimedOut(f"the record was not acknowledged within {timeout_ms} ms")
        with self.driver.lock:
            error = receipt.error
        if error is not None:
            raise error

    def flush(self, timeout: float | None) -> None:
        """Until every record is done.  Raises `DeliveryFailed` for those that failed and whose
        receipts nobody asked, TimedOut if some are not done."""
        core = self.core
        timeout_ms = self.settings.delivery_timeout_ms if timeout is None else int(timeout * 1000)
        with self.driver.lock:
            core.now_ms = monotonic_ms()
            core.begin_flush()
        is_flushed = self.driver.wait(lambda: core.is_flushed, timeout_ms)
        with self.driver.lock:
            failure = core.take_failure()
        if failure is not None:
            raise failure
        if not is_flushed:
            raise DeliveryTimedOut(f"not all records were acknowledged within {timeout_ms} ms")

    def close(self, timeout: float | None) -> None:
        """Flush and close; closed also when the flush raises."""
        seconds = self.settings.close_timeout_ms / 1000 if timeout is None else timeout
        try:
            self.flush(seconds)
        finally:
            self.abort()

    def abort(self) -> None:
        """Close without waiting: what is not acknowledged fails."""
        atexit.unregister(self._at_exit)
        self.thread.stop(self.settings.close_timeout_ms)
        self.driver.close()

    def abandon(self) -> None:
        """Nobody can close it any more: the thread does when everything is sent."""
        self.thread.close_when_done()

    def _at_exit(self) -> None:
        if not self.driver.is_closed and not self.driver.is_forked:
            if not self.thread.is_abandoned:
                warnings.warn("a Producer was not closed", ResourceWarning, stacklevel=1)
            self.close(None)

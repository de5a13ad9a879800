"""Receipt of the synchronous producer."""

from __future__ import annotations

from functools import partial
from typing import Self

from mypy_extensions import mypyc_attr

from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.sync.driver import Driver


@mypyc_attr(allow_interpreted_subclasses=True)
class Receipt(RecordReceipt):
    """Receipt for one record; `result` waits for it, even after the last reference to the producer
    is gone."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> Self:
        """Return this receipt when its record is in the log.  Raises the error why it is not, or
        TimedOut.

        `timeout` is in seconds; without one it is `delivery.timeout.ms`.
        """
        driver = self.owner
        if not isinstance(driver, Driver):
            # This receipt is a copy of one that was done.
            error = self.error
        elif not self.is_done:
            limit_ms = driver.core.producer_settings.delivery_timeout_ms
            driver.perform(partial(driver.core.begin_wait, self), timeout, limit_ms)
            return self
        else:
            with driver.lock:
                error = self.error
        if error is not None:
            raise error.with_traceback(None)
        return self

"""Receipt of the asyncio producer."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, Self

from tarry.client.aio.driver import LoopDriver
from tarry.client.core.producer.batch import RecordReceipt


class Receipt(RecordReceipt):
    """Receipt for one record; `await` it to wait until the record is in the log, or to get its
    error."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Self]:
        """Wait for the record, `delivery.timeout.ms` at most; cancelling the wait does not cancel
        the record."""
        return self._outcome().__await__()

    async def _outcome(self) -> Self:
        driver = self.owner
        if isinstance(driver, LoopDriver) and not self.is_done:
            limit_ms = driver.core.producer_settings.delivery_timeout_ms
            await driver.perform(partial(driver.core.begin_wait, self), None, limit_ms)
            return self
        error = self.error
        if error is not None:
            raise error.with_traceback(None)
        return self

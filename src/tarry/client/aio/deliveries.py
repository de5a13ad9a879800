"""DeliveryCalls: the calls of `on_delivery`, one after the other, outside of any send.

A task of the event loop makes them; it exists while there are calls to make.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import copy_context
from typing import Final

from tarry.client.aio.driver import LoopDriver, awaited
from tarry.client.core.producer.core import ProducerCore

log = logging.getLogger("tarry.client")

# Time for which a cancelled coroutine may clean up, in seconds.
CANCEL_SECONDS_MAX: Final = 1


class DeliveryCalls:
    """Calls of one producer to its user's functions."""

    def __init__(self, driver: LoopDriver[ProducerCore]) -> None:
        self._driver = driver
        self._task: asyncio.Task[None] | None = None
        # Context of the calls: the one in which the producer was made, whatever task turns the
        # core.
        self._context = copy_context()
        driver.tell_users = self._tell

    @property
    def is_this_task(self) -> bool:
        """True inside a call of `on_delivery`."""
        return self._task is not None and self._task is asyncio.current_task()

    def _tell(self) -> None:
        loop = self._driver.loop
        if self._task is None and loop is not None and not loop.is_closed():
            self._task = loop.create_task(
                self._make_calls(), name="tarry-delivery", context=self._context.copy()
            )

    async def _make_calls(self) -> None:
        deliveries = self._driver.core.accumulator.deliveries
        task = asyncio.current_task()
        assert task is not None
        try:
            while (delivery := deliveries.take()) is not None:
                on_delivery, receipt = delivery
                try:
                    await awaited(on_delivery(receipt))
                except asyncio.CancelledError:
                    if task.cancelling():
                        raise
                    log.warning("on_delivery was cancelled for %r; the producer goes on", receipt)
                except Exception:
                    log.exception("on_delivery raised for %r; the producer goes on", receipt)
        finally:
            self._task = None
        # A flush may be waiting for the last of these calls.
        self._driver.turn_soon()

    def cancel(self) -> None:
        """Make no further calls, and cancel the one under way."""
        if self._task is not None and not self.is_this_task:
            self._task.cancel()

    async def finish(self, timeout_ms: int) -> None:
        """Wait for the calls of a closed producer; cancel a call that takes longer than
        `timeout_ms`."""
        task = self._task
        if task is None or self.is_this_task:
            return
        await asyncio.wait([task], timeout=max(timeout_ms, 0) / 1000)
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_SECONDS_MAX)

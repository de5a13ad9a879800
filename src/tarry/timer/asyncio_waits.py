"""Coroutines that wait on an AsyncioTimer as `asyncio.sleep` and `asyncio.wait_for` do.

They are never compiled: a coroutine gains nothing by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from tarry.timer.asyncio_waiters import Sleeper, Timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tarry.timer.asyncio_rounds import ExpiryRounds

T = TypeVar("T")


async def sleep(rounds: ExpiryRounds, delay: float, result: Any) -> Any:
    """Wait on this timer as `asyncio.sleep` does."""
    if delay <= 0:
        rounds.check_use()
        return await asyncio.sleep(0, result)
    sleeper = Sleeper(rounds, delay, result)
    try:
        return await sleeper.future
    finally:
        rounds.cancel(sleeper)


async def wait_for(rounds: ExpiryRounds, awaitable: Awaitable[T], delay: float | None) -> T:
    """Wait on this timer as `asyncio.wait_for` of Python 3.12 does."""
    if delay is not None and delay <= 0:
        rounds.check_use()
        return await _result_now(asyncio.ensure_future(awaitable))
    when = None if delay is None else rounds.loop.time() + delay
    async with Timeout(rounds, when):
        return await awaitable


async def _result_now(future: asyncio.Future[T]) -> T:
    """Return the result if there is one without waiting; else cancel the work and await its end."""
    if future.done():
        return future.result()
    future.cancel()
    await asyncio.wait([future])
    try:
        return future.result()
    except asyncio.CancelledError as error:
        raise TimeoutError from error

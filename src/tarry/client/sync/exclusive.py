"""Exclusive: a lock that admits one thread at a time.  A second thread gets an error, so that it
cannot corrupt the state."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from tarry.client.errors import ConcurrentUse


class Exclusive:
    """Lock for which no thread waits; the thread that holds it may enter again."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()
        # Thread that has entered last.
        self._holder = threading.current_thread()

    @property
    def is_mine(self) -> bool:
        """True unless another thread has entered since this one did."""
        return self._holder is threading.current_thread()

    @property
    def is_free(self) -> bool:
        """True if no other thread has entered."""
        if not self._lock.acquire(blocking=False):
            return False
        self._lock.release()
        return True

    @contextmanager
    def awaited(self, seconds: float) -> Iterator[None]:
        """Enter as soon as the thread inside leaves."""
        if not self._lock.acquire(timeout=seconds):
            raise ConcurrentUse(f"{self._holder.name} still uses {self._what}")
        try:
            self._holder = threading.current_thread()
            yield
        finally:
            self._lock.release()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            mine = threading.current_thread().name
            raise ConcurrentUse(
                f"{self._what} is for one thread at a time: {mine} uses it while "
                f"{self._holder.name} does"
            )
        self._holder = threading.current_thread()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

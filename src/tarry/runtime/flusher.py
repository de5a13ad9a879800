"""File workers: threads that flush and remove files, and touch no state.

One worker flushes a few files; many files are shared among up to 16 workers, since their waits for
the device overlap (100 files: 24 ms one after the other, 3.9 by 16 workers).
A flush ends as one `Flushed` event, with the first error if there was one; nothing is retried.
Removals have their own worker: unlinking a large file takes long, and no flush may wait for it.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final, Protocol

from tarry.base.doors import Event, flushed
from tarry.runtime.refusal import reason_of

logger = logging.getLogger("tarry.runtime")

WORKERS_MAX: Final = 16

# Number of files up to which one worker is as fast as two: waking another costs half a flush.
FILES_PER_WORKER_MIN: Final = 4


class Flushable(Protocol):
    """Open file or directory; a flush holds it until it ends."""

    path: str
    descriptor: int


FlushDescriptor = Callable[[int], None]


def _flush_full(descriptor: int) -> None:
    """Flush by F_FULLFSYNC on macOS, where fsync leaves bytes in the drive's cache."""
    import fcntl

    try:
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
    except OSError as error:
        # Network file systems lack F_FULLFSYNC.
        if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
            raise
        os.fsync(descriptor)


def flush_descriptor(descriptor: int) -> None:
    """Make a file's or directory's written content durable, by the call that this system has."""
    if sys.platform == "darwin":
        _flush_full(descriptor)
    elif stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


class _Flush:
    """Flush that is under way, in one or more parts."""

    __slots__ = ("done", "error", "flush_id", "lock", "parts_left")

    def __init__(self, flush_id: int, parts: int, done: Callable[[_Flush], None]) -> None:
        self.flush_id = flush_id
        self.parts_left = parts
        self.done = done
        self.error = ""
        self.lock = threading.Lock()

    def end_part(self, error: str) -> None:
        """End a worker's part; the last one ends the flush."""
        with self.lock:
            self.error = self.error or error
            self.parts_left -= 1
            is_last = self.parts_left == 0
        if is_last:
            self.done(self)


class _Removal:
    """File or tree to be removed, by its present path: its directory may be renamed meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_done = False


class Flusher:
    """File workers, started on first use."""

    def __init__(
        self, wake: Callable[[], None], flush_one: FlushDescriptor = flush_descriptor
    ) -> None:
        self._wake = wake
        self._flush_one = flush_one
        self._jobs: SimpleQueue[tuple[_Flush, Sequence[Flushable]] | None] = SimpleQueue()
        self._removals: SimpleQueue[_Removal | None] = SimpleQueue()
        # Removals that may still be waiting, oldest first, by their directory.
        self._waiting: dict[str, deque[_Removal]] = {}
        self._ended: deque[_Flush] = deque()
        self._workers: list[threading.Thread] = []
        self._remover: threading.Thread | None = None
        self._flush_id = 0

    def begin(self, files: Sequence[Flushable], directories: Sequence[Flushable]) -> int:
        """Begin a flush; it ends as an event of `collect`."""
        self._flush_id += 1
        self._share(self._flush_id, [*files, *directories], self._end)
        return self._flush_id

    def flush(self, files: Sequence[Flushable], directories: Sequence[Flushable]) -> str:
        """Flush and wait for the end; return the error, "" if there was none."""
        every = [*files, *directories]
        if len(every) <= FILES_PER_WORKER_MIN:
            return self._flush_all(every)
        is_done = threading.Event()
        flush = self._share(0, every, lambda _: is_done.set())
        is_done.wait()
        return flush.error

    def collect(self, events: list[Event]) -> None:
        """Collect the flushes that have ended since the last call; in the loop's thread."""
        while self._ended:
            flush = self._ended.popleft()
            events.append(flushed(flush.flush_id, flush.error))

    def begin_remove(self, path: str) -> None:
        """Remove a file or a tree in the worker; a failure is logged."""
        if self._remover is None:
            self._remover = _start("tarry-remover", self._remove_files)
        removal = _Removal(path)
        waiting = self._waiting.setdefault(os.path.dirname(path), deque())
        while waiting and waiting[0].is_done:
            waiting.popleft()
        waiting.append(removal)
        self._removals.put(removal)

    def renamed(self, old: str, new: str) -> None:
        """Note that a directory was renamed: removals in it follow it, and spare a new directory of
        the old name.
        """
        waiting = self._waiting.pop(old, deque())
        for removal in waiting:
            removal.path = f"{new}/{os.path.basename(removal.path)}"
        if waiting and not waiting[-1].is_done:
            self._waiting[new] = waiting

    def close(self, timeout_s: float) -> None:
        """Wait for jobs under way, at most `timeout_s`; no job may be begun afterwards."""
        for _ in self._workers:
            self._jobs.put(None)
        self._removals.put(None)
        end_s = time.monotonic() + timeout_s
        for thread in [*self._workers, *([self._remover] if self._remover else [])]:
            thread.join(max(0.0, end_s - time.monotonic()))

    def _share(
        self, flush_id: int, every: list[Flushable], done: Callable[[_Flush], None]
    ) -> _Flush:
        parts = max(1, min(WORKERS_MAX, len(every) // FILES_PER_WORKER_MIN))
        while len(self._workers) < parts:
            self._workers.append(_start(f"tarry-flusher-{len(self._workers)}", self._flush_files))
        flush = _Flush(flush_id, parts, done)
        for part in range(parts):
            self._jobs.put((flush, every[part::parts]))
        return flush

    def _end(self, flush: _Flush) -> None:
        self._ended.append(flush)
        self._wake()

    # --- In the threads of the workers.

    def _flush_files(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            flush, files = job
            # `files` holds the files until the part has ended, even if the loop drops them.
            flush.end_part(self._flush_all(files))
            del job, files, flush

    def _flush_all(self, files: Sequence[Flushable]) -> str:
        """Flush all files, each once; return the first error, or ""."""
        first = ""
        for file in files:
            try:
                self._flush_one(file.descriptor)
            except OSError as error:
                first = first or f"{file.path or 'the log directory'}: {reason_of(error)}"
        return first

    def _remove_files(self) -> None:
        while True:
            removal = self._removals.get()
            if removal is None:
                return
            try:
                _remove(removal.path)
            except OSError as error:
                logger.warning("%s cannot be removed: %s", removal.path, reason_of(error))
            removal.is_done = True


class UnneededFlusher(Flusher):
    """Flusher without threads, for files that no one needs after the process: a flush ends when it
    begins, and a removal is done at once.
    """

    def begin(self, files: Sequence[Flushable], directories: Sequence[Flushable]) -> int:
        self._flush_id += 1
        self._end(_Flush(self._flush_id, 1, self._end))
        return self._flush_id

    def flush(self, files: Sequence[Flushable], directories: Sequence[Flushable]) -> str:
        return ""

    def begin_remove(self, path: str) -> None:
        _remove(path)


def _remove(path: str) -> None:
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass


def _start(name: str, run: Callable[[], None]) -> threading.Thread:
    # Daemon threads, so that a second signal ends the process at once.
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread

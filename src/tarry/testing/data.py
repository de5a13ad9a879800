"""Temporary directory of a test's broker, which is removed by the process that made it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class TemporaryData:
    """Directory that is removed by `remove`, or at the end of the process at the latest.

    The child of a fork does not remove the directory of its parent.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="tarry-")
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())

    def remove(self) -> None:
        """Remove the directory with all that is in it."""
        self._finalizer()


def _remove(path: str, process_id: int) -> None:
    if os.getpid() == process_id:
        shutil.rmtree(path, ignore_errors=True)

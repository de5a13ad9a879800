"""Streams: stdin, stdout and stderr that are closed, full or read by nobody.

Whoever starts a command may close one of the three (`tarry ... >&-`).  A closed one fails in a
sentence when it is used, and its descriptor is kept from the next file or socket that is opened.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from tarry.base.errors import TarryError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OUTPUT_GONE: Final = (*_FULL, errno.EIO, errno.EBADF)


class ClosedStream(TarryError):
    """The command needs a stream that its parent process has closed."""


def prepare_streams() -> None:
    """Make the three streams usable; characters that cannot be encoded are written as escapes."""
    for handle in (0, 1, 2):
        try:
            os.fstat(handle)
        except OSError:
            # The system opens the lowest free descriptor, which is the closed one.
            os.open(os.devnull, os.O_RDONLY if handle == 0 else os.O_WRONLY)
    # The interpreter has None where a descriptor was closed.
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput()))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_ClosedOutput()))
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class _ClosedInput(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> NoReturn:
        raise ClosedStream("cannot read the input: stdin is closed")


class _ClosedOutput(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> NoReturn:
        raise ClosedStream("cannot write the output: stdout is closed")


def forget_stdout() -> None:
    """Forget stdout, which nobody reads any more; the interpreter must not flush it at its end."""
    try:
        handle = sys.stdout.fileno()
    except (OSError, ValueError):
        if isinstance(getattr(sys.stdout, "buffer", None), io.BufferedWriter):
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)


def sentence_of(error: OSError) -> str:
    """Return a sentence for the user about an error of the system."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    if error.filename is not None:
        name = error.filename
        return f"{os.fsdecode(name) if isinstance(name, bytes) else name}: {reason}"
    if error.errno in _OUTPUT_GONE:
        return f"the output cannot be written: {reason}"
    return reason

"""Durable files: made whole or not at all, by one of several, on a file system that they share."""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

# Begin of the name of what a process left behind that was killed while it created a file.
TEMPORARY: Final = "tmp-"


def create_if_absent(path: Path, content: bytes) -> bool:
    """Create a file with its content, durable; False if one of this name is there already.

    The directory is there.  Of two that create at once one does, on NFS too.  Raises OSError; then
    the file may be there, or not, but never in part.
    """
    temporary = _new_name(path)
    is_made = True
    try:
        _write(temporary, content)
        # A second name is given by one of two only.
        os.link(temporary, path)
    except FileExistsError:
        is_made = False
    finally:
        with suppress(OSError):
            temporary.unlink()
    flush_directory(path.parent)
    return is_made


def replace(path: Path, content: bytes) -> None:
    """Create a file with its content, durable, in place of one that may be there."""
    temporary = _new_name(path)
    try:
        # The name may be durable before the content otherwise: an empty file after a power loss.
        _write(temporary, content)
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
    flush_directory(path.parent)


def _new_name(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")


def _write(path: Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def encode(made: msgspec.Struct) -> bytes:
    """Return the text of a file of JSON, with line breaks for people."""
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def remove_left_over(directory: Path, seconds: float) -> None:
    """Remove what processes that were killed so long ago left of files that they created."""
    with suppress(OSError):
        for path in directory.glob(f"{TEMPORARY}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > seconds:
                    path.unlink()


def flush_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: Path) -> None:
    """Make a directory and those above it, with durable names."""
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        flush_directory(each.parent)

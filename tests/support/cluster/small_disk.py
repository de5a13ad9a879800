"""A small file system of its own that can be filled to its last byte."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

BLOCK = 1 << 16


class SmallDisk:
    """A tmpfs of so many bytes at `directory`; the test is skipped where none can be mounted."""

    def __init__(self, directory: Path, size_bytes: int) -> None:
        self.directory = directory
        self._ballast = directory / "ballast"
        directory.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(directory)],
            capture_output=True,
            text=True,
            check=False,
        )
        if mounted.returncode != 0:
            pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")

    def fill(self) -> None:
        """Take all the room that is left."""
        size = BLOCK
        with self._ballast.open("ab", buffering=0) as file:
            while size:
                try:
                    file.write(bytes(size))
                except OSError as error:
                    assert error.errno == errno.ENOSPC, error
                    size //= 2

    def free(self) -> None:
        """Give the room back."""
        os.unlink(self._ballast)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.directory)], check=True)

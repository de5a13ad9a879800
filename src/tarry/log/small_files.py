"""Small files, read and written as a whole.

A file of checked lines is text: a line that names the format, the lines, and their CRC.
"""

from __future__ import annotations

from tarry.base.doors import Disk
from tarry.base.errors import StorageError
from tarry.wire.crc32c import crc32c


def encode_lines(first_line: str, lines: list[str]) -> bytes:
    """Encode the file's content."""
    body = ("\n".join([first_line, *lines]) + "\n").encode()
    return body + f"crc32c {crc32c(body):08x}\n".encode()


def decode_lines(first_line: str, content: bytes) -> list[str] | None:
    """Decode the lines behind the first one; None if the file is damaged or of another format."""
    body, separator, checksum = content.rpartition(b"crc32c ")
    if not separator or checksum != f"{crc32c(body):08x}\n".encode():
        return None
    lines = body.decode().splitlines()
    return lines[1:] if lines[:1] == [first_line] else None


def read_file(disk: Disk, path: str) -> bytes | None:
    """Read all bytes of a small file; None if it is missing or cannot be read."""
    try:
        file = disk.open(path)
        content = file.read(0, file.size)
    except StorageError:
        return None
    file.close()
    return content


def write_file(disk: Disk, path: str, content: bytes) -> None:
    """Write a small file and flush it and its name; only at start and stop."""
    file = disk.open(path, create=True)
    file.truncate(0)
    file.append([content])
    disk.flush([file], [path.rpartition("/")[0]])
    file.close()

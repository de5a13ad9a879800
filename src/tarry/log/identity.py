"""Identity of a log: the file `partition.metadata` with the topic's id, as Kafka writes it.

The file is made with the log's first bytes and flushed with them, so durable bytes always have one.
A directory whose file names another topic id is left over from a deleted topic.  The third line,
which Kafka does not read, holds the CRC: a flipped bit cannot assign the directory to another
topic.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Disk, LogFile
from tarry.base.ids import id_text
from tarry.log.small_files import read_file
from tarry.wire.crc32c import crc32c

IDENTITY_FILE: Final = "partition.metadata"
_PREFIX: Final = b"version: 0\ntopic_id: "
# Length of a topic id as text: a uuid of 16 bytes in base64 without padding.
_TEXT_CHARACTERS: Final = 22


class LogIdentity:
    """A topic id as text ("" if the log is of no topic), and the state of its file."""

    def __init__(self, directory: str, topic_id: bytes) -> None:
        self.text = id_text(topic_id)
        self.path = f"{directory}/{IDENTITY_FILE}"
        # True until the file is written.
        self.is_missing = bool(topic_id)
        # The file, if it is written and not durable yet.
        self.file: LogFile | None = None

    def save(self, disk: Disk) -> None:
        """Write the file."""
        file = disk.open(self.path, create=True)
        file.truncate(0)
        file.append([_encode(self.text)])
        self.file = file
        self.is_missing = False

    def forget(self) -> None:
        """Forget the file if it was written and not flushed; the next write writes it again."""
        if self.file is not None:
            self.file = None
            self.is_missing = True

    def read(self, disk: Disk) -> str:
        """Read the text in the file; "" if there is none that can be read."""
        content = read_file(disk, self.path) or b""
        text = content[len(_PREFIX) :][:_TEXT_CHARACTERS].decode(errors="replace")
        return text if content == _encode(text) else ""


def _encode(text: str) -> bytes:
    body = _PREFIX + text.encode() + b"\n"
    return body + f"crc32c: {crc32c(body):08x}\n".encode()

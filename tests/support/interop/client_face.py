"""One face for all real clients, so that one suite asks the same of each.

Everything a face does it does by its client; a client that is not installed raises
`ClientMissing` with the reason when its face is made.
"""

from __future__ import annotations

from typing import Final, Protocol

from tests.support.interop.records_sent import ReadRecord, SentRecord
from tests.support.patience import PATIENCE_S

# How long a client may take for one step on a machine that is busy.
STEP_SECONDS_MAX: Final = PATIENCE_S

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class ClientMissing(Exception):
    """The client cannot run here; the text says why."""


class ProducerFace(Protocol):
    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        """Begin to send."""

    def flush(self) -> list[int] | None:
        """Wait for everything sent so far: its offsets, None when the client does not tell them.

        Raises when a record was refused or given up.
        """

    def close(self) -> None: ...


class ClientFace(Protocol):
    name: str
    version: str
    codecs: tuple[str, ...]
    has_admin: bool

    def records(self) -> list[SentRecord]:
        """Records of every kind that the client can send."""

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def producer(
        self, codec: str = "none", acks: str = "all", *, is_idempotent: bool = True
    ) -> ProducerFace: ...

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        """`count` records from `offset` on, by assignment."""

    def end_offset(self, topic: str, partition: int) -> int: ...

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None: ...

    def close(self) -> None: ...

"""Connection of a broker to itself: its questions take the same dispatch as clients' requests.

It has no socket, and the transport ignores its id.  An answer is not sent: it returns at once as an
event of a connection that this broker has made.  Hot.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.base.doors import Chunk, Event, FileRegion, disconnected, received
from tarry.broker.kafka_connection import FrameHandler, KafkaConnection

OWN_PEER = "this broker"


class OwnConnection(KafkaConnection):
    """Connection of this broker to itself; `report` receives its events."""

    def __init__(
        self,
        handler: FrameHandler,
        connection_id: int,
        listener: str,
        bytes_max: int,
        report: Callable[[Event], None],
    ) -> None:
        super().__init__(handler, connection_id, listener, OWN_PEER, bytes_max)
        self._report = report

    def release(self) -> None:
        super().release()
        if not self.out:
            return
        chunks = self.out
        self.out = []
        self.unsent = 0
        self._report(received(self.id, b"".join([_bytes_of(chunk) for chunk in chunks])))

    def drop(self) -> None:
        was_closed = self.is_closed
        super().drop()
        if not was_closed:
            self._report(disconnected(self.id, "this broker has closed it"))


def _bytes_of(chunk: Chunk) -> bytes:
    if isinstance(chunk, FileRegion):
        return chunk.file.read(chunk.position, chunk.size)
    return bytes(chunk)

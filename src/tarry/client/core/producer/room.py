"""Room: a wait for room that takes no record, so that a cancelled wait has sent nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base.errors import NONE
from tarry.client.core.operation import Operation
from tarry.client.errors import BufferFull
from tarry.link.errors import ClientError

if TYPE_CHECKING:
    from tarry.client.core.producer.core import ProducerCore


class PendingRoom(Operation[None]):
    """Operation that waits until an append would take a record of this size, or refuse it."""

    def __init__(self, core: ProducerCore, topic: str, size: int) -> None:
        super().__init__(core.operations)
        self._core = core
        self._topic = topic
        self._size = size

    def look(self, now_ms: int) -> bool:
        core = self._core
        if core.sender.failure is not None or core.metadata.refusal(self._topic) != NONE:
            return True
        if core.metadata.topic(self._topic) is None:
            return False
        return self._size > core.accumulator.record_bytes_max or core.accumulator.has_room(
            self._size
        )

    def answer(self, now_ms: int) -> None:
        """Return nothing: the append raises the error, if there is one."""

    def late_error(self, now_ms: int) -> ClientError:
        return self._core.room_error(self._topic, self.timeout_ms, now_ms)


def no_room_error(core: ProducerCore, topic: str) -> BufferFull:
    """Return why a record was not taken without a wait."""
    if core.metadata.topic(topic) is None:
        return BufferFull(
            f"the partitions of topic {topic!r} are not known yet, and send_nowait does not wait "
            "for them: await send for the first record"
        )
    size = core.producer_settings.buffer_bytes
    return BufferFull(f"buffer.memory ({size} bytes) is full: await send, which waits for room")

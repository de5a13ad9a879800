"""Request and answer as the wire sees them: when delivered, when answered.

Answers of a connection come in the order of its requests, so counting whole answers in the
broker's output tells which requests are answered, before any client has read a byte.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Chunk, FileRegion

_LENGTH_BYTES: Final = 4

# Time that an answer may take beyond the request's own wait: for flushes of metadata, and for a
# round that has to end first.
SLACK_MS: Final = 1_500


class ObservedExchange:
    """Request under way.  Its times and turns are -1 until they come."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.is_answer_expected = True
        # Time that the broker may wait by itself before it answers, in ms.
        self.wait_ms = 0
        self.slack_ms = SLACK_MS
        # True if the request's wait begins again after a stall of the broker's process.
        self.is_stall_forgiven = False
        # Topic id, partition and offset of each place at which a fetch waits for its first byte.
        self.waits_for: list[tuple[bytes, int, int]] = []
        self.end_position = 0
        self.delivered_ms = -1
        self.delivered_turn = -1
        self.answered_ms = -1
        self.answered_turn = -1
        # True if the broker answered while it stopped: it then answers waiting requests early.
        self.is_answered_in_stop = False


class AnswerCounter:
    """Counter of whole answers in a stream of chunks; file regions are not read."""

    def __init__(self) -> None:
        self._length = b""
        self._left = 0

    def take(self, chunks: list[Chunk]) -> int:
        """Return how many answers these chunks complete."""
        completed = 0
        for chunk in chunks:
            position = 0
            size = len(chunk)
            while position < size:
                if len(self._length) < _LENGTH_BYTES:
                    assert not isinstance(chunk, FileRegion), "a frame begins inside a file"
                    part = bytes(chunk[position : position + _LENGTH_BYTES - len(self._length)])
                    self._length += part
                    position += len(part)
                    if len(self._length) == _LENGTH_BYTES:
                        self._left = int.from_bytes(self._length, "big")
                    continue
                step = min(self._left, size - position)
                self._left -= step
                position += step
                if self._left == 0:
                    completed += 1
                    self._length = b""
        return completed

"""Connection of one peer, in any protocol: the bytes to send, and the reasons not to read.

A connection is read while there is no reason to pause.  A subclass makes requests from the bytes
that arrive, and encodes its own answers.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from tarry.base.doors import Chunk
from tarry.base.limits import FRAME_AGE_MS_MAX, UNSENT_BYTES_MAX
from tarry.timer.entry import TimerEntry

# Reasons to pause reading, one bit each.  BEHIND: bytes that have arrived wait for a later turn, or
# the peer has to take answers first.
BEHIND: Final = 1
# SHORT_OF_ROOM: the requests of all connections together hold too many bytes.
SHORT_OF_ROOM: Final = 2


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection:
    """Connection of one peer.  A subclass defines `feed`, and overrides other methods as it
    needs.
    """

    def __init__(self, connection_id: int, listener: str, peer: str) -> None:
        self.id = connection_id
        self.listener = listener
        self.peer = peer
        self.is_closed = False
        # Reasons not to read, as bits; and true if the transport was told to pause.
        self.pauses: i64 = 0
        self.is_reading_paused = False
        # Time at which an unfinished request began, in ms, -1 if there is none; and how long it may
        # take.
        self.begun_ms = -1
        self.age_ms_max = FRAME_AGE_MS_MAX
        # open: whoever takes or hands over bytes of the peer
        self.active_ms = 0
        # open: the duty that watches the peer
        self.watch: TimerEntry | None = None
        # Chunks for the next send, and the bytes that were sent and that the peer has not taken
        # yet.
        self.out: list[Chunk] = []
        self.unsent: i64 = 0
        self.is_queued_to_send = False
        self.is_queued_to_process = False
        # Bytes that `QueuedRequests` has counted for this connection.
        self.queued_bytes: i64 = 0

    # -- bytes in

    def feed(self, data: bytes) -> None:
        """Receive bytes that have arrived."""
        raise NotImplementedError

    def process(self) -> None:
        """Handle the bytes that have arrived; a `ProtocolViolation` closes the connection."""

    def trim(self) -> i64:
        """Return how many bytes have arrived and are not handled; free the memory of handled
        ones.
        """
        return 0

    def has_part(self) -> bool:
        """Return whether only the first part of a request has arrived."""
        return False

    def has_unhandled(self) -> bool:
        """Return whether there are bytes that `process` might handle now."""
        return False

    def is_late(self, now_ms: int) -> bool:
        """Return whether an unfinished request takes too long, as if the peer sends it byte by
        byte.
        """
        return self.begun_ms >= 0 and now_ms - self.begun_ms >= self.age_ms_max

    def resume_request(self, now_ms: int) -> None:
        """Restart the age of an unfinished request: the broker paused reading, not the peer."""
        if self.begun_ms >= 0:
            self.begun_ms = now_ms

    # -- reading

    def pause(self, reason: i64) -> None:
        """Add a reason not to read; `Answers.regulate_reading` applies it."""
        self.pauses |= reason

    def resume(self, reason: i64) -> None:
        """Remove a reason not to read; reading goes on when there is none."""
        self.pauses &= ~reason

    def is_short_of_room(self) -> bool:
        """Return whether reading waits until other connections hold fewer bytes."""
        return self.pauses & SHORT_OF_ROOM != 0

    def is_blocked(self) -> bool:
        """Return whether the next request has to wait until answers are made or taken."""
        return self.unsent >= UNSENT_BYTES_MAX

    # -- bytes out

    def release(self) -> None:
        """Move answers that are ready, in order, to the chunks of the next send."""

    def has_unanswered(self) -> bool:
        """Return whether a request has no answer yet."""
        return False

    def has_waiting(self) -> bool:
        """Return whether a request has no answer yet, or an answer is not sent."""
        return self.has_unanswered() or self.unsent > 0

    def drop(self) -> None:
        """Drop all bytes, and cancel the requests that wait: the peer is gone."""
        self.is_closed = True
        self.out = []
        self.begun_ms = -1

"""Reading of connections: which are read, and a bound on what all of them together have queued.

A connection is not read while its frames wait for answers or for its peer.  Bytes that have arrived
and are not handled are counted, unfinished frames included: one number for the broker, which
changes with each connection's own.  When more than half of `queued.max.request.bytes` is queued,
some connections are read no further: those with an unfinished frame that hold more than their
share, which is that half divided by the number of connections that hold anything.  So small
requests are still served beside frames of 100 MB, and the other half is room for the shares and the
reads of a turn.

Connections that wait for room take turns.  One is read, for GRANT_MS at most or until its frame is
whole, and then the next one.  A peer that does not finish its frame costs one such turn; its
frame's age counts meanwhile, so the connection is closed after a minute.  Turns add up: if all of
`queued.max.request.bytes` is queued at the end of a turn, the waiting connection that holds most is
closed.  So the bytes are bounded by the setting and one frame.  Hot.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from tarry.base.doors import Transport
from tarry.base.limits import GRANT_MS, GRANTS_PER_TURN_MAX, PRESSURE_LINE_MS
from tarry.base.turn import Turn
from tarry.broker.connection import BEHIND, SHORT_OF_ROOM, Connection
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")

_NEVER: Final = -1


class Closer:
    """Closer of connections: what this module needs of `Answers`."""

    def close(self, connection: Connection, reason: str) -> None:
        """Close a connection because of what its peer did."""
        raise NotImplementedError


class QueuedRequests(TimerEntry):
    """Entry that decides which connections are read; it is due while connections wait for room."""

    def __init__(
        self,
        turn: Turn,
        transport: Transport,
        timer: TimingWheel,
        closer: Closer,
        queued_bytes_max: int,
    ) -> None:
        super().__init__(0)
        self._turn = turn
        self._transport = transport
        self._timer = timer
        # Number of queued bytes above which shares count.
        self._room: i64 = queued_bytes_max // 2
        self.queued_bytes: i64 = 0
        # Closes a connection, which is then removed here.
        self._closer = closer
        self._holders: i64 = 0
        # Connections that wait for room, in the order in which they are read again.
        self._waiting: dict[int, Connection] = {}
        self._granted: Connection | None = None
        self._told_ms: i64 = _NEVER

    def regulate(self, connection: Connection) -> None:
        """Pause or resume a connection, depending on the bytes that it holds and on what it
        waits for.
        """
        held = connection.trim()
        if held != connection.queued_bytes:
            self._count(connection, held)
        if connection.is_blocked() or connection.has_unhandled():
            connection.pause(BEHIND)
        else:
            connection.resume(BEHIND)
        must_pause = connection.pauses != 0
        if must_pause == connection.is_reading_paused:
            return
        connection.is_reading_paused = must_pause
        if must_pause:
            self._transport.pause_reading(connection.id)
        else:
            connection.resume_request(self._turn.now_ms)
            self._transport.resume_reading(connection.id)

    def forget(self, connection: Connection) -> None:
        """Stop counting a connection, because it is closed."""
        if connection.queued_bytes:
            self._count(connection, 0)

    def _count(self, connection: Connection, held: i64) -> None:
        before = connection.queued_bytes
        connection.queued_bytes = held
        self.queued_bytes += held - before
        if before == 0:
            self._holders += 1
        if held == 0:
            self._holders -= 1
            self._on_emptied(connection)
        elif (
            self.queued_bytes > self._room
            and connection.has_part()
            and held >= self._room // self._holders
            and not connection.is_short_of_room()
            and connection is not self._granted
        ):
            self._make_wait(connection)

    def _on_emptied(self, connection: Connection) -> None:
        if connection.is_short_of_room():
            connection.resume(SHORT_OF_ROOM)
            del self._waiting[connection.id]
        if connection is self._granted:
            self._grant_next()

    def _make_wait(self, connection: Connection) -> None:
        connection.pause(SHORT_OF_ROOM)
        self._waiting[connection.id] = connection
        if self._granted is None:
            self._grant_next()
        if not self.is_pending:
            self._tell()
            self.deadline_ms = self._turn.now_ms + GRANT_MS
            self._timer.add(self)

    def _grant_next(self) -> None:
        self._granted = None
        for connection in self._waiting.values():
            self._granted = connection
            break
        if self._granted is not None:
            self._read_on(self._granted)

    def _read_on(self, connection: Connection) -> None:
        del self._waiting[connection.id]
        connection.resume(SHORT_OF_ROOM)
        # The frame keeps its age: it began long ago, even if the broker did not read it.
        begun_ms = connection.begun_ms
        self.regulate(connection)
        connection.begun_ms = begun_ms

    def expire(self) -> None:
        """End a turn of reading and begin the next; read all connections if there is room again."""
        if self.queued_bytes <= self._room:
            self._read_all()
        else:
            self._end_grant(self._granted)
        if self._waiting or self._has_granted():
            self.deadline_ms = self._turn.now_ms + GRANT_MS
            self._timer.add(self)

    def _read_all(self) -> None:
        self._granted = None
        for connection in list(self._waiting.values())[:GRANTS_PER_TURN_MAX]:
            self._read_on(connection)

    def _end_grant(self, granted: Connection | None) -> None:
        if granted is not None and granted.has_part() and not granted.is_closed:
            granted.pause(SHORT_OF_ROOM)
            self._waiting[granted.id] = granted
        while self.queued_bytes > 2 * self._room and self._waiting:
            self._close_largest()
        self._grant_next()
        # The connection may be the only one that waits, and be read again.
        if granted is not None and granted.is_short_of_room():
            self.regulate(granted)

    def _close_largest(self) -> None:
        largest: Connection | None = None
        most: i64 = -1
        for connection in self._waiting.values():
            if connection.queued_bytes > most:
                largest, most = connection, connection.queued_bytes
        assert largest is not None
        self._closer.close(
            largest,
            f"there is no room for the rest of its request: {most} bytes of it have come, and "
            "all connections together hold as much as queued.max.request.bytes allows",
        )

    def _has_granted(self) -> bool:
        return self._granted is not None

    def _tell(self) -> None:
        now_ms = self._turn.now_ms
        if self._told_ms != _NEVER and now_ms - self._told_ms < PRESSURE_LINE_MS:
            return
        self._told_ms = now_ms
        logger.warning(
            "%d bytes of unfinished or unhandled requests of %d connections are more than half "
            "of queued.max.request.bytes (%d): those that hold most are read in turns",
            self.queued_bytes,
            self._holders,
            self._room * 2,
        )

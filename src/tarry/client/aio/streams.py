"""Streams of one client, which an event loop watches."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial

from tarry.client.face.streams import (
    READING,
    WRITING,
    Stream,
    Streams,
    addresses_of,
    lookup_flaw,
)
from tarry.client.settings import ClientSettings
from tarry.link.events import Address, Resolve, Resolved

# Rows that `getaddrinfo` returns.
AddressRows = Sequence[tuple[object, ...]]


class LoopStreams(Streams):
    """The connections of one client, and its look-ups of host names; calls `on_event` when there
    are events."""

    def __init__(
        self,
        settings: ClientSettings,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[], None],
    ) -> None:
        super().__init__(settings)
        self._loop = loop
        self._on_event = on_event
        # Empty context of the loop's calls, instead of a copy of the one that is current by chance.
        self._context = Context()
        # Look-ups under way, as an ordered set.
        self._lookups: dict[asyncio.Task[AddressRows], None] = {}

    def watch(self, stream: Stream, interest: int) -> None:
        if self._loop.is_closed():
            # A closed loop watches no sockets.
            return
        changed = stream.interest ^ interest
        if changed & READING:
            self._watch_one(stream, interest & READING, READING)
        if changed & WRITING:
            self._watch_one(stream, interest & WRITING, WRITING)

    def _watch_one(self, stream: Stream, wanted: int, way: int) -> None:
        loop = self._loop
        if wanted:
            add = loop.add_reader if way == READING else loop.add_writer
            self._context.run(add, stream.handle, partial(self._on_ready, stream, way))
        elif way == READING:
            loop.remove_reader(stream.handle)
        else:
            loop.remove_writer(stream.handle)

    def _on_ready(self, stream: Stream, way: int) -> None:
        self.happened(stream, way)
        if self.events:
            self._on_event()

    def look_up(self, output: Resolve) -> None:
        host, port = output.address
        task = self._loop.create_task(
            self._rows_of(host, port), name=f"tarry-resolve-{host}", context=Context()
        )
        self._lookups[task] = None
        # If a task is cancelled before its first step, only its callbacks run.
        task.add_done_callback(partial(self._on_looked_up, output), context=Context())

    async def _rows_of(self, host: str, port: int) -> AddressRows:
        return await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    def _on_looked_up(self, output: Resolve, task: asyncio.Task[AddressRows]) -> None:
        self._lookups.pop(task, None)
        host, port = output.address
        addresses: list[Address] = []
        error = ""
        try:
            addresses = addresses_of(task.result(), port)
        except (OSError, UnicodeError) as failure:
            error = lookup_flaw(host, failure)
        except asyncio.CancelledError:
            if self.is_closed:
                return
            # The program may cancel all tasks that it finds.  The core looks the name up again.
            error = f"the look-up of the name {host} was cancelled"
        self.events.append(Resolved(output.connection_id, addresses, error))
        self._on_event()

    def close(self) -> None:
        """Close all connections and cancel the look-ups; `settle` waits for the end of these."""
        super().close()
        if not self._loop.is_closed():
            for task in self._lookups:
                task.cancel()

    async def settle(self) -> None:
        """Wait until the cancelled look-ups have left the loop."""
        if self._lookups:
            await asyncio.wait(list(self._lookups))

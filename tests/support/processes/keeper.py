"""A stand-in for the broker: keeps what it is sent in a file and answers when that is durable.

Run as a script: `keeper.py MODE key=value...`; the first line of its output is its port.
"""

from __future__ import annotations

import sys

import click

from tarry.base.doors import (
    FLUSHED,
    RECEIVED,
    STOP_REQUESTED,
    Disk,
    Event,
    Random,
    Transport,
)
from tarry.base.errors import StorageError
from tarry.base.settings import Settings
from tarry.cli.main import FAILED, START_REFUSED
from tarry.runtime.loop import STOP_MS_MAX, run
from tarry.runtime.refusal import StartRefused

# The loop's patience with a keeper that is left alone.
LEFT_STOP_MS_MAX = 1_000


class Keeper:
    """MODE "deaf" ignores a stop.  So does "left", which the loop leaves after a second.  "broken"
    stops by itself at the first bytes.
    """

    def __init__(self, disk: Disk, transport: Transport, mode: str, now_ms: int) -> None:
        self.disk = disk
        self.transport = transport
        self.mode = mode
        self.file = disk.open("kept", create=True)
        self.waiting: dict[int, list[tuple[int, bytes]]] = {}
        self.now_ms = now_ms
        self.is_stopping = False
        self.stop_reason = ""

    @property
    def is_stopped(self) -> bool:
        if self.mode in ("deaf", "left"):
            return False
        return bool(self.stop_reason) or (self.is_stopping and not self.waiting)

    @property
    def logs_opened(self) -> int:
        return 0

    def next_due_ms(self) -> int:
        return self.now_ms + 60_000

    def turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None:
        self.now_ms = now_ms
        for event in events:
            if event.kind == RECEIVED:
                self.keep(event.connection_id, event.data)
            elif event.kind == FLUSHED:
                for connection_id, data in self.waiting.pop(event.flush_id):
                    self.transport.send(connection_id, [b"kept ", data])
            elif event.kind == STOP_REQUESTED:
                self.is_stopping = True

    def keep(self, connection_id: int, data: bytes) -> None:
        if self.mode == "broken":
            self.stop_reason = "it broke"
        self.file.append([data])
        flush_id = self.disk.begin_flush([self.file], [""])
        self.waiting[flush_id] = [(connection_id, data)]


def main() -> int:
    mode, *assignments = sys.argv[1:]

    def start(
        disk: Disk,
        transport: Transport,
        random: Random,
        settings: Settings,
        now_ms: int,
        now_wall_ms: int,
    ) -> Keeper:
        if mode == "refusing":
            raise StorageError("kept: Input/output error")
        return Keeper(disk, transport, mode, now_ms)

    settings = Settings(dict(word.split("=", 1) for word in assignments))
    try:
        reason = run(
            settings,
            start,
            lambda s: click.echo(s.open_listeners[0].port),
            stop_ms_max=LEFT_STOP_MS_MAX if mode == "left" else STOP_MS_MAX,
        )
    except StartRefused as refusal:
        click.echo(str(refusal))
        return START_REFUSED
    click.echo(reason)
    return FAILED if reason else 0


if __name__ == "__main__":
    sys.exit(main())

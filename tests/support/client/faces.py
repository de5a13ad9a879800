"""The faces of the client behind one interface, for tests that hold for each of them.

A test calls the client as its users do and gives what comes to `run`: an answer is handed through,
a coroutine is run to its end.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any

import pytest

import tarry.client
from tarry.client import aio


class SyncFace:
    """The synchronous face."""

    Admin: Any = tarry.client.Admin
    Consumer: Any = tarry.client.Consumer
    Listener: Any = tarry.client.Listener
    Producer: Any = tarry.client.Producer

    def run(self, given: Any) -> Any:
        return given

    def outcome(self, receipt: Any) -> Any:
        return receipt.result()

    def take(self, iterable: Any, count: int) -> list[Any]:
        return list(itertools.islice(iterable, count))

    def leave(self, client: Any, error: type[BaseException] | None = None) -> None:
        client.__exit__(error, None if error is None else error(), None)

    def close(self) -> None:
        """Do nothing: nothing is left."""


class AioFace:
    """The face for asyncio, in one loop from the first call to the last."""

    Admin: Any = aio.Admin
    Consumer: Any = aio.Consumer
    Listener: Any = aio.Listener
    Producer: Any = aio.Producer

    def __init__(self, loop_module: str) -> None:
        factory = pytest.importorskip(loop_module).new_event_loop
        self.runner = asyncio.Runner(loop_factory=factory)

    def run(self, given: Any) -> Any:
        if not isinstance(given, Awaitable):
            return given

        async def wait() -> Any:
            return await given

        return self.runner.run(wait())

    def outcome(self, receipt: Any) -> Any:
        return self.run(receipt)

    def take(self, iterable: Any, count: int) -> list[Any]:
        async def take() -> list[Any]:
            taken: list[Any] = []
            async for piece in iterable:
                taken.append(piece)
                if len(taken) == count:
                    break
            return taken

        return list(self.runner.run(take()))

    def leave(self, client: Any, error: type[BaseException] | None = None) -> None:
        self.run(client.__aexit__(error, None if error is None else error(), None))

    def close(self) -> None:
        self.runner.close()


FACES = ("sync", "asyncio", "uvloop")


def make_face(name: str) -> SyncFace | AioFace:
    return SyncFace() if name == "sync" else AioFace(name)

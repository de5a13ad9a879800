"""The faces of the client behind one interface, for tests that hold for each of them.

A test calls the client as its users do and gives what comes to `run`: an answer is handed through,
a coroutine is run to its end.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Coroutine, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest
from tests.support.patience import PATIENCE_S

import tarry.client
from tarry.client import aio
from tarry.client.arrow import ArrowConsumer, ArrowProducer, TableReceipt


class SyncFace:
    """The synchronous face."""

    Admin: Any = tarry.client.Admin
    Consumer: Any = tarry.client.Consumer
    Listener: Any = tarry.client.Listener
    Producer: Any = tarry.client.Producer

    def run(self, given: Any) -> Any:
        return given

    def step(self, given: Any) -> None:
        """Take the first step of a call that is made where nothing can be awaited."""

    def outcome(self, receipt: Any) -> Any:
        return receipt.result()

    def take(self, consumer: Any, count: int) -> list[Any]:
        """Take so many records out of an iteration, and leave it."""
        return list(itertools.islice(consumer, count))

    def take_batch(self, consumer: Any, count: int) -> list[bytes | None]:
        """Take one batch of so many records at most out of an iteration: its values."""
        (group,) = itertools.islice(consumer.batches(max_records=count), 1)
        return [record.value for record in group.records]

    def read(self, consumer: Any, count: int) -> list[bytes | None]:
        """Poll until so many records have come: their values."""
        values: list[bytes | None] = []
        while len(values) < count:
            for group in self.run(consumer.poll(PATIENCE_S)):
                values += [record.value for record in group.records]
        return values

    def committed_by(self, record: Any) -> Any:
        """Return what a commit behind this record takes."""
        return record

    def leave(self, client: Any, error: type[BaseException] | None = None) -> None:
        client.__exit__(error, None if error is None else error(), None)

    def close(self) -> None:
        """Do nothing: nothing is left."""


class RowReceipt:
    """Receipt of a table with one row, asked as that of a record is."""

    def __init__(self, receipt: TableReceipt) -> None:
        self._receipt = receipt
        (self._batch,) = receipt.batches

    def result(self) -> RowReceipt:
        self._receipt.result()
        return self

    @property
    def offset(self) -> int:
        return self._batch.offset

    @property
    def partition(self) -> int:
        return self._batch.partition


class RowProducer(ArrowProducer):
    """Producer of tables that sends each record as a table with one row."""

    def send(  # type: ignore[override]  # a record again instead of a table
        self,
        topic: str,
        value: object = None,
        *,
        headers: Any = None,
        **columns: object,
    ) -> Any:
        given = {"value": [value], **{name: [one] for name, one in columns.items()}}
        if headers is not None:
            pairs = headers.items() if isinstance(headers, dict) else headers
            given["headers"] = [[{"key": name, "value": one} for name, one in pairs]]
        return RowReceipt(super().send(topic, import_module("pyarrow").table(given)))


class Row(NamedTuple):
    """Row with the batch that it is alone in."""

    value: bytes | None
    key: bytes | None
    offset: int
    headers: list[tuple[str, bytes | None]]
    timestamp: int
    batch: Any


class ArrowFace(SyncFace):
    """The Arrow face: a record is a table with one row.  The administrator is the synchronous one,
    and `poll` gives records there too."""

    Consumer = ArrowConsumer
    Producer = RowProducer

    def __init__(self) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install tarry[arrow]")

    def take(self, consumer: Any, count: int) -> list[Any]:
        batches: Iterator[Any] = itertools.islice(consumer.batches(max_rows=1), count)
        return [_row_of(batch) for batch in batches]

    def take_batch(self, consumer: Any, count: int) -> list[bytes | None]:
        (batch,) = itertools.islice(consumer.batches(max_rows=count, columns=["value"]), 1)
        return list(batch["value"].to_pylist())

    def read(self, consumer: Any, count: int) -> list[bytes | None]:
        values: list[bytes | None] = []
        # A loop that is left has not asked for the next batch, which would be taken along.
        for batch in consumer.batches(columns=["value"]):
            values += batch["value"].to_pylist()
            if len(values) >= count:
                break
        return values

    def committed_by(self, record: Any) -> Any:
        return record.batch


def _row_of(batch: Any) -> Row:
    (row,) = batch.to_pylist()
    headers = [(pair["key"], pair["value"]) for pair in row["headers"]]
    timestamp = int(row["timestamp"].timestamp() * 1000)
    return Row(row["value"], row["key"], row["offset"], headers, timestamp, batch)


class AioFace(SyncFace):
    """The face for asyncio, in one loop from the first call to the last."""

    Admin: Any = aio.Admin
    Consumer: Any = aio.Consumer
    Listener: Any = aio.Listener
    Producer: Any = aio.Producer

    def __init__(self, loop_module: str) -> None:
        factory = pytest.importorskip(loop_module).new_event_loop
        self.runner = asyncio.Runner(loop_factory=factory)
        # A loop is there before its clients are.
        self.runner.get_loop()

    def run(self, given: Any) -> Any:
        if not isinstance(given, Awaitable):
            return given

        async def wait() -> Any:
            return await given

        return self.runner.run(wait())

    def step(self, given: Any) -> None:
        if isinstance(given, Coroutine):
            given.send(None)

    def outcome(self, receipt: Any) -> Any:
        return self.run(receipt)

    def take(self, consumer: Any, count: int) -> list[Any]:
        return self._taken(consumer, count)

    def take_batch(self, consumer: Any, count: int) -> list[bytes | None]:
        (group,) = self._taken(consumer.batches(max_records=count), 1)
        return [record.value for record in group.records]

    def _taken(self, iterable: Any, count: int) -> list[Any]:
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


FACES = ("sync", "asyncio", "uvloop", "arrow")

# Those that have an object for each record.
FACES_OF_RECORDS = ("sync", "asyncio", "uvloop")


def make_face(name: str) -> SyncFace:
    if name == "arrow":
        return ArrowFace()
    return SyncFace() if name == "sync" else AioFace(name)

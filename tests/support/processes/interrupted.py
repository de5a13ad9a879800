"""Program: Ctrl-C again and again, in every call that waits; nothing may be lost by it.

python interrupted.py BOOTSTRAP TOPIC FACE

Writes whether many interrupts came out of each kind of call, and how many records were read.  For
asyncio Ctrl-C is what the standard library's runner makes of it: the task is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

from tests.support.client.faces import AioFace, make_face

RECORDS = 400
INTERRUPT_S = 0.004
WAITING = (
    *(f"tarry/client/sync/{name}.py" for name in ("driver", "interrupts", "sockets")),
    "selectors.py",
)

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic, name = sys.argv[1:]
face = make_face(name)
place = (topic, 0)
producer = face.Producer(bootstrap_servers=bootstrap, linger_ms=2)
consumer = face.Consumer(
    topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest"
)
admin = face.Admin(bootstrap_servers=bootstrap)
came: dict[str, int] = {}
is_armed = False
in_a_row = 0
is_over = threading.Event()
task: asyncio.Task[None] | None = None


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise only where a client waits or lets through what it held back; cancel a task anywhere.

    Python may run a handler between the return of a call and the assignment of what it returned,
    the more so the longer the call was in compiled code: that record would be the test's to lose.
    """
    if not is_armed:
        return
    if isinstance(face, AioFace):
        if task is not None:
            task.cancel()
    elif sys._getframe(1).f_code.co_filename.endswith(WAITING):
        raise KeyboardInterrupt


def interrupt() -> None:
    # A busy machine gets nothing done in a few milliseconds: it has more until a call ends.
    while not is_over.wait(INTERRUPT_S * (1 + in_a_row)):
        os.kill(os.getpid(), signal.SIGINT)


async def keep(awaitable: Awaitable[Any], kept: list[Any]) -> None:
    """Await and keep the answer at once: a task that is cancelled in its last step loses it."""
    global task
    task = asyncio.current_task()
    try:
        kept.append(await awaitable)
    finally:
        task = None


def call(what: str, function: Callable[[], Any]) -> Any:
    """Make a call; None if it was interrupted."""
    global is_armed, in_a_row
    kept: list[Any] = []
    is_armed = True
    try:
        answer = function()
        if isinstance(answer, Awaitable):
            face.run(keep(answer, kept))
        else:
            kept.append(answer)
        is_armed = False
        in_a_row = 0
    except (KeyboardInterrupt, asyncio.CancelledError):
        is_armed = False
        in_a_row += 1
        came[what] = came.get(what, 0) + 1
    return kept[0] if kept else None


def call_until_done(what: str, function: Callable[[], Any]) -> None:
    before = -1
    while before != came.get(what, 0):
        before = came.get(what, 0)
        call(what, function)


def result(receipt: Any) -> Any:
    """Wait for a record: by a method, or as what is awaited itself."""
    return receipt if isinstance(receipt, Awaitable) else receipt.result()


def first() -> Any:
    """Take the next value by an iteration."""
    return first_awaited() if isinstance(face, AioFace) else face.take_batch(consumer, 1)[0]


async def first_awaited() -> Any:
    async for record in consumer:
        return record.value
    return None


signal.signal(signal.SIGINT, on_interrupt)
interrupter = threading.Thread(target=interrupt)
interrupter.start()
for number in range(RECORDS):
    receipt = face.run(producer.send(topic, b"%d" % number))
    if number % 10 == 0:
        call_until_done("result", lambda receipt=receipt: result(receipt))  # type: ignore[misc]
    elif number % 10 == 5:
        call_until_done("flush", producer.flush)
seen: list[bytes | None] = []
while len(seen) < RECORDS // 2:
    for group in call("poll", lambda: consumer.poll(0.05, max_records=3)) or []:
        seen += [record.value for record in group.records]
    call("commit", consumer.commit)
    call("list_topics", admin.list_topics)
while len(seen) < RECORDS:
    value = call("iteration", first)
    if value is not None:
        seen.append(value)
kinds = ("result", "flush", "poll", "commit", "list_topics")
while not all(came.get(what) for what in kinds) or sum(came.values()) <= 20:
    # A quick machine: on until each kind of wait has met one.
    more = face.run(producer.send(topic, b"more"))
    call("result", lambda more=more: result(more))
    face.run(producer.send(topic, b"more"))
    call("flush", producer.flush)
    call("poll", lambda: consumer.poll(0.01))
    call("commit", consumer.commit)
    call("list_topics", admin.list_topics)
is_over.set()
interrupter.join()
call_until_done("commit", consumer.commit)
committed = face.run(consumer.committed([place]))[place]
for client in (consumer, producer, admin):
    face.run(client.close())
face.close()
assert committed is not None
assert seen == [b"%d" % number for number in range(RECORDS)], seen
sys.stdout.write(f"{sum(came.values()) > 20} {len(seen)}")

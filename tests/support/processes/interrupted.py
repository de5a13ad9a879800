"""Program: Ctrl-C again and again, in every call that waits; nothing may be lost by it.

python interrupted.py BOOTSTRAP TOPIC

Writes how many interrupts came out of each kind of call, and what was read.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from tarry.client import Admin, Consumer, Producer

RECORDS = 400
INTERRUPT_S = 0.004
WAITING = (
    *(f"tarry/client/sync/{name}.py" for name in ("driver", "interrupts", "sockets")),
    "selectors.py",
)

bootstrap, topic = sys.argv[1:]
place = (topic, 0)
producer = Producer(bootstrap_servers=bootstrap, linger_ms=2)
consumer = Consumer(topic, bootstrap_servers=bootstrap, group_id="i", auto_offset_reset="earliest")
admin = Admin(bootstrap_servers=bootstrap)
came: dict[str, int] = {}
is_armed = False
in_a_row = 0
is_over = threading.Event()

Answer = TypeVar("Answer")


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise only where a client waits or lets through what it held back.

    Python may run a handler between the return of a call and the assignment of what it returned,
    the more so the longer the call was in compiled code: that record would be the test's to lose.
    """
    if is_armed and sys._getframe(1).f_code.co_filename.endswith(WAITING):
        raise KeyboardInterrupt


def interrupt() -> None:
    # A busy machine gets nothing done in a few milliseconds: it has more until a call ends.
    while not is_over.wait(INTERRUPT_S * (1 + in_a_row)):
        os.kill(os.getpid(), signal.SIGINT)


def call(what: str, function: Callable[[], Answer]) -> Answer | None:
    """Make a call; None if it was interrupted."""
    global is_armed, in_a_row
    is_armed = True
    try:
        answer = function()
        is_armed = False
        in_a_row = 0
        return answer
    except KeyboardInterrupt:
        is_armed = False
        in_a_row += 1
        came[what] = came.get(what, 0) + 1
        return None


def call_until_done(what: str, function: Callable[[], Answer]) -> None:
    while call(what, function) is None:
        pass


def flush() -> bool:
    producer.flush()
    return True


def commit() -> bool:
    consumer.commit()
    return True


signal.signal(signal.SIGINT, on_interrupt)
interrupter = threading.Thread(target=interrupt)
interrupter.start()
for number in range(RECORDS):
    receipt = producer.send(topic, b"%d" % number)
    if number % 10 == 0:
        call_until_done("result", receipt.result)
    elif number % 10 == 5:
        call_until_done("flush", flush)
seen: list[bytes | None] = []
while len(seen) < RECORDS // 2:
    for group in call("poll", lambda: consumer.poll(0.05, max_records=3)) or []:
        seen += [record.value for record in group.records]
    call("commit", commit)
    call("list_topics", admin.list_topics)
while len(seen) < RECORDS:
    record = call("iteration", lambda: next(iter(consumer)))
    if record is not None:
        seen.append(record.value)
kinds = ("result", "flush", "poll", "commit", "list_topics")
while not all(came.get(what) for what in kinds) or sum(came.values()) <= 20:
    # A quick machine: on until each kind of wait has met one.
    call("result", producer.send(topic, b"more").result)
    producer.send(topic, b"more")
    call("flush", flush)
    call("poll", lambda: consumer.poll(0.01))
    call("commit", commit)
    call("list_topics", admin.list_topics)
is_over.set()
interrupter.join()
call_until_done("commit", commit)
committed = consumer.committed([place])[place]
for client in (consumer, producer, admin):
    client.close()
assert committed is not None
assert seen == [b"%d" % number for number in range(RECORDS)], seen
sys.stdout.write(f"{sum(came.values()) > 20} {len(seen)}")

"""Program: forks in the places where a client calls the user, and while a call waits.

python fork_inside_calls.py BOOTSTRAP TOPIC

A child returns into the call that it was forked in.  What that raises it writes, with the place.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from tarry.client import ClientForked, Consumer, Listener, Producer, Receipt

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=bootstrap)
told: list[str] = []


def fork() -> bool:
    """Fork, and wait for the child; true in the child."""
    child = os.fork()
    if child == 0:
        return True
    told.append(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    return False


def expect_refusal(call: Callable[[], object]) -> None:
    """Make a call in which a child is forked."""
    parent = os.getpid()
    try:
        call()
    except ClientForked:
        assert os.getpid() != parent
        os._exit(7)
    assert os.getpid() == parent


class Forking(Listener):
    def on_assigned(self, consumer: Consumer, places: list[tuple[str, int]]) -> None:
        fork()


def on_alarm(number: int, frame: FrameType | None) -> None:
    fork()


def on_delivery(receipt: Receipt) -> None:
    if fork():
        # The thread that calls back is the child's only one.
        try:
            producer.send(topic, b"by a child")
        except ClientForked:
            os._exit(7)


for number in range(10):
    producer.send(topic, b"%d" % number).result()

consumer = Consumer(
    topic,
    listener=Forking(),
    bootstrap_servers=bootstrap,
    group_id="inside",
    auto_offset_reset="earliest",
)
expect_refusal(lambda: consumer.poll(30.0))
consumer.seek_to_beginning()
seen: list[bytes | None] = []


def iterate() -> None:
    for record in consumer:
        seen.append(record.value)
        if record.offset == 4:
            fork()
        if len(seen) == 10:
            break


expect_refusal(iterate)
signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.02)
expect_refusal(lambda: [consumer.poll(0.2) for _ in iter(lambda: len(told), 3)])
producer.send(topic, b"10", on_delivery=on_delivery).result()
producer.flush()
consumer.close()
producer.close()
assert seen == [b"%d" % number for number in range(10)], seen
sys.stdout.write(" ".join(told))

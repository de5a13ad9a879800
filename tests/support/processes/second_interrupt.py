"""Program: a second Ctrl-C comes while the first one is on its way out of a call that waits.

python second_interrupt.py BOOTSTRAP TOPIC

Writes how often the handler ran, and the offsets of two records: one under way, one behind it.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.support.patience import PATIENCE_S

from tarry.client import Producer
from tarry.client.sync.driver import Driver
from tarry.client.sync.interrupts import Interrupts
from tarry.client.sync.sockets import Sockets

# Warnings of what takes long are no fault, and stderr is for faults.
logging.disable()

bootstrap, topic = sys.argv[1:]
came = 0


def on_interrupt(number: int, frame: FrameType | None) -> None:
    global came
    came += 1
    raise KeyboardInterrupt


def interrupted(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return the function with Ctrl-C at its beginning, once: when a call drives and so many
    came before."""

    def begin(*arguments: Any) -> Any:
        is_driving = sys._getframe(1).f_code is Driver._drive_in_role.__code__
        # The first look at the sockets waits for nothing, and holds the signals back.
        if is_driving and came == number and arguments[1:] != (0,):
            signal.raise_signal(signal.SIGINT)
        return function(*arguments)

    return begin


signal.signal(signal.SIGINT, on_interrupt)
producer = Producer(bootstrap_servers=bootstrap, linger_ms=50)
first = producer.send(topic, b"first")
# The first where the client waits, the second where it takes the signals back.
Sockets.wait = interrupted(Sockets.wait, 0)  # type: ignore[method-assign]
Interrupts.hold = interrupted(Interrupts.hold, 1)  # type: ignore[method-assign]
with contextlib.suppress(KeyboardInterrupt):
    first.result(PATIENCE_S)
second = producer.send(topic, b"second")
offsets = [receipt.result(PATIENCE_S).offset for receipt in (first, second)]
producer.close()
sys.stdout.write(f"{came} {offsets}")
